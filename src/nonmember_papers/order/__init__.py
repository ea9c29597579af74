"""What of the order test's report is computed: whether p is uniform where nothing was read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar

from matplotlib.figure import Figure as Canvas
from scipy import stats

from nonmember.reports.core import formats
from nonmember.reports.core.grid import Block, Cell, Figure, Number, Row, dash
from nonmember.reports.core.numbers import P_VALUE, counted, number
from nonmember.reports.core.report import Filled, tables
from nonmember.reports.core.worlds import Scope, by_domain, select
from nonmember.reports.declared.report import DeclaredReport
from nonmember.reports.render.blocks import filled, say_missing
from nonmember.reports.render.figures import figure_of, panels, quantile_axis, size_of_panels
from nonmember.results.load import Run

UNIFORM = "p of uniformity: Kolmogorov and Smirnov. The orders are of the same examples under the same target."


def clean(scope: Scope) -> Filled:
    drawn = uniform(scope)
    return replace(by_set(scope), figures=(drawn,) if drawn else ())


def by_set(scope: Scope) -> Filled:
    """Whether p-values of files that nobody has read are uniform."""
    key, world = "clean", scope.world.name
    sets = {name: here for name, here in by_domain(scope, key, scope.of(key)).items() if here}
    columns = ("results", "p < .05", "smallest", "median", "p of uniformity")

    def cells(here: Sequence[Run]) -> tuple[Cell, ...]:
        found = sorted(p for run in here if (p := P_VALUE(run.result)) is not None)
        if not found:
            return (Cell((dash(world),)),) * len(columns)
        values = (found[0], float(stats.scoreatpercentile(found, 50)), float(stats.kstest(found, "uniform").pvalue))
        alpha = here[0].result.question.alpha
        anchors = tuple(run.anchor for run in here)
        return (
            Cell((Number(str(len(found)), float(len(found)), world, anchors),)),
            counted(sum(p < alpha for p in found), len(found), world),
            *(Cell((Number(formats.p_value(value), value, world),)) for value in values),
        )

    rows = tuple(Row(name, cells(here)) for name, here in sets.items())
    bare = Block(f"{key}-{formats.slug(world)}", world, f"p-values where nothing was read. {scope.world.title}", "set",
                 columns, rows, ("number",))  # fmt: skip
    return tables(filled(bare, [UNIFORM]))


def uniform(scope: Scope) -> Figure | None:
    """Sorted p-values against those expected of a uniform distribution; a panel per set."""
    runs, world = scope.of("clean"), scope.world
    sets = {name: here for name, here in by_domain(scope, "clean", runs).items() if here}

    def cell(here: Sequence[Run], draw: object) -> Cell:
        return Cell((number(select(here, draw=draw), world.name, P_VALUE, formats.p_value),))

    rows = tuple(Row(f"draw {draw}", tuple(cell(here, draw) for here in sets.values()))
                 for draw in sorted({run.get("draw") for run in runs}))  # fmt: skip
    bare = Block(f"numbers-clean-{formats.slug(world.name)}", world.name, f"p. {world.title}", "", tuple(sets), rows,
                 ("p",))  # fmt: skip
    block = filled(bare, [say_missing(bare)])
    if block is None:
        return None

    def paint(canvas: Canvas) -> None:
        for axis, here in zip(panels(canvas, tuple(sets)), sets.values(), strict=True):
            quantile_axis(axis, sorted(p for run in here if (p := P_VALUE(run.result)) is not None), 0)
        canvas.axes[0].set_ylabel("p")

    alt = (
        "p-values of the order test on files that the target has not read, sorted, against those expected of a uniform "
        "distribution, with the band in which each lies with 95%; a panel per set."
    )
    return figure_of("clean", world, "p where nothing was read", alt, block, size_of_panels(len(sets)), paint)


class OrderReport(DeclaredReport):
    special: ClassVar = {"clean": clean}
