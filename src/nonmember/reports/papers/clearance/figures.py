"""Figures of calibrated clearance for one world: Delta of targets against that of controls, and the detection curve as
a grid of readings. None where there are no results."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas
from matplotlib.patches import Rectangle

from nonmember.records.exposure import Exposure
from nonmember.reports.core import formats
from nonmember.reports.core.grid import FALSE, Block, Cell, Figure
from nonmember.reports.core.numbers import HIGH, LOW, number_in
from nonmember.reports.core.worlds import Scope
from nonmember.reports.papers.clearance import tables as ours
from nonmember.reports.papers.clearance.rows import (
    by_set,
    control_deltas,
    mean_of_controls,
    one_of_each,
    read_something,
    readings_of,
    spread_of,
    table,
)
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

NOTHING, MEMBER = 0, 1  # places of their colours
NARROW = 0.22  # of a place on the axis of readings, to either side
LABEL_WIDTH, CELL_WIDTH, CELL_HEIGHT = 1.9, 0.62, 0.27  # inches
DARKEST = 0.55  # opacity; what is written in a cell stays readable in either theme


def deltas(scope: Scope) -> Figure | None:
    """Set by set: controls by what they read, their margins, and the targets where they belong."""
    readings = readings_of(scope.runs)
    sets = by_set(scope.runs)
    rows = {
        name: [spread_of(scope, one_of_each(here), mean_of_controls(label), formats.signed)
               for label in readings]
        for name, here in sets.items()
    }  # fmt: skip
    block = table(scope, "numbers-deltas", "Mean Delta of the controls", "set", tuple(readings), rows, ours.MEDIAN)
    if block is None:
        return None
    places = {label: place for place, label in enumerate(readings)}

    def paint(canvas: Canvas) -> None:
        for axis, here in zip(panels(canvas, tuple(sets)), sets.values(), strict=True):
            zero_line(axis)
            for run in one_of_each(here):
                _controls(axis, run.result, places)
            _targets(axis, here, places)
            axis.set(xlabel="times read", xticks=range(len(places)), xlim=(-0.6, len(places) - 0.4))
            axis.set_xticklabels([_tick(reading) for reading in readings.values()])
        for axis in canvas.axes[::PANELS_IN_ROW]:
            axis.set_ylabel("Delta")
        legend_below(canvas, canvas.axes[0])

    alt = (
        "Delta of planted controls by what they read (grey), the margins (black), and Delta of targets: at what they "
        "read, blue where they read nothing and red where they did; a line with a band where it is not known. A panel "
        "per set. A target is cleared where it lies above all margins."
    )
    return figure_of("deltas", scope.world, "Delta of targets and controls", alt, block, size_of_panels(len(sets)),
                     paint)  # fmt: skip


def _tick(reading: Exposure) -> str:
    return f"{reading.exposures}" if reading.share == 1 else f"{reading.exposures}\n{reading.share:.0%}"


def _controls(axis: Axes, result: AuditResult, places: dict[str, int]) -> None:
    told = control_deltas(result)
    xs, ys = zip(*((places[label], one) for label, deltas in told.items() for one in deltas), strict=True)
    axis.plot(xs, ys, marker="o", linestyle="", color=QUIET, markersize=3.5, label=_once(axis, "controls"))
    for label, place in places.items():
        bound = number_in(result.statistics.details, "margins", label, "bound")
        if bound is not None:
            axis.plot((place - 2 * NARROW, place + 2 * NARROW), (bound, bound), color=INK, linewidth=1.2,
                      label=_once(axis, "margin"))  # fmt: skip


def _targets(axis: Axes, runs: Sequence[Run], places: dict[str, int]) -> None:
    """Beside the controls of their reading; several side by side."""
    by_place: dict[int, list[tuple[float, bool]]] = {}
    for result in (run.result for run in runs):
        if result.statistics.value is None:
            continue
        if (place := _place(result, places)) is None:
            _everywhere(axis, result, result.statistics.value)
        else:
            by_place.setdefault(place, []).append((result.statistics.value, result.question.truth == "member"))
    for place, found in by_place.items():
        for offset, (delta, read) in zip(np.linspace(-NARROW, NARROW, len(found) + 2)[1:-1], found, strict=True):
            axis.plot(place + offset, delta, marker="D" if read else "s", linestyle="", markersize=3.5,
                      color=colour(MEMBER if read else NOTHING),
                      label=_once(axis, "target that read" if read else "target that did not"))  # fmt: skip


def _place(result: AuditResult, places: dict[str, int]) -> int | None:
    """What read nothing stands with the negative controls; None where it is not known, or no control read so."""
    read = Exposure(1.0, 0) if result.question.truth == "non_member" else read_by_target(result)
    return places.get(read.label) if read else None


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


def power(scope: Scope) -> Figure | None:
    """Sets by readings: the probability of noticing."""
    alt = (
        "How probable it is that an audit of this set notices that a target which read nothing did not read so much, "
        "or more: a row per set, a column per planted reading, darker for higher."
    )
    return _grid(scope, "power", "What would be noticed", alt, ours.power(scope), _median)


def noticed(scope: Scope) -> Figure | None:
    """Targets by readings: the share of audits that noticed."""
    alt = (
        "In how many audits it was noticed that the target did not read so much, or more: a row per target, a column "
        "per planted reading, darker for more; red where it did read so much."
    )
    return _grid(scope, "noticed", "What was noticed", alt, ours.noticed(scope), _share)


def _median(cell: Cell) -> tuple[float, str] | None:
    one = cell.ours[0]
    return None if one.value is None else (one.value, one.text)


def _share(cell: Cell) -> tuple[float, str] | None:
    if cell.missing:
        return None
    some, all_ = (one.value or 0 for one in cell.ours)
    return some / all_, f"{some:.0f}/{all_:.0f}"


Told = Callable[[Cell], tuple[float, str] | None]  # a share in [0, 1] and how it is written


def _grid(scope: Scope, key: str, title: str, alt: str, block: Block | None, told: Told) -> Figure | None:
    """Cells darker for larger shares, columns in groups of one share of the documents."""
    if block is None:
        return None
    readings = list(read_something(readings_of(scope.runs)).values())
    size = LABEL_WIDTH + CELL_WIDTH * len(readings), 1.0 + CELL_HEIGHT * len(block.rows)

    def paint(canvas: Canvas) -> None:
        axis = canvas.subplots()
        for y, row in enumerate(block.rows):
            for x, cell in enumerate(row.cells):
                if (found := told(cell)) is not None:
                    axis.add_patch(Rectangle((x - 0.5, y - 0.5), 1, 1, facecolor=colour(NOTHING), linewidth=0,
                                             alpha=DARKEST * found[0]))  # fmt: skip
                    is_false = cell.ours[0].mark == FALSE
                    axis.text(x, y, found[1], ha="center", va="center", fontsize=8,
                              color=colour(MEMBER) if is_false else INK)  # fmt: skip
        axis.set(xlim=(-0.5, len(readings) - 0.5), ylim=(len(block.rows) - 0.5, -0.5), xlabel="times read",
                 xticks=range(len(readings)), yticks=range(len(block.rows)))  # fmt: skip
        axis.set_xticklabels([str(reading.exposures) for reading in readings])
        axis.set_yticklabels([row.name for row in block.rows])
        axis.tick_params(length=0)
        axis.spines[:].set_visible(False)
        _name_shares(axis, readings)

    return figure_of(key, scope.world, title, alt, block, size, paint)


def _name_shares(axis: Axes, readings: Sequence[Exposure]) -> None:
    """Above the columns, with a line before each further group."""
    shares = [reading.share for reading in readings]
    for share in dict.fromkeys(shares):
        first, number = shares.index(share), shares.count(share)
        what = f"{share:.0%} of the documents" if number > 2 else f"{share:.0%}"
        axis.annotate(what, (first + number / 2 - 0.5, 1), xycoords=("data", "axes fraction"), xytext=(0, 3),
                      textcoords="offset points", ha="center", fontsize=8, color=QUIET)  # fmt: skip
        if first:
            axis.axvline(first - 0.5, color=QUIET, linewidth=0.7)
