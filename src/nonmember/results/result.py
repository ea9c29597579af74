"""The record of an audit: the schema of `result.json`.

A schema version says how to read it.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any, Literal, Self

from pydantic import ConfigDict, TypeAdapter, ValidationError

from nonmember.records.exposure import Exposure
from nonmember.results.answers import without_examples
from nonmember.results.seals import with_seal, without_seal
from nonmember.runtime.files import json_object, write_text_atomically

SCHEMA_VERSION = 3
LAST_BEFORE = "0.1.0"  # the last version of this program that reads earlier ones

# In the folder of each audit.
RESULT, ERROR, CONFIG = "result.json", "error.json", "config.json"
SCORES, DISTRIBUTION = "scores.parquet", "distribution.parquet"
PARTS = "parts"  # the folder of the parts' own folders, beside a result that joins them


class Recorded:
    """A part of a result: a dataclass whose fields pydantic checks strictly for the types that it states."""

    __pydantic_config__ = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)


_adapter = cache(TypeAdapter)


def built(kind: Any, value: object, name: str) -> Any:
    """The JSON value as an object of a dataclass. Raises ValueError with the name of the first field that is wrong."""
    try:
        return _adapter(kind).validate_json(json.dumps(value, allow_nan=False))
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        raise ValueError(f"{'.'.join(map(str, (name, *first['loc'])))[:200]}: {first['msg']}") from error


@dataclass(frozen=True)
class AuditedModel(Recorded):
    """What the recipe of a model tells."""

    # To the suspect set; None where unknown, or where documents of the set were read differently often.
    exposure: Exposure | None
    # Label of the model that all its training started from; its own label where it was not trained further.
    root: str | None
    control: bool = False  # whether the method made it, to read the suspect set so and no more
    # Roles of the references that were distilled from it on the documents on which they are scored.
    distilled: tuple[str, ...] = ()
    # Exposure to text related to the suspect set, where the method names such text; None as for `exposure`.
    related: Exposure | None = None


@dataclass(frozen=True)
class AuditQuestion(Recorded):
    """Was `corpus` used to train `target`?"""

    method: str  # its name
    settings: Mapping[str, Any]  # all of its settings
    score: str  # what it scores documents by; empty where it uses none or several
    # What a significant result speaks for, non_membership or membership; None where the method has no test.
    claim: str | None
    null_hypothesis: str  # which its p-value is of; empty where it has none
    alpha: float  # level of the test; intervals are at 1 - alpha
    # target, reference, corpus, heldout: labels, None where the method uses no such thing
    target: str | None
    reference: str | None
    corpus: str
    heldout: str | None
    models: Mapping[str, AuditedModel]  # what is known of the models, by role
    truth: str | None  # member, non_member or None where unknown
    seed: int  # of all random draws
    world: str  # where the text comes from (micro, pile, pythia; own for the user's)
    # sweep, cell: the group of audits it belongs to and what differs in it
    sweep: str
    cell: str
    data: Mapping[str, str | int | float | bool | None]  # the plain values of the data config (domain, half ...)
    # Key -> value, as on the command line, of what this audit of a sweep was given and not all of them.
    swept: Mapping[str, str] = field(default_factory=dict)

    @property
    def subject(self) -> str:
        """The set, and the target if there is one."""
        return f"{self.corpus} under {self.target}" if self.target else self.corpus

    @property
    def target_exposure(self) -> Exposure | None:
        """What the target has read of the suspect set; None where unknown."""
        return self.models["target"].exposure if "target" in self.models else None

    @property
    def controls(self) -> dict[str, AuditedModel]:
        """By role."""
        return {role: model for role, model in self.models.items() if model.control}


@dataclass(frozen=True)
class Statistics(Recorded):
    """What was computed. Undefined numbers are None."""

    name: str  # of the statistic (Delta, rho, AUC ...)
    value: float | None  # the statistic
    bounds: tuple[float, float] | None  # least and greatest value that it can have; None where it has none
    p_value: float | None  # of the question's null hypothesis
    # ci_low, ci_high: ends of its interval
    ci_low: float | None
    ci_high: float | None
    num_documents: int  # of the suspect set, all scored
    num_tokens: int | None  # scored tokens of these under the first model observed on them
    details: Mapping[str, Any]  # the method's further numbers, by name
    picture: str  # how the page of the audit draws them (`methods.base.Picture`)
    p_error: float | None = None  # Monte-Carlo standard error of p; None where no random draws are in it

    @property
    def is_signed(self) -> bool:
        """Whether it can be negative: differences and correlations can, readings, rates and AUCs cannot."""
        return self.picture != "dose" and (self.bounds is None or self.bounds[0] < 0)


@dataclass(frozen=True)
class Verdict(Recorded):
    decision: str  # evidence_of_non_membership, evidence_of_membership, inconclusive, score_only or invalid
    allowed_claim: str  # what may be said, in words
    warnings: tuple[str, ...]  # what stands in its way, or qualifies it


LOWERED = {"ce": "cross-entropy on the documents", "kl": "divergence from the target"}  # by training


@dataclass(frozen=True)
class Health(Recorded):
    """Whether models and scores can be relied on."""

    # Cross-entropy (ce) and divergence from the target (kl) of the distilled reference on the suspect set, in nats per
    # token, before and after its training.
    training: Mapping[str, float]
    # Role -> negative log-likelihood (nll, nats per token) and num_parameters, as far as known.
    capability: Mapping[str, Mapping[str, int | float]]
    # Group of documents -> measurement -> what its score guarded against (sigma_below_eps: tokens; saturated_share: of
    # the tokens) -> how much of it there was.
    counters: Mapping[str, Mapping[str, Mapping[str, int | float]]]


@dataclass(frozen=True)
class Exclusions(Recorded):
    """What was left out."""

    documents: Mapping[str, Mapping[str, str]]  # group -> document id -> why it has no score
    dropped: Mapping[str, int]  # reason -> number of documents that the making of the suspect corpus left out before

    @property
    def num_documents(self) -> int:
        """Of all groups."""
        return sum(map(len, self.documents.values()))


@dataclass(frozen=True)
class Provenance(Recorded):
    keys: Mapping[str, str]  # what the store calls the artifacts used, by role and group; `audit` stands for all of it
    versions: Mapping[str, str]  # of the software
    made: Mapping[str, int]  # what this run had to make and what it found, counted
    seconds: float  # its wall time
    commit: str | None = None  # of this project; None where it is not known
    # Role -> where the first weights of its model were read: a name with the commit on the hub, or with a hash of the
    # files.
    sources: Mapping[str, str] = field(default_factory=dict)
    # Role -> what its tokenizer puts before each text (bos) and behind each that is not cut (eos); None: nothing.
    tokens: Mapping[str, Mapping[str, str | None]] = field(default_factory=dict)


Conclusion = Literal["used", "not used", "no answer", "invalid", "score only"]
CONCLUSIONS: Mapping[str, Conclusion] = {
    "evidence_of_membership": "used",
    "evidence_of_non_membership": "not used",
    "inconclusive": "no answer",
    "invalid": "invalid",
    "score_only": "score only",
}


NOT_SAID: Mapping[Conclusion, str] = {
    "used": "how the documents came into the training data, or which of them were there.",
    "not used": "that no single document was read, or no copy of one that others published.",
    "no answer": "that the documents were not used. Where a test finds nothing, that is no evidence.",
    "invalid": "anything about the documents: with that precondition the numbers mean something else.",
    "score only": "whether the documents were used. A score by itself has no error rate.",
}
MAY_ERR = {
    "exact": "by chance, as often as alpha says. That rate is exact.",
    "asymptotic": "by chance, as often as alpha says. That rate holds for many documents (asymptotic).",
    "model-based": "by chance, as often as alpha says, and more often where the model of errors is not right.",
    "none": "by chance. How often is not known.",
}


@dataclass(frozen=True)
class AnsweredTarget(Recorded):
    name: str | None
    hash: str | None  # first digits of its key in the store; None where there is no target


@dataclass(frozen=True)
class AnsweredDocuments(Recorded):
    name: str
    number: int  # scored
    fingerprint: str  # first digits of that of the corpus


@dataclass(frozen=True)
class Answer(Recorded):
    """What was found, how sure that is, why, and what to do next. Made once by the audit (`audits.answer`); every view
    prints it first and decides nothing itself."""

    conclusion: Conclusion
    sentence: str  # for a judge
    p: float | None  # of `hypothesis`; None where nothing may be concluded from one
    p_error: float | None  # its Monte-Carlo standard error; None where no random draws are in it
    hypothesis: str  # the null hypothesis
    guarantee: str  # of the rule: exact, asymptotic, model-based or none
    because: tuple[str, ...]  # the one or two things that decided it
    next: str  # the one step that would help most
    finished: str  # when it was made, UTC
    target: AnsweredTarget
    documents: AnsweredDocuments
    other_looks: int  # other audits of these documents and this target that were made before, in this store

    @property
    def parts(self) -> list[tuple[str, str]]:
        """What stands below the sentence, in this order: name -> text."""
        looks = f" Audits of these documents and this target before: {self.other_looks}, each a further chance to err."
        proviso = " All that where what is provided holds." if " provided that " in self.sentence else ""
        may_err = MAY_ERR[self.guarantee] + proviso + (looks if self.other_looks else "")
        error = f" (its Monte-Carlo error: {self.p_error:.1g})" if self.p_error is not None else ""
        return [
            *(("Why", reason) for reason in self.because),
            *([("Tested", f"{self.hypothesis} p = {self.p:.2g}{error}.")] if self.p is not None else []),
            ("Does not say", NOT_SAID[self.conclusion]),
            *([("Could be wrong", may_err)] if self.conclusion in ("used", "not used") else []),
            ("Next", self.next),
        ]

    def lines(self) -> list[str]:
        """As every view shows it, in this order: the sentence, why, what it does not say, how sure, what to do next."""
        return [f"{self.conclusion.upper()}: {self.sentence}", *(f"{name}: {text}" for name, text in self.parts)]


@dataclass(frozen=True)
class AuditResult(Recorded):
    """One audit: everything a reader needs to disagree. Written once, never edited."""

    answer: Answer

    question: AuditQuestion
    statistics: Statistics
    verdict: Verdict
    health: Health
    exclusions: Exclusions
    provenance: Provenance
    schema_version: int = field(default=SCHEMA_VERSION, kw_only=True)

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> Self:
        """From JSON values of this schema version. Raises ValueError, with the name of a field, where they are not."""
        result: Self = built(cls, values, "result")
        return result

    @property
    def false_claim(self) -> str:
        """How the verdict contradicts the known truth: "false clearance", "false alarm" or nothing."""
        match self.verdict.decision, self.question.truth:
            case "evidence_of_non_membership", "member":
                return "false clearance"
            case "evidence_of_membership", "non_member":
                return "false alarm"
        return ""

    @property
    def unlearned(self) -> str:
        """What the training of the distilled or tuned model did not lower, in words; empty: it lowered all."""
        found = self.health.training
        return " and ".join(
            what
            for name, what in LOWERED.items()
            if not found.get(f"{name}_after", -math.inf) < found.get(f"{name}_before", math.inf)
        )

    def that_made(self, made: Mapping[str, int]) -> AuditResult:
        """The same where this run had to make so much."""
        return replace(self, provenance=replace(self.provenance, made=made))

    def without_answers(self) -> AuditResult:
        """The same with warnings that quote no answers, which may be a document's text."""
        warnings = tuple(map(without_examples, self.verdict.warnings))
        return replace(self, verdict=replace(self.verdict, warnings=warnings))

    def to_json(self) -> str:
        return _as_json(self._values())

    def save(self, path: Path, files: Iterable[Path] = ()) -> None:
        """Write it with a seal. files: those beside `path` that belong to it and are complete (`results.seals`)."""
        write_text_atomically(path, _as_json(with_seal(self._values(), files)))

    def _values(self) -> dict[str, Any]:
        values = asdict(self)
        return {"schema_version": values.pop("schema_version"), **values}

    @classmethod
    def load(cls, path: Path, *, files_too: bool = True) -> AuditResult:
        """Read it.

        Raises ValueError where it cannot be read, or where its seal says that it or, with `files_too`, a file that
        belongs to it was changed or lost.
        """
        unreadable = f"{path} is not a result this version can read ({{}}). Move it away and run the audit again."
        try:
            values = json_object(path)
            if (version := values.get("schema_version")) != SCHEMA_VERSION:
                last = f"; the last version that reads it is nonmember {LAST_BEFORE}" if version in (None, 1, 2) else ""
                raise ValueError(f"its schema version must be {SCHEMA_VERSION}; got {version}{last}")
        except (ValueError, OSError) as error:
            raise ValueError(unreadable.format(error)) from error
        values = without_seal(values, path, files_too=files_too)
        try:
            return cls.of(values)
        except ValueError as error:
            raise ValueError(unreadable.format(error)) from error


def tokens_in_words(tokens: Mapping[str, Mapping[str, str | None]]) -> str:
    """What is read around each text, by model: `Provenance.tokens`."""
    roles: dict[str, list[str]] = {}
    for role, read in tokens.items():
        bos, eos = (f"{name.upper()} {read[name]}" if read[name] else f"no {name.upper()}" for name in ("bos", "eos"))
        roles.setdefault(f"{bos}, {eos}", []).append(role)
    return "; ".join(f"{', '.join(names)}: {read}" for read, names in roles.items())


def _as_json(values: Mapping[str, Any]) -> str:
    return json.dumps(values, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


@dataclass(frozen=True)
class Failure(Recorded):
    """An audit without a result."""

    cell: str  # the name of its folder
    error: str
    kind: str  # the class of the error
    subject: str = ""  # as `AuditQuestion.subject`, as far as known
    swept: Mapping[str, str] = field(default_factory=dict)  # as `AuditQuestion.swept`

    @classmethod
    def load(cls, path: Path) -> Self:
        try:
            failure: Self = built(cls, json_object(path), "failure")
            return failure
        except (ValueError, OSError) as error:
            raise ValueError(f"{path} cannot be read ({error}). Remove it, or run that audit again.") from error
