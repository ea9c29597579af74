"""What of calibrated clearance's report is computed: targets by what they read, against margins, gates and shams."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, ClassVar

from nonmember.records.exposure import Exposure
from nonmember.reports.core import formats
from nonmember.reports.core.families import ALL, EACH, SCREENING, SetFamily, families
from nonmember.reports.core.grid import RANGE, Block, Numeral, TableCell, dash
from nonmember.reports.core.numbers import (
    P_VALUE,
    STATISTIC,
    Form,
    Value,
    counted,
    detail,
    number,
    number_in,
    over_draws,
)
from nonmember.reports.core.report import Filled, Glance, tables
from nonmember.reports.core.worlds import Scope
from nonmember.reports.declared.report import DeclaredReport
from nonmember.reports.render.blocks import block_of
from nonmember.results.load import Run
from nonmember.results.readings import excluded, planted, read_by_target, read_so_much
from nonmember.results.result import AuditResult
from nonmember_papers.clearance.pictures import deltas_figure, grid

FEW = 6  # results, of which it is said in words what each excludes
MEDIAN = ("median", "lowest", "highest")

Holds = Callable[[AuditResult], bool]
table = partial(block_of, dash_is_missing=False)

# ------------------------------------------------------------------------------------------- of one result


def details(result: AuditResult) -> dict[str, Any]:
    """The method's own numbers: JSON."""
    return dict(result.statistics.details)


def cleared(result: AuditResult) -> bool:
    return result.verdict.decision == "evidence_of_non_membership"


def cleared_by_prism(result: AuditResult) -> bool:
    """By the paper's own test beside it, which knows no gates."""
    p = number_in(details(result), "prism", "p_value")
    return p is not None and p < result.question.alpha


def is_invalid(result: AuditResult) -> bool:
    return result.verdict.decision == "invalid"


def mean_of_controls(label: str) -> Value:
    def value(result: AuditResult) -> float | None:
        deltas = details(result)["control_deltas"].get(label)
        return statistics.fmean(deltas) if deltas else None

    return value


def at_reading(label: str, name: str) -> Value:
    """A number of the detection curve at a planted reading."""

    def value(result: AuditResult) -> float | None:
        reading = planted(result).get(label)
        points = details(result)["detection"]["points"]
        return next(
            (
                number_in(point, name)
                for point in points
                if reading and (point["share"], point["exposures"]) == (reading.share, reading.exposures)
            ),
            None,
        )

    return value


def what_may_be_said(result: AuditResult) -> str:
    """One audit's detection curve in words."""
    what = f"{result.question.corpus} under {result.question.target}"
    if is_invalid(result):
        return f"{what}: nothing, because the audit is invalid."
    doses = details(result)["detection"]["noticed"]
    found = [f"at least {share} of it at least {dose:g} times" for share, dose in doses.items() if dose is not None]
    if not found:
        return f"{what}: no planted reading is excluded."
    confidence = f"{1 - result.question.alpha:.0%} confidence{' each' * (len(found) > 1)}"
    return f"{what}: that the target read {', or '.join(found)}, is excluded with {confidence}."


# ------------------------------------------------------------------------------------------- rows and cells


def by_target(scope: Scope) -> dict[str, list[Run]]:
    """Target and what it read -> its results: those that read nothing, then by dose, then those not known."""

    def order(run: Run) -> tuple[int, int, float, str]:
        read, truth = read_by_target(run.result), run.question.truth
        kind = ("non_member", "member", None).index(truth)
        return kind, read.exposures if read else 0, read.share if read else 0.0, str(run.question.target)

    names, found = scope.world.found("target", scope.runs), dict[str, list[Run]]()
    for run in sorted(scope.runs, key=order):
        read = read_by_target(run.result)
        what = {None: "not known", "non_member": "read nothing"}.get(
            run.question.truth, f"read {read.label}" if read else "read"
        )
        found.setdefault(f"{names[str(run.question.target)]} ({what})", []).append(run)
    return found


