"""Checkpoint files: step and checksum in the name; the last two are kept.

    .resume-<micro-batches of a step>-<optimizer steps>-<checksum>.ckpt

The checksum is over the bytes and over the name of the folder, which in a store is the hash of what is being made: a
point that was damaged, cut, or copied from elsewhere is not gone on from.
"""

from __future__ import annotations

import hashlib
import logging
import os
import re
from collections.abc import Iterator
from pathlib import Path

from nonmember.runtime.files import flush

log = logging.getLogger(__name__)

KEPT = 2  # the one before is there in case the last is damaged
CHECKSUM_LENGTH = 16
_BLOCK = 1 << 20


class ResumePoints:
    """The points of one training that divides its steps into `accumulate` micro-batches."""

    def __init__(self, folder: Path, accumulate: int):
        # Dot files: the store removes them when the entry is complete.
        self._folder, self._stem = folder, f".resume-{accumulate}"

    @property
    def temporary(self) -> Path:
        """Where the next point is written, beside its final place; the store's lock keeps other writers away."""
        return self._folder / f"{self._stem}.new"

    def make_room(self) -> None:
        """Remove all but the newest, so that there are never more than two on the disk, one that is being written
        included."""
        for path in list(self._newest_first())[KEPT - 1 :]:
            path.unlink(missing_ok=True)

    def keep(self, num_steps: int) -> None:
        """What was written to `temporary` is the newest point from now on."""
        flush(self.temporary)
        name = f"{self._stem}-{num_steps:08d}-{_checksum(self.temporary, self._folder)}.ckpt"
        os.replace(self.temporary, self._folder / name)

    def newest(self, description: str, *, first_process: bool) -> Path | None:
        """The newest sound point, None where there is none. The first process says which are damaged and removes
        them."""
        for path in self._newest_first():
            if self._is_sound(path):
                return path
            if first_process:
                log.warning(
                    "%s: the resume point %s is damaged or belongs to another training (its content does not match the "
                    "checksum in its name). It is removed; the one before it is used, or training starts anew.",
                    description, path,
                )  # fmt: skip
                path.unlink(missing_ok=True)
        return None

    def _newest_first(self) -> Iterator[Path]:
        """Also files without a checksum in their names; they come last."""
        paths = [path for path in self._folder.glob(f"{self._stem}[.-]*") if path.suffix == ".ckpt"]
        yield from sorted(paths, key=lambda path: self._parts(path) or ("", ""), reverse=True)

    def _parts(self, path: Path) -> tuple[str, str] | None:
        found = re.fullmatch(rf"{re.escape(self._stem)}-(\d+)-([0-9a-f]+)\.ckpt", path.name)
        return None if found is None else (found[1], found[2])

    def _is_sound(self, path: Path) -> bool:
        parts = self._parts(path)
        try:
            return parts is not None and parts[1] == _checksum(path, self._folder)
        except FileNotFoundError:  # removed by the first process
            return False


def _checksum(path: Path, folder: Path) -> str:
    digest = hashlib.sha256(folder.name.encode() + b"\0")
    with path.open("rb") as stream:
        while block := stream.read(_BLOCK):
            digest.update(block)
    return digest.hexdigest()[:CHECKSUM_LENGTH]
