"""Power by dose and by number of documents with a line per contestant, and power against cost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from matplotlib.figure import Figure as Canvas

from nonmember.reports.core import formats
from nonmember.reports.core.grid import Block, Figure
from nonmember.reports.core.worlds import Scope
from nonmember.reports.planted.contestants import READS_NO_MODEL, SIZES, ArenaContestant, contestants, doses, shown
from nonmember.reports.render.figures import (
    MARKERS,
    QUIET,
    Share,
    colour,
    figure_of,
    legend_below,
    log_axis,
    panels,
    share_axis,
    shares_of,
    size_of_panels,
)
from nonmember_papers.arena.overview import USUAL

AXIS = "share of sets found"


def styles_of(lines: Sequence[ArenaContestant]) -> dict[str, dict[str, Any]]:
    """By name: a colour and a marker each; what reads no model is grey."""
    coloured = [item.name for item in lines if item.method != READS_NO_MODEL]
    marks = {
        name: {"color": colour(index), "marker": MARKERS[index % len(MARKERS)]} for index, name in enumerate(coloured)
    }
    return {item.name: {"label": item.name, **marks.get(item.name, {"color": QUIET, "marker": "x"})} for item in lines}


def coordinates(points: Sequence[Share]) -> tuple[list[float], list[float]]:
    return [x for x, *_ in points], [share for _, share, *_ in points]


def power(scope: Scope, block: Block) -> Figure | None:
    """block: of all contestants, a column for each dose."""
    entered = contestants(scope)
    rows, every = {row.name: row for row in block.rows}, doses(entered)

    def paint(canvas: Canvas) -> None:
        (axis,) = panels(canvas, [block.title])
        for name, style in styles_of(shown(entered)).items():
            axis.plot(*coordinates(shares_of(rows[name], every)), **style)
        share_axis(axis)
        log_axis(axis, every, block.columns)
        axis.set(ylabel=AXIS, xlabel="readings of the set")
        legend_below(canvas, axis, columns=2)

    alt = (
        f"Share of sets found at {USUAL:.0%} false positives over {formats.listed(block.columns)}, a line per method; "
        "the blind baseline, which reads no model, in grey."
    )
    return figure_of("arena", scope.world, block.title, alt, block, (5.8, 4.1), paint)


def sizes(scope: Scope, block: Block, numbers: Sequence[int]) -> Figure | None:
    """A panel for each dose, over the number of documents. block: a row for each contestant and number."""
    rows = {row.name: row for row in block.rows}
    entered = [item for number in numbers for item in shown(contestants(scope, SIZES, number))]
    lines = list({item.name: item for item in entered}.values())  # some may lack a number

    def points(name: str, column: int) -> list[Share]:
        known = [(number, rows[f"{name}, {number}"]) for number in numbers if f"{name}, {number}" in rows]
        one_cell = [(number, replace(row, cells=row.cells[column : column + 1])) for number, row in known]
        return [point for number, row in one_cell for point in shares_of(row, [number])]

    def paint(canvas: Canvas) -> None:
        axes = list(panels(canvas, [f"read {column}" for column in block.columns]))
        for column, axis in enumerate(axes):
            for name, style in styles_of(lines).items():
                axis.plot(*coordinates(points(name, column)), **style)
            share_axis(axis)
            log_axis(axis, numbers, list(map(str, numbers)))
            axis.set(xlabel="documents", ylabel=AXIS if column == 0 else "")
        legend_below(canvas, axes[0], columns=3)

    width, height = size_of_panels(len(block.columns))
    alt = f"A panel for each dose: share of sets found at {USUAL:.0%} false positives by number of documents."
    return figure_of("arena-sizes", scope.world, block.title, alt, block, (width, height + 0.6), paint)


def cost_against_power(scope: Scope, block: Block, dose: int) -> Figure | None:
    """block: of each contestant its tokens, and what it finds. What reads none is a line across."""
    styles = styles_of(shown(contestants(scope)))
    plain = {"marker": ".", "color": QUIET, "alpha": 0.6, "zorder": 1}

    def paint(canvas: Canvas) -> None:
        (axis,) = panels(canvas, [block.title])
        for row in block.rows:
            style, tokens = styles.get(row.name, plain), row.cells[0].ours[0].value or 0.0
            for x, y, *_ in shares_of(replace(row, cells=row.cells[1:]), [tokens]):
                if x:
                    axis.plot([x], [y], linestyle="", **style)
                else:
                    axis.axhline(y, **{**style, "marker": "", "linewidth": 1})
        share_axis(axis)
        axis.set(xscale="log", ylabel=f"{AXIS}, read {dose}x", xlabel="tokens of the set trained and read")
        axis.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
        axis.xaxis.set_minor_formatter("")  # else, of little more than a decade, formulas
        legend_below(canvas, axis, columns=2)

    alt = (
        f"Share of sets read {dose}x that are found at {USUAL:.0%} false positives against the tokens of the set that "
        "an audit trains on and reads; small dots are further scores. The dose meter trains controls besides."
    )
    return figure_of("arena-costs", scope.world, block.title, alt, block, (5.8, 4.1), paint)
