"""What of the order test's report is computed: whether p is uniform where nothing was read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar

import numpy as np
from matplotlib.figure import Figure as Canvas
from scipy import stats

from nonmember.reports.core import formats
from nonmember.reports.core.grid import Block, Cell, Figure, Row
from nonmember.reports.core.numbers import P_VALUE, number
from nonmember.reports.core.report import Filled, tables
from nonmember.reports.core.worlds import Scope, by_domain, select
from nonmember.reports.declared.report import DeclaredReport
from nonmember.reports.render.blocks import filled, say_missing
from nonmember.reports.render.figures import MARKERS, QUIET, colour, figure_of, panels, size_of_panels
from nonmember.results.load import Run

BAND = 0.95  # of uniform p-values, rank by rank


def clean(scope: Scope) -> Filled:
    drawn = uniform(scope)
    return replace(tables(), figures=(drawn,) if drawn else ())


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
            found = sorted(p for run in here if (p := P_VALUE(run.result)) is not None)
            ranks = np.arange(1, len(found) + 1)
            expected = ranks / (len(found) + 1)
            axis.fill_between(expected, *stats.beta.interval(BAND, ranks, ranks[::-1]), color=QUIET, alpha=0.15,
                              linewidth=0)  # fmt: skip
            axis.plot((0, 1), (0, 1), color=QUIET, linewidth=0.7, zorder=0)
            axis.plot(expected, found, marker=MARKERS[0], linestyle="", color=colour(0))
            axis.set(xlabel="expected p", xlim=(0, 1), ylim=(0, 1))
        canvas.axes[0].set_ylabel("p")

    alt = (
        "p-values of the order test on files that the target has not read, sorted, against those expected of a uniform "
        f"distribution, with the band in which each lies with {BAND:.0%}; a panel per set."
    )
    return figure_of("clean", world, "p where nothing was read", alt, block, size_of_panels(len(sets)), paint)


class OrderReport(DeclaredReport):
    special: ClassVar = {"clean": clean}
