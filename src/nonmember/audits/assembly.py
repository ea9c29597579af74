"""The result of an audit, from what was measured and what the method concluded."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

from nonmember.artifacts import Builder
from nonmember.audits.answer import answer_of
from nonmember.audits.keys import settings_of_method
from nonmember.audits.measuring import MeasuredGroup, rows_of_answers
from nonmember.audits.question import Audit, further_corpora, other_corpora
from nonmember.audits.warnings import warnings_about
from nonmember.methods import TestOutcome
from nonmember.methods.protocols import Distils, PlantsControls
from nonmember.models import ModelSpec, label_of
from nonmember.models.exposure import Exposures, root_of
from nonmember.records.groups import SUSPECT
from nonmember.results import answers
from nonmember.results.result import (
    AuditedModel,
    AuditQuestion,
    AuditResult,
    Exclusions,
    Health,
    Provenance,
    Statistics,
    Verdict,
)


def result_of(
    audit: Audit,
    measured: Mapping[str, MeasuredGroup],
    outcome: TestOutcome,
    builder: Builder,
    provenance: Provenance,
    cell: str,
) -> AuditResult:
    health = Health(
        training=training_health(audit.models, builder),
        capability=measured[SUSPECT].capability,
        counters={name: group.counters for name, group in measured.items() if group.counters},
    )
    rows = answer_rows(audit, measured, builder)
    warnings = (*outcome.warnings, *warnings_about(audit, measured, health, rows, builder))
    question, statistics = _question(audit, outcome, builder, cell), _statistics(audit, measured[SUSPECT], outcome)
    return AuditResult(
        answer=answer_of(audit, outcome, question, statistics, provenance.keys, builder),
        question=question,
        statistics=statistics,
        verdict=Verdict(outcome.verdict, outcome.allowed_claim, warnings),
        health=health,
        exclusions=Exclusions(
            documents={
                name: {doc_id: str(item) for doc_id, item in group.documents.excluded.items()}
                for name, group in measured.items()
                if group.documents.excluded
            },
            dropped=_dropped(audit, builder),
        ),
        provenance=provenance,
    )


def _question(audit: Audit, outcome: TestOutcome, builder: Builder, cell: str) -> AuditQuestion:
    method, models = audit.method, audit.models
    settings = settings_of_method(method)
    claim, null_hypothesis = method.hypothesis(settings)
    roles = models.keys() | audit.compared_with().keys()
    uses_reference = not roles.isdisjoint(("reference", "distilled", "control"))
    exposures = Exposures(builder, audit.suspect)
    return AuditQuestion(
        method=method.name,
        settings=settings,
        score=method.score_name,
        claim=outcome.claim or claim,
        null_hypothesis=outcome.null_hypothesis or null_hypothesis,
        alpha=outcome.alpha,
        target=audit.target.readable if "target" in models else None,
        reference=audit.reference.readable if uses_reference else None,
        corpus=audit.corpus_label,
        heldout=audit.heldout_label if len(audit.groups) > 1 else None,
        models=_models(audit, exposures),
        truth=audit.truth or (exposures.truth(models["target"]) if "target" in models else None),
        seed=audit.seed,
        world=audit.world,
        sweep=audit.sweep,
        cell=cell,
        data=audit.data,
        swept=audit.swept,
    )


def _models(audit: Audit, exposures: Exposures) -> dict[str, AuditedModel]:
    """What a control has read is what the method made it read; of others, what their recipes tell."""
    method = audit.method
    controls = method.control_exposures() if isinstance(method, PlantsControls) else {}
    related = method.related(audit.roles) if isinstance(method, PlantsControls) else None
    distilled = method.distilled_roles() if isinstance(method, Distils) else {}
    beside = None if related is None else Exposures(exposures.builder, related)
    return {
        role: AuditedModel(
            exposure=controls[role] if role in controls else exposures.exposure(model),
            root=label_of(root_of(model)),
            control=role in controls,
            distilled=tuple(name for name in distilled.get(role, ()) if name in audit.models),
            related=None if beside is None else beside.exposure(model),
        )
        for role, model in audit.models.items()
    }


def _statistics(audit: Audit, suspect: MeasuredGroup, outcome: TestOutcome) -> Statistics:
    method = audit.method
    return Statistics(
        name=method.statistic_name,
        value=_number(outcome.statistic),
        bounds=method.statistic_bounds,
        p_value=_number(outcome.p_value),
        ci_low=_number(outcome.ci_low),
        ci_high=_number(outcome.ci_high),
        num_documents=len(suspect.documents.doc_ids),
        num_tokens=suspect.num_tokens,
        details=outcome.details.to_json(),
        picture=method.picture,
        p_error=outcome.p_error,
    )


def answer_rows(audit: Audit, measured: Mapping[str, MeasuredGroup], builder: Builder) -> Iterator[answers.Row]:
    """What the models answered, where the method asks any: also about documents that could not be scored for it."""
    for group, item in measured.items():
        for name, values in item.values.items():
            yield from rows_of_answers(group, name, audit.groups[group].measured[name], values, builder)


def _dropped(audit: Audit, builder: Builder) -> dict[str, int]:
    """What the making of the corpora left out, by reason; of corpora beside the suspect set with their names."""
    group = audit.groups[SUSPECT]
    dropped = dict(builder.get(group.corpus).dropped)
    for name, corpus in (other_corpora(group) | further_corpora(group)).items():
        dropped |= {f"{name}: {reason}": number for reason, number in builder.get(corpus).dropped.items()}
    return dropped


def training_health(models: Mapping[str, ModelSpec], builder: Builder) -> dict[str, float]:
    """Cross-entropy and divergence of the distilled reference, before and after its training."""
    distilled = models.get("distilled")
    if distilled is None or not distilled.stored:
        return {}
    facts = builder.entry(distilled).facts
    return {name: value for name, value in facts.items() if name.endswith(("_before", "_after"))}


def _number(value: float | None) -> float | None:
    return None if value is None or not math.isfinite(value) else float(value)
