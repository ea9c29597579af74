"""Atomic writes, also with several writers at once, and locks between processes."""

from __future__ import annotations

import hashlib
import logging
import os
import shutil
import uuid
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from nonmember.checks import shown
from nonmember.runtime.processes import process_rank
from nonmember_verify.envelope import strict_json

log = logging.getLogger(__name__)

TEMPORARY = ".tmp"  # how the names of files end that are being written; they begin with a dot


def file_hash(path: Path) -> str:
    """sha256 of a file's bytes, in hexadecimal digits."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def json_object(path: Path) -> dict[str, Any]:
    """The JSON object in a file. Raises ValueError and OSError."""
    value = strict_json(path.read_bytes())
    if not isinstance(value, dict):
        raise ValueError(f"it must hold a JSON object; got {shown(value)}")
    return value


def files_below(folder: Path, *patterns: str) -> list[Path]:
    """The files of such names in a folder and in those below it, sorted; links to folders are not followed.

    Of a folder that may not be opened, of which others would say nothing, a file in it is named, which cannot be read.
    """
    found: list[Path] = []

    def note(error: OSError) -> None:
        if isinstance(error, PermissionError):
            found.append(Path(error.filename) / patterns[0])

    for above, folders, names in os.walk(folder, onerror=note):
        there = (*folders, *names)  # a folder with a file's name is listed too, and reading it raises
        found += [Path(above) / name for name in there if any(fnmatchcase(name, item) for item in patterns)]
    return sorted(found)


def forget_refused(folder: Path) -> None:
    """Remove a folder with nothing but what Hydra and its log leave, and the empty ones of outputs/audits/NAME."""
    if {path.name for path in folder.iterdir()} <= {".hydra", ".lock", "error.json", "audit.log", "score.log"}:
        shutil.rmtree(folder)
        with suppress(OSError):
            for above in folder.parents[:3]:
                above.rmdir()


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A name of its own beside `path` to write to. When the block ends it is flushed to the disk and renamed to `path`;
    where the block fails it is removed, and `path` stays what it was."""
    temporary = path.with_name(f".{path.name}.{uuid.uuid4().hex[:12]}{TEMPORARY}")
    try:
        yield temporary
        flush(temporary)
        os.replace(temporary, path)
    except OSError as error:
        if error.errno is None or error.filename is not None:
            raise
        raise OSError(error.errno, error.strerror, str(path)) from error  # so that it says on which disk
    finally:
        temporary.unlink(missing_ok=True)


def write_text_atomically(path: Path, text: str) -> None:
    """Write beside the goal, flush to the disk, rename: readers see the old text or the new, never half of one."""
    with replacing(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


def flush(path: Path) -> None:
    """What was written to a file is on the disk when this returns."""
    with path.open("rb+") as stream:
        os.fsync(stream.fileno())


def remove_temporary(folder: Path) -> None:
    """Remove what killed writers left in a folder. Call it only while holding the lock of all its writers."""
    for left in folder.glob(f".*{TEMPORARY}"):
        left.unlink(missing_ok=True)


def share_mode(like: Path, folder: Path) -> None:
    """Give all files below a folder the permissions of `like`, a plain file that was just made and so has those of the
    umask: some libraries write through temporary files that nobody else may read."""
    mode = like.stat().st_mode & 0o777
    for path in folder.rglob("*"):
        if path.is_file() and not path.is_symlink() and path.stat().st_mode & 0o777 != mode:
            with suppress(PermissionError):  # of a file system without permissions
                path.chmod(mode)


def locked(path: Path, what: str) -> AbstractContextManager[object]:
    """Holds the lock file `path`; waits, and says so, where another does. what: the work, as in "making a model"."""
    lock = FileLock(path)
    try:
        return lock.acquire(timeout=0)
    except Timeout:
        log.info("Another process is %s; waiting for it.", what)
        return lock.acquire()


def is_locked(path: Path) -> bool:
    """Whether a process holds the lock file `path` now, this one among them."""
    if not path.exists():
        return False
    try:
        with FileLock(path).acquire(timeout=0):
            return False
    except Timeout:
        return True


@contextmanager
def alone_in(folder: Path, what: str = "running the audit") -> Iterator[None]:
    """One process at a time does what is done in a folder, such as its audit; the next one then finds its result.
    Further processes of a distributed run go with their first."""
    if process_rank() > 0:
        yield
        return
    folder.mkdir(parents=True, exist_ok=True)
    with locked(folder / ".lock", f"{what} {folder.name}"):
        remove_temporary(folder)
        yield
