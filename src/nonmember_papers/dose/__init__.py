"""What of the dose study's report is computed: rates by what was read, and how well readings are counted."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import ClassVar

import numpy as np
from matplotlib.figure import Figure as Canvas

from nonmember.reports.core import formats
from nonmember.reports.core.grid import RANGE, Block, Numeral, TableCell, dash
from nonmember.reports.core.numbers import number_in
from nonmember.reports.core.worlds import Scope, select
from nonmember.reports.declared.report import DeclaredReport, Filled, Glance, figures, tables
from nonmember.reports.planted.audits import (
    FACTOR,
    MIXED,
    MUCH_RELATED,
    OWN_BASE,
    QUANTITIES,
    AuditGroup,
    cleared,
    covered,
    dose_of,
    doses,
    estimate_of,
    found,
    invalid,
    is_near,
    is_reader,
    is_unread,
    named,
    of_own_base,
    read,
    reads_related,
    runs_of,
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

HALVES = {
    "reported": "the reported half",
    "again": "the reported half, second protocol",
    "aligned": "the reported half, mixtures of the controls",
    "chosen": "the half that features were chosen on",
}
ERROR = 0.05


def halves(scope: Scope) -> dict[str, AuditGroup]:
    """Key -> audits of targets of the controls' own base; those that there are."""
    return {key: AuditGroup(runs, scope.world.name) for key in HALVES if (runs := of_own_base(scope, key))}


def of_other_bases(scope: Scope) -> list[Run]:
    return [run for run in runs_of(scope, "stand_in") if run.get("base") != OWN_BASE]


# ---------------------------------------------------------------------------------------- errors and power


def unread(related: bool) -> Callable[[Run], bool]:
    """Of targets that read nothing of the set; related: whether they read the sibling set often."""
    return lambda run: is_unread(run) and reads_related(run) is related


def questions(planted: Sequence[int]) -> dict[str, Callable[[AuditGroup], TableCell]]:
    """What is wrong, and what is found."""

    def membership(dose: int) -> Callable[[AuditGroup], TableCell]:
        return lambda group: group.where(read(dose)).verdict(found, dose)

    return {
        "false clearance, read once or more": lambda group: group.where(is_reader).verdict(cleared, 1),
        "false clearance, read once": lambda group: group.where(read(1)).verdict(cleared, 1),
        "power, without related reading": lambda group: group.where(unread(False)).verdict(cleared, 0),
        "power, with related reading": lambda group: group.where(unread(True)).verdict(cleared, 0),
        "false membership, without related reading": lambda group: group.where(unread(False)).verdict(found, 0),
        "false membership, with related reading": lambda group: group.where(unread(True)).verdict(found, 0),
        **{f"membership found, read {named(dose)}": membership(dose) for dose in planted},
        "invalid": lambda group: group.rate(invalid),
    }


def errors(scope: Scope) -> Filled:
    """A row for each question, a column for each half."""
    groups = halves(scope)
    panels_of = {
        key: sorted({str(run.statistics.details.get("panel")) for run in of.runs}) for key, of in groups.items()
    }
    used = "; ".join(f"{HALVES[key]}: {formats.listed(versions)}" for key, versions in panels_of.items())
    notes = (
        "False clearance: of targets that read the whole set once or more, how many are said to have read it less than "
        "once. False membership: of targets that read nothing of it.",
        f"With related reading: the target read the other set of the same library {MUCH_RELATED} times or more; "
        "without: less often. Audits that a gate refuses count against power, and as no error.",
        f"Panels of features: {used}.",
    )
    asked = questions(doses([run for of in groups.values() for run in of.runs], least=1))
    columns = {HALVES[key]: of for key, of in groups.items()}
    return tables(
        cross_table(
            "errors",
            scope.world.name,
            "Errors and power, own base",
            "audits",
            asked,
            columns,
            QUANTITIES,
            notes,
            lambda question, of: question(of),
        )
    )


