"""What of the dose study's report is computed: rates by what was read, and how well readings are counted."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import ClassVar

import numpy as np
from matplotlib.figure import Figure as Canvas

from nonmember.reports.core import formats
from nonmember.reports.core.grid import FALSE, RANGE, Block, Cell, Number, dash
from nonmember.reports.core.numbers import number_in
from nonmember.reports.core.report import Filled, Glance, figures, tables
from nonmember.reports.core.worlds import Scope
from nonmember.reports.declared.report import DeclaredReport
from nonmember.reports.planted.audits import (
    CLUSTERED,
    FACTOR,
    MIXED,
    MUCH_RELATED,
    OWN_BASE,
    QUANTITIES,
    cleared,
    count_cell,
    dose_of,
    doses,
    estimate_of,
    found,
    holds,
    invalid,
    is_near,
    is_reader,
    is_unread,
    median_cell,
    named,
    of_own_base,
    rate_cell,
    related_of,
    runs_of,
    with_dose,
)
from nonmember.reports.render.blocks import cross_table
from nonmember.reports.render.figures import (
    MARKERS,
    QUIET,
    colour,
    draw_shares,
    figure_of,
    legend_below,
    panels,
    share_axis,
    shares_of,
    size_of_panels,
)
from nonmember.results.load import Run
from nonmember_papers.dose import again, protocol, rivals

HALVES = {
    "reported": "the reported half",
    "again": "the reported half, second protocol",
    "aligned": "the reported half, mixtures of the controls",
    "chosen": "the half that features were chosen on",
}
ERROR = 0.05
Question = tuple[Callable[[Run], bool], Callable[[Run], bool], str]
Kind = tuple[list[Run], int | None]  # audits of one kind, and how often their targets have read the set


def halves(scope: Scope) -> dict[str, list[Run]]:
    """Key -> audits of targets of the controls' own base; those that there are."""
    return {key: runs for key in HALVES if (runs := of_own_base(scope, key))}


def of_other_bases(scope: Scope) -> list[Run]:
    return [run for run in runs_of(scope, "stand_in") if run.get("base") != OWN_BASE]


# ---------------------------------------------------------------------------------------- errors and power


def questions(planted: Sequence[int]) -> dict[str, Question]:
    """Row -> which audits are counted, what is counted, and the mark of an error."""

    def unread(related: bool) -> Callable[[Run], bool]:
        return lambda run: is_unread(run) and (related_of(run) >= MUCH_RELATED) is related

    def read(dose: int) -> Callable[[Run], bool]:
        return lambda run: dose_of(run) == dose

    return {
        "false clearance, read once or more": (is_reader, cleared, FALSE),
        "false clearance, read once": (read(1), cleared, FALSE),
        "power, without related reading": (unread(False), cleared, ""),
        "power, with related reading": (unread(True), cleared, ""),
        "false membership, without related reading": (unread(False), found, FALSE),
        "false membership, with related reading": (unread(True), found, FALSE),
        **{f"membership found, read {named(dose)}": (read(dose), found, "") for dose in planted},
        "invalid": (lambda run: True, invalid, ""),
    }


def answer(question: Question, runs: Sequence[Run], world: str) -> Cell:
    is_counted, decides, mark = question
    return rate_cell(list(filter(is_counted, runs)), decides, world, mark)


def errors(scope: Scope) -> Filled:
    """What is wrong and what is found, a column per half."""
    here = halves(scope)
    panels_of = {key: sorted({str(run.statistics.details.get("panel")) for run in runs}) for key, runs in here.items()}
    used = "; ".join(f"{HALVES[key]}: {formats.listed(versions)}" for key, versions in panels_of.items())
    notes = (
        "False clearance: of targets that read the whole set once or more, how many are said to have read it less than "
        "once. False membership: of targets that read nothing of it.",
        f"With related reading: the target read the other set of the same library {MUCH_RELATED} times or more; "
        "without: less often. Audits that a gate refuses count against power, and as no error.",
        f"Panels of features: {used}.",
        CLUSTERED,
    )
    asked = questions(doses([run for runs in here.values() for run in runs], least=1))
    return tables(cross_table(
        "errors", scope.world.name, "Errors and power, own base", "audits", asked,
        {HALVES[key]: runs for key, runs in here.items()},
        lambda question, runs: answer(question, runs, scope.world.name), QUANTITIES, notes,
    ))  # fmt: skip


