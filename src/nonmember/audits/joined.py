"""`method=auto`: audits by several methods, the cheapest first, and the one result that joins them."""

from __future__ import annotations

import hashlib
import json
import logging
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from nonmember.artifacts import Builder
from nonmember.artifacts.store import key_hash
from nonmember.audits.assembly import result_of
from nonmember.audits.cell import Cell, run_cell
from nonmember.audits.keys import audit_keys
from nonmember.audits.measuring import measure
from nonmember.audits.record import versions, write
from nonmember.methods import Auto, Blind, Method, method_named
from nonmember.methods.auto import NULL_HYPOTHESIS, AutoDetails, LeftOut, PartDetails, PartResult
from nonmember.records.groups import SUSPECT
from nonmember.reports.audit_page.write import try_to_write_page
from nonmember.results.mirror import mirror
from nonmember.results.result import CONFIG, ERROR, PARTS, RESULT, AuditResult, Provenance
from nonmember.runtime.files import write_text_atomically
from nonmember.runtime.processes import process_rank
from nonmember.runtime.source import commit
from nonmember.stats.blind import INTERPRETABLE_UP_TO
from nonmember.tracking.trackers import NoLogging

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class JoinedPart:
    method: str  # its name
    # models, tokens, requests: what it costs
    models: int
    tokens: int
    requests: int
    compares: bool  # whether it compares single texts of the set with held-out ones
    # Its audit, and those that take its place where it cannot be made; none: it cannot be put, and `reason` says why.
    cells: Sequence[Cell]
    reason: str = ""


@dataclass(frozen=True)
class Done:
    """A part with its result, and why it has none, or not that of its first audit."""

    part: JoinedPart
    result: AuditResult | None
    reason: str = ""


def run_joined(cell: Cell, parts: Sequence[JoinedPart], builder: Builder) -> AuditResult:
    """Run the parts, each in a folder of its own, and leave the joined result in the cell's folder.

    A part that cannot be put, or exceeds what is left of the budget, is left out and said. Raises ValueError where no
    part could be run at all.
    """
    method, started = cell.audit.method, time.monotonic()
    assert isinstance(method, Auto)
    if cell.seal is not None:
        raise ValueError("A seal covers the question of one method, but method=auto runs several. Seal each one.")
    done = list(_run(parts, method, builder))
    if not any(item.result for item in done):
        reasons = (
            "; ".join(f"{item.part.method}: {item.reason}" for item in done) or "none is advised for what is given"
        )
        raise ValueError(f"No method could be run by method=auto. {reasons} `nonmember advise` shows what each needs.")
    result = _joined(cell, method, done, builder, started)
    (cell.folder / ERROR).unlink(missing_ok=True)
    return result


def _run(parts: Sequence[JoinedPart], method: Auto, builder: Builder) -> Iterator[Done]:
    models, tokens, requests = 0, 0, 0
    told_apart = ""
    for part in parts:
        over = _over(method, models + part.models, tokens + part.tokens, requests + part.requests)
        reason = part.reason or (told_apart if part.compares else "") or over
        result, reason = (None, reason) if reason else _first_that_runs(part.cells, builder)
        if result is None:
            yield Done(part, None, reason)
            continue
        models, tokens, requests = models + part.models, tokens + part.tokens, requests + part.requests
        auc = result.statistics.value
        if part.method == Blind.name and auc is not None and auc > INTERPRETABLE_UP_TO:
            told_apart = (
                f"text alone tells the suspect from the held-out set (blind AUC {auc:.3f}, above {INTERPRETABLE_UP_TO})"
            )
        yield Done(part, result, reason)


def _first_that_runs(cells: Sequence[Cell], builder: Builder) -> tuple[AuditResult | None, str]:
    """And why the first one does not: what a method cannot work with does not hinder the others."""
    reason = ""
    for cell in cells:
        cell.folder.mkdir(parents=True, exist_ok=True)
        try:
            return run_cell(cell, builder), reason
        except ValueError as error:
            reason = reason or str(error)
    return None, reason


def foreseen(parts: Sequence[JoinedPart], method: Method) -> list[tuple[JoinedPart, str]]:
    """Each part and why it will be left out, as far as that is known before any is run; empty: it is to be run."""
    assert isinstance(method, Auto)
    models, tokens, requests, left_out = 0, 0, 0, []
    for part in parts:
        costs = models + part.models, tokens + part.tokens, requests + part.requests
        reason = part.reason or _over(method, *costs)
        if not reason:
            models, tokens, requests = costs
        left_out.append((part, reason))
    return left_out