def by_set(scope: Scope) -> dict[str, list[Run]]:
    found: dict[str, list[Run]] = {}
    for run in scope.runs:
        found.setdefault(run.question.corpus, []).append(run)
    return found


def by_set_of_controls(scope: Scope) -> dict[str, list[Run]]:
    """Of results that share their controls, the first."""
    found: dict[str, dict[str, Run]] = {}
    for run in scope.runs:
        found.setdefault(run.question.corpus, {}).setdefault(repr(details(run.result)["control_deltas"]), run)
    return {name: list(of_set.values()) for name, of_set in found.items()}


def readings_of(scope: Scope, *, is_something: bool = True) -> dict[str, Exposure]:
    """Label -> reading of all controls, whole sets first and lighter doses before heavier ones."""
    found = {label: reading for run in scope.runs for label, reading in planted(run.result).items()}
    ordered = sorted(found.items(), key=lambda item: (-item[1].share, item[1].exposures))
    return {label: reading for label, reading in ordered if reading.exposures or not is_something}


def spread_of(scope: Scope, runs: Sequence[Run], value: Value, form: Form) -> TableCell:
    """The number of the one result, or the median of several with the lowest and the highest."""
    if len(runs) < 2:
        return TableCell((number(runs, scope.world.name, value, form),))
    return TableCell(over_draws(runs, scope.world.name, value, form), (), RANGE)


def share_of(scope: Scope, runs: Sequence[Run], holds: Holds, is_false: bool = False) -> TableCell:
    return counted(sum(holds(run.result) for run in runs), len(runs), scope.world.name, is_false)


def spreads(
    scope: Scope, key: str, title: str, groups: Mapping[str, Sequence[Run]], values: Mapping[str, Value], form: Form
) -> Block | None:
    """A row per set or target, a column per reading."""
    rows = {name: [spread_of(scope, group, value, form) for value in values.values()] for name, group in groups.items()}
    corner = "target" if key == "largest-p" else "set"
    return table(scope, key, title, corner, values, rows, MEDIAN)


def two_digits(value: float | None) -> str:
    return formats.decimals(value, 2)


# ---------------------------------------------------------------------------------------------- sections


def verdicts(scope: Scope) -> Filled:
    rows = {
        name: (
            spread_of(scope, of_target, STATISTIC, formats.signed),
            spread_of(scope, of_target, detail("margin"), formats.signed),
            spread_of(scope, of_target, P_VALUE, formats.p_value),
            share_of(scope, of_target, cleared, any(read_so_much(run.result) for run in of_target)),
            share_of(scope, of_target, is_invalid),
            share_of(scope, of_target, cleared_by_prism, of_target[0].question.truth == "member"),
            spread_of(scope, of_target, detail("share_of_seeds"), two_digits),
        )
        for name, of_target in by_target(scope).items()
    }
    columns = ("Delta", "margin", "p", "cleared", "invalid", "cleared by PRISM", "variance due to seeds")
    limits = sorted({reading.label for run in scope.runs if (reading := excluded(run.result))})
    note = f"Excluded, with all that is heavier: {formats.listed(limits)}."
    return tables(table(scope, "verdicts", "Verdicts", "target", columns, rows, MEDIAN, [note]))


def margins(scope: Scope) -> Filled:
    """Of every set, by reading: above which Delta a model with that reading is not expected; and the mean Deltas."""
    controls = by_set_of_controls(scope)
    bounds = {
        label: detail("margins", label, "bound")
        for label in readings_of(scope)
        if any(label in details(run.result).get("margins", {}) for run in scope.runs)
    }
    readings = readings_of(scope, is_something=False)
    means = {label: mean_of_controls(label) for label in readings}
    mean_deltas = spreads(scope, "", "Mean Delta of the controls", controls, means, formats.signed)
    block = spreads(scope, "margins", "Margins by reading", controls, bounds, formats.signed)
    return tables(block, deltas_figure(scope, mean_deltas, readings, by_set(scope), controls))


