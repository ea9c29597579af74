"""What of the order test's report is computed: whether p is uniform where nothing was read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from matplotlib.figure import Figure as Canvas

from nonmember.reports.core import formats
from nonmember.reports.core.grid import Figure, TableCell
from nonmember.reports.core.numbers import P_VALUE, number
from nonmember.reports.core.worlds import Scope, by_domain, select
from nonmember.reports.declared.report import DeclaredReport, tables
from nonmember.reports.render.blocks import block_of
from nonmember.reports.render.figures import figure_of, panels, quantile_axis, size_of_panels
from nonmember.results.load import Run


def uniform(scope: Scope) -> Figure | None:
    """Sorted p-values against those expected of a uniform distribution; a panel per set."""
    runs, world = scope.of("clean"), scope.world
    sets = {name: of_set for name, of_set in by_domain(scope, "clean", runs).items() if of_set}

    def cell(of_set: Sequence[Run], draw: object) -> TableCell:
        return TableCell((number(select(of_set, draw=draw), world.name, P_VALUE, formats.p_value),))

    rows = {
        f"draw {draw}": [cell(of_set, draw) for of_set in sets.values()]
        for draw in sorted({run.get("draw") for run in runs})
    }
    block = block_of(scope, "", "p", "", sets, rows, ["p"])

    def paint(canvas: Canvas) -> None:
        for axis, of_set in zip(panels(canvas, tuple(sets)), sets.values(), strict=True):
            quantile_axis(axis, sorted(p for run in of_set if (p := P_VALUE(run.result)) is not None), 0)
        canvas.axes[0].set_ylabel("p")

    alt = (
        "p-values of the order test on files that the target has not read, sorted, against those expected of a uniform "
        "distribution, with the band in which each lies with 95%; a panel per set."
    )
    return figure_of("clean", world, "p where nothing was read", alt, block, size_of_panels(len(sets)), paint)


class OrderReport(DeclaredReport):
    special: ClassVar = {"clean": lambda scope: tables(uniform(scope))}
