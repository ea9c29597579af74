"""Seals of results: hashes of what a result says and of the files beside it, checked whenever it is read.

They tell what was damaged, lost or edited since; they are no signature.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from nonmember.artifacts.store import canonical_json
from nonmember.runtime.files import file_hash

SEAL = "seal"
REMEDY = "Start the audit again to make it again."


def with_seal(values: Mapping[str, Any], files: Iterable[Path]) -> dict[str, Any]:
    """The values of a result with their seal. files: those that belong to it, complete and in its folder."""
    hashes = {path.name: file_hash(path) for path in files}
    return {**values, SEAL: {"files": hashes, "content": _hash_of(values, hashes)}}


def without_seal(values: Mapping[str, Any], path: Path, *, files_too: bool = True) -> dict[str, Any]:
    """The values without their seal. path: where they were read; the other files lie beside it.

    Raises ValueError where something was changed, or is missing, since the result was written.
    """
    bare = {name: value for name, value in values.items() if name != SEAL}
    seal = values.get(SEAL)
    seal = seal if isinstance(seal, Mapping) else {}
    hashes = seal.get("files")
    if not isinstance(hashes, Mapping) or seal.get("content") != _hash_of(bare, hashes):
        raise ValueError(f"{path} must be what the audit wrote; got a file that was changed afterwards. {REMEDY}")
    for name, expected in hashes.items() if files_too else ():
        beside = path.parent / name
        if not beside.is_file():
            raise ValueError(f"{beside} must lie beside {path.name}, which was made with it; it is missing. {REMEDY}")
        if file_hash(beside) != expected:
            raise ValueError(f"{beside} must be what the audit wrote; got a file that was changed afterwards. {REMEDY}")
    return bare


def _hash_of(values: Mapping[str, Any], files: Mapping[str, str]) -> str:
    return hashlib.sha256(canonical_json([values, files]).encode()).hexdigest()
