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
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from nonmember.corpora import CorpusSpec
from nonmember.methods import Method, Roles, RoleScores, TestOutcome
from nonmember.models.specs import ModelSpec, Trained, label_of
from nonmember.processes import process_rank
from nonmember.records import AuditResult, Corpus
from nonmember.scores import DocumentScores, Score, ScoreInputs
from nonmember.scores.base import nll
from nonmember.store import key_hash, write_text_atomically
from nonmember.tracking import Tracker
from nonmember.workshop import Counters, Workshop

log = logging.getLogger(__name__)

RESULT = "result.json"
WARN_EXCLUDED, INVALID_EXCLUDED = 0.05, 0.20  # methods, section 14, item 10
FORMAT = 1  # raise it when a change of code moves results
VERSIONS_OF = ("nonmember", "torch", "transformers", "tokenizers", "lightning", "numpy", "scipy")


@dataclass(frozen=True)
class Audit:
    """The question: was `suspect` used to train `target`?

    truth: member or non_member where the asker knows; None: derived from the recipes where these tell.
    corpus_label: how people call the suspect set.   general: text disjoint from it, where DC-PDD counts tokens.
    """

    target: ModelSpec
    reference: ModelSpec
    suspect: CorpusSpec
    method: Method
    seed: int
    corpus_label: str
    truth: str | None = None
    general: CorpusSpec | None = None

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
    suspect = workshop.corpus(audit.suspect)
    if len(suspect) < method.min_documents:
        raise ValueError(
            f"The suspect set {audit.corpus_label} has {len(suspect)} documents and {method.name} needs at least "
            f"{method.min_documents} (dropped on the way: {dict(suspect.dropped) or 'none'}). "
            "Give more documents or loosen the cleaning."
        )
    models = method.models(Roles(audit.target, audit.reference, audit.suspect, audit.seed))
    health: dict[str, float] = {}
    scored: dict[str, DocumentScores] = {}
    capability: dict[str, dict[str, float]] = {}
    for role, spec in models.items():
        if isinstance(spec, Trained):
            facts = workshop.trained(spec, role).facts
            health |= {name: value for name, value in facts.items() if name.endswith(("_before", "_after"))}
        inputs = score_inputs(
            method.score, spec, audit.suspect, workshop, max_tokens=method.max_tokens, general=audit.general
        )
        scored[role] = method.score(inputs)
        if len(suspect) - len(reasons := scored[role].reasons) < 2:
            why = ", ".join(sorted(set(reasons.values())))
            raise ValueError(
                f"{len(reasons)} of {len(suspect)} documents could not be scored ({why}). Give longer texts."
            )
        capability[role] = {
            "nll": float(np.nanmean(nll(inputs.tokens))),
            "num_parameters": workshop.num_parameters(spec),
        }
    scores, excluded = join(scored)
    rng = np.random.default_rng([audit.seed, 0])
    outcome = method.test(scores, rng)
    outcome = _after_exclusions(outcome, len(excluded), len(suspect))
    warnings = [*outcome.warnings, *_capability_warnings(capability), *_health_warnings(health)]
    details = dict(outcome.details)
    result = AuditResult(
        method=method.name,
        target=label_of(audit.target),
        reference=label_of(audit.reference),
        corpus=audit.corpus_label,
        truth=audit.truth or workshop.truth(audit.target, audit.suspect),
        num_documents=len(scores.doc_ids),
        num_excluded=len(excluded),
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
        score=method.score.name,
        settings=_settings(method),
        details={name: _number(value) if isinstance(value, float) else value for name, value in details.items()},
        health=health,
        capability=capability,
        dropped=dict(suspect.dropped),
        excluded=excluded,
        keys=audit_keys(audit, workshop),
        versions=versions(),
        made=_difference(workshop.counters, before),
        seconds=round(time.monotonic() - started, 3),
    )
    if process_rank() == 0:
        write(result, scores, outcome, folder)
    tell(tracker, result, scores, outcome)
    return result


def score_inputs(
    score: Score, model: ModelSpec, suspect: CorpusSpec, workshop: Workshop, *, max_tokens: int,
    reference: ModelSpec | None = None, general: CorpusSpec | None = None,
) -> ScoreInputs:  # fmt: skip
    """The observations a score declares it needs. `general`: where DC-PDD counts tokens."""
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
        lowercase=tables.get("lowercase"),
        reference=workshop.observations(reference, suspect, view="original", max_tokens=max_tokens)
        if needs_reference and reference is not None else None,
        texts=texts_of(workshop.corpus(suspect)) if score.needs_texts else None,
        counts=workshop.token_counts(model, general) if score.needs_counts and general is not None else None,
    )  # fmt: skip


def texts_of(corpus: Corpus) -> list[str]:
    return [document.text for document in corpus.documents]


