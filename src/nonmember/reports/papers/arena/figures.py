"""Power by dose and by number of documents with a line per contestant, and power against cost."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas

from nonmember.reports.core import formats
from nonmember.reports.core.grid import Block, Figure, Row
from nonmember.reports.core.worlds import Scope
from nonmember.reports.papers.arena.contestants import READS_NO_MODEL, Contestant, contestants, doses, shown
from nonmember.reports.papers.arena.tables import USUAL
from nonmember.reports.planted.audits import named
from nonmember.reports.render.figures import (
    MARKERS,
    QUIET,
    colour,
    figure_of,
    legend_below,
    panels,
    size_of_panels,
)

AXIS = "share of sets found"


def _styles(lines: Sequence[Contestant]) -> dict[str, dict[str, Any]]:
    """By name: a colour and a marker each; what reads no model is grey."""
    coloured = [one.name for one in lines if one.method != READS_NO_MODEL]
    marks = {name: {"color": colour(place), "marker": MARKERS[place % len(MARKERS)]}
             for place, name in enumerate(coloured)}  # fmt: skip
    return {one.name: {"label": one.name, **marks.get(one.name, {"color": QUIET, "marker": "x"})} for one in lines}


def _points(row: Row, xs: Sequence[float]) -> list[tuple[float, float]]:
    """Of cells `k of n`."""
    pairs = [(x, cell.ours[0].value, cell.ours[1].value) for x, cell in zip(xs, row.cells, strict=True)]
    return [(x, number / of) for x, number, of in pairs if number is not None and of]


def power(scope: Scope, block: Block) -> Figure:
    """block: of all contestants, a column for each dose."""
    entered = contestants(scope)
    every, lines = doses(entered), shown(entered)
    rows = {row.name: row for row in block.rows}

    def paint(canvas: Canvas) -> None:
        (axis,) = panels(canvas, [block.title])
        for name, style in _styles(lines).items():
            points = _points(rows[name], every)
            axis.plot([x for x, _ in points], [y for _, y in points], **style)
        _doses(axis, every)
        axis.set(ylabel=AXIS, xlabel="readings of the set")
        legend_below(canvas, axis, columns=2)

    over = formats.listed([named(one) for one in every])
    alt = (
        f"Share of sets found at {USUAL:.0%} false positives over {over}, a line per method; the blind baseline, which "
        "reads no model, in grey."
    )
    return figure_of("arena", scope.world, block.title, alt, block, (5.8, 4.1), paint)


def _doses(axis: Axes, every: Sequence[int]) -> None:
    axis.set(xscale="log", ylim=(-0.03, 1.03), xticks=every)
    axis.set_xticks([], minor=True)
    axis.set_xticklabels([named(dose) for dose in every])


def sizes(scope: Scope, block: Block, numbers: Sequence[int], entered: Sequence[Contestant]) -> Figure:
    """A panel for each dose, over the number of documents. entered: those of the largest number.   block: a row for
    each contestant and number."""
    lines = shown(entered)
    rows = {row.name: row for row in block.rows}

    def paint(canvas: Canvas) -> None:
        axes = list(panels(canvas, [f"read {column}" for column in block.columns]))
        for column, axis in enumerate(axes):
            for name, style in _styles(lines).items():
                points = [
                    (number, *point[1:])
                    for number in numbers
                    if (row := rows.get(f"{name}, {number}")) is not None
                    for point in _points(Row(row.name, row.cells[column : column + 1]), [0.0])
                ]
                axis.plot([x for x, _ in points], [y for _, y in points], **style)
            axis.set(xscale="log", ylim=(-0.03, 1.03), xticks=numbers)
            axis.set_xticks([], minor=True)
            axis.set_xticklabels(list(map(str, numbers)))
            axis.set(xlabel="documents", ylabel=AXIS if column == 0 else "")
        legend_below(canvas, axes[0], columns=3)

    width, height = size_of_panels(len(block.columns))
    alt = f"A panel for each dose: share of sets found at {USUAL:.0%} false positives by number of documents."
    return figure_of("arena-sizes", scope.world, block.title, alt, block, (width, height + 0.6), paint)


def cost_against_power(scope: Scope, block: Block, dose: int) -> Figure:
    """block: of each contestant its tokens, and what it finds. What reads none is a line across."""
    styles = _styles(shown(contestants(scope)))

    def paint(canvas: Canvas) -> None:
        (axis,) = panels(canvas, [block.title])
        for row in block.rows:
            plain = {"marker": ".", "color": QUIET, "alpha": 0.6, "zorder": 1}
            tokens = row.cells[0].ours[0].value
            for x, y in _points(Row(row.name, row.cells[1:]), [tokens or 0.0]):
                if x:
                    axis.plot([x], [y], linestyle="", **styles.get(row.name, plain))
                else:
                    axis.axhline(y, **{**styles.get(row.name, plain), "marker": "", "linewidth": 1})
        axis.set(xscale="log", ylim=(-0.03, 1.03), ylabel=f"{AXIS}, read {named(dose)}",
                 xlabel="tokens of the set trained and read")  # fmt: skip
        axis.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
        legend_below(canvas, axis, columns=2)

    alt = (
        f"Share of sets read {named(dose)} that are found at {USUAL:.0%} false positives against the tokens of the set "
        "that an audit trains on and reads; small dots are further scores. The dose meter trains controls besides."
    )
    return figure_of("arena-costs", scope.world, block.title, alt, block, (5.8, 4.1), paint)
