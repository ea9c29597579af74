"""What becomes of the dose study's audits with other features, and on fewer documents."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np
from matplotlib.figure import Figure as Canvas

from nonmember.reports.core.documents import read_values
from nonmember.reports.core.grid import FALSE, Block, Cell, Figure, Row
from nonmember.reports.core.report import Filled, figures, tables
from nonmember.reports.core.worlds import Scope
from nonmember.reports.papers.dose.cells import (
    CHOSEN,
    GROUPS,
    QUANTITIES,
    Rate,
    dose_of,
    median_cell,
    near,
    of_own_base,
    percent,
    rate_cell,
    readers,
    unread,
)
from nonmember.reports.papers.dose.reread import (
    Reread,
    measured,
    measured_on,
    panel_between,
    panel_shape,
    pooled,
    read_again,
)
from nonmember.reports.papers.dose.tables import MIXED
from nonmember.reports.render.blocks import filled
from nonmember.reports.render.figures import MARKERS, colour, figure_of, legend_below
from nonmember.results.load import Run

SIZES = (50, 100, 200, 500)
SETS = {"reported": "sets of 100, reported half", "large": "sets of 500"}
ASIDE = "No gate is asked here, so that rates may differ a little from those of the audits."


def _rate(found: Iterable[Reread], runs: Sequence[Run], decides: Callable[[Reread], bool]) -> Rate:
    """Over those of these runs that were read again."""
    wanted = {run.anchor for run in runs}
    here = [one for one in found if one.run.anchor in wanted]
    return Rate(tuple(decides(one) for one in here), tuple(one.run for one in here))


def _is_near(one: Reread) -> bool:
    return near(one.reading.estimate, dose_of(one.run) or 0)


def _cleared(one: Reread) -> bool:
    return one.cleared


def _found(one: Reread) -> bool:
    return one.found


# ----------------------------------------------------------------------------------------------- features


def ablation(scope: Scope) -> Filled:
    """Each feature alone, all of them, and all but one."""
    return tables(_ablation(scope, "reported", leave_out=True), _ablation(scope, CHOSEN, leave_out=False))


def _ablation(scope: Scope, key: str, *, leave_out: bool) -> Block | None:
    every = of_own_base(scope, key)
    known = {run.anchor: found for run in every if (found := measured(run)) is not None}
    runs = [run for run in every if run.anchor in known]
    if not runs:
        return None
    names = tuple(name for name in known[runs[0].anchor].target if all(name in one.target for one in known.values()))
    shapes, world = pooled(runs, names), scope.world.name

    def cells(panel: Sequence[str]) -> tuple[Cell, ...]:
        again = [
            one for run in runs
            if (one := read_again(run, known[run.anchor], panel, shapes.shape(panel, run.domain))) is not None
        ]  # fmt: skip
        return (
            rate_cell(_rate(again, unread(runs), _cleared), world),
            rate_cell(_rate(again, readers(runs), _cleared), world, FALSE),
            rate_cell(_rate(again, unread(runs, related=True), _found), world, FALSE),
            rate_cell(_rate(again, readers(runs), _is_near), world),
        )

    panels = _panels(names, leave_out=leave_out) | ({} if leave_out else _of_reported(scope, names))
    rows = tuple(Row(name, cells(panel)) for name, panel in panels.items())
    columns = ("power", "false clearance", "false membership, with related reading", "within a factor of 1.5")
    notes = (
        "The shape of the errors is pooled from the controls of all other libraries of this half, never from those of "
        f"the library that is judged. {ASIDE}",
    )
    title = f"By feature: {GROUPS[key]}"
    return filled(Block(f"ablation-{key}", world, title, "features", columns, rows, QUANTITIES), notes)


def _panels(names: Sequence[str], *, leave_out: bool) -> dict[str, tuple[str, ...]]:
    panels = {f"all {len(names)}": tuple(names)} | {f"{name} alone": (name,) for name in names}
    if leave_out and len(names) > 2:
        panels |= {f"all but {name}": tuple(one for one in names if one != name) for name in names}
    return panels


def _of_reported(scope: Scope, names: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """The features that audits of the reported half use, where these are some of those."""
    found = (measured(run) for run in of_own_base(scope, "reported"))
    used = next((tuple(one.target) for one in found if one is not None), ())
    return {f"the {len(used)} of the reported half": used} if used and set(used) < set(names) else {}


# -------------------------------------------------------------------------------------------------- sizes


def sizes(scope: Scope) -> Filled:
    """Power and the smallest cleared dose by the number of documents."""
    again: dict[str, dict[int, list[Reread]]] = {}
    read: dict[str, str] = {}
    why_not: Counter[str] = Counter()
    for key in SETS:
        for run in of_own_base(scope, key):
            for number, one in _on_fewer(run, read, why_not).items():
                again.setdefault(key, {}).setdefault(number, []).append(one)
    notes = tuple(f"{scope.world.title}: {number} results left out: {why}." for why, number in why_not.items())
    if not again:
        return figures(notes=notes)
    block = _table_of_sizes(again, scope.world.name)
    figure = dataclasses.replace(_figure_of_sizes(again, block, scope), read=read)
    return figures(figure, notes=notes)


def _on_fewer(run: Run, read: dict[str, str], why_not: Counter[str]) -> dict[int, Reread]:
    """By number of documents. read: gets the file and its SHA-256.   why_not: is told where there is none."""
    try:
        values = read_values(run)
        shape, between = panel_shape(run), panel_between(run)
    except (ValueError, AttributeError) as error:
        why_not[str(error)] += 1
        return {}
    found: dict[int, Reread] = {}
    for number in SIZES:
        features = measured_on(run, values, number)
        if features is not None:
            one = read_again(run, features, list(features.target), shape, between)
            found |= {number: one} if one is not None else {}
    if found:
        read[values.path] = values.sha256
    else:
        why_not["their features cannot be made again from the scores beside them"] += 1
    return found


def _table_of_sizes(again: Mapping[str, Mapping[int, list[Reread]]], world: str) -> Block:
    def cells(found: list[Reread]) -> tuple[Cell, ...]:
        runs = [one.run for one in found]
        not_read = {run.anchor for run in unread(runs)}
        doses = [one.cleared_dose for one in found if one.run.anchor in not_read]
        return (
            median_cell(doses, unread(runs), world),
            rate_cell(_rate(found, unread(runs), _cleared), world),
            rate_cell(_rate(found, readers(runs), _cleared), world, FALSE),
            rate_cell(_rate(found, readers(runs), _is_near), world),
        )

    rows = tuple(
        Row(f"{number} documents, {SETS[key]}", cells(found))
        for key, by_size in again.items()
        for number, found in sorted(by_size.items())
    )
    columns = ("median cleared dose, nothing read", "power", "false clearance", "within a factor of 1.5")
    notes = (
        "The first documents in the order of the SHA-256 of their ids, scored as they were; the third text is whole. "
        f"{ASIDE}",
    )
    return Block("size", world, "By number of documents", "documents", columns, rows, MIXED, notes=notes)


def _figure_of_sizes(again: Mapping[str, Mapping[int, list[Reread]]], block: Block, scope: Scope) -> Figure:
    def paint(canvas: Canvas) -> None:
        axis = canvas.subplots()
        for place, (key, by_size) in enumerate(again.items()):
            rates = {number: _rate(found, unread([one.run for one in found]), _cleared)
                     for number, found in sorted(by_size.items())}  # fmt: skip
            shown = {number: one.share for number, one in rates.items() if one.runs}
            ends = np.array([[one.share - one.interval.low, one.interval.high - one.share] for one in shown.values()])
            if shown:
                axis.errorbar(list(shown), [one.share for one in shown.values()], yerr=np.maximum(ends.T, 0),
                              marker=MARKERS[place], color=colour(place), label=SETS[key], elinewidth=1)  # fmt: skip
        axis.set(xlabel="documents", ylabel="share of unread sets cleared", ylim=(-0.03, 1.03), xscale="log",
                 xticks=SIZES, xlim=(40, 600))  # fmt: skip
        axis.set_xticks([], minor=True)
        axis.set_xticklabels([str(one) for one in SIZES])
        legend_below(canvas, axis)

    alt = "Share of unread sets that are cleared of one reading, with 95% intervals, by the number of documents: " + (
        "; ".join(f"{row.name} {percent(row.cells[1].ours[0].value / row.cells[1].ours[1].value)}"
                  for row in block.rows if row.cells[1].ours[0].value is not None and row.cells[1].ours[1].value)
    )  # fmt: skip
    return figure_of("size", scope.world, "Power by number of documents", f"{alt}.", block, (5.2, 3.2), paint)
