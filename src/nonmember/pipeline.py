"""One audit from specs to a result on disk: no Hydra, no W&B, callable from a notebook.

The method says which models it needs; the workshop finds or makes them and what they say about the suspect documents;
scores and test are arithmetic on that.
"""

from __future__ import annotations

import importlib.metadata
import json
import logging
import math
import platform
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, is_dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from nonmember.asking import Access, AskedDocuments
from nonmember.corpora import CorpusSpec
from nonmember.methods import (
    Asked,
    Diverged,
    DocumentGroup,
    Embedded,
    Measured,
    Method,
    Reordered,
    Roles,
    ScoredDocuments,
    TestOutcome,
)
from nonmember.methods.base import access_of
from nonmember.mirror import DISTRIBUTION, SCORES, SUSPECT, mirror
from nonmember.models.specs import (
    Endpoint,
    MaskedModel,
    ModelSpec,
    Noised,
    Pretrained,
    Recorded,
    Scratch,
    Served,
    Trained,
    label_of,
)
from nonmember.processes import process_rank
from nonmember.records import RESULT, AuditResult, Corpus, Embeddings, OrderTable, TokenTable
from nonmember.scores import DocumentScores, Score, ScoreInputs
from nonmember.scores.base import nll
from nonmember.store import key_hash, write_text_atomically
from nonmember.tracking import Tracker
from nonmember.training.recipes import settings_of
from nonmember.workshop import Counters, Workshop

log = logging.getLogger(__name__)

NO_COUNTERPART = "no text of this document to compare with"
WARN_EXCLUDED, INVALID_EXCLUDED = 0.05, 0.20  # methods, section 14, item 10
UNSEEN = "unseen"  # the group of documents that a target is tuned on
FORMAT = 1  # raise it when a change of code moves results
VERSIONS_OF = ("nonmember", "torch", "transformers", "tokenizers", "lightning", "numpy", "scipy")


@dataclass(frozen=True)
class Audit:
    """The question: was `suspect` used to train `target`?

    truth: member or non_member where the asker knows; None: derived from the recipes where these tell.
    corpus_label: how people call the suspect set.   general: text disjoint from it, where DC-PDD counts tokens.
    heldout: certainly unseen text of the same kind, read by the methods that compare.   unseen: further such text, on
    which some methods tune the target.
    world, sweep, data: where it stands among other audits, as the result records it; nothing depends on them.
    """

    target: ModelSpec
    reference: ModelSpec
    suspect: CorpusSpec
    method: Method
    seed: int
    corpus_label: str
    truth: str | None = None
    general: CorpusSpec | None = None
    heldout: CorpusSpec | None = None
    heldout_label: str | None = None
    unseen: CorpusSpec | None = None
    unseen_label: str | None = None
    world: str = "own"
    sweep: str = ""
    data: Mapping[str, str | float | bool | None] = field(default_factory=dict)

    @property
    def roles(self) -> Roles:
        return Roles(self.target, self.reference, self.suspect, self.seed, self.heldout, self.unseen)

    @property
    def labels(self) -> dict[str, str]:
        """How people call the documents, by group."""
        return {SUSPECT: self.corpus_label, "heldout": self.heldout_label or "", UNSEEN: self.unseen_label or ""}

    def __post_init__(self) -> None:
        if self.truth not in (None, "member", "non_member"):
            raise ValueError(f"truth must be member, non_member or null (unknown), but {self.truth!r} came.")
        if self.seed < 0:
            raise ValueError(f"seed must be at least 0, but {self.seed} came.")


