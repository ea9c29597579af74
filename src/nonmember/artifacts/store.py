"""The store: every artifact made once, found by the hash of everything that determines its content.

    <root>/<kind>/<readable name>-<hash>/     data files and, written last, sidecar.json
    <root>/<kind>/.partial-<hash>/            being made; what a killed run left, so that training can resume
    <root>/<kind>/.lock-<hash>                held while it is being made
    <root>/completions/<readable name>-<hash>/  never complete: a table that grows (`Store.growing`)

An entry is complete when its folder carries the sidecar: data and sidecar are written into the partial folder, which
is then renamed in one step. The sidecar holds the whole key in readable JSON, the hash of every file, and what making
it took on which machine (`made`).
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import re
import shutil
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from nonmember.runtime.files import file_hash, is_locked, locked, share_mode, write_text_atomically
from nonmember.runtime.processes import Waiting, process_rank, run_id

log = logging.getLogger(__name__)

SIDECAR = "sidecar.json"
REVISIONS = "revisions.json"  # which commits branches of data sets on the hub stood for (`config.revisions`)
HASH_LENGTH = 16

Key = Mapping[str, Any]


def canonical_json(value: object) -> str:
    """One text for one meaning: sorted keys, no spaces, no NaN. Tuples and lists are the same."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)


def key_hash(key: object) -> str:
    return text_hash(canonical_json(key))


def text_hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:HASH_LENGTH]


def _invitation(partial: Path) -> Path:
    """Says to the other processes of this very run that they are to take part."""
    return partial / f".together-{run_id()}"


@dataclass(frozen=True)
class Entry:
    """One complete artifact: its folder, the facts that `make` returned, and the names of its files."""

    path: Path
    hash: str
    facts: Mapping[str, Any]
    files: tuple[str, ...] = field(default=(), repr=False)
    made_now: bool = False

    def paths(self, pattern: str) -> list[Path]:
        """The files whose names match, in their order. Only those that it was made with: whatever else lies in the
        folder is not read."""
        return [self.path / name for name in sorted(self.files) if fnmatchcase(name, pattern)]


