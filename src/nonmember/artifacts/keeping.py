"""Maintenance of a store: list entries and what needs them, verify, remove."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from nonmember.artifacts.store import SIDECAR, Store, key_hash
from nonmember.runtime.files import locked

ANSWERS = "completions"  # tables that grow; no entries, since they are never complete
NOTES = "notes"  # on models and what they read, made again in a moment; no entries, since no result rests on one
PARTIAL, REMOVED = ".partial-", ".removed-"


@dataclass(frozen=True)
class Kept:
    """One complete entry. rests_on: hashes of all that its key is made of, among them the entries it was made from."""

    path: Path

    @property
    def kind(self) -> str:
        return self.path.parent.name

    @property
    def hash(self) -> str:
        return self.path.name.rpartition("-")[2]

    @property
    def label(self) -> str:
        return self.path.name.rpartition("-")[0]

    @cached_property
    def sidecar(self) -> dict[str, Any]:
        """Raises ValueError where it cannot be read."""
        try:
            read = json.loads((self.path / SIDECAR).read_text(encoding="utf-8"))
            return {"key": read["key"], "facts": read["facts"], "files": dict(read["files"]), **read}
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise ValueError(f"The store entry {self.path} is damaged: its {SIDECAR} cannot be read.") from error

    @cached_property
    def rests_on(self) -> frozenset[str]:
        return frozenset(key_hash(part) for part in _mappings_in(self.sidecar["key"])) - {self.hash}

    @cached_property
    def size(self) -> int:
        return size_of(self.path)

    @property
    def made_at(self) -> float:
        """Seconds since 1970."""
        return (self.path / SIDECAR).stat().st_mtime


def entries(root: Path) -> list[Kept]:
    """The complete ones, by kind and label. Raises ValueError where there is no store, as in the folder above one."""
    kinds = [path.name for path in sorted(root.iterdir()) if path.is_dir()] if root.is_dir() else []
    paths = [path for kind in kinds if kind != NOTES for path in Store(root).sidecars(kind)]
    others = (path for path in root.glob("*/[!.]*") if path.parent.name not in (NOTES, ANSWERS))
    if not root.is_dir() or (not paths and any(others)):
        raise ValueError(f"There is no store in {root}. Name its folder (--store), such as outputs/store.")
    return [Kept(path.parent) for path in sorted(paths)]


def unfinished(root: Path) -> list[Path]:
    """What killed runs left, from which a training goes on if it is started again; and what is being made now."""
    return sorted(path for path in root.glob(f"*/{PARTIAL}*") if path.is_dir())


def answers(root: Path) -> list[Path]:
    """Tables of what endpoints answered."""
    return sorted(path for path in (root / ANSWERS).glob("[!.]*") if path.is_dir())


def users_of(kept: Iterable[Kept], results: Mapping[str, Mapping[str, str]]) -> dict[Path, list[str]]:
    """Entry -> names of the results that need it, to be made again or read closer.

    results: name -> the hashes in its provenance, by role. A result needs its models, what those are made of, and what
    these models were observed to say of its documents. Corpora are found by recipes that results do not repeat; what
    all corpora are cut from counts as needed by every result.
    """
    there = {item.hash: item for item in kept if item.kind != "corpora"}
    named = {name: set(keys.values()) for name, keys in results.items()}
    known = set().union(*named.values()) if named else set()
    users: dict[Path, list[str]] = {item.path: [] for item in kept}
    for name, hashes in named.items():
        # A key repeats those of all before it.
        needed = set(hashes).union(*(there[digest].rests_on for digest in hashes if digest in there))
        for item in kept:
            if item.kind == "corpora" or item.hash in needed or _observes(item, hashes, known):
                users[item.path].append(name)
    return users


def _observes(entry: Kept, hashes: set[str], known: set[str]) -> bool:
    """Whether it is what one of the models says of documents of the result; or of documents of which no result tells,
    such as third texts of gates."""
    key = entry.sidecar["key"]
    models = {key_hash(part) for part in key.values() if isinstance(part, Mapping)}
    if entry.kind != "observations" or not models & hashes:
        return False
    corpus = key.get("corpus")
    names = {corpus, key_hash({"fingerprint": corpus})} if isinstance(corpus, str) else set()
    return bool(names & hashes) or not names & known


def _mappings_in(value: Any) -> Iterator[Mapping[str, Any]]:
    if isinstance(value, Mapping):
        yield value
        for item in value.values():
            yield from _mappings_in(item)
    elif isinstance(value, list):
        for item in value:
            yield from _mappings_in(item)


# Verifying -----------------------------------------------------------------------------------------------------------


def damage(entry: Kept) -> str | None:
    """What is wrong with an entry, in a sentence; None where every hash is right."""
    try:
        found = Store(entry.path.parents[1]).find(entry.kind, entry.label, entry.sidecar["key"])
        if found is None or found.path != entry.path:
            return f"{entry.path} is not what its name says: its key belongs to another entry."
    except (ValueError, OSError) as error:
        return str(error)
    return None


# Removing ------------------------------------------------------------------------------------------------------------


def remove(path: Path) -> None:
    """An entry, or what is left of one, in one step: no reader finds half of it. Raises ValueError where in use."""
    digest = path.name.rpartition("-")[2]
    with _alone(path.parents[1], path.parent.name, digest):
        aside = path.with_name(f"{REMOVED}{digest}")
        shutil.rmtree(aside, ignore_errors=True)
        if path.is_symlink():
            path.unlink()
            return
        os.replace(path, aside)
        shutil.rmtree(aside)


def remove_leftovers(root: Path) -> None:
    """What removals that were killed left behind."""
    for path in root.glob(f"*/{REMOVED}*"):
        with _alone(root, path.parent.name, path.name.removeprefix(REMOVED)):
            shutil.rmtree(path, ignore_errors=True)


def _alone(root: Path, kind: str, digest: str) -> Any:
    """While an entry is made, copied or removed, nobody else does any of it."""
    return locked(root / kind / f".lock-{digest}", f"using {kind} {digest}")


def size_of(folder: Path) -> int:
    """Bytes of the files in a folder."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
