"""Figures of KDS for one world: S against the share read, and how far every score rises beyond its spread.

Each is drawn from a table of numbers that goes with it. None where there are no results.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from matplotlib.figure import Figure as Canvas

from nonmember.reports.core import formats
from nonmember.reports.core.grid import RANGE, Block, Cell, Figure, Row, dash
from nonmember.reports.core.report import Filled, figures
from nonmember.reports.core.worlds import Scope
from nonmember.reports.papers.kds.studies import KDS, WITH_FSD, Levels, Study, everything
from nonmember.reports.papers.kds.tables import printed, say_draws, target_of
from nonmember.reports.render.blocks import filled
from nonmember.reports.render.figures import (
    Line,
    draw_line,
    figure_of,
    legend_below,
    lines_of,
    panels,
    size_of_panels,
    zero_line,
)

KEY = "levels"

Lines = Mapping[str, Mapping[str, Levels]]  # set -> line -> what it shows


@dataclass(frozen=True)
class Picture:
    """What a figure shows of a score at a level. say: the numbers of a cell.   own_axes: a scale for each panel."""

    part: str
    title: str
    axis: str
    alt: str
    quantities: tuple[str, ...]
    template: str
    say: Callable[[Levels, int], tuple[float, ...]]
    own_axes: bool = False


def _mean_and_ends(levels: Levels, place: int) -> tuple[float, ...]:
    scores = levels.scores_DL[:, place]
    return float(scores.mean()), float(scores.min()), float(scores.max())


def _rise(levels: Levels, place: int) -> tuple[float, ...]:
    found = levels.consistency()
    if found is None or found.pooled_sd == 0:
        return (math.nan,)
    return (float(found.mean[place] - found.mean[0]) / found.pooled_sd,)


S = Picture(
    "s", "S", "S",
    "Kernel divergence score against the share of the set that was read: mean over draws, band from lowest to highest, "
    "a panel per set, each with a scale of its own.",
    ("mean", "lowest", "highest"), RANGE, _mean_and_ends, own_axes=True,
)  # fmt: skip
RISE = Picture(
    "scores", "KDS and simple scores", "rise in sd of a draw",
    "How far each score lies above its value at the lowest share, in standard deviations of a draw, against the share "
    "that was read; a panel per set.",
    ("rise, sd",), "{}", _rise,
)  # fmt: skip
RISE_FSD = Picture("fsd", "KDS and FSD of the simple scores", RISE.axis, RISE.alt, RISE.quantities, "{}", _rise)


def against_share(scope: Scope) -> Filled:
    """S of the target and of the control; then all scores of the target, before and after FSD's tuning."""
    study, control = everything(scope, KEY), everything(scope, "control")
    divergences = {target_of(one): one.rows[KDS] for one in (study, control) if one.runs}
    first = {KDS: study.rows[KDS]}
    plain = first | {name: row for name, row in study.rows.items() if not name.endswith(WITH_FSD)}
    tuned = first | {name: row for name, row in study.rows.items() if name.endswith(WITH_FSD)}
    return figures(
        drawn(study, by_set(study, divergences), S),
        drawn(study, by_set(study, plain), RISE) if len(plain) > 1 else None,
        drawn(study, by_set(study, tuned), RISE_FSD) if len(tuned) > 1 else None,
    )


def by_set(study: Study, rows: Mapping[str, Mapping[str, Levels | None]]) -> Lines:
    lines = {one: {name: levels for name, row in rows.items() if (levels := row.get(one)) is not None}
             for one in study.sets}  # fmt: skip
    return {one: here for one, here in lines.items() if here}


def drawn(study: Study, lines: Lines, picture: Picture) -> Figure | None:
    world = study.scope.world
    shares = sorted({level for here in lines.values() for levels in here.values() for level in levels.levels})
    block = _numbers(study, lines, shares, picture)
    if block is None:
        return None
    found = lines_of(block, shares)

    def paint(canvas: Canvas) -> None:
        axes = panels(canvas, tuple(lines), sharey=not picture.own_axes)
        for axis, (one, here) in zip(axes, lines.items(), strict=True):
            for place, name in enumerate(here):
                draw_line(axis, Line(name, found[f"{one}, {name}"].points), place, band=len(picture.quantities) > 1)
            if not picture.own_axes:
                zero_line(axis)
            axis.set(xlabel="share read, c")
        canvas.axes[0].set_ylabel(picture.axis)
        legend_below(canvas, canvas.axes[0], columns=6)

    return figure_of(
        f"{KEY}-{picture.part}", world, picture.title, picture.alt, block, size_of_panels(len(lines)), paint
    )


def _numbers(study: Study, lines: Lines, shares: list[float], picture: Picture) -> Block | None:
    world = study.scope.world
    nothing = Cell((dash(world.name),) * len(picture.quantities), (), picture.template)

    def cell(levels: Levels, share: float) -> Cell:
        if share not in levels.levels:
            return nothing
        here = tuple(run.anchor for run in levels.runs if run.question.data.get("rate") == share)
        values = picture.say(levels, levels.levels.index(share))
        return Cell(tuple(printed(value, world.name, runs=() if place else here)
                          for place, value in enumerate(values)), (), picture.template)  # fmt: skip

    rows = tuple(Row(f"{one}, {name}", tuple(cell(levels, share) for share in shares))
                 for one, here in lines.items() for name, levels in here.items())  # fmt: skip
    key = f"numbers-{KEY}-{picture.part}-{formats.slug(world.name)}"
    bare = Block(key, world.name, f"{picture.title}. {world.title}", "set, line", tuple(f"{one:g}" for one in shares),
                 rows, picture.quantities)  # fmt: skip
    return filled(bare, [say_draws(study)])
