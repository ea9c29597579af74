"""One audit from specs to a result on disk: no Hydra, callable from a notebook.

The method says what it measures; the builder gets the models and what they say about the documents; scores and test
are arithmetic on that.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np

from nonmember.artifacts import Builder
from nonmember.artifacts.store import key_hash
from nonmember.audits.assembly import answer_rows, result_of, training_health
from nonmember.audits.distilled import judged, prepare
from nonmember.audits.keys import audit_keys, sources, tokens_read
from nonmember.audits.measuring import measure
from nonmember.audits.preconditions import (
    compare_weights,
    require_alike,
    require_documents,
    require_planted,
    require_unread_third,
)
from nonmember.audits.question import Audit
from nonmember.audits.record import write
from nonmember.checks import returned
from nonmember.methods import ScoredDocuments, TestOutcome
from nonmember.models import Access, ModelSpec
from nonmember.records.groups import set_of
from nonmember.reports.audit_page.write import try_to_write_page
from nonmember.results import answers
from nonmember.results.mirror import mirror
from nonmember.results.result import AuditResult, Provenance
from nonmember.runtime.processes import process_rank
from nonmember.runtime.progress import Stage
from nonmember.runtime.source import commit, versions

WARN_EXCLUDED, INVALID_EXCLUDED = 0.05, 0.20  # shares of the documents


def run_audit(audit: Audit, builder: Builder, folder: Path, keys: Mapping[str, str] | None = None) -> AuditResult:
    """Answer the question and leave result.json, scores.parquet, the resampled statistics, the answers of models that
    were asked and the page in `folder`.

    keys: of the audit, where the caller has them.   The result is on disk before it is logged to the builder's tracker.
    Raises ValueError where the question cannot be put.
    """
    started = time.monotonic()
    before = replace(builder.counters)
    _require_access(audit, builder)
    require_documents(audit, builder)
    require_planted(audit, builder)
    keys = keys or audit_keys(audit, builder)
    audit = prepare(audit, builder)
    measured = {name: measure(group, builder) for name, group in audit.groups.items()}
    documents = {name: group.documents for name, group in measured.items()}
    with Stage(f"testing by {audit.method.name}"):
        outcome = audit.method.test(documents, np.random.default_rng([audit.seed, 0]))
        outcome = returned(outcome, audit.method, "TestOutcome")
    outcome = judged(audit, outcome, training_health(audit.models, builder))
    bound = None if audit.method.is_drawn else audit.max_layout_auc
    outcome = require_alike(outcome, documents, bound, audit.seed, builder)
    outcome = require_unread_third(outcome, audit, builder)
    outcome = compare_weights(outcome, audit, builder)
    outcome = _after_exclusions(outcome, documents, audit, builder)
    keys = {**keys, **{role: key_hash(model.key(builder)) for role, model in audit.models.items()}}
    provenance = Provenance(
        keys=keys,
        versions=versions(),
        made={name: value - getattr(before, name) for name, value in asdict(builder.counters).items()},
        seconds=round(time.monotonic() - started, 3),
        commit=commit(),
        sources=sources(audit, builder),
        tokens=tokens_read({**audit.models, **audit.compared_with()}, builder),
    )
    result = result_of(audit, measured, outcome, builder, provenance, folder.name)
    texts = None
    if not audit.suspect.is_secret:  # else neither the page nor a tracker gets them
        texts = {name: dict(zip(group.doc_ids, group.texts, strict=True)) for name, group in documents.items()}
    if process_rank() == 0:
        write(result, documents, outcome, folder)
        answers.write(answer_rows(audit, measured, builder), folder)
        try_to_write_page(folder, texts if audit.page_text else None)
    log_kept_curves(audit, builder)
    mirror(builder.tracker, result, folder, texts)
    return result


def log_kept_curves(audit: Audit, builder: Builder) -> None:
    """Log the training of models that were found in the store, which the tracker has not seen."""
    for role, model in audit.models.items():
        if (curves := model.kept_curves(builder)) is not None:
            builder.tracker.training_again(role, curves)


def _require_access(audit: Audit, builder: Builder) -> None:
    """Refuse models that do not offer what the method needs, before anything is made or paid for."""
    method = audit.method
    needed = [(item.access, item.model) for item in audit.measurements]
    needed += [parent for item in audit.measurements for parent in _made_of(item.model)]
    if (access := method.requirements.access) is not None:
        needed.append((access, audit.target))
    for access, model in sorted(needed, key=lambda item: -item[0]):  # the most first: it is what is missed
        model.require(builder, access, method.name)


def _made_of(model: ModelSpec) -> Iterator[tuple[Access, ModelSpec]]:
    for access, parent in model.made_of():
        yield access, parent
        yield from _made_of(parent)


def _after_exclusions(
    outcome: TestOutcome, documents: Mapping[str, ScoredDocuments], audit: Audit, builder: Builder
) -> TestOutcome:
    warnings = [
        f"{len(group.doc_ids)} documents of the {set_of(name)} could be scored, and {audit.method.name} needs at least "
        f"{audit.method.least(name)}; see `exclusions`."
        for name, group in documents.items()
        if outcome.verdict != "invalid" and group.excluded and len(group.doc_ids) < audit.method.least(name)
    ]
    invalid = bool(warnings)
    num_excluded = sum(len(group.excluded) for group in documents.values())
    num_documents = sum(len(builder.get(group.corpus)) for group in audit.groups.values())
    share = num_excluded / num_documents
    if share > WARN_EXCLUDED:
        warnings.append(
            f"{num_excluded} of {num_documents} documents ({share:.0%}) could not be scored; see `exclusions`."
        )
        invalid |= share > INVALID_EXCLUDED
    if invalid:
        return outcome.made_invalid([*warnings, *outcome.warnings])  # the reason first
    return replace(outcome, warnings=(*outcome.warnings, *warnings))
