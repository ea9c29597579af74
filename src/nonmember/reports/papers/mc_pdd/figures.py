"""Figures of MC-PDD for one world: hit rates by corpus, the difference and p by sample size, hits by epochs of tuning.

Each is drawn from a table of numbers that goes with it. None where there are no results.
"""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Mapping, Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas

from nonmember.reports.core import formats
from nonmember.reports.core.grid import INTERVAL, Block, Cell, Figure, Row
from nonmember.reports.core.numbers import Value, detail, number
from nonmember.reports.core.worlds import Scope, by_domain, select
from nonmember.reports.papers.mc_pdd.tables import (
    CANDIDATE,
    CONTROL,
    EPOCHS,
    contaminated,
    of_size,
    percent,
    signed_percent,
    sizes_of,
    target_name,
)
from nonmember.reports.render.blocks import filled, say_medians, say_missing
from nonmember.reports.render.figures import (
    MARKERS,
    QUIET,
    Line,
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

ARMS: Mapping[str, Value] = {
    "suspect": detail("suspect", "hit_rate"),
    "reference": detail("heldout", "hit_rate"),
    "suspect, random words": detail(CONTROL, "suspect", "hit_rate"),
    "reference, random words": detail(CONTROL, "heldout", "hit_rate"),
}
LABEL_WIDTH = 13  # letters
BESIDE = 0.12  # from one marker to the next at the same place
Rows = Mapping[str, Mapping[str, Sequence[Cell]]]  # panel -> line -> a cell per place along x


def by_arm(scope: Scope) -> Figure | None:
    """Hit rates of both corpora, and of random words in them; a panel per set, a place per target."""
    world, runs = scope.world, scope.of("models")
    targets = list(dict.fromkeys(str(run.question.target) for run in runs))
    shown: Rows = {
        name: {arm: [Cell((number(select(here, target=target), world.name, value, percent),)) for target in targets]
               for arm, value in ARMS.items()}
        for name, here in by_domain(scope, "models", runs).items() if here
    }  # fmt: skip

    def style(axis: Axes) -> None:
        axis.set_xticks(range(len(targets)), [textwrap.fill(target_name(scope)(one), LABEL_WIDTH) for one in targets])
        axis.set_xlim(-0.5, len(targets) - 0.5)
        axis.set_ylim(bottom=0)

    return _drawn(
        scope, "arms", "Hit rates by corpus", "hit rate", "",
        "Share of masked words among the ten candidates, by target: suspect set and reference corpus, the most "
        "specific words and random ones; a panel per set.",
        [target_name(scope)(target) for target in targets], range(len(targets)), shown, ("rate, %",), "{}", style,
        lines=False,
    )  # fmt: skip


def by_size(scope: Scope) -> tuple[Figure | None, ...]:
    """Difference with its interval, and p, by the size of a resample; a line per target (figure 3)."""
    world, runs = scope.world, scope.of("models")
    sizes = sizes_of(runs)
    targets = list(dict.fromkeys(str(run.question.target) for run in runs))

    def shown(cell: Callable[[Sequence[Run], int], Cell]) -> Rows:
        return {
            name: {target_name(scope)(target): [cell(select(here, target=target), size) for size in sizes]
                   for target in targets}
            for name, here in by_domain(scope, "models", runs).items() if here
        }  # fmt: skip

    def difference(here: Sequence[Run], size: int) -> Cell:
        values = (of_size(size, what) for what in ("difference", "lower", "upper"))
        return Cell(tuple(number(here, world.name, value, signed_percent) for value in values), (), INTERVAL)

    def p(here: Sequence[Run], size: int) -> Cell:
        return Cell((number(here, world.name, of_size(size, "p_value"), formats.p_value),))

    columns = list(map(str, sizes))
    return (
        _drawn(
            scope, "sizes", "Difference by sample size", "difference", "documents of each corpus",
            "Hit rate of the corpus that is, or may be, unread minus that of the other, with 5% and 95% quantiles of "
            "resamples of so many documents; a panel per set.",
            columns, sizes, shown(difference), ("difference, %", "lower", "upper"), INTERVAL, zero_line,
        ),
        _drawn(
            scope, "sizes-p", "p by sample size", "p", "documents of each corpus",
            "p-value of resamples of so many documents on a logarithmic axis; a panel per set.",
            columns, sizes, shown(p), ("p",), "{}", _logarithmic,
        ),
    )  # fmt: skip


def by_epochs(scope: Scope) -> Figure | None:
    """Hit rates of what was read before, of what the target is tuned on, and of clean documents (figure 5)."""
    world, runs = scope.world, scope.of("contamination")
    epochs = sorted({run.get(EPOCHS) for run in runs})
    candidates = list(dict.fromkeys(str(run.get(CANDIDATE)) for run in runs))

    def line(here: Sequence[Run], value: Value) -> list[Cell]:
        return [Cell((number(select(here, epochs=num), world.name, value, percent),)) for num in epochs]

    shown: Rows = {
        name: {
            **{contaminated(one): line(select(here, candidate=one), ARMS["suspect"]) for one in candidates},
            "clean": line(here, ARMS["reference"]),
        }
        for name, here in by_domain(scope, "contamination", runs).items() if here
    }  # fmt: skip
    return _drawn(
        scope, "contamination", "Hit rates by epochs of tuning", "hit rate", "epochs",
        "Share of masked words among the ten candidates against epochs of tuning on unread documents: in these, in "
        "those read before and in clean ones; a panel per set.",
        [f"{num:g}" for num in epochs], epochs, shown, ("rate, %",), "{}", lambda axis: None,
    )  # fmt: skip


def _drawn(
    scope: Scope, key: str, title: str, ylabel: str, xlabel: str, alt: str, columns: Sequence[str],
    xs: Sequence[float], shown: Rows, quantities: tuple[str, ...], template: str, style: Callable[[Axes], None], *,
    lines: bool = True,
) -> Figure | None:  # fmt: skip
    """A panel per set with its lines, or its markers alone."""
    world = scope.world
    rows = tuple(Row(f"{panel}, {line}", tuple(cells)) for panel, here in shown.items() for line, cells in here.items())
    bare = Block(f"numbers-{key}-{formats.slug(world.name)}", world.name, f"{title}. {world.title}", "set, line",
                 tuple(columns), rows, quantities)  # fmt: skip
    block = filled(bare, [say_medians(rows), say_missing(bare)])
    if block is None:
        return None
    found = lines_of(block, xs)

    def paint(canvas: Canvas) -> None:
        axes = panels(canvas, tuple(shown))
        for axis, (panel, here) in zip(axes, shown.items(), strict=True):
            for place, name in enumerate(here):
                points = found[f"{panel}, {name}"].points
                if lines:
                    draw_line(axis, Line(name, points), place, band=len(quantities) > 1)
                else:
                    beside = (place - (len(here) - 1) / 2) * BESIDE
                    axis.plot([x + beside for x, *_ in points], [y for _, y, *_ in points], marker=MARKERS[place],
                              linestyle="", color=colour(place), label=name)  # fmt: skip
            axis.set_xlabel(xlabel)
            style(axis)
        canvas.axes[0].set_ylabel(ylabel)
        legend_below(canvas, canvas.axes[0], columns=2)

    return figure_of(key, world, title, alt, block, size_of_panels(len(shown)), paint)


def _logarithmic(axis: Axes) -> None:
    axis.set_yscale("log")
    axis.minorticks_off()
    axis.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
    axis.axhline(0.05, color=QUIET, linewidth=0.8, linestyle=(0, (4, 3)))