def power(scope: Scope) -> Filled:
    """Share of audits with either verdict, by what was read; a panel for targets of other bases."""
    world = scope.world
    verdicts = {"evidence of non-membership": (cleared, True), "evidence of membership": (found, False)}
    bases = {"own base": of_own_base(scope, "reported"), "other bases": of_other_bases(scope)}
    bases = {name: runs for name, runs in bases.items() if runs}
    planted = doses([run for runs in bases.values() for run in runs])

    def cell(row: tuple[list[Run], Callable[[Run], bool], bool], dose: int) -> Cell:
        runs, decides, is_false_if_read = row
        return rate_cell(with_dose(runs, dose), decides, world.name, FALSE if bool(dose) is is_false_if_read else "")

    rows = {
        f"{verdict}, {name}": (runs, *decided) for name, runs in bases.items() for verdict, decided in verdicts.items()
    }
    columns = {named(dose): dose for dose in planted}
    block = cross_table(f"numbers-power-{formats.slug(world.name)}", world.name, "Verdicts by what was read",
                        "verdict, base", rows, columns, cell, QUANTITIES)  # fmt: skip
    if block is None:
        return figures()

    def paint(canvas: Canvas) -> None:
        lines = iter(block.rows)
        for axis in panels(canvas, list(bases)):
            for index, verdict in enumerate(verdicts):
                draw_shares(axis, verdict, shares_of(next(lines), range(len(planted))), index, 0.1 * (index - 0.5))
            share_axis(axis, ERROR)
            axis.set(xticks=range(len(planted)), xlabel="what the target has read of the set")
            axis.set_xticklabels(list(columns))
        canvas.axes[0].set_ylabel("share of audits")
        legend_below(canvas, canvas.axes[0])

    alt = (
        "Share of audits with evidence of non-membership and of membership, with 95% intervals, by how often the "
        "target has read the set: nothing at the left, where only the former is right; elsewhere only the latter is. "
        f"Panels: {formats.listed(list(bases))}."
    )
    size = size_of_panels(len(bases))
    return figures(figure_of("power", world, "Verdicts by what was read", alt, block, size, paint))


# ------------------------------------------------------------------------------------------------ readings


def by_dose(scope: Scope) -> Filled:
    """Estimates and intervals against what was read."""
    return tables(*(_by_dose(key, runs, scope.world.name) for key, runs in halves(scope).items()))


def _by_dose(key: str, runs: Sequence[Run], world: str) -> Block | None:
    valid = [run for run in runs if not invalid(run)]
    rows: dict[str, Kind] = {named(dose): (with_dose(valid, dose), dose) for dose in doses(valid)} | {
        "once or more": (list(filter(is_reader, valid)), None),
        "all": ([run for run in valid if dose_of(run) is not None], None),
    }
    no_median = Cell((dash(world),))
    columns: dict[str, Callable[[list[Run], int | None], Cell]] = {
        "audits": lambda here, _: count_cell(here, world),
        "median estimate": lambda here, dose: no_median if dose is None else estimates_cell(here, world),
        f"within a factor of {FACTOR:g}": lambda here, _: rate_cell(list(filter(is_reader, here)), is_near, world),
        "interval holds it": lambda here, _: rate_cell(here, lambda run: holds(run, dose_of(run)), world),
        "median cleared dose": lambda here, dose: no_median if dose != 0 else median_cell(
            [cleared_dose(run) for run in here], here, world
        ),
    }  # fmt: skip
    notes = (
        "In readings of the whole set; audits that a gate refuses are left out. Within a factor of 1.5: of estimates "
        "where something was read.",
        "Cleared dose: the least such that it and all heavier ones are excluded, over targets that read nothing.",
    )
    return cross_table(f"dose-{key}", world, f"Readings: {HALVES[key]}", "target has read", rows, columns,
                       lambda kind, column: column(*kind), MIXED, notes) if valid else None  # fmt: skip


def estimates_cell(runs: Sequence[Run], world: str) -> Cell:
    return median_cell([value for run in runs if (value := estimate_of(run)) is not None], runs, world)