def detection(scope: Scope) -> Filled:
    readings = readings_of(scope)
    of_power, of_p = (
        {label: at_reading(label, name) for label in readings} for name in ("power_at_least", "p_at_least")
    )
    power = spreads(scope, "power", "Probability of noticing", by_set_of_controls(scope), of_power, two_digits)
    title = "Largest p at this reading and every heavier one"
    largest = spreads(scope, "largest-p", title, by_target(scope), of_p, formats.p_value)
    few = scope.runs if len(scope.runs) <= FEW else ()
    return tables(
        smallest_doses(scope),
        largest,
        grid(scope, "power", "What would be noticed", POWER, power, readings),
        grid(scope, "noticed", "What was noticed", NOTICED, noticed(scope, readings), readings),
        notes=[what_may_be_said(run.result) for run in few],
    )


POWER = (
    "How probable it is that an audit of this set notices that a target which read nothing did not read so much, or "
    "more: a row per set, a column per planted reading, darker for higher."
)
NOTICED = (
    "In how many audits it was noticed that the target did not read so much, or more: a row per target, a column per "
    "planted reading, darker for more; red where it did read so much."
)


def noticed(scope: Scope, readings: Mapping[str, Exposure]) -> Block | None:
    """By target and reading: in how many audits the reading, and every heavier one, was noticed not to be there."""

    def cell(runs: Sequence[Run], reading: Exposure) -> TableCell:
        p = at_reading(reading.label, "p_at_least")
        values = [(run.result, found) for run in runs if (found := p(run.result)) is not None]
        num = sum(value < result.question.alpha and not is_invalid(result) for result, value in values)
        was_there = any((read := read_by_target(result)) and read.at_least(reading) for result, _ in values)
        return counted(num, len(values), scope.world.name, was_there)

    rows = {name: [cell(runs, reading) for reading in readings.values()] for name, runs in by_target(scope).items()}
    return table(scope, "noticed", "Audits that noticed", "target", readings, rows, ("noticed", "of"))


def smallest_doses(scope: Scope) -> Block | None:
    """By set and share: the dose from which on a model that read nothing would be noticed."""
    shares = sorted(
        {share for run in scope.runs for share in details(run.result)["detection"]["detectable"]},
        key=lambda share: float(share.rstrip("%")),
        reverse=True,
    )

    def cell(runs: Sequence[Run], share: str) -> TableCell:
        """The largest over results, none where one has none."""
        found = [number_in(details(run.result)["detection"]["detectable"], share) for run in runs]
        dose = None if None in found else max(item for item in found if item is not None)
        text = "none" if dose is None else f"{dose:g} times"
        return TableCell((Numeral(text, dose, scope.world.name, tuple(run.anchor for run in runs)),))

    rows = {name: [cell(of_set, share) for share in shares] for name, of_set in by_set_of_controls(scope).items()}
    columns = [f"{share} of the documents" for share in shares]
    return table(scope, "smallest", "Smallest detectable dose", "set", columns, rows, ("times read",))


def gates(scope: Scope) -> Filled:
    """How far every gate was from its bound, and how often it fired; beside it on shams, where one should."""
    names, shams = scope.names["gates"], scope.names["shams"]

    def gates_of(result: AuditResult, sham: str = "") -> dict[str, Any]:
        found = details(result)
        return dict((found.get("shams", {}).get(sham, {}) if sham else found).get("gates", {}))

    def failed(name: str, sham: str = "") -> TableCell:
        having = [run for run in scope.runs if name in gates_of(run.result, sham)]
        return share_of(scope, having, lambda result: not gates_of(result, sham)[name]["passed"])

    def row(name: str) -> list[TableCell]:
        found = [gates_of(run.result)[name] for run in scope.runs if name in gates_of(run.result)]
        bounds = sorted({item["bound"] for item in found})
        text = f"{'<' if found[0]['upper'] else '>'} {' or '.join(map(two_digits, bounds))}"
        having = [run for run in scope.runs if name in gates_of(run.result)]
        value = spread_of(scope, having, detail("gates", name, "value"), formats.decimals)
        bound = TableCell((Numeral(text, bounds[0], scope.world.name),))
        return [bound, value, failed(name), *(failed(name, sham) for sham in shams)]

    def refused(sham: str) -> TableCell:
        having = [run for run in scope.runs if sham in details(run.result).get("shams", {})]
        return share_of(scope, having, lambda result: bool(details(result)["shams"][sham]["refused"]))

    rows = {text: row(name) for name, text in names.items() if any(name in gates_of(run.result) for run in scope.runs)}
    columns = ("must be", "distilled references", "failed", *(f"{name}, failed" for name in shams.values()))
    refusals = {"refused": [refused(sham) for sham in shams]}
    return tables(
        table(scope, "gates", "Gates", "gate", columns, rows, MEDIAN),
        table(scope, "shams", "Shams refused", "", shams.values(), refusals, ("refused", "of")),
    )