def power(scope: Scope) -> Filled:
    """Share of audits with either verdict, by what was read; a panel for targets of other bases."""
    world = scope.world
    verdicts = {"evidence of non-membership": cleared, "evidence of membership": found}
    bases = {"own base": of_own_base(scope, "reported"), "other bases": of_other_bases(scope)}
    bases = {name: runs for name, runs in bases.items() if runs}
    planted = doses([run for runs in bases.values() for run in runs])

    def cell(row: tuple[list[Run], Callable[[Run], bool]], dose: int) -> TableCell:
        runs, decides = row
        return AuditGroup(runs, world.name).where(read(dose)).verdict(decides, dose)

    rows = {
        f"{verdict}, {name}": (runs, decides) for name, runs in bases.items() for verdict, decides in verdicts.items()
    }
    columns = {named(dose): dose for dose in planted}
    title = "Verdicts by what was read"
    block = cross_table("", world.name, title, "verdict, base", rows, columns, QUANTITIES, cell=cell)
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
    return figures(figure_of("power", world, title, alt, block, size_of_panels(len(bases)), paint))


# ------------------------------------------------------------------------------------------------ readings


def by_dose(scope: Scope) -> Filled:
    """Estimates and intervals against what was read."""
    return tables(*(_by_dose(key, of.where(lambda run: not invalid(run))) for key, of in halves(scope).items()))


def _by_dose(key: str, valid: AuditGroup) -> Block | None:
    rows = {named(dose): valid.where(read(dose)) for dose in doses(valid.runs)}
    rows |= {"once or more": valid.where(is_reader), "all": valid.where(lambda run: dose_of(run) is not None)}
    columns: dict[str, Callable[[AuditGroup], TableCell]] = {
        "audits": AuditGroup.count,
        "median estimate": lambda group: group.median(estimate_of if len(doses(group.runs)) == 1 else no_number),
        f"within a factor of {FACTOR:g}": lambda group: group.where(is_reader).rate(is_near),
        "interval holds it": lambda group: group.rate(covered),
        "median cleared dose": lambda group: group.median(
            cleared_dose if all(map(is_unread, group.runs)) else no_number
        ),
    }
    notes = (
        "In readings of the whole set; audits that a gate refuses are left out. Within a factor of 1.5: of estimates "
        "where something was read.",
        "Cleared dose: the least such that it and all heavier ones are excluded, over targets that read nothing.",
    )
    title = f"Readings: {HALVES[key]}"
    block = cross_table(f"dose-{key}", valid.world, title, "target has read", rows, columns, MIXED, notes)
    return block if valid.runs else None


def no_number(run: Run) -> None:
    """Where a row's targets have not read alike."""


def cleared_dose(run: Run) -> float:
    """Least dose such that it and all heavier ones are excluded; infinite where none is."""
    dose = number_in(run.statistics.details, "cleared_dose")
    return math.inf if dose is None else dose


JITTER = 0.045  # on the scale of log(1 + x)
KINDS: Mapping[str, Callable[[Run], bool]] = {
    "sibling set read less often": lambda run: not invalid(run) and not reads_related(run),
    f"sibling set read {MUCH_RELATED} times or more": lambda run: not invalid(run) and reads_related(run),
    "invalid": invalid,
}


