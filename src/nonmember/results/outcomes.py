"""Reads outcomes of audits (results and failures) from disk."""

from __future__ import annotations

import json
from pathlib import Path

from nonmember.results.result import ERROR, RESULT, AuditResult, Failure
from nonmember.results.seals import SEAL

NO_SEAL = "no seal, since an earlier version wrote them: a change of them could not be noticed"


def outcome_paths(folder: Path) -> list[Path]:
    """All results and failures below a folder, in the order of their paths. A failure that lies beside a later result
    was mended and is left out.

    Raises ValueError where there is none.
    """
    paths = sorted([*folder.rglob(RESULT), *(path for path in folder.rglob(ERROR) if not is_mended(path))])
    if not paths:
        raise ValueError(f"There is no {RESULT} below {folder}. Run an audit first, or name the folder of one.")
    return paths


def is_mended(error: Path) -> bool:
    """Whether a result was written into the folder of a failure since."""
    try:
        return error.with_name(RESULT).stat().st_mtime_ns >= error.stat().st_mtime_ns
    except FileNotFoundError:
        return False


def read_outcome(path: Path) -> AuditResult | Failure:
    """A result, its seal checked, or why there is none. Raises ValueError where it cannot be read or was changed."""
    return AuditResult.load(path) if path.name == RESULT else Failure.load(path)


def num_without_seal(paths: list[Path]) -> int:
    """How many of these results have no seal; those that cannot be read are not counted."""
    number = 0
    for path in paths:
        try:
            number += path.name == RESULT and SEAL not in json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError, TypeError):
            continue
    return number
