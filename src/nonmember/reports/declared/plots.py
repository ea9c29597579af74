"""Figures as data: lines, or points with bars, over the labels of a fact; drawn from a table that goes with them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from textwrap import fill
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas

from nonmember.checks import require_choice
from nonmember.reports.core.grid import Figure
from nonmember.reports.core.published import PublishedTable
from nonmember.reports.core.worlds import Scope
from nonmember.reports.declared.tables import Names, TableSpec
from nonmember.reports.render.blocks import of_figure
from nonmember.reports.render.figures import (
    MARKERS,
    QUIET,
    PlotLine,
    colour,
    draw_line,
    figure_of,
    legend_below,
    lines_of,
    panels,
    size_of_panels,
    zero_line,
)

LINES, BARS = "lines", "bars"
OFFSET = 0.16  # between the bars of two lines
TICK_WIDTH = 13  # letters
LETTERS = 36  # of the longest lines of all ticks, that fit side by side below a panel
SIZE = (5.6, 3.4)


@dataclass(frozen=True)
class Plot:
    """A line for each combination of the facts `rows` over the labels of the fact `x`.

    The others are as a table's.
    """

    rows: Sequence[str]  # facts, see `FactAxis.read`; with `panels` the first has a panel for each of its labels
    x: str  # the fact along the horizontal axis: numbers, or (`is_category`) labels one beside the other
    cell: str  # the value, or the value with its two ends; what follows is in the table alone
    numbers: Sequence[str]
    title: str
    labels: tuple[str, str]  # what the two axes say
    alt: str  # what it shows, in words
    sweep: str = ""
    section: str = ""
    part: str = ""
    corner: str = ""
    where: Mapping[str, Any] = field(default_factory=dict)
    each: str | Mapping[str, str] = ""
    names: Mapping[str, Names] = field(default_factory=dict)
    marks: str = LINES  # "lines", or "bars": points with their intervals
    panels: bool = False
    band: bool = False  # whether the area between the ends is shaded
    is_p: bool = False  # whether the vertical axis is that of p-values: logarithmic, with a line at the level
    level: float = 0  # where a horizontal line lies otherwise
    is_category: bool = False
    of_numbers: str = ""  # title of the table of its numbers, before the world's
    published: PublishedTable | None = None

    def __post_init__(self) -> None:
        require_choice(self.marks, (LINES, BARS), "marks")
        _ = self.table  # which is checked

    @property
    def table(self) -> TableSpec:
        return TableSpec(
            self.rows,
            self.x,
            self.cell,
            self.numbers,
            self.sweep,
            part=self.part,
            title=self.of_numbers,
            corner=self.corner,
            where=self.where,
            each=self.each,
            names=self.names,
            is_family=False,
            published=self.published,
        )

    def figure(self, scope: Scope) -> Figure | None:
        """Of one world; None where no result fills any of it."""
        if (block := of_figure(self.table.block(scope))) is None:
            return None
        runs = self.table.runs(scope)
        labels = self.table.labels(self.table.across(scope), scope, runs)
        is_named = self.is_category or self.marks == BARS
        xs = range(len(labels)) if is_named else [float(label) for label in labels]
        ticks = [fill(name, TICK_WIDTH) for name in labels.values()] if is_named else None
        lines, alpha = lines_of(block, xs), runs[0].result.question.alpha
        groups = self._panels(scope, lines)

        def paint(canvas: Canvas) -> None:
            axes = panels(canvas, tuple(groups)) if self.panels else [canvas.subplots()]
            for axis, some in zip(axes, groups.values(), strict=True):
                self._draw(axis, some, alpha, xs, ticks)
            canvas.axes[0].set_ylabel(self.labels[1])
            legend_below(canvas, canvas.axes[0])

        size = size_of_panels(len(groups)) if self.panels else SIZE
        name = "-".join(filter(None, (self.sweep, self.part)))
        return figure_of(name, scope.world, self.title, self.alt, block, size, paint)

    def _panels(self, scope: Scope, lines: Mapping[str, PlotLine]) -> dict[str, list[PlotLine]]:
        """Title of a panel -> its lines, each in the colour that it has in all of them."""
        if not self.panels:
            return {"": list(lines.values())}
        runs = self.table.runs(scope)
        first, *others = self.table.axes(scope)
        inner = replace(self.table, rows=self.rows[1:]).groups(scope, runs) if others else {"": []}
        return {
            panel: [
                PlotLine(name, lines[full].points if (full := f"{panel}, {name}") in lines else ()) for name in inner
            ]
            for panel in self.table.labels(first, scope, runs).values()
        }

    def _draw(self, axis: Axes, lines: Sequence[PlotLine], alpha: float, xs: Sequence[float], ticks: Any) -> None:
        if not self.is_p:
            zero_line(axis, self.level)
        for index, line in enumerate(lines):
            if self.marks == BARS:
                draw_bars(axis, line, index, shift=OFFSET * (index - (len(lines) - 1) / 2))
            else:
                draw_line(axis, line, index, band=self.band)
        if self.is_p:
            p_axis(axis, alpha)
            axis.set(xticks=xs)
        axis.set(xlabel=self.labels[0])
        if ticks is not None:
            axis.set_xticks(xs, ticks)
            if self.panels and sum(max(map(len, tick.splitlines()), default=0) for tick in ticks) > LETTERS:
                axis.set_xticks(xs, ticks, rotation=30, ha="right", rotation_mode="anchor")
        if ticks is not None and self.marks == BARS:
            axis.set_xlim(-0.5, len(ticks) - 0.5)


def draw_bars(axis: Axes, line: PlotLine, index: int, shift: float = 0.0) -> None:
    """Points with their intervals."""
    points = [(x + shift, value, low, high) for x, value, low, high in line.points if math.isfinite(value)]
    for x, _, low, high in points:
        axis.plot([x, x], [low, high], color=colour(index), linewidth=1.4)
    axis.plot(
        [item[0] for item in points], [item[1] for item in points], MARKERS[index], color=colour(index), label=line.name
    )


def p_axis(axis: Axes, alpha: float) -> None:
    """A logarithmic axis of p-values, with a line at the level."""
    axis.axhline(alpha, color=QUIET, linewidth=0.8, linestyle=(0, (4, 3)))
    axis.annotate(
        f"alpha {alpha:g}",
        (1, alpha),
        xycoords=("axes fraction", "data"),
        xytext=(0, 3),
        textcoords="offset points",
        ha="right",
        color=QUIET,
        fontsize=8,
    )
    axis.set(yscale="log")
    axis.minorticks_off()
    axis.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
    axis.set_ylim(top=1.5)