class Store:
    """Find an artifact or make it; see the module's docstring for the layout.

    Every process asks in the same way. The first to want a missing entry holds its lock and makes it, the others wait
    and then find it.
    """

    def __init__(self, root: Path):
        self.root = root
        self._verified: set[Path] = set()

    def get_or_make(
        self,
        kind: str,
        name: str,
        key: Key,
        make: Callable[[Path], Mapping[str, Any] | None],
        *,
        resumable: bool = False,
        joint: bool = False,
        note: Mapping[str, str] | None = None,
    ) -> Entry:
        """Return the entry of this kind and key; where there is none, `make(folder)` fills one.

        `make` returns facts worth keeping beside the data (JSON-able). With `resumable` it finds in its folder what
        a killed predecessor left there; otherwise the folder is empty. Files whose name begins with a dot are
        working files: they are removed when the entry is complete. With `joint` all processes of a distributed run
        call `make` together; otherwise only the first does, and the others wait. note: kept in the sidecar with the
        seconds that `make` took, by which later runs are estimated; no part of key or facts.
        """
        digest = key_hash(key)
        if process_rank() > 0:
            return self._follow(kind, name, digest, make if joint else None)
        if (found := self._find(kind, name, digest)) is not None:
            return found
        folder = self.root / kind
        folder.mkdir(parents=True, exist_ok=True)
        with locked(self._lock(kind, digest), f"making {kind} {name}"):
            if (found := self._find(kind, name, digest)) is not None:
                return found
            partial = folder / f".partial-{digest}"
            if partial.exists() and not resumable:
                shutil.rmtree(partial)
            is_resumed = partial.exists() and any(partial.iterdir())
            partial.mkdir(exist_ok=True)
            if joint:
                _invitation(partial).touch()
            started = time.monotonic()
            facts = dict(make(partial) or {})
            made: dict[str, Any] = dict(note or {})
            if not is_resumed:  # else nobody knows what the first part took
                made["seconds"] = round(time.monotonic() - started, 3)
            self._complete(partial, self._folder(kind, name, digest), key, facts, made)
        found = self._find(kind, name, digest)
        assert found is not None
        return replace(found, made_now=True)

    def growing(self, kind: str, name: str, key: Key) -> Path:
        """The folder of a table that gets rows for as long as it is used: no entry, since it is never complete.

        Writers must hold a lock in it (`nonmember.runtime.files.locked`).
        """
        digest = key_hash(key)
        there = sorted((self.root / kind).glob(f"*-{digest}"))
        folder = there[0] if there else self._folder(kind, name, digest)
        folder.mkdir(parents=True, exist_ok=True)
        return folder

    def find(self, kind: str, name: str, key: Key) -> Entry | None:
        return self._find(kind, name, key_hash(key))

    def has(self, kind: str, key: Key) -> bool:
        """Whether it is there, unverified."""
        return any((path / SIDECAR).is_file() for path in (self.root / kind).glob(f"[!.]*-{key_hash(key)}"))

    def hashes(self, kind: str) -> set[str]:
        """Of all complete entries of a kind, unverified."""
        return {path.parent.name.rpartition("-")[2] for path in self.sidecars(kind)}

    def sidecars(self, kind: str) -> list[Path]:
        return [path for path in (self.root / kind).glob(f"*/{SIDECAR}") if not path.parent.name.startswith(".")]

    def is_being_made(self, kind: str, key: Key) -> bool:
        """Whether another process holds its lock."""
        return is_locked(self._lock(kind, key_hash(key)))

    def _lock(self, kind: str, digest: str) -> Path:
        return self.root / kind / f".lock-{digest}"

    def _follow(self, kind: str, name: str, digest: str, make: Callable[[Path], object] | None) -> Entry:
        """In a further process of a distributed run: wait for the first process, and take part when invited."""
        partial = self.root / kind / f".partial-{digest}"
        joined, waiting = False, Waiting(f"{kind} {name}", lambda: is_locked(self._lock(kind, digest)))
        while (found := self._find(kind, name, digest)) is None:
            if make is not None and not joined and _invitation(partial).exists():
                joined = True
                make(partial)
            waiting.a_moment()
        return found

    def _folder(self, kind: str, name: str, digest: str) -> Path:
        readable = re.sub(r"[^A-Za-z0-9_.+-]+", "_", name)[:60].strip("_.") or kind
        return self.root / kind / f"{readable}-{digest}"

    def _find(self, kind: str, name: str, digest: str) -> Entry | None:
        # The readable part may change with the configs' names; the hash alone decides.
        for path in sorted((self.root / kind).glob(f"*-{digest}")):
            if not path.name.startswith(".") and (path / SIDECAR).is_file():
                return self._verified_entry(path, digest)
        return None

    def _verified_entry(self, path: Path, digest: str) -> Entry:
        damaged = f"The store entry {path} is damaged: {{}}. Remove that folder and run again; it will be made again."
        try:
            sidecar = json.loads((path / SIDECAR).read_text(encoding="utf-8"))
            facts, key, files = sidecar["facts"], sidecar["key"], sidecar["files"]
        except (ValueError, KeyError, TypeError) as error:
            raise ValueError(damaged.format(f"its {SIDECAR} cannot be read ({error})")) from error
        hashes = (digest, sidecar.get("facts_hash"), sidecar.get("files_hash"))
        if hashes != (key_hash(key), key_hash(facts), key_hash(files)):
            raise ValueError(damaged.format(f"its {SIDECAR} was changed after it was written"))
        if path not in self._verified:
            for name, expected in files.items():
                if Path(name).is_absolute() or ".." in Path(name).parts:
                    raise ValueError(damaged.format(f"its {SIDECAR} names {name!r}, which is outside it"))
                if not (path / name).is_file():
                    raise ValueError(damaged.format(f"{name} is missing"))
                if file_hash(path / name) != expected:
                    raise ValueError(damaged.format(f"{name} was changed after it was written"))
            _require_nothing_else(path, files)
            self._verified.add(path)
        return Entry(path, digest, facts, tuple(files))

    def _complete(
        self, partial: Path, final: Path, key: Key, facts: Mapping[str, Any], made: Mapping[str, Any]
    ) -> None:
        (partial / SIDECAR).unlink(missing_ok=True)  # of a process killed just before the rename
        working = [path for path in partial.iterdir() if path.name.startswith(".")]
        names = {str(p.relative_to(partial)): p for p in sorted(partial.rglob("*")) if p.is_file()}
        files = {name: file_hash(path) for name, path in names.items() if not name.startswith(".")}
        hashes = {"facts_hash": key_hash(facts), "files_hash": key_hash(files)}
        sidecar = {"key": key, "facts": facts, **hashes, "files": files, "made": made}
        write_text_atomically(partial / SIDECAR, json.dumps(sidecar, indent=1, sort_keys=True) + "\n")
        share_mode(partial / SIDECAR, partial)
        for path in working:  # only now: on a full disk the resume point outlives the failed sidecar
            shutil.rmtree(path) if path.is_dir() else path.unlink()
        if final.exists():  # without its sidecar, else it would have been found
            shutil.rmtree(final)
        os.replace(partial, final)


def _require_nothing_else(path: Path, files: Mapping[str, str]) -> None:
    """Refuses what the sidecar does not list, which a library that is given the whole folder would read. Hidden files,
    which no reader looks at, may lie there."""
    there = (file.relative_to(path) for file in sorted(path.rglob("*")) if file.is_file())
    visible = [str(file) for file in there if not any(part.startswith(".") for part in file.parts)]
    if strange := [name for name in visible if name not in files and name != SIDECAR]:
        raise ValueError(
            f"The store entry {path} must hold the files that it was made with and no other; got {strange[0]!r} "
            "(programs that synchronise folders leave such copies). Remove that file and run again."
        )