def run_audit(audit: Audit, workshop: Workshop, tracker: Tracker, folder: Path) -> AuditResult:
    """Answer the question and leave result.json, scores.parquet and the resampled statistics in `folder`.

    The result is on disk before the tracker hears of it. Raises ValueError where the question cannot be put.
    """
    started = time.monotonic()
    before = replace(workshop.counters)
    method = audit.method
    groups = method.groups(audit.roles)
    _require_access(audit, groups, workshop)
    for name, group in groups.items():
        what = f"{name} set {audit.labels.get(name, '')}".rstrip()
        _require_documents(method, what, workshop.corpus(group.corpus), method.least(name))
    method.check({name: workshop.corpus(group.corpus) for name, group in groups.items()})
    measurements = {name: _measure(audit, group, workshop) for name, group in groups.items()}
    documents = {name: measured.documents for name, measured in measurements.items()}
    excluded = {
        doc_id if name == SUSPECT else f"{name}/{doc_id}": reason
        for name, measured in measurements.items()
        for doc_id, reason in measured.excluded.items()
    }
    models = {one.role: one.model for group in groups.values() for one in group.measured.values()}
    health = _health(models, workshop)
    suspect = measurements[SUSPECT]
    outcome = method.test(documents, np.random.default_rng([audit.seed, 0]))
    outcome = _after_exclusions(outcome, len(excluded), sum(len(workshop.corpus(g.corpus)) for g in groups.values()))
    warnings = [*outcome.warnings, *_capability_warnings(suspect.capability)]
    warnings += [*_health_warnings(health, models), *_unseen_warnings(audit, groups, workshop)]
    warnings += [*_failed_warnings(measurements), *workshop.warnings()]
    details = dict(outcome.details)
    uses_reference = not models.keys().isdisjoint(("reference", "distilled", "control")) or _reference_of_scores(groups)
    result = AuditResult(
        method=method.name,
        target=label_of(audit.target) if "target" in models else None,
        reference=label_of(audit.reference) if uses_reference else None,
        corpus=audit.corpus_label,
        heldout=audit.heldout_label if len(groups) > 1 else None,
        world=audit.world,
        sweep=audit.sweep,
        cell=folder.name,
        data=audit.data,
        truth=audit.truth or (workshop.truth(models["target"], audit.suspect) if "target" in models else None),
        num_documents=len(documents[SUSPECT].doc_ids),
        num_excluded=len(excluded),
        num_tokens=suspect.num_tokens,
        statistic=_number(outcome.statistic),
        p_value=_number(outcome.p_value),
        ci_low=_number(outcome.ci_low),
        ci_high=_number(outcome.ci_high),
        alpha=outcome.alpha,
        rho_reference_target=_number(details.pop("rho_reference_target", None)),
        rho_distilled_target=_number(details.pop("rho_distilled_target", None)),
        verdict=outcome.verdict,
        allowed_claim=outcome.allowed_claim,
        warnings=tuple(warnings),
        seed=audit.seed,
        score=method.score_name,
        settings=_settings(method),
        details={name: _number(value) if isinstance(value, float) else value for name, value in details.items()},
        health=health,
        capability=suspect.capability,
        dropped=_dropped(groups[SUSPECT], workshop),
        excluded=excluded,
        keys=audit_keys(audit, workshop),
        versions=versions(),
        made=_difference(workshop.counters, before),
        seconds=round(time.monotonic() - started, 3),
    )
    if process_rank() == 0:
        write(result, documents, outcome, folder)
    texts = {name: dict(zip(group.doc_ids, group.texts, strict=True)) for name, group in documents.items()}
    mirror(tracker, result, folder, texts)
    return result


def _require_access(audit: Audit, groups: Mapping[str, DocumentGroup], workshop: Workshop) -> None:
    """Refuse models that do not offer what the method needs, before anything is made or paid for."""
    method = audit.method
    measured = [one for group in groups.values() for one in group.measured.values()]
    needed = [(one.access, one.model) for one in measured]
    needed += [parent for one in measured for parent in _made_of(one.model)]
    if method.target_access is not None:
        needed.append((method.target_access, audit.target))
    for access, model in sorted(needed, key=lambda one: -one[0]):  # the most first: it is what is missed
        workshop.require(model, access, method.name)


def _made_of(model: ModelSpec) -> Iterable[tuple[Access, ModelSpec]]:
    """The models that a recipe starts from or learns from, with what it needs of them."""
    if isinstance(model, Trained | Noised):
        yield Access.WEIGHTS, model.base
        yield from _made_of(model.base)
    if isinstance(model, Trained) and model.teacher is not None:
        yield Access.FULL_LOGITS, model.teacher
        yield from _made_of(model.teacher)


@dataclass(frozen=True)
class MeasuredGroup:
    """A group's documents with their scores; who could not be scored and why; what the models make of the text.

    num_tokens: scored tokens under the first model, None where no text was scored.   failed: name of a measurement that
    asks -> reason -> questions that were not answered at all.
    """

    documents: ScoredDocuments
    excluded: Mapping[str, str]
    capability: Mapping[str, Mapping[str, float]]
    num_tokens: int | None
    failed: Mapping[str, Mapping[str, int]]


