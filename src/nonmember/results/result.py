"""The record of an audit: the schema of `result.json`.

A schema version says how to read it. Results of earlier versions were flat, without one: `upgraded`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Self

from nonmember.records.exposure import NOT_READ, Exposure
from nonmember.results.answers import without_examples
from nonmember.results.schema import built
from nonmember.results.seals import with_seal, without_seal
from nonmember.runtime.files import json_object, write_text_atomically

SCHEMA_VERSION = 2  # 1 was flat and did not say so

# In the folder of each audit.
RESULT, ERROR, CONFIG = "result.json", "error.json", "config.json"
SCORES, DISTRIBUTION = "scores.parquet", "distribution.parquet"
PARTS = "parts"  # the folder of the parts' own folders, beside a result that joins them


@dataclass(frozen=True)
class AuditedModel:
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
class AuditQuestion:
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
    data: Mapping[str, str | float | bool | None]  # the plain values of the data config (domain, half ...)

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
class Statistics:
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

    @property
    def is_signed(self) -> bool:
        """Whether it can be negative: differences and correlations can, readings, rates and AUCs cannot."""
        return self.picture != "dose" and (self.bounds is None or self.bounds[0] < 0)


@dataclass(frozen=True)
class Verdict:
    decision: str  # evidence_of_non_membership, evidence_of_membership, inconclusive, score_only or invalid
    allowed_claim: str  # what may be said, in words
    warnings: tuple[str, ...]  # what stands in its way, or qualifies it


@dataclass(frozen=True)
class Health:
    """Whether models and scores can be relied on."""

    # Cross-entropy (ce) and divergence from the target (kl) of the distilled reference on the suspect set, in nats per
    # token, before and after its training.
    training: Mapping[str, float]
    # Role -> negative log-likelihood (nll, nats per token) and num_parameters, as far as known.
    capability: Mapping[str, Mapping[str, float]]
    # Group of documents -> measurement -> what its score guarded against (sigma_below_eps: tokens; saturated_share: of
    # the tokens) -> how much of it there was.
    counters: Mapping[str, Mapping[str, Mapping[str, float]]]


@dataclass(frozen=True)
class Exclusions:
    """What was left out."""

    documents: Mapping[str, Mapping[str, str]]  # group -> document id -> why it has no score
    dropped: Mapping[str, int]  # reason -> number of documents that the making of the suspect corpus left out before

    @property
    def num_documents(self) -> int:
        """Of all groups."""
        return sum(map(len, self.documents.values()))


@dataclass(frozen=True)
class Provenance:
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


@dataclass(frozen=True)
class FoundDocuments:
    num_documents: int  # of a group
    # num_whole, num_partly, num_absent: of them all, some or none of whose sequences of words the corpus holds; of the
    # others nothing was looked up
    num_whole: int
    num_partly: int
    num_absent: int
    # Of the sequences those that were found, mean over documents; None where nothing was looked up.
    mean_share: float | None


@dataclass(frozen=True)
class LookedUp:
    """An exact look-up of the documents, of which the verdict knows nothing."""

    source: str  # the corpus
    key: Mapping[str, Any]  # what determines the answers
    ngram: int  # words of a sequence
    groups: Mapping[str, FoundDocuments]  # by group

    def in_words(self) -> str:
        """A sentence for each group."""
        return " ".join(
            f"Of {item.num_documents:,} {name.replace('heldout', 'held-out')} documents {self.source} holds "
            f"{item.num_whole:,} whole, {item.num_partly:,} in part and {item.num_absent:,} not at all "
            f"(mean share {item.mean_share or 0:.3f})."
            for name, item in self.groups.items()
        )


@dataclass(frozen=True)
class AuditResult:
    """One audit: everything a reader needs to disagree. Written once, never edited.

    looked_up: None where nothing was, and then it stands in no file.
    """

    question: AuditQuestion
    statistics: Statistics
    verdict: Verdict
    health: Health
    exclusions: Exclusions
    provenance: Provenance
    looked_up: LookedUp | None = None
    schema_version: int = field(default=SCHEMA_VERSION, kw_only=True)

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> Self:
        """From JSON values of this schema version. Raises ValueError, with the name of a field, where they are not."""
        result: Self = built(cls, values, "result")
        return result

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
        if self.looked_up is None:
            del values["looked_up"]
        return {"schema_version": values.pop("schema_version"), **values}

    @classmethod
    def load(cls, path: Path, *, files_too: bool = True) -> AuditResult:
        """Read it, also where an earlier version wrote it.

        Raises ValueError where it cannot be read, or where its seal says that it or, with `files_too`, a file that
        belongs to it was changed or lost.
        """
        unreadable = f"{path} is not a result this version can read ({{}}). Move it away and run the audit again."
        try:
            values = json_object(path)
        except (ValueError, OSError) as error:
            raise ValueError(unreadable.format(error)) from error
        try:
            values = without_seal(values, path, files_too=files_too)
        except OSError as error:
            raise ValueError(unreadable.format(error)) from error
        try:
            if "schema_version" not in values:
                return cls.of(json.loads(upgraded(values).to_json()))
            if values["schema_version"] != SCHEMA_VERSION:
                raise ValueError(f"its schema version must be {SCHEMA_VERSION}; got {values['schema_version']}")
            return cls.of(values)
        except (TypeError, LookupError, ValueError, AttributeError, ArithmeticError) as error:
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
class Failure:
    """An audit without a result."""

    cell: str  # the name of its folder
    error: str
    kind: str  # the class of the error
    subject: str = ""  # as `AuditQuestion.subject`, as far as known
    given: tuple[str, ...] = ()  # for this cell of a sweep and not for all of them, as on the command line

    @classmethod
    def load(cls, path: Path) -> Self:
        try:
            failure: Self = built(cls, json_object(path), "failure")
            return failure
        except (ValueError, OSError) as error:
            raise ValueError(f"{path} cannot be read ({error}). Remove it, or run that audit again.") from error


# ----------------------------------------------------------------------------------------------- earlier versions
# What they do not record comes from the class of the method, and what a target has read from its label: the one place
# where a label is parsed.

# Of a model: the last thing it was continued with, with the half of a set that this was (target+12xA, micro_s+8x50%).
LABEL = re.compile(r"(?:^|\+)(\d+)x(?:(\d+)%)?[A-Za-z]*$")
CONTROL = re.compile(r"control-(.+)-\d+")  # role of a planted control, with its exposure
DISTILLED = re.compile(r"(?:(.+)/)?distilled(?:/\d+)?")  # of a distilled reference, with the role of its teacher
RHO = ("rho_reference_target", "rho_distilled_target")
GROUPS = ("heldout", "unseen", "third")  # whose documents bore their name: heldout/id


def upgraded(flat: Mapping[str, Any]) -> AuditResult:
    """The same in the present schema. Raises KeyError or TypeError where it is no result of an earlier version."""
    from nonmember.methods import method_named  # heavy

    method = method_named(flat["method"])
    claim, null_hypothesis = method.hypothesis(flat["settings"])
    rho = {name: flat[name] for name in RHO if flat[name] is not None}
    return AuditResult(
        AuditQuestion(
            claim=claim,
            null_hypothesis=null_hypothesis,
            models=_models(flat),
            **{name: flat[name] for name in AuditQuestion.__dataclass_fields__.keys() & flat.keys()},
        ),
        Statistics(
            name=method.statistic_name,
            value=flat["statistic"],
            bounds=method.statistic_bounds,
            p_value=flat["p_value"],
            ci_low=flat["ci_low"],
            ci_high=flat["ci_high"],
            num_documents=flat["num_documents"],
            num_tokens=flat["num_tokens"],
            details={**rho, **flat["details"]},
            picture=method.picture,
        ),
        Verdict(flat["verdict"], flat["allowed_claim"], tuple(flat["warnings"])),
        Health(training=flat["health"], capability=flat["capability"], counters={}),
        Exclusions(documents=_by_group(flat["excluded"]), dropped=flat["dropped"]),
        Provenance(flat["keys"], flat["versions"], flat["made"], flat["seconds"]),
    )


def exposure_of(label: str) -> Exposure | None:
    """None where the label tells of none. Shares are as exact as the label."""
    match = LABEL.search(label)
    if match is None:
        return None
    share = int(match[2]) / 100 if match[2] else 1.0
    return Exposure(share, int(match[1])) if 0 < share <= 1 else None


def _models(flat: Mapping[str, Any]) -> dict[str, AuditedModel]:
    """The target, planted controls, and others from which references were distilled."""
    planted = _planted(flat)
    distilled: dict[str, list[str]] = {}
    for role in flat["keys"]:
        if match := DISTILLED.fullmatch(role):
            distilled.setdefault(match[1] or "target", []).append(role)
    root = flat["settings"].get("controls", {}).get("stand_in", {}).get("label")
    models = {role: AuditedModel(None, None, distilled=tuple(names)) for role, names in distilled.items()}
    for role in flat["keys"]:
        if match := CONTROL.fullmatch(role):
            models[role] = AuditedModel(planted.get(match[1]), root, True, tuple(distilled.get(role, ())))
    if flat["target"] is not None:
        root = flat["target"].partition("+")[0]
        models["target"] = AuditedModel(_read_by_target(flat, planted), root, False, tuple(distilled.get("target", ())))
    return models


def _planted(flat: Mapping[str, Any]) -> dict[str, Exposure]:
    """Label -> exposure of the controls, as declared in the settings."""
    readings = flat["settings"].get("controls", {}).get("readings", ())
    exposures = [Exposure(float(item["share"]), int(item["exposures"])) for item in readings]
    return {item.label: item for item in exposures}


def _read_by_target(flat: Mapping[str, Any], planted: Mapping[str, Exposure]) -> Exposure | None:
    if flat["truth"] == "non_member":
        return NOT_READ
    if flat["truth"] is None:
        return None
    return planted.get(flat["target"].rpartition("+")[2]) or exposure_of(flat["target"])


def _by_group(excluded: Mapping[str, str]) -> dict[str, dict[str, str]]:
    documents: dict[str, dict[str, str]] = {}
    for name, reason in excluded.items():
        group, _, doc_id = name.partition("/")
        group, doc_id = (group, doc_id) if group in GROUPS else ("suspect", name)
        documents.setdefault(group, {})[doc_id] = reason
    return documents