def _over(method: Auto, models: int, tokens: int, requests: int) -> str:
    """Which limit would be passed; empty where none."""
    limits = {
        "max_models": (models, method.max_models),
        "max_tokens_read": (tokens, method.max_tokens_read),
        "max_requests": (requests, method.max_requests),
    }
    for name, (needed, limit) in limits.items():
        if limit is not None and needed > limit:
            return f"over the budget ({name} {limit:,}; with it {needed:,})"
    return ""


def _joined(cell: Cell, method: Auto, done: Sequence[Done], builder: Builder, started: float) -> AuditResult:
    audit, folder = cell.audit, cell.folder
    results = {item.part.method: item.result for item in done if item.result is not None}
    outcome = method.join([_part_result(name, result) for name, result in results.items()])
    assert isinstance(outcome.details, AutoDetails)
    details = replace(outcome.details, parts=[_as_details(item, folder) for item in done])
    outcome = replace(outcome, details=details, warnings=tuple(warnings_about(done)))
    keys = audit_keys(audit, builder)
    of_parts = {name: result.provenance.keys["audit"] for name, result in results.items()}
    keys |= {"audit": key_hash({"question": keys["audit"], PARTS: of_parts})}
    made = {
        name: sum(result.provenance.made.get(name, 0) for result in results.values())
        for name in next(iter(results.values())).provenance.made
    }
    read = {role: source for result in results.values() for role, source in result.provenance.sources.items()}
    tokens = {role: around for result in results.values() for role, around in result.provenance.tokens.items()}
    provenance = Provenance(keys, versions(), made, round(time.monotonic() - started, 3), commit(), read, tokens)
    measured = {name: measure(group, builder) for name, group in audit.groups.items()}
    known = [result.looked_up for result in results.values() if result.looked_up is not None]
    found = max(known, key=lambda item: len(item.groups), default=None)  # held-out text too, where a part compares
    result = _asked_of_the_target(result_of(audit, measured, outcome, builder, provenance, folder.name, found), results)
    if process_rank() == 0:
        write_text_atomically(folder / CONFIG, json.dumps(cell.settings, indent=1) + "\n")
        write(result, {SUSPECT: measured[SUSPECT].documents}, outcome, folder)
        try_to_write_page(folder)
    _log(cell, result, keys["audit"])
    log.info("%s: %s, %s", cell.title, result.verdict.decision, folder / RESULT)
    return result


def _part_result(name: str, result: AuditResult) -> PartResult:
    asked, statistics = result.question, result.statistics
    p_values = method_named(name).p_values(asked.settings, statistics.p_value, statistics.details)
    return PartResult(name, result.verdict.decision, p_values)


def _as_details(item: Done, folder: Path) -> PartDetails | LeftOut:
    if item.result is None:
        return {"method": item.part.method, "left_out": item.reason}
    path = Path(PARTS) / item.part.method / RESULT
    return {
        "method": item.part.method,
        "result": path.as_posix(),
        "sha256": hashlib.sha256((folder / path).read_bytes()).hexdigest(),
        "audit": item.result.provenance.keys["audit"],
        "verdict": item.result.verdict.decision,
        "claim": item.result.verdict.allowed_claim,
        "p_value": item.result.statistics.p_value,
    }


def warnings_about(done: Sequence[Done]) -> Iterator[str]:
    """What was left out or counts for nothing, and what a part warns of that decides how it is to be read."""
    for item in done:
        if item.result is None:
            yield f"{item.part.method} was left out: {item.reason}"
            continue
        name, verdict = item.part.method, item.result.verdict
        if item.reason:
            yield f"{name} went by other settings ({item.result.question.score}). {item.reason}"
        passed_on = method_named(name).passed_on
        yield from (f"{name}: {text}" for text in verdict.warnings if text.startswith(passed_on))
        if verdict.decision == "invalid":
            yield f"{name} is invalid and counts as a test with p = 1; see {PARTS}/{name}."


def _asked_of_the_target(joined: AuditResult, results: Mapping[str, AuditResult]) -> AuditResult:
    """The parts know the target: its label, what it has read and the truth, where that is known."""
    knowing = [item.question for item in results.values() if item.question.target is not None]
    if not knowing:
        return joined
    first = knowing[0]
    models = {role: model for role, model in first.models.items() if role == "target"}
    families = joined.statistics.details["families"]
    claim = min(families, key=lambda name: families[name]["p"], default=None)
    question = replace(
        joined.question,
        target=first.target,
        models=models,
        claim=claim,
        null_hypothesis=NULL_HYPOTHESIS if claim else "",
        truth=joined.question.truth or next((item.truth for item in knowing if item.truth), None),
    )
    return replace(joined, question=question)


def _log(cell: Cell, result: AuditResult, key: str) -> None:
    """Logs the joined result to the tracker, as any other."""
    logger = cell.logger if process_rank() == 0 else NoLogging()
    with logger.start(cell.info(key)) as tracker:
        mirror(tracker, result, cell.folder, None)
