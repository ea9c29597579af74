"""One audit from specs to a result on disk: no Hydra, callable from a notebook.

The method says what it measures; the builder gets the models and what they say about the documents; scores and test
are arithmetic on that.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Mapping
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np

from nonmember.artifacts import Builder, Counters
from nonmember.artifacts.store import key_hash
from nonmember.audits.keys import audit_keys, settings_of_method
from nonmember.audits.measuring import MeasuredGroup, measure
from nonmember.audits.preparation import cut_warnings, require_one_layout
from nonmember.audits.preparing import prepare
from nonmember.audits.question import UNSEEN, Audit, further_corpora, other_corpora
from nonmember.audits.record import versions, write
from nonmember.methods import TestOutcome
from nonmember.models import Access, ModelSpec
from nonmember.models.exposure import truth_about
from nonmember.reports.audit_page.write import try_to_write_page
from nonmember.results import answers
from nonmember.results.mirror import SUSPECT, mirror
from nonmember.results.result import AuditResult
from nonmember.runtime.processes import process_rank
from nonmember.runtime.progress import Stage

WARN_EXCLUDED, INVALID_EXCLUDED = 0.05, 0.20  # shares of the documents


def run_audit(audit: Audit, builder: Builder, folder: Path, keys: Mapping[str, str] | None = None) -> AuditResult:
    """Answer the question and leave result.json, scores.parquet, the resampled statistics, the answers of models that
    were asked and the page in `folder`.

    keys: of the audit, where the caller has them.   The result is on disk before the builder's tracker hears of it.
    Raises ValueError where the question cannot be put.
    """
    started = time.monotonic()
    before = replace(builder.counters)
    _require_access(audit, builder)
    _require_documents(audit, builder)
    keys = keys or audit_keys(audit, builder)
    prepared = prepare(audit, builder)
    audit = prepared.audit
    measured = {name: measure(group, builder) for name, group in audit.groups.items()}
    documents = {name: group.documents for name, group in measured.items()}
    with Stage(f"testing by {audit.method.name}"):
        outcome = audit.method.test(documents, np.random.default_rng([audit.seed, 0]))
    outcome = prepared.judged(outcome, _health(audit.models, builder))
    outcome = require_one_layout(outcome, documents, audit.max_layout_auc, audit.seed)
    outcome = _after_exclusions(outcome, measured, audit, builder)
    keys = {**keys, **{role: key_hash(model.key(builder)) for role, model in audit.models.items()}}
    result = _result(audit, measured, outcome, builder, keys, folder)
    result = replace(result, made=_difference(builder.counters, before), seconds=round(time.monotonic() - started, 3))
    texts = {name: dict(zip(group.doc_ids, group.texts, strict=True)) for name, group in documents.items()}
    if process_rank() == 0:
        write(result, documents, outcome, folder)
        answers.write(_answers(audit, measured, builder), folder)
        try_to_write_page(folder, texts if audit.page_text else None)
    mirror(builder.tracker, result, folder, texts)
    return result


# Preconditions -------------------------------------------------------------------------------------------------------


def _require_access(audit: Audit, builder: Builder) -> None:
    """Refuse models that do not offer what the method needs, before anything is made or paid for."""
    method = audit.method
    needed = [(one.access, one.model) for one in audit.measurements]
    needed += [parent for one in audit.measurements for parent in _made_of(one.model)]
    if method.target_access is not None:
        needed.append((method.target_access, audit.target))
    for access, model in sorted(needed, key=lambda one: -one[0]):  # the most first: it is what is missed
        model.require(builder, access, method.name)


def _made_of(model: ModelSpec) -> Iterator[tuple[Access, ModelSpec]]:
    for access, parent in model.made_of():
        yield access, parent
        yield from _made_of(parent)


def _require_documents(audit: Audit, builder: Builder) -> None:
    method = audit.method
    corpora = {name: builder.get(group.corpus) for name, group in audit.groups.items()}
    for name, corpus in corpora.items():
        if len(corpus) < method.least(name):
            what = f"{name} set {audit.labels.get(name, '')}".rstrip()
            raise ValueError(
                f"The {what} has {len(corpus)} documents and {method.name} needs at least {method.least(name)} "
                f"(dropped on the way: {dict(corpus.dropped) or 'none'}). Give more documents or loosen the cleaning."
            )
    method.check(corpora)


# The result ----------------------------------------------------------------------------------------------------------


def _result(
    audit: Audit, measured: Mapping[str, MeasuredGroup], outcome: TestOutcome, builder: Builder,
    keys: Mapping[str, str], folder: Path,
) -> AuditResult:  # fmt: skip
    method, models, suspect = audit.method, audit.models, measured[SUSPECT]
    health, excluded, details = _health(models, builder), _excluded(measured), dict(outcome.details)
    warnings = [
        *outcome.warnings,
        *_capability_warnings(suspect.capability),
        *_health_warnings(health, models),
        *_unseen_warnings(audit, builder),
        *_failed_warnings(measured),
        *answers.warnings_about(_answers(audit, measured, builder)),
        *builder.warnings(),
        *(cut_warnings(audit.groups, builder) if audit.scored_text else ()),
    ]
    uses_reference = not models.keys().isdisjoint(("reference", "distilled", "control")) or audit.compared_with()
    return AuditResult(
        method=method.name,
        target=audit.target.readable if "target" in models else None,
        reference=audit.reference.readable if uses_reference else None,
        corpus=audit.corpus_label,
        heldout=audit.heldout_label if len(audit.groups) > 1 else None,
        world=audit.world,
        sweep=audit.sweep,
        cell=folder.name,
        data=audit.data,
        truth=audit.truth or (truth_about(builder, models["target"], audit.suspect) if "target" in models else None),
        num_documents=len(suspect.documents.doc_ids),
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
        settings=settings_of_method(method),
        details={name: _number(value) if isinstance(value, float) else value for name, value in details.items()},
        health=health,
        capability=suspect.capability,
        dropped=_dropped(audit, builder),
        excluded=excluded,
        keys=keys,
        versions=versions(),
        made={},
        seconds=0.0,
    )


def _answers(audit: Audit, measured: Mapping[str, MeasuredGroup], builder: Builder) -> Iterator[answers.Row]:
    """What the models answered, where the method asks any: also about documents that could not be scored for it."""
    for group, one in measured.items():
        for name, values in one.found.items():
            yield from answers.rows_of(group, name, audit.groups[group].measured[name], values, builder)


def _excluded(measured: Mapping[str, MeasuredGroup]) -> dict[str, str]:
    return {
        doc_id if name == SUSPECT else f"{name}/{doc_id}": reason
        for name, group in measured.items()
        for doc_id, reason in group.excluded.items()
    }


def _dropped(audit: Audit, builder: Builder) -> dict[str, int]:
    """What the making of the corpora left out, by reason; of corpora beside the suspect set with their names."""
    group = audit.groups[SUSPECT]
    dropped = dict(builder.get(group.corpus).dropped)
    for name, corpus in (other_corpora(group) | further_corpora(group)).items():
        dropped |= {f"{name}: {reason}": number for reason, number in builder.get(corpus).dropped.items()}
    return dropped


def _health(models: Mapping[str, ModelSpec], builder: Builder) -> dict[str, float]:
    """Cross-entropy and divergence of the distilled reference, before and after its training."""
    distilled = models.get("distilled")
    if distilled is None or not distilled.stored:
        return {}
    facts = builder.entry(distilled).facts
    return {name: value for name, value in facts.items() if name.endswith(("_before", "_after"))}


def _after_exclusions(
    outcome: TestOutcome, measured: Mapping[str, MeasuredGroup], audit: Audit, builder: Builder
) -> TestOutcome:
    num_excluded = sum(len(group.excluded) for group in measured.values())
    num_documents = sum(len(builder.get(group.corpus)) for group in audit.groups.values())
    share = num_excluded / num_documents
    if share <= WARN_EXCLUDED:
        return outcome
    warning = f"{num_excluded} of {num_documents} documents ({share:.0%}) could not be scored; see `excluded`."
    outcome = replace(outcome, warnings=(*outcome.warnings, warning))
    if share <= INVALID_EXCLUDED:
        return outcome
    claim = "A precondition of the test failed; nothing may be concluded."
    return replace(outcome, verdict="invalid", allowed_claim=claim)


# Warnings ------------------------------------------------------------------------------------------------------------


def _capability_warnings(capability: Mapping[str, Mapping[str, float]]) -> Iterator[str]:
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


def _health_warnings(health: Mapping[str, float], models: Mapping[str, ModelSpec]) -> Iterator[str]:
    made = "distilled reference" if "distilled" in models else "tuned model"
    for name, what in (("ce", "cross-entropy on the documents"), ("kl", "divergence from the target")):
        before, after = health.get(f"{name}_before"), health.get(f"{name}_after")
        if before is not None and after is not None and not after < before:
            yield f"The {made}'s {what} did not fall ({before:.3f} to {after:.3f} nats per token)."


def _failed_warnings(measured: Mapping[str, MeasuredGroup]) -> Iterator[str]:
    for group, one in measured.items():
        for name, reasons in one.failed.items():
            listed = ", ".join(f"{reason}: {number}" for reason, number in reasons.items())
            yield f"{sum(reasons.values())} questions of {name} about the {group} set have no answer ({listed})."


def _unseen_warnings(audit: Audit, builder: Builder) -> Iterator[str]:
    """Where a method tunes the target: what was given as unread and is not, as far as recipes tell."""
    if UNSEEN not in audit.groups:
        return
    for corpus, what in ((audit.unseen, "that it is tuned on"), (audit.heldout, "given as non-members")):
        if corpus is not None and truth_about(builder, audit.target, corpus) == "member":
            yield f"The target has read the documents {what}."


def _difference(after: Counters, before: Counters) -> dict[str, int]:
    return {name: value - getattr(before, name) for name, value in asdict(after).items()}


def _number(value: float | None) -> float | None:
    return None if value is None or not math.isfinite(value) else float(value)