def join(scored: Mapping[str, DocumentScores]) -> tuple[RoleScores, dict[str, str]]:
    """Scores of the documents every role could score, and the others with the first reason found."""
    excluded: dict[str, str] = {}
    for role, scores in scored.items():
        for doc_id, reason in scores.reasons.items():
            excluded.setdefault(doc_id, f"{role}: {reason}")
    doc_ids = tuple(doc_id for doc_id in next(iter(scored.values())).doc_ids if doc_id not in excluded)
    values = {}
    for role, scores in scored.items():
        place = {doc_id: index for index, doc_id in enumerate(scores.doc_ids)}
        values[role] = scores.values[[place[doc_id] for doc_id in doc_ids]]
    return RoleScores(doc_ids, values), excluded


def audit_keys(audit: Audit, workshop: Workshop) -> dict[str, str]:
    """What determines the result: `audit` is the hash of all of it."""
    models = audit.method.models(Roles(audit.target, audit.reference, audit.suspect, audit.seed))
    keys = {role: key_hash(workshop.model_key(spec)) for role, spec in models.items()}
    keys["corpus"] = workshop.fingerprint(audit.suspect)
    if audit.method.score.needs_counts and audit.general is not None:
        keys["general"] = workshop.fingerprint(audit.general)
    parts = {
        "format": FORMAT,
        "parts": keys,
        "method": _settings(audit.method),
        "seed": audit.seed,
        "truth": audit.truth,
    }
    return keys | {"audit": key_hash(parts)}


def finished(audit: Audit, workshop: Workshop, folder: Path) -> AuditResult | None:
    """The result that lies in `folder`, if it answers this very question."""
    path = folder / RESULT
    if not path.is_file():
        return None
    result = AuditResult.load(path)
    return result if result.keys.get("audit") == audit_keys(audit, workshop)["audit"] else None


def write(result: AuditResult, scores: RoleScores, outcome: TestOutcome, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    write_table({"doc_id": list(scores.doc_ids), **scores.values}, folder / "scores.parquet")
    if len(outcome.distribution):
        write_table({"statistic": outcome.distribution}, folder / "distribution.parquet")
    _keep_earlier(folder / RESULT)
    write_text_atomically(folder / RESULT, result.to_json())


def _keep_earlier(path: Path) -> None:
    """A result of another question that lies there is moved aside under its own key, never overwritten."""
    if path.is_file():
        path.rename(path.with_name(f"result-{AuditResult.load(path).keys['audit']}.json"))


def write_table(columns: Mapping[str, Any], path: Path) -> None:
    temporary = path.with_name(f".{path.name}")
    pq.write_table(pa.table(dict(columns)), temporary)
    temporary.replace(path)


def tell(tracker: Tracker, result: AuditResult, scores: RoleScores, outcome: TestOutcome) -> None:
    """Mirror a result to the tracker, under names that never change."""
    values: dict[str, float | str | None] = {
        "test/statistic": result.statistic,
        "test/p_value": result.p_value,
        "test/ci_low": result.ci_low,
        "test/ci_high": result.ci_high,
        "rho/reference_target": result.rho_reference_target,
        "rho/distilled_target": result.rho_distilled_target,
        "verdict": result.verdict,
        "num_documents": result.num_documents,
        "num_excluded": result.num_excluded,
        **{f"health/{name}": value for name, value in result.health.items()},
    }
    tracker.summarise({name: value for name, value in values.items() if value is not None})
    if len(outcome.distribution):
        tracker.histogram("test/distribution", outcome.distribution[np.isfinite(outcome.distribution)].tolist())
    columns = {role: values_.tolist() for role, values_ in scores.values.items()}
    tracker.scores("scores", {"doc_id": list(scores.doc_ids), **columns})


def versions() -> dict[str, str]:
    return {"python": platform.python_version()} | {name: importlib.metadata.version(name) for name in VERSIONS_OF}


def _settings(method: Method) -> dict[str, Any]:
    """The method's parameters as plain JSON, with the names of the classes among them."""
    described = {}
    for name, value in vars(method).items():
        described[name] = (
            {"kind": type(value).__name__, **asdict(value)} if hasattr(value, "__dataclass_fields__") else value
        )
    # As it will be read again, and failing here rather than when the result is written.
    settings: dict[str, Any] = json.loads(json.dumps({"method": method.name, **described}, allow_nan=False))
    return settings


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
    if reference["num_parameters"] < target["num_parameters"]:
        yield (
            f"The reference is smaller than the target ({reference['num_parameters']:,.0f} against "
            f"{target['num_parameters']:,.0f} parameters): weak references clear models that did read the documents "
            "(PRISM, table 5). Run the positive control: a model trained on the documents."
        )


def _health_warnings(health: Mapping[str, float]) -> Iterable[str]:
    for name, what in (("ce", "cross-entropy on the documents"), ("kl", "divergence from the target")):
        before, after = health.get(f"{name}_before"), health.get(f"{name}_after")
        if before is not None and after is not None and not after < before:
            yield f"The distilled reference's {what} did not fall ({before:.3f} to {after:.3f} nats per token)."


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