def _measure(audit: Audit, group: DocumentGroup, workshop: Workshop) -> MeasuredGroup:
    corpus = workshop.corpus(group.corpus)
    found: dict[str, DocumentScores | Embeddings | AskedDocuments] = {}
    capability: dict[str, dict[str, float]] = {}
    num_tokens = None
    for name, measured in group.measured.items():
        if isinstance(measured.model, Trained):
            workshop.trained(measured.model, measured.role)
        tokens: TokenTable | OrderTable | None = None  # of the text itself, where it is read as it is
        match measured:
            case Measured():
                found[name], tokens = _scored(audit, measured, len(corpus), workshop)
            case Embedded():
                found[name] = workshop.embeddings(
                    measured.model, measured.corpus, layer=measured.layer, dropout_seed=measured.dropout_seed,
                    max_tokens=audit.method.max_tokens,
                )  # fmt: skip
            case Diverged():
                found[name] = workshop.divergences(
                    measured.model, measured.other, measured.corpus, max_tokens=audit.method.max_tokens
                )
            case Reordered():
                tokens = workshop.orders(
                    measured.model, measured.corpus, num_orders=measured.num_orders, window=measured.window,
                    stride=measured.stride, seed=measured.seed,
                )  # fmt: skip
                found[name] = DocumentScores(tokens.doc_ids, getattr(tokens, measured.quantity), {})
            case Asked():
                found[name] = workshop.asked(measured.model, measured.corpus, measured.probe)
        if measured.role not in capability:
            likelihood = {} if tokens is None else {"nll": _nll_per_token(tokens)}
            size = {} if isinstance(measured.model, Endpoint | Recorded | MaskedModel) else {
                "num_parameters": workshop.num_parameters(measured.model)
            }  # fmt: skip
            capability[measured.role] = likelihood | size
        if tokens is not None:
            num_tokens = num_tokens or int(tokens.num_tokens.sum())
    documents, excluded = join(corpus, found)
    failed = {name: one.failed for name, one in found.items() if isinstance(one, AskedDocuments) and one.failed}
    return MeasuredGroup(documents, excluded, capability, num_tokens, failed)


def _nll_per_token(tokens: TokenTable | OrderTable) -> float:
    """Of documents, the mean of theirs; of a file, that of all its tokens."""
    if isinstance(tokens, OrderTable):
        return float(-tokens.canonical.sum() / tokens.num_tokens.sum())
    return float(np.nanmean(nll(tokens)))


def _scored(
    audit: Audit, measured: Measured, num_documents: int, workshop: Workshop
) -> tuple[DocumentScores, TokenTable | None]:
    """The scores, and the observations of the text where it is no prompt."""
    inputs = score_inputs(
        measured.score, measured.model, measured.corpus, workshop,
        max_tokens=audit.method.max_tokens, general=audit.general, reference=measured.reference,
    )  # fmt: skip
    scores = measured.score(inputs)
    if len(scores.doc_ids) - len(reasons := scores.reasons) < 2:
        why = ", ".join(sorted(set(reasons.values())))
        raise ValueError(f"{len(reasons)} of {num_documents} documents could not be scored ({why}). Give longer texts.")
    return scores, inputs.tokens if measured.score.asks is None else None


def _dropped(group: DocumentGroup, workshop: Workshop) -> dict[str, int]:
    """What the making of the corpora left out, by reason; of the others with their names."""
    dropped = dict(workshop.corpus(group.corpus).dropped)
    for name, corpus in (other_corpora(group) | asked_with(group)).items():
        dropped |= {f"{name}: {reason}": number for reason, number in workshop.corpus(corpus).dropped.items()}
    return dropped


def _require_documents(method: Method, what: str, corpus: Corpus, least: int) -> None:
    if len(corpus) < least:
        raise ValueError(
            f"The {what} has {len(corpus)} documents and {method.name} needs at least {least} "
            f"(dropped on the way: {dict(corpus.dropped) or 'none'}). Give more documents or loosen the cleaning."
        )


