"""Maintenance of a store: list entries and what needs them, verify, remove, and merge by content."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from nonmember.artifacts.store import REVISIONS, SIDECAR, Store, key_hash
from nonmember.runtime.files import file_hash, is_locked, json_object, locked, write_text_atomically

ANSWERS = "completions"  # tables that grow; no entries, since they are never complete
PROBES = "probes"  # notes on models, made again in a moment; no entries, since no result rests on one
PARTIAL, MERGING, REMOVED = ".partial-", ".merging-", ".removed-"


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

    @property
    def content(self) -> tuple[object, object]:
        """What must be equal in two entries of one key for them to be the same."""
        return self.sidecar["files"], self.sidecar["facts"]

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
    paths = [path for kind in kinds if kind != PROBES for path in Store(root).sidecars(kind)]
    others = (path for path in root.glob("*/[!.]*") if path.parent.name not in (PROBES, ANSWERS))
    if not root.is_dir() or (not paths and any(others)):
        raise ValueError(f"There is no store in {root}. Name its folder (--store), such as outputs/store.")
    return [Kept(path.parent) for path in sorted(paths)]


def unfinished(root: Path) -> list[Path]:
    """What killed runs left, from which a training goes on if it is started again; and what is being made now."""
    return sorted(path for path in root.glob(f"*/{PARTIAL}*") if path.is_dir())


def being_made(root: Path) -> list[Path]:
    """The unfinished ones on which a process works now, and tables whose endpoint is being asked."""
    locks = {path: path.with_name(f".lock-{path.name.removeprefix(PARTIAL)}") for path in unfinished(root)}
    locks |= {path: path / ".lock" for path in answers(root)}
    return [path for path, lock in locks.items() if is_locked(lock)]


def answers(root: Path) -> list[Path]:
    """Tables of what endpoints answered."""
    return sorted(path for path in (root / ANSWERS).glob("[!.]*") if path.is_dir())


def strange(root: Path) -> list[Path]:
    """What lies in the folder of a store and is no part of it. What is hidden in a kind's folder is: locks, and what
    killed runs left."""
    known = {root / REVISIONS, *(item.path for item in entries(root)), *answers(root)}
    there = [*(path for path in root.iterdir() if not path.is_dir()), *root.glob("*/*")]
    others = (path for path in there if path not in known and path.parent.name != PROBES)
    return sorted(path for path in others if not path.name.startswith("."))


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
    """What removals and merges that were killed left behind."""
    for name in (REMOVED, MERGING):
        for path in root.glob(f"*/{name}*"):
            with _alone(root, path.parent.name, path.name.removeprefix(name)):
                shutil.rmtree(path, ignore_errors=True)


def _alone(root: Path, kind: str, digest: str) -> Any:
    """While an entry is made, copied or removed, nobody else does any of it."""
    return locked(root / kind / f".lock-{digest}", f"using {kind} {digest}")


# Merging -------------------------------------------------------------------------------------------------------------


@dataclass
class Merged:
    # copied, there: entries that were put into the other store, and those that it had
    copied: list[Path] = field(default_factory=list)
    there: list[Path] = field(default_factory=list)
    conflicts: list[str] = field(default_factory=list)  # two places each of which holds another content under one key
    damaged: list[str] = field(default_factory=list)  # what was left where it is, and why


def merge(source: Path, target: Path) -> Iterator[Merged]:
    """Copies into `target` what it lacks; yields the same record after each entry.

    An entry is verified, copied under a temporary name, verified again and renamed in one step, so that a kill or a
    full disk leaves nothing half done and the next call goes on.
    """
    record = Merged()
    require_apart(source, target)
    target.mkdir(parents=True, exist_ok=True)
    remove_leftovers(target)
    for item in entries(source):
        if (wrong := damage(item)) is not None:
            record.damaged.append(wrong)
        else:
            _merge_one(item, target, record)
        yield record
    for path in answers(source):
        (target / ANSWERS).mkdir(exist_ok=True)
        with _alone(target, ANSWERS, path.name.rpartition("-")[2]):
            _merge_answers(path, target / ANSWERS / path.name, record)
        yield record
    if (source / REVISIONS).is_file():
        _merge_revisions(source / REVISIONS, target / REVISIONS)


def require_apart(source: Path, target: Path) -> None:
    """Raise ValueError for one store given twice, or one that lies within the other."""
    ours, theirs = source.resolve(), target.resolve()
    if ours == theirs:
        raise ValueError(f"There must be two different stores; got {source} twice. Name another folder.")
    if ours.is_relative_to(theirs) or theirs.is_relative_to(ours):
        inner, outer = (source, target) if ours.is_relative_to(theirs) else (target, source)
        raise ValueError(f"A store cannot be inside another; {inner} is inside {outer}. Name a folder outside it.")


def _merge_one(entry: Kept, target: Path, record: Merged) -> None:
    folder = target / entry.kind
    folder.mkdir(parents=True, exist_ok=True)
    with _alone(target, entry.kind, entry.hash):
        if found := Store(target).find(entry.kind, entry.label, entry.sidecar["key"]):
            there = Kept(found.path)
            if there.content == entry.content:
                record.there.append(entry.path)
            else:
                record.conflicts.append(_conflict(entry.path, there.path))
            return
        beside = folder / f"{MERGING}{entry.hash}"
        shutil.rmtree(beside, ignore_errors=True)
        try:
            _copy(entry, beside)
            os.replace(beside, folder / entry.path.name)
        except OSError as error:
            shutil.rmtree(beside, ignore_errors=True)
            raise OSError(error.errno, error.strerror, str(beside)) from error
        record.copied.append(entry.path)


def _copy(entry: Kept, to: Path) -> None:
    """Only what the entry consists of; the sidecar last. Raises OSError where the disk holds something else then."""
    for name, expected in {**entry.sidecar["files"], SIDECAR: file_hash(entry.path / SIDECAR)}.items():
        (to / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(entry.path / name, to / name)
        with (to / name).open("rb+") as stream:
            os.fsync(stream.fileno())
        if file_hash(to / name) != expected:
            raise OSError(None, f"{name} was not copied exactly", str(to))


def _merge_answers(path: Path, to: Path, record: Merged) -> None:
    files = sorted(item for item in path.iterdir() if item.is_file() and not item.name.startswith("."))
    if not to.exists():
        beside = to.with_name(f"{MERGING}{path.name.rpartition('-')[2]}")
        shutil.rmtree(beside, ignore_errors=True)
        beside.mkdir(parents=True)
        for item in files:
            shutil.copy2(item, beside / item.name)
        os.replace(beside, to)
        record.copied.append(path)
    elif all((to / item.name).is_file() and file_hash(item) == file_hash(to / item.name) for item in files):
        record.there.append(path)
    else:
        record.conflicts.append(_conflict(path, to))


def _merge_revisions(path: Path, to: Path) -> None:
    """Where both know a commit, that of the store that is merged into stays: its results rest on it."""
    with locked(to.with_name(f".lock-{REVISIONS}"), f"writing {to}"):
        known = json_object(path) | (json_object(to) if to.is_file() else {})
        write_text_atomically(to, json.dumps(known, indent=1, sort_keys=True) + "\n")


def _conflict(entry: Path, other: Path) -> str:
    return f"{entry} and {other} have the same key and other content."


def size_of(folder: Path) -> int:
    """Bytes of the files in a folder."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
