"""Figures of calibrated clearance for one world: Delta of targets against that of controls, and the detection curve as
a grid of readings. None where there are no results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas
from matplotlib.patches import Rectangle

from nonmember.records.exposure import Exposure
from nonmember.reports.core.grid import FALSE, Block, Figure
from nonmember.reports.core.numbers import HIGH, LOW, number_in
from nonmember.reports.core.worlds import Scope
from nonmember.reports.render.figures import (
    INK,
    PANELS_IN_ROW,
    QUIET,
    colour,
    figure_of,
    legend_below,
    panels,
    size_of_panels,
    zero_line,
)
from nonmember.results.load import Run
from nonmember.results.readings import read_by_target
from nonmember.results.result import AuditResult

NOTHING, MEMBER = 0, 1  # indices of their colours
NARROW = 0.22  # of a place on the axis of readings, to either side
LABEL_WIDTH, CELL_WIDTH, CELL_HEIGHT = 1.9, 0.62, 0.27  # inches
DARKEST = 0.55  # opacity; what is written in a cell stays readable in either theme


def deltas_figure(
    scope: Scope,
    numbers: Block | None,
    readings: Mapping[str, Exposure],
    sets: Mapping[str, Sequence[Run]],
    controls: Mapping[str, Sequence[Run]],
) -> Figure | None:
    """Set by set: controls by what they read, their margins, and the targets where they belong."""
    ranks = {label: index for index, label in enumerate(readings)}

    def paint(canvas: Canvas) -> None:
        for axis, (name, of_set) in zip(panels(canvas, tuple(sets)), sets.items(), strict=True):
            zero_line(axis)
            for run in controls[name]:
                _controls(axis, run.result, ranks)
            _targets(axis, of_set, ranks)
            axis.set(xlabel="times read", xticks=range(len(ranks)), xlim=(-0.6, len(ranks) - 0.4))
            axis.set_xticklabels([_tick(reading) for reading in readings.values()])
        for axis in canvas.axes[::PANELS_IN_ROW]:
            axis.set_ylabel("Delta")
        legend_below(canvas, canvas.axes[0])

    alt = (
        "Delta of planted controls by what they read (grey), the margins (black), and Delta of targets: at what they "
        "read, blue where they read nothing and red where they did; a line with a band where it is not known. A panel "
        "per set. A target is cleared where it lies above all margins."
    )
    size = size_of_panels(len(sets))
    return figure_of("deltas", scope.world, "Delta of targets and controls", alt, numbers, size, paint)


def _tick(reading: Exposure) -> str:
    return f"{reading.exposures}" if reading.share == 1 else f"{reading.exposures}\n{reading.share:.0%}"


def _controls(axis: Axes, result: AuditResult, ranks: Mapping[str, int]) -> None:
    deltas = result.statistics.details["control_deltas"]
    xs, ys = zip(*((ranks[label], float(item)) for label, some in deltas.items() for item in some), strict=True)
    axis.plot(xs, ys, marker="o", linestyle="", color=QUIET, markersize=3.5, label=_once(axis, "controls"))
    for label, rank in ranks.items():
        bound = number_in(result.statistics.details, "margins", label, "bound")
        if bound is not None:
            axis.plot(
                (rank - 2 * NARROW, rank + 2 * NARROW),
                (bound, bound),
                color=INK,
                linewidth=1.2,
                label=_once(axis, "margin"),
            )


def _targets(axis: Axes, runs: Sequence[Run], ranks: Mapping[str, int]) -> None:
    """Beside the controls of their reading, several side by side; across all where it is not known."""
    by_rank: dict[int, list[tuple[float, bool]]] = {}
    for result in (run.result for run in runs if run.statistics.value is not None):
        read = Exposure(1.0, 0) if result.question.truth == "non_member" else read_by_target(result)
        rank, delta = ranks.get(read.label) if read else None, result.statistics.value or 0.0
        if rank is None:
            _everywhere(axis, result, delta)
        else:
            by_rank.setdefault(rank, []).append((delta, result.question.truth == "member"))
    for rank, found in by_rank.items():
        for offset, (delta, read_it) in zip(np.linspace(-NARROW, NARROW, len(found) + 2)[1:-1], found, strict=True):
            axis.plot(
                rank + offset,
                delta,
                marker="D" if read_it else "s",
                linestyle="",
                markersize=3.5,
                color=colour(MEMBER if read_it else NOTHING),
                label=_once(axis, "target that read" if read_it else "target that did not"),
            )


def _everywhere(axis: Axes, result: AuditResult, delta: float) -> None:
    paint_as = colour(MEMBER if result.question.truth == "member" else NOTHING)
    axis.axhline(delta, color=paint_as, linewidth=1, label=_once(axis, "target"))
    low, high = LOW(result), HIGH(result)
    if low is not None and high is not None:
        axis.axhspan(low, high, color=paint_as, alpha=0.1, linewidth=0)


def _once(axis: Axes, label: str) -> str:
    """A label for the legend the first time, and none afterwards."""
    return "_" + label if label in axis.get_legend_handles_labels()[1] else label


# -------------------------------------------------------------------------------------------- detection


def grid(
    scope: Scope, key: str, title: str, alt: str, block: Block | None, readings: Mapping[str, Exposure]
) -> Figure | None:
    """Cells darker for larger shares, columns in groups of one share of the documents."""
    if block is None:
        return None
    size = LABEL_WIDTH + CELL_WIDTH * len(readings), 1.0 + CELL_HEIGHT * len(block.rows)

    def paint(canvas: Canvas) -> None:
        axis = canvas.subplots()
        for y, row in enumerate(block.rows):
            for x, cell in enumerate(row.cells):
                first, *others = cell.ours
                if first.value is None:
                    continue
                is_count = cell.template == "{} of {}"
                share = first.value / (others[0].value or 1) if is_count else first.value
                text = f"{first.text}/{others[0].text}" if is_count else first.text
                axis.add_patch(
                    Rectangle((x - 0.5, y - 0.5), 1, 1, facecolor=colour(NOTHING), linewidth=0, alpha=DARKEST * share)
                )
                axis.text(
                    x,
                    y,
                    text,
                    ha="center",
                    va="center",
                    fontsize=8,
                    color=colour(MEMBER) if first.mark == FALSE else INK,
                )
        axis.set(
            xlim=(-0.5, len(readings) - 0.5),
            ylim=(len(block.rows) - 0.5, -0.5),
            xlabel="times read",
            xticks=range(len(readings)),
            yticks=range(len(block.rows)),
        )
        axis.set_xticklabels([str(reading.exposures) for reading in readings.values()])
        axis.set_yticklabels([row.name for row in block.rows])
        axis.tick_params(length=0)
        axis.spines[:].set_visible(False)
        _name_shares(axis, [reading.share for reading in readings.values()])

    return figure_of(key, scope.world, title, alt, block, size, paint)


def _name_shares(axis: Axes, shares: Sequence[float]) -> None:
    """Above the columns, with a line before each further group."""
    for share in dict.fromkeys(shares):
        first, number = shares.index(share), shares.count(share)
        what = f"{share:.0%} of the documents" if number > 2 else f"{share:.0%}"
        axis.annotate(
            what,
            (first + number / 2 - 0.5, 1),
            xycoords=("data", "axes fraction"),
            xytext=(0, 3),
            textcoords="offset points",
            ha="center",
            fontsize=8,
            color=QUIET,
        )
        if first:
            axis.axvline(first - 0.5, color=QUIET, linewidth=0.7)