def _health(models: Mapping[str, ModelSpec], workshop: Workshop) -> dict[str, float]:
    """What training told about the distilled reference: cross-entropy and divergence, before and after."""
    distilled = models.get("distilled")
    if not isinstance(distilled, Trained):
        return {}
    facts = workshop.trained(distilled, "distilled").facts
    return {name: value for name, value in facts.items() if name.endswith(("_before", "_after"))}


def score_inputs(
    score: Score, model: ModelSpec, suspect: CorpusSpec, workshop: Workshop, *, max_tokens: int,
    reference: ModelSpec | None = None, general: CorpusSpec | None = None,
) -> ScoreInputs:  # fmt: skip
    """The observations a score declares it needs. `general`: where DC-PDD counts tokens."""
    workshop.require(model, access_of(score), f"The score {score.name}")
    if (question := score.asks) is not None:
        return ScoreInputs(tokens=workshop.answers(model, suspect, question, max_tokens=max_tokens))
    if score.needs_reference and reference is None:
        raise ValueError(f"The score {score.name} compares with a reference model; name one (model@reference=...).")
    if score.needs_counts and general is None:
        raise ValueError(f"The score {score.name} counts tokens in general text; name a corpus for it.")
    tables = {
        view: workshop.observations(model, suspect, view=view, max_tokens=max_tokens)  # type: ignore[arg-type]
        for view in score.views
    }
    needs_reference = score.needs_reference and reference is not None
    return ScoreInputs(
        tokens=tables[score.views[0]],
        other_view=tables[score.views[1]] if len(score.views) > 1 else None,
        reference=workshop.observations(reference, suspect, view="original", max_tokens=max_tokens)
        if needs_reference and reference is not None else None,
        texts=texts_of(workshop.corpus(suspect)) if score.needs_texts else None,
        counts=workshop.token_counts(model, general) if score.needs_counts and general is not None else None,
    )  # fmt: skip


def texts_of(corpus: Corpus) -> list[str]:
    return [document.text for document in corpus.documents]


def join(
    corpus: Corpus, found: Mapping[str, DocumentScores | Embeddings | AskedDocuments]
) -> tuple[ScoredDocuments, dict[str, str]]:
    """The documents every measurement could score, in the corpus's order; the others with the first reason found."""
    excluded: dict[str, str] = {}
    for name, scores in found.items():
        measured = set(scores.doc_ids)
        excluded |= {
            doc_id: f"{name}: {NO_COUNTERPART}"
            for doc_id in corpus.doc_ids
            if doc_id not in measured and doc_id not in excluded
        }
        for doc_id, reason in scores.reasons.items():
            excluded.setdefault(doc_id, f"{name}: {reason}")
    kept = [document for document in corpus.documents if document.doc_id not in excluded]
    values, embeddings, answers = {}, {}, {}
    for name, scores in found.items():
        place = {doc_id: index for index, doc_id in enumerate(scores.doc_ids)}
        rows = [place[document.doc_id] for document in kept]
        if isinstance(scores, Embeddings):
            embeddings[name] = scores.values[rows]
        else:
            values[name] = scores.values[rows]
        if isinstance(scores, AskedDocuments):
            answers[name] = tuple(scores.answers[row] for row in rows)
    documents = ScoredDocuments(
        doc_ids=tuple(document.doc_id for document in kept),
        values=values,
        cluster_ids=tuple(document.cluster_id for document in kept),
        texts=tuple(document.text for document in kept),
        embeddings=embeddings,
        answers=answers,
        excluded=excluded,
    )
    return documents, excluded


def audit_keys(audit: Audit, workshop: Workshop) -> dict[str, str]:
    """What determines the result: `audit` is the hash of all of it."""
    groups = audit.method.groups(audit.roles)
    models = {one.role: one.model for group in groups.values() for one in group.measured.values()}
    keys = {role: key_hash(workshop.model_key(model)) for role, model in models.items()}
    if reference := _reference_of_scores(groups):
        keys["reference"] = key_hash(workshop.model_key(reference))
    for name, group in groups.items():
        keys["corpus" if name == SUSPECT else name] = workshop.fingerprint(group.corpus)
        keys |= {other: key_hash(workshop.corpus_key(corpus)) for other, corpus in other_corpora(group).items()}
        keys |= {f"{name}/{other}": key_hash(workshop.corpus_key(one)) for other, one in asked_with(group).items()}
    if (tokenizer := _tokenizer_of_probes(groups)) is not None:
        keys["tokenizer"] = key_hash(workshop.model_key(tokenizer))
    if any(one.score.needs_counts for one in _scores_among(groups)) and audit.general is not None:
        keys["general"] = workshop.fingerprint(audit.general)
    parts = {
        "format": FORMAT,
        "parts": keys,
        "method": _settings(audit.method),
        "seed": audit.seed,
        "truth": audit.truth,
    }
    return keys | {"audit": key_hash(parts)}