def readings(scope: Scope) -> Filled:
    """Estimated against true readings, a dot per audit."""
    world = scope.world
    runs = [run for run in of_own_base(scope, "reported") if dose_of(run) is not None and estimate_of(run) is not None]
    kinds = {name: of_kind for name, is_of in KINDS.items() if (of_kind := list(filter(is_of, runs)))}
    planted = doses(runs)

    def middle(of_kind: list[Run], dose: int) -> TableCell:
        """Median, fifth and ninety-fifth percentile."""
        if not (of_dose := list(filter(read(dose), of_kind))):
            return TableCell((dash(world.name),) * 3, (), RANGE)
        ends = map(float, np.quantile([estimate_of(run) or 0.0 for run in of_dose], (0.5, 0.05, 0.95)))
        anchors = tuple(run.anchor for run in of_dose)
        numbers = tuple(Numeral(formats.decimals(item, 2), item, world.name, anchors) for item in ends)
        return TableCell(numbers, (), RANGE)

    columns, quantities = {named(dose): dose for dose in planted}, ("median", "low", "high")
    block = cross_table("", world.name, "Estimated readings", "audits", kinds, columns, quantities, cell=middle)

    def paint(canvas: Canvas) -> None:
        axis = canvas.subplots()
        for index, (name, of_kind) in enumerate(kinds.items()):
            jitter = np.random.default_rng(index).uniform(-JITTER, JITTER, (2, len(of_kind)))
            xs, ys = (np.log1p([of(run) or 0 for run in of_kind]) for of in (dose_of, estimate_of))
            axis.plot(
                xs + jitter[0],
                ys,
                linestyle="",
                marker=MARKERS[index],
                markersize=3,
                alpha=0.5,
                color=colour(index),
                label=name,
            )
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


# ------------------------------------------------------------------------------- other targets than planted ones


def stand_ins(scope: Scope) -> Filled:
    """Verdicts by the base that targets were continued from, where it is not that of the controls, and by what they
    have read."""
    runs = of_other_bases(scope)
    by_base = {base: select(runs, base=base) for base in sorted({str(run.get("base")) for run in runs})}
    if len(by_base) > 1:
        by_base["all of these"] = runs
    rows: dict[str, AuditGroup] = {}
    for name, of_base in by_base.items():
        every, planted = AuditGroup(of_base, scope.world.name), doses(of_base)
        rows |= {f"{name}, {named(dose)}": every.where(read(dose)) for dose in planted}
        if sum(dose > 0 for dose in planted) > 1:
            rows[f"{name}, once or more"] = every.where(is_reader)
        if (unknown := every.where(lambda run: dose_of(run) is None)).runs:
            rows[f"{name}, a part or unknown"] = unknown
    columns: dict[str, Callable[[AuditGroup], TableCell]] = {
        "audits": AuditGroup.count,
        "not read": lambda group: group.rate(cleared, any(map(dose_of, group.runs))),
        "read": lambda group: group.rate(found, any(map(is_unread, group.runs))),
        "no verdict": lambda group: group.where(lambda run: not (cleared(run) or found(run) or invalid(run))).count(),
        "invalid": lambda group: group.where(invalid).count(),
        "median estimate": lambda group: group.median(estimate_of),
        "interval holds it": lambda group: group.where(lambda run: dose_of(run) is not None).rate(covered),
    }
    notes = (
        "Not read: evidence of non-membership, false where the set was read once or more. Read: evidence of "
        "membership, false where nothing was read. Estimate and interval: of all audits, whatever the verdict.",
    )
    title, corner = "Verdicts on targets of other bases", "base, target has read"
    return tables(cross_table("stand-in", scope.world.name, title, corner, rows, columns, MIXED, notes))


# -------------------------------------------------------------------------------------------------- report

AT_A_GLANCE = (
    "false clearance, read once or more",
    "power, without related reading",
    "power, with related reading",
    "false membership, with related reading",
    "membership found, read 1x",
)


def cells_of_glance(scope: Scope) -> Iterator[TableCell]:
    group, asked = AuditGroup(of_own_base(scope, "reported"), scope.world.name), questions((1,))
    return (asked[name](group) for name in AT_A_GLANCE)


class DoseReport(DeclaredReport):
    special: ClassVar = {"errors": errors, "power": power, "dose": by_dose, "readings": readings, "stand-in": stand_ins}

    def first_numbers(self) -> Glance:
        return Glance(AT_A_GLANCE, cells_of_glance, self.glance_note)