def cleared_dose(run: Run) -> float:
    """Least dose such that it and all heavier ones are excluded; infinite where none is."""
    dose = number_in(run.statistics.details, "cleared_dose")
    return math.inf if dose is None else dose


JITTER = 0.045  # on the scale of log(1 + x)
KINDS: Mapping[str, Callable[[Run], bool]] = {
    "sibling set read less often": lambda run: not invalid(run) and related_of(run) < MUCH_RELATED,
    f"sibling set read {MUCH_RELATED} times or more": lambda run: not invalid(run) and related_of(run) >= MUCH_RELATED,
    "invalid": invalid,
}


def readings(scope: Scope) -> Filled:
    """Estimated against true readings, a dot per audit."""
    world = scope.world
    points = [(run, dose, value) for run in of_own_base(scope, "reported")
              if (dose := dose_of(run)) is not None and (value := estimate_of(run)) is not None]  # fmt: skip
    kinds = {name: here for name, is_of in KINDS.items() if (here := [one for one in points if is_of(one[0])])}
    planted = doses([run for run, _, _ in points])
    block = cross_table(
        f"numbers-readings-{formats.slug(world.name)}", world.name, "Estimated readings", "audits", kinds,
        {named(dose): dose for dose in planted}, lambda here, dose: _middle(here, dose, world.name),
        ("median", "low", "high"),
    )  # fmt: skip
    if block is None:
        return figures()

    def paint(canvas: Canvas) -> None:
        axis = canvas.subplots()
        for index, (name, here) in enumerate(kinds.items()):
            jitter = np.random.default_rng(index).uniform(-JITTER, JITTER, (2, len(here)))
            axis.plot(np.log1p([dose for _, dose, _ in here]) + jitter[0], np.log1p([value for *_, value in here]),
                      linestyle="", marker=MARKERS[index], markersize=3, alpha=0.5, color=colour(index),
                      label=name)  # fmt: skip
        most, ticks, labels = math.log1p(max(planted)) + 0.1, list(map(math.log1p, planted)), list(map(str, planted))
        axis.plot((0, most), (0, most), color=QUIET, linewidth=0.7, zorder=0)
        axis.set(xlabel="readings", ylabel="estimated readings")
        axis.set_xticks(ticks, labels)
        axis.set_yticks(ticks, labels)
        legend_below(canvas, axis, columns=2)

    alt = (
        "How often the meter says that the set was read against how often it was read, a dot per audit, both on a "
        "scale of log(1 + x); right estimates lie on the diagonal. Medians, fifth and ninety-fifth percentiles are in "
        "the table."
    )
    return figures(figure_of("readings", world, "Estimated and true readings", alt, block, (5.2, 4.2), paint))


def _middle(here: Sequence[tuple[Run, int, float]], dose: int, world: str) -> Cell:
    """Median, fifth and ninety-fifth percentile."""
    values = [value for _, one, value in here if one == dose]
    if not values:
        return Cell((dash(world),) * 3, (), RANGE)
    anchors = tuple(run.anchor for run, one, _ in here if one == dose)
    ends = map(float, np.quantile(values, (0.5, 0.05, 0.95)))
    return Cell(tuple(Number(formats.decimals(one, 2), one, world, anchors) for one in ends), (), RANGE)


# ------------------------------------------------------------------------------- other targets than planted ones


def attacks(scope: Scope) -> Filled:
    """Verdicts by what was done to the target."""
    titles = {"attacks": "Verdicts on changed targets", "attacks_again": "Verdicts on changed targets, second protocol"}
    return tables(*(
        verdicts(scope, key, title, "what was done, target has read",
                 by_label(runs_of(scope, key), "attack", scope.names.get("attacks", {})))
        for key, title in titles.items()
    ))  # fmt: skip


def by_label(runs: Sequence[Run], fact: str, known: Mapping[str, str]) -> dict[str, list[Run]]:
    """Printed name of a label -> the runs that have it; in printed order, those that are not known last."""
    labels: dict[str, list[Run]] = {label: [] for label in known}
    for run in sorted(runs, key=lambda run: str(run.get(fact) or "none")):
        labels.setdefault(str(run.get(fact) or "none"), []).append(run)
    return {known.get(label, label): here for label, here in labels.items() if here}