def _reference_of_scores(groups: Mapping[str, DocumentGroup]) -> ModelSpec | None:
    """The model that a score compares with, where one does."""
    return next((one.reference for one in _scores_among(groups) if one.score.needs_reference), None)


def _tokenizer_of_probes(groups: Mapping[str, DocumentGroup]) -> ModelSpec | None:
    """The model in whose tokens questions are counted, where it is not the one that is asked."""
    asked = [one for group in groups.values() for one in group.measured.values() if isinstance(one, Asked)]
    return next((one.probe.tokenizer for one in asked if one.probe.tokenizer not in (None, one.model)), None)


def _scores_among(groups: Mapping[str, DocumentGroup]) -> list[Measured]:
    return [one for group in groups.values() for one in group.measured.values() if isinstance(one, Measured)]


def other_corpora(group: DocumentGroup) -> dict[str, CorpusSpec]:
    """What is measured beside the group's own documents, under the name of the first measurement on it."""
    others: dict[str, CorpusSpec] = {}
    for name, one in group.measured.items():
        if one.corpus != group.corpus and one.corpus not in others.values():
            others[name] = one.corpus
    return others


def asked_with(group: DocumentGroup) -> dict[str, CorpusSpec]:
    """What the group's questions are made with beside its own documents."""
    return {
        f"{name}/{other}": corpus
        for name, one in group.measured.items()
        if isinstance(one, Asked)
        for other, corpus in one.probe.corpora.items()
    }


def finished(audit: Audit, workshop: Workshop, folder: Path) -> AuditResult | None:
    """The result that lies in `folder`, if it answers this very question and this version can read it."""
    result = _earlier_result(folder / RESULT)
    return result if result and result.keys.get("audit") == audit_keys(audit, workshop)["audit"] else None


def _earlier_result(path: Path) -> AuditResult | None:
    try:
        return AuditResult.load(path) if path.is_file() else None
    except ValueError:
        return None