def together(scope: Scope) -> Filled:
    """Of every target with several sets: what may be claimed of each, of all, and what to look at."""
    world, found = scope.world.name, families(run.result for run in scope.runs)
    anchors = {id(run.result): run.anchor for run in scope.runs}
    sets = tuple(dict.fromkeys(name for family in found for name in family.sets))

    def number_of(p: float, results: Sequence[AuditResult]) -> Numeral:
        return Numeral(formats.p_value(p), p, world, tuple(anchors[id(result)] for result in results))

    def summary(family: SetFamily) -> tuple[TableCell, ...]:
        largest = number_of(family.largest, [result for item in family.sets.values() for result in item.results])
        allowed = Numeral("yes" if family.all_together else "no", float(family.all_together), world)
        return (
            counted(len(family.each), len(family.sets), world),
            TableCell((largest, allowed), (), "{} ({})"),
            counted(len(family.screened), len(family.sets), world),
        )

    def each(family: SetFamily, name: str) -> TableCell:
        if (item := family.sets.get(name)) is None:
            return TableCell((dash(world),))
        return TableCell(tuple(number_of(p, item.results) for p in (item.p, item.holm, item.bh)), (), "{} / {} / {}")

    columns = ("each (Holm)", "all of them: largest p (allowed)", "screening (Benjamini–Hochberg)")
    names = {family.name(found): family for family in found}
    return tables(
        table(
            scope,
            "together",
            "Several sets together",
            "target",
            columns,
            {name: summary(family) for name, family in names.items()},
            ("number", "of"),
            (EACH, ALL, SCREENING),
        ),
        table(
            scope,
            "together-p",
            "p, Holm-adjusted, Benjamini–Hochberg-adjusted",
            "target",
            sets,
            {name: [each(family, item) for item in sets] for name, family in names.items()},
            ("p", "Holm", "Benjamini–Hochberg"),
        ),
        nothing="no target with several sets, so nothing is to be adjusted.",
    )


# ---------------------------------------------------------------------------------------- at a glance


def read_nothing(result: AuditResult) -> bool:
    return result.question.truth == "non_member"


COLUMNS: dict[str, tuple[Holds, Holds]] = {
    "read nothing: cleared": (read_nothing, cleared),
    "read so much: cleared": (read_so_much, cleared),
    "read less: cleared": (lambda result: result.question.truth == "member" and not read_so_much(result), cleared),
    "not known: cleared": (lambda result: result.question.truth is None, cleared),
    "PRISM, read nothing": (read_nothing, cleared_by_prism),
    "PRISM, read so much": (read_so_much, cleared_by_prism),
    "invalid": (lambda _: True, is_invalid),
}


def cells_of_glance(scope: Scope) -> Iterator[TableCell]:
    for among, holds in COLUMNS.values():
        yield share_of(scope, [run for run in scope.runs if among(run.result)], holds)


class ClearanceReport(DeclaredReport):
    """names: gates and shams, by their keys in the results."""

    special: ClassVar = {
        "verdicts": verdicts,
        "margins": margins,
        "detection": detection,
        "gates": gates,
        "together": together,
    }

    def first_numbers(self) -> Glance:
        return Glance(tuple(COLUMNS), cells_of_glance, self.glance_note)
