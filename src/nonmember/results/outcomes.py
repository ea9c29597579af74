"""Reads outcomes of audits (results and failures) from disk."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from nonmember.results.result import ERROR, PARTS, RESULT, AuditResult, Failure
from nonmember.runtime.files import files_below

UNUSABLE = "unusable"
LONGEST_REASON = 500  # characters


def outcome_paths(folder: Path) -> list[Path]:
    """All results and failures below a folder, in the order of their paths. A failure that lies beside a later result
    was mended and is left out.

    Raises ValueError where there is none.
    """
    found = files_below(folder, RESULT, ERROR)
    paths = [path for path in found if path.name != ERROR or not is_mended(path)]
    if not paths:
        raise ValueError(f"There is no {RESULT} below {folder}. Run an audit first, or name the folder of one.")
    return paths


def without_parts(paths: Sequence[Path]) -> list[Path]:
    """Without those that a result by method=auto among them names: it counts as one audit."""
    joined = {path.parent for path in paths if path.name == RESULT}
    return [path for path in paths if path.parts[-3:-2] != (PARTS,) or path.parents[2] not in joined]


def is_mended(error: Path) -> bool:
    """Whether a result was written into the folder of a failure since."""
    result = error.with_name(RESULT)
    return result.is_file() and result.stat().st_mtime_ns >= error.lstat().st_mtime_ns


def read_outcome(path: Path) -> AuditResult | Failure:
    """A result, its seal checked, or why there is none. Raises ValueError where it cannot be read or was changed."""
    return AuditResult.load(path) if path.name == RESULT else Failure.load(path)


def usable_outcome(path: Path, use: Callable[[AuditResult | Failure], object]) -> AuditResult | Failure:
    """A result or a failure that `use` can take; where it cannot be read, or taken, a failure of the kind `UNUSABLE`
    that says why: what somebody wrote into one folder does not hide the others."""
    try:
        outcome = read_outcome(path)
        use(outcome)
    except Exception as error:
        return Failure(path.parent.name, reason_of(error), UNUSABLE)
    return outcome


def usable_outcomes(
    paths: Sequence[Path], use: Callable[[Sequence[AuditResult | Failure]], object]
) -> list[AuditResult | Failure]:
    """The same of many, which `use` takes together: only where that fails it is tried on each alone."""
    found = [usable_outcome(path, lambda outcome: None) for path in paths]
    try:
        use(found)
    except Exception:  # of any kind, as one of them may hold anything
        found = [usable_outcome(path, lambda outcome: use([outcome])) for path in paths]
    return found


def reason_of(error: Exception) -> str:
    """In words, of an error that somebody's files caused."""
    reason = str(error)
    if not isinstance(error, ValueError | OSError):
        reason = f"it holds a value that no audit writes ({type(error).__name__}: {error})"
    return reason if len(reason) <= LONGEST_REASON else f"{reason[:LONGEST_REASON]}..."


def identity(result: AuditResult) -> tuple[str | None, str]:
    """The same of copies of a result, and of one question in another sweep or folder: such count once."""
    return result.provenance.keys.get("audit"), repr(replace(result.question, sweep="", cell="", swept={}))