def write(result: AuditResult, documents: Mapping[str, ScoredDocuments], outcome: TestOutcome, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    write_table(_columns_of_scores(documents), folder / SCORES)
    if len(outcome.distribution):
        write_table({"statistic": outcome.distribution}, folder / DISTRIBUTION)
    else:
        (folder / DISTRIBUTION).unlink(missing_ok=True)  # of another question that was put here before
    _keep_earlier(folder / RESULT)
    write_text_atomically(folder / RESULT, result.to_json())


def _columns_of_scores(documents: Mapping[str, ScoredDocuments]) -> dict[str, Any]:
    """doc_id and a column per measurement; with several groups of documents one below the other, named in `group`."""
    names = list(dict.fromkeys(name for group in documents.values() for name in group.values))
    columns: dict[str, Any] = {"doc_id": [doc_id for group in documents.values() for doc_id in group.doc_ids]}
    if len(documents) > 1:
        columns["group"] = [name for name, group in documents.items() for _ in group.doc_ids]
    for name in names:
        parts = [group.values.get(name, np.full(len(group.doc_ids), np.nan)) for group in documents.values()]
        columns[name] = np.concatenate(parts)
    return columns


def _keep_earlier(path: Path) -> None:
    """A result of another question that lies there is moved aside under its own key, never overwritten."""
    if path.is_file():
        earlier = _earlier_result(path)
        mark = earlier.keys["audit"] if earlier else f"unreadable-{key_hash(path.read_text(errors='replace'))}"
        path.rename(path.with_name(f"result-{mark}.json"))


def write_table(columns: Mapping[str, Any], path: Path) -> None:
    temporary = path.with_name(f".{path.name}")
    pq.write_table(pa.table(dict(columns)), temporary)
    temporary.replace(path)


def versions() -> dict[str, str]:
    return {"python": platform.python_version()} | {name: importlib.metadata.version(name) for name in VERSIONS_OF}


def _settings(method: Method) -> dict[str, Any]:
    """The method's parameters as plain JSON, with the names of the classes among them."""
    described = {name: _described(value) for name, value in vars(method).items()}
    # As it will be read again, and failing here rather than when the result is written.
    settings: dict[str, Any] = json.loads(json.dumps({"method": method.name, **described}, allow_nan=False))
    return settings


def _described(value: Any) -> Any:
    match value:  # what models and corpora are made of stands in the keys
        case Pretrained() | Scratch() | Trained() | Noised() | Served() | Endpoint() | Recorded() | MaskedModel():
            return label_of(value)
        case CorpusSpec():
            return type(value).__name__
        case list() | tuple():
            return [_described(item) for item in value]
        case _ if is_dataclass(value) and not isinstance(value, type):
            return {"kind": type(value).__name__, **settings_of(value)}
        case _:
            return value


def _after_exclusions(outcome: TestOutcome, num_excluded: int, num_documents: int) -> TestOutcome:
    share = num_excluded / num_documents
    if share <= WARN_EXCLUDED:
        return outcome
    warning = f"{num_excluded} of {num_documents} documents ({share:.0%}) could not be scored; see `excluded`."
    outcome = replace(outcome, warnings=(*outcome.warnings, warning))
    if share <= INVALID_EXCLUDED:
        return outcome
    claim = "A precondition of the test failed; nothing may be concluded."
    return replace(outcome, verdict="invalid", allowed_claim=claim)


def _capability_warnings(capability: Mapping[str, Mapping[str, float]]) -> Iterable[str]:
    if "reference" not in capability:
        return
    target, reference = capability["target"], capability["reference"]
    if not {"num_parameters"} <= reference.keys() & target.keys():  # one can only be asked
        return
    if reference["num_parameters"] < target["num_parameters"]:
        yield (
            f"The reference is smaller than the target ({reference['num_parameters']:,.0f} against "
            f"{target['num_parameters']:,.0f} parameters): weak references clear models that did read the documents "
            "(PRISM, table 5). Run the positive control: a model trained on the documents."
        )


def _health_warnings(health: Mapping[str, float], models: Mapping[str, ModelSpec]) -> Iterable[str]:
    made = "distilled reference" if "distilled" in models else "tuned model"
    for name, what in (("ce", "cross-entropy on the documents"), ("kl", "divergence from the target")):
        before, after = health.get(f"{name}_before"), health.get(f"{name}_after")
        if before is not None and after is not None and not after < before:
            yield f"The {made}'s {what} did not fall ({before:.3f} to {after:.3f} nats per token)."


def _failed_warnings(measurements: Mapping[str, MeasuredGroup]) -> Iterable[str]:
    for group, measured in measurements.items():
        for name, reasons in measured.failed.items():
            told = ", ".join(f"{reason}: {number}" for reason, number in reasons.items())
            yield f"{sum(reasons.values())} questions of {name} about the {group} set have no answer ({told})."


def _unseen_warnings(audit: Audit, groups: Mapping[str, DocumentGroup], workshop: Workshop) -> Iterable[str]:
    """Where a method tunes the target: what was given as unread and is not, as far as recipes tell."""
    if UNSEEN not in groups:
        return
    for corpus, what in ((audit.unseen, "that it is tuned on"), (audit.heldout, "given as non-members")):
        if corpus is not None and workshop.truth(audit.target, corpus) == "member":
            yield f"The target has read the documents {what}."


def _difference(after: Counters, before: Counters) -> dict[str, int]:
    return {name: value - getattr(before, name) for name, value in asdict(after).items()}


def _number(value: float | None) -> float | None:
    return None if value is None or not math.isfinite(value) else float(value)


def table_of_scores(
    names: Sequence[str], scored: Sequence[DocumentScores]
) -> tuple[dict[str, Any], dict[str, Mapping[str, str]]]:
    """Columns (doc_id and a column per score) and, per score, the documents that have no value."""
    columns: dict[str, Any] = {"doc_id": list(scored[0].doc_ids)}
    reasons = {}
    for name, scores in zip(names, scored, strict=True):
        place = {doc_id: index for index, doc_id in enumerate(scores.doc_ids)}
        columns[name] = scores.values[[place[doc_id] for doc_id in columns["doc_id"]]]
        reasons[name] = scores.reasons
    return columns, reasons
