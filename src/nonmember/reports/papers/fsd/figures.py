"""Figures 4 and 6 of FSD for one world: AUC and TPR against the number of unseen documents tuned on.

Drawn from a table of numbers that goes with it. None where there are no results.
"""

from __future__ import annotations

import math

from matplotlib.figure import Figure as Canvas

from nonmember.reports.core import formats
from nonmember.reports.core.grid import RANGE, Block, Cell, Figure, Row
from nonmember.reports.core.numbers import number, over_draws
from nonmember.reports.core.report import Filled, figures
from nonmember.reports.core.worlds import Scope, by_domain, one_target
from nonmember.reports.papers.fsd.grids import (
    AUC,
    BASE,
    CHANCE,
    FSD,
    TPR_BELOW,
    Measure,
    blind,
    detail_of,
    say_differences,
    say_targets,
    scores_of,
)
from nonmember.reports.render.blocks import filled, say_medians, say_missing
from nonmember.reports.render.figures import (
    QUIET,
    Line,
    draw_line,
    figure_of,
    legend_below,
    lines_of,
    panels,
    size_of_panels,
)
from nonmember.results.load import Run

KEY = "figure4"
FPR = 0.05


def by_number(scope: Scope, key: str = KEY) -> Filled:
    """Median over draws, band from lowest to highest; at 0 the score without tuning."""
    return figures(*(_by_number(scope, measure, key) for measure in (AUC, TPR_BELOW)))


def of_books(scope: Scope) -> Filled:
    return by_number(scope, "figure6")


def _by_number(scope: Scope, measure: Measure, key: str) -> Figure | None:
    runs = one_target(scope, scope.of(key))
    sets = {name: here for name, here in by_domain(scope, key, runs).items() if here}
    scores = scores_of(scope, runs)
    counts = sorted({num for run in runs if (num := _num_unseen(run)) is not None})
    block = _numbers(scope, sets, scores, counts, measure, key)
    if block is None:
        return None
    lines = lines_of(block, [0, *counts])

    what = "AUC" if measure is AUC else "TPR at FPR < 5%"

    def paint(canvas: Canvas) -> None:
        for axis, name in zip(panels(canvas, tuple(sets)), sets, strict=True):
            level = CHANCE if measure is AUC else FPR
            axis.axhline(level, color=QUIET, linewidth=0.7, zorder=0)
            for place, printed in enumerate(scores.values()):
                draw_line(axis, _banded(printed, lines[f"{name}, {printed}"]), place, band=True)
            axis.set(xlabel="unseen documents (0: base)")
        canvas.axes[0].set_ylabel(what)
        legend_below(canvas, canvas.axes[0])

    alt = (
        f"{what} of FSD against the number of unseen documents tuned on, median over draws, a line per score "
        "and a panel per set; at 0 the score without tuning."
    )
    name = key if measure is AUC else f"{key}-tpr"
    title = f"{'Figures 4 and 6' if key == KEY else 'Figure 6'}, {'AUC' if measure is AUC else 'TPR'}"
    return figure_of(name, scope.world, title, alt, block, size_of_panels(len(sets)), paint)


def _banded(name: str, line: Line) -> Line:
    """A point without ends, as base is, has itself for both."""
    return Line(name, tuple((x, y, *((y, y) if math.isnan(low) else (low, high))) for x, y, low, high in line.points))


def _num_unseen(run: Run) -> int | None:
    """As many as there were, which may be fewer than were asked for."""
    found = run.statistics.details.get("num_unseen")
    return int(found) if isinstance(found, int | float) else None


def _numbers(
    scope: Scope, sets: dict[str, list[Run]], scores: dict[str, str], counts: list[int], measure: Measure, key: str
) -> Block | None:
    world = scope.world.name

    def at(here: list[Run], num: int) -> list[Run]:
        return [run for run in here if _num_unseen(run) == num]

    def row(name: str, here: list[Run], score: str, printed: str) -> Row:
        base = number(here[:1], world, detail_of(score, BASE, measure.key))
        cells = (Cell(over_draws(at(here, num), world, detail_of(score, FSD, measure.key), formats.decimals), (), RANGE)
                 for num in counts)  # fmt: skip
        return Row(f"{name}, {printed}", (Cell((base,)), *cells))

    if not counts or not scores:
        return None
    rows = [row(name, here, score, printed) for name, here in sets.items() for score, printed in scores.items()]
    texts = [Row(f"{name}, blind (text alone)", tuple(Cell((blind(here[:1], world),)) for _ in (0, *counts)))
             for name, here in sets.items()] if measure is AUC else []  # fmt: skip
    name = f"numbers-{key}-{'auc' if measure is AUC else 'tpr'}-{formats.slug(world)}"
    columns = ("0 (base)", *map(str, counts))
    block = Block(name, world, f"{measure.name}. {scope.world.title}", "set, score", columns, (*rows, *texts),
                  ("median", "lowest", "highest"))  # fmt: skip
    every = [run for here in sets.values() for run in here]
    return filled(block, [say_targets(scope, every), say_medians(rows), say_missing(block), *say_differences(sets)])