def stand_ins(scope: Scope) -> Filled:
    """Verdicts by the base that targets were continued from, where it is not that of the controls."""
    by_base = by_label(runs := of_other_bases(scope), "base", {})
    if len(by_base) > 1:
        by_base["all of these"] = runs
    return tables(verdicts(scope, "stand-in", "Verdicts on targets of other bases", "base, target has read", by_base))


def verdicts(
    scope: Scope, key: str, title: str, corner: str, kinds: Mapping[str, Sequence[Run]],
    read: Callable[[Run], int | None] = dose_of, further: Mapping[str, Callable[[Run], bool]] = MappingProxyType({}),
) -> Block | None:  # fmt: skip
    """A row for each kind of target and number of readings.

    Args:
        read: How often the target has read the set.
        further: Columns of clearances by other rules.
    """
    world = scope.world.name
    rows: dict[str, Kind] = {}
    for name, runs in kinds.items():
        planted = sorted({dose for run in runs if (dose := read(run)) is not None})
        rows |= {f"{name}, {named(dose)}": ([run for run in runs if read(run) == dose], dose) for dose in planted}
        if sum(dose > 0 for dose in planted) > 1:
            rows[f"{name}, once or more"] = [run for run in runs if (read(run) or 0) >= 1], 1
        if unknown := [run for run in runs if read(run) is None]:
            rows[f"{name}, a part or unknown"] = unknown, None

    def clearances(decides: Callable[[Run], bool]) -> Callable[[list[Run], int | None], Cell]:
        return lambda runs, dose: rate_cell(runs, decides, world, FALSE if dose else "")

    def counts(is_counted: Callable[[Run], bool]) -> Callable[[list[Run], int | None], Cell]:
        return lambda runs, _: count_cell(list(filter(is_counted, runs)), world)

    columns: dict[str, Callable[[list[Run], int | None], Cell]] = {
        "audits": counts(lambda run: True),
        "not read": clearances(cleared),
        "read": lambda runs, dose: rate_cell(runs, found, world, FALSE if dose == 0 else ""),
        "no verdict": counts(lambda run: not (cleared(run) or found(run) or invalid(run))),
        "invalid": counts(invalid),
        **{name: clearances(decides) for name, decides in further.items()},
        "median estimate": lambda runs, _: estimates_cell(runs, world),
        "interval holds it": lambda runs, dose: rate_cell(
            runs if dose is not None else [], lambda run: holds(run, read(run)), world
        ),
    }
    notes = (
        "Not read: evidence of non-membership, false where the set was read once or more. Read: evidence of "
        "membership, false where nothing was read. Estimate and interval: of all audits, whatever the verdict.",
    )
    return cross_table(key, world, title, corner, rows, columns, lambda kind, column: column(*kind), MIXED, notes)


# -------------------------------------------------------------------------------------------------- report

AT_A_GLANCE = (
    "false clearance, read once or more",
    "power, without related reading",
    "power, with related reading",
    "false membership, with related reading",
    "membership found, read 1x",
)


def cells_of_glance(scope: Scope) -> Iterator[Cell]:
    runs, asked = of_own_base(scope, "reported"), questions((1,))
    return (answer(asked[name], runs, scope.world.name) for name in AT_A_GLANCE)


class DoseReport(DeclaredReport):
    special: ClassVar = {
        "errors": errors,
        "power": power,
        "dose": by_dose,
        "readings": readings,
        "size": again.sizes,
        "ablation": lambda scope: again.ablation(scope, HALVES),
        "attacks": attacks,
        "rivals": rivals.rivals,
        "stand-in": stand_ins,
        "protocol": protocol.protocol,
    }

    def first_numbers(self) -> Glance:
        return Glance(AT_A_GLANCE, cells_of_glance, self.glance_note)

    def scopes(self, runs: Sequence[Run]) -> list[Scope]:
        """With the audits of other methods that are compared with the meter's, and no others of these methods."""
        compared = {sweep for key in rivals.KEYS for sweep in self.sweeps[key]}
        others = [run for run in runs if run.question.sweep in compared and run.question.method in rivals.METHODS]
        return [
            replace(one, runs=(*one.runs, *(run for run in others if run.question.world == one.world.name)))
            for one in super().scopes(runs)
        ]
