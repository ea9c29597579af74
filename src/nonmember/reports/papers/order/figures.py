"""Figures of the order test for one world: p and t by how often the file was read, and p where nothing was read.

Each is drawn from a table of numbers that goes with it. None where there are no results.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas
from scipy import stats

from nonmember.reports.core import formats
from nonmember.reports.core.grid import RANGE, Block, Cell, Figure, Row
from nonmember.reports.core.numbers import P_VALUE, STATISTIC, Form, Value, number, over_draws
from nonmember.reports.core.worlds import Scope, by_domain, select
from nonmember.reports.papers.order.tables import DRAW, DUPLICATION, signed_t, values_of
from nonmember.reports.render.blocks import filled, say_medians, say_missing
from nonmember.reports.render.figures import (
    MARKERS,
    QUIET,
    colour,
    draw_line,
    figure_of,
    legend_below,
    lines_of,
    panels,
    size_of_panels,
    zero_line,
)
from nonmember.results.load import Run

BAND = 0.95  # of uniform p-values, rank by rank


def by_duplication(scope: Scope) -> tuple[Figure | None, ...]:
    """Median over draws, band from lowest to highest; a line per set. p on a logarithmic axis."""
    return (
        _by_duplication(scope, "p", "p", P_VALUE, formats.p_value),
        _by_duplication(scope, "t", "t", STATISTIC, signed_t),
    )


def _by_duplication(scope: Scope, part: str, what: str, value: Value, form: Form) -> Figure | None:
    runs, world = scope.of("duplication"), scope.world
    counts = values_of(runs, DUPLICATION)
    rows = tuple(
        Row(name, tuple(Cell(over_draws(select(here, duplication=count), world.name, value, form), (), RANGE)
                        for count in counts))
        for name, here in by_domain(scope, "duplication", runs).items() if here
    )  # fmt: skip
    bare = Block(f"numbers-duplication-{part}-{formats.slug(world.name)}", world.name, f"{what}. {world.title}",
                 "set; times read", tuple(map(str, counts)), rows, ("median", "lowest", "highest"))  # fmt: skip
    block = filled(bare, [say_medians(rows), say_missing(bare)])
    if block is None:
        return None
    lines, alpha = lines_of(block, range(len(counts))), runs[0].result.question.alpha

    def paint(canvas: Canvas) -> None:
        axis = canvas.subplots()
        for place, line in enumerate(lines.values()):
            draw_line(axis, line, place, band=True)
        axis.set(xlabel="times read (0: not at all)", ylabel=what, xticks=range(len(counts)))
        axis.set_xticklabels([str(count) for count in counts])
        if value is P_VALUE:
            _logarithmic(axis, alpha)
        else:
            zero_line(axis)
        legend_below(canvas, axis)

    alt = (
        f"{what} of the order test against the number of times that the target has read the file, median over draws "
        "with a band from lowest to highest, a line per set."
    )
    return figure_of(f"duplication-{part}", world, what, alt, block, (5.6, 3.4), paint)


def _logarithmic(axis: Axes, alpha: float) -> None:
    axis.set_yscale("log")
    axis.minorticks_off()
    axis.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
    axis.axhline(alpha, color=QUIET, linewidth=0.8, linestyle=(0, (4, 3)))
    axis.annotate(f"alpha {alpha:g}", (1, alpha), xycoords=("axes fraction", "data"), xytext=(0, 3),
                  textcoords="offset points", ha="right", color=QUIET, fontsize=8)  # fmt: skip


def uniform(scope: Scope) -> Figure | None:
    """Sorted p-values against those expected of a uniform distribution; a panel per set."""
    runs, world = scope.of("clean"), scope.world
    sets = {name: here for name, here in by_domain(scope, "clean", runs).items() if here}

    def cell(here: Sequence[Run], draw: object) -> Cell:
        return Cell((number(select(here, draw=draw), world.name, P_VALUE, formats.p_value),))

    rows = tuple(Row(f"draw {draw}", tuple(cell(here, draw) for here in sets.values()))
                 for draw in values_of(runs, DRAW))  # fmt: skip
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
