"""Rows and columns of the tables of calibrated clearance: targets by what they read, sets, readings, decisions."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from nonmember.records.exposure import Exposure
from nonmember.reports.core import formats
from nonmember.reports.core.grid import FALSE, RANGE, Block, Cell, Row
from nonmember.reports.core.numbers import (
    Form,
    Value,
    counted,
    detail,
    number,
    over_draws,
)
from nonmember.reports.core.worlds import Scope
from nonmember.reports.render.blocks import filled
from nonmember.results.load import Run
from nonmember.results.readings import planted, read_by_target
from nonmember.results.result import AuditResult

CLEARED = "evidence_of_non_membership"
PRISM_P = detail("prism", "p_value")


def details(result: AuditResult) -> dict[str, Any]:
    """The method's own numbers: JSON."""
    return dict(result.statistics.details)


def by_target(scope: Scope) -> dict[str, list[Run]]:
    """Target and what it read -> its results: those that read nothing, then by dose, then those not known."""
    names = scope.world.found("target", scope.runs)
    found: dict[str, list[Run]] = {}
    for run in sorted(scope.runs, key=lambda run: _place_of_target(run.result)):
        name = names[str(run.question.target)]
        found.setdefault(f"{name} ({what_was_read(run.result)})", []).append(run)
    return found


def _place_of_target(result: AuditResult) -> tuple[int, int, float, str]:
    read = read_by_target(result)
    kind = ("non_member", "member", None).index(result.question.truth)
    return kind, read.exposures if read else 0, read.share if read else 0.0, str(result.question.target)


def what_was_read(result: AuditResult) -> str:
    if result.question.truth is None:
        return "not known"
    if result.question.truth == "non_member":
        return "read nothing"
    read = read_by_target(result)
    return f"read {read.label}" if read else "read"


def by_set(runs: Iterable[Run]) -> dict[str, list[Run]]:
    found: dict[str, list[Run]] = {}
    for run in runs:
        found.setdefault(run.question.corpus, []).append(run)
    return found


def readings_of(runs: Iterable[Run]) -> dict[str, Exposure]:
    """Label -> reading of all controls, whole sets first and lighter doses before heavier ones."""
    found = {label: reading for run in runs for label, reading in planted(run.result).items()}
    return dict(sorted(found.items(), key=lambda one: (-one[1].share, one[1].exposures)))


def read_something(readings: Mapping[str, Exposure]) -> dict[str, Exposure]:
    return {label: reading for label, reading in readings.items() if reading.exposures}


def table(
    scope: Scope, key: str, title: str, corner: str, columns: Sequence[str], rows: Mapping[str, Sequence[Cell]],
    quantities: tuple[str, ...], notes: Sequence[str] = (),
) -> Block | None:  # fmt: skip
    """None where no cell has a number."""
    world = scope.world
    bare = Block(f"{key}-{formats.slug(world.name)}", world.name, f"{title}. {world.title}", corner, tuple(columns),
                 tuple(Row(name, tuple(cells)) for name, cells in rows.items()), quantities)  # fmt: skip
    return filled(bare, notes)


def spread_of(scope: Scope, runs: Sequence[Run], value: Value, form: Form) -> Cell:
    """The number of the one result, or the median of several with the lowest and the highest."""
    if len(runs) < 2:
        return Cell((number(runs, scope.world.name, value, form),))
    return Cell(over_draws(runs, scope.world.name, value, form), (), RANGE)


def share_of(scope: Scope, runs: Sequence[Run], holds: Callable[[AuditResult], bool]) -> Cell:
    return counted(sum(holds(run.result) for run in runs), len(runs), scope.world.name)


def cleared(result: AuditResult) -> bool:
    return result.verdict.decision == CLEARED


def cleared_by_prism(result: AuditResult) -> bool:
    """By the paper's own test beside it, which knows no gates."""
    p = PRISM_P(result)
    return p is not None and p < result.question.alpha


def is_invalid(result: AuditResult) -> bool:
    return result.verdict.decision == "invalid"


def against_truth(cell: Cell, should_not: bool) -> Cell:
    """Marked where some were cleared that should not be."""
    some, *rest = cell.ours
    return replace(cell, ours=(replace(some, mark=FALSE), *rest)) if should_not and some.value else cell


def control_deltas(result: AuditResult) -> dict[str, list[float]]:
    return {str(label): [float(one) for one in deltas] for label, deltas in details(result)["control_deltas"].items()}


def one_of_each(runs: Sequence[Run]) -> list[Run]:
    """Of results that share their controls, the first."""
    found: dict[str, Run] = {}
    for run in runs:
        found.setdefault(repr(control_deltas(run.result)), run)
    return list(found.values())


def mean_of_controls(label: str) -> Value:
    def value(result: AuditResult) -> float | None:
        deltas = control_deltas(result).get(label)
        return statistics.fmean(deltas) if deltas else None

    return value


def two_digits(value: float | None) -> str:
    return formats.decimals(value, 2)
