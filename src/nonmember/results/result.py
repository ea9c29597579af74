"""The record of an audit."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from nonmember.results.seals import with_seal, without_seal
from nonmember.runtime.files import write_text_atomically

# In the folder of each audit.
RESULT, ERROR, CONFIG = "result.json", "error.json", "config.json"
SCORES, DISTRIBUTION = "scores.parquet", "distribution.parquet"


@dataclass(frozen=True)
class AuditResult:
    """One audit: everything a reader needs to disagree. Undefined numbers are None. Written once, never edited.

    target, reference, heldout: labels, None where the method uses no such thing.   world: where the text comes from
    (micro, pile, pythia; own for the user's).   sweep, cell: the group of audits it belongs to and what differs in
    it.   data: the plain values of the data config (domain, half ...).
    truth: member, non_member or None where unknown.   num_tokens: scored tokens of the suspect set under the first
    model observed on it.   excluded: document id -> reason.   keys: what the store calls the artifacts used.
    details: the method's further numbers.   seconds: wall time of this run, found or made.
    """

    method: str
    target: str | None
    reference: str | None
    corpus: str
    heldout: str | None
    world: str
    sweep: str
    cell: str
    data: Mapping[str, str | float | bool | None]
    truth: str | None
    num_documents: int
    num_excluded: int
    num_tokens: int | None
    statistic: float | None
    p_value: float | None
    ci_low: float | None
    ci_high: float | None
    alpha: float
    rho_reference_target: float | None
    rho_distilled_target: float | None
    verdict: str
    allowed_claim: str
    warnings: tuple[str, ...]
    seed: int
    score: str
    settings: Mapping[str, object]
    details: Mapping[str, object]
    health: Mapping[str, float]
    capability: Mapping[str, Mapping[str, float]]
    dropped: Mapping[str, int]
    excluded: Mapping[str, str]
    keys: Mapping[str, str]
    versions: Mapping[str, str]
    made: Mapping[str, int]
    seconds: float

    def to_json(self) -> str:
        return json.dumps(asdict(self), indent=1, ensure_ascii=False, allow_nan=False) + "\n"

    def save(self, path: Path, files: Iterable[Path] = ()) -> None:
        """Write it with a seal. files: those beside `path` that belong to it and are complete (`results.seals`)."""
        sealed = with_seal(asdict(self), files)
        write_text_atomically(path, json.dumps(sealed, indent=1, ensure_ascii=False, allow_nan=False) + "\n")

    @classmethod
    def load(cls, path: Path, *, files_too: bool = True) -> AuditResult:
        """Read it. Raises ValueError where it cannot be read, or where its seal says that it or, with `files_too`, a
        file that belongs to it was changed or lost."""
        unreadable = f"{path} is not a result this version can read ({{}}). Move it away and run the audit again."
        try:
            values = dict(json.loads(path.read_text(encoding="utf-8")))
        except (ValueError, TypeError) as error:
            raise ValueError(unreadable.format(error)) from error
        values = without_seal(values, path, files_too=files_too)
        try:
            return cls(**(values | {"warnings": tuple(values["warnings"])}))
        except (TypeError, KeyError) as error:
            raise ValueError(unreadable.format(error)) from error


@dataclass(frozen=True)
class Failure:
    """An audit without a result. cell: the name of its folder.   kind: the class of the error."""

    cell: str
    error: str
    kind: str

    @classmethod
    def load(cls, path: Path) -> Failure:
        try:
            return cls(**json.loads(path.read_text(encoding="utf-8")))
        except (ValueError, TypeError) as error:
            raise ValueError(f"{path} cannot be read ({error}). Remove it, or run that audit again.") from error
