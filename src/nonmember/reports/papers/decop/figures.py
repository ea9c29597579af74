"""Figures of DE-COP for one world: the works of both groups, the ROC curve, and how answers hang on the letters.

Each is drawn from a table of numbers that goes with it. None where there are no results.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas

from nonmember.reports.core import formats
from nonmember.reports.core.grid import Block, Cell, Figure, Number, Row
from nonmember.reports.core.numbers import detail, number
from nonmember.reports.core.worlds import Scope
from nonmember.reports.papers.decop.tables import (
    DECOP,
    GROUP_NAMES,
    GROUPS,
    LETTERS,
    below,
    by_target,
    of_method,
    three,
    uncalibrated,
)
from nonmember.reports.render.blocks import filled, say_medians
from nonmember.reports.render.figures import QUIET, colour, figure_of, legend_below, panels, size_of_panels
from nonmember.results.load import Run
from nonmember.stats.classification import roc_auc, roc_points, tpr_at_fpr

CHANCE = 0.25
SUFFIX = "_calibrated"

Shares = Mapping[str, Sequence[float]]  # group -> share of right answers of each work


def accuracies(scope: Scope) -> Figure | None:
    """Every work's share of right answers, a panel per target; sorted, from the lowest to the highest."""
    return _of_works(scope, "accuracies", "Share of right answers, work by work", _paint_accuracies, _quartiles, (
        "Share of right answers of every work, sorted, suspect and clean works as two lines; dotted at chance, a "
        "quarter; a panel per target."
    ))  # fmt: skip


def roc(scope: Scope) -> Figure | None:
    """The ROC curve of works by their share of right answers, a panel per target."""
    return _of_works(scope, "roc", "Suspect from clean works", _paint_roc, _rates, (
        "ROC curve: share of suspect works above a threshold against the share of clean ones, with the diagonal of "
        "chance; a panel per target."
    ))  # fmt: skip


Rows = tuple[tuple[str, ...], tuple[Row, ...]]  # columns and rows


def _of_works(
    scope: Scope, key: str, title: str, paint_panel: Callable[[Axes, Shares], None],
    numbers: Callable[[str, Mapping[str, Run]], Rows], alt: str,
) -> Figure | None:  # fmt: skip
    """paint_panel: of one target.   numbers: those that go with the figure."""
    world = scope.world
    found = {name: here[0] for name, here in by_target(scope, uncalibrated(scope.of("books"))).items()
             if below(here[0], "works")}  # fmt: skip
    if not found:
        return None
    columns, rows = numbers(world.name, found)
    block = Block(f"numbers-{key}-{formats.slug(world.name)}", world.name, f"{title}. {world.title}", "target", columns,
                  rows, ("share",))  # fmt: skip

    def paint(canvas: Canvas) -> None:
        for axis, run in zip(panels(canvas, tuple(found)), found.values(), strict=True):
            paint_panel(axis, {group: accuracies_of(run, group) for group in GROUPS})
        legend_below(canvas, canvas.axes[0])

    return figure_of(key, world, title, alt, block, size_of_panels(len(found)), paint)


def accuracies_of(run: Run, group: str) -> list[float]:
    found: list[float] = below(run, "works", group)["accuracy"]
    return found


def _quartiles(world: str, found: Mapping[str, Run]) -> Rows:
    """The works themselves are in the results."""

    def cells(run: Run, group: str) -> tuple[Cell, ...]:
        values = np.percentile(accuracies_of(run, group), (0, 25, 50, 75, 100)).tolist()
        return tuple(_cell(value, world, run) for value in values)

    rows = tuple(Row(f"{name}, {GROUP_NAMES[group]}", cells(run, group)) for name, run in found.items()
                 for group in GROUPS)  # fmt: skip
    return ("lowest", "first quarter", "median", "third quarter", "highest"), rows


def _rates(world: str, found: Mapping[str, Run]) -> Rows:
    rows = []
    for name, run in found.items():
        values, labels = _scored({group: accuracies_of(run, group) for group in GROUPS})
        rates = (tpr_at_fpr(values, labels, fpr, "<=") for fpr in (0.05, 0.1))
        rows.append(Row(name, tuple(_cell(value, world, run) for value in (*rates, roc_auc(values, labels)))))
    return ("suspect works above, 5% of clean ones", "suspect works above, 10%", "ROC area"), tuple(rows)


def _cell(value: float, world: str, run: Run) -> Cell:
    return Cell((Number(three(value), value, world, (run.anchor,)),))


def _scored(groups: Shares) -> tuple[list[float], list[int]]:
    """Shares of right answers, and 1 for suspect works."""
    values = [value for found in groups.values() for value in found]
    return values, [1] * len(groups["suspect"]) + [0] * len(groups["heldout"])


def _paint_accuracies(axis: Axes, groups: Shares) -> None:
    for place, (group, values) in enumerate(groups.items()):
        axis.plot(np.linspace(0, 1, len(values)), sorted(values), color=colour(place), marker=".", markersize=3,
                  linewidth=0.8, label=f"{GROUP_NAMES[group]} works")  # fmt: skip
    axis.axhline(CHANCE, color=QUIET, linewidth=0.7, linestyle=":")
    axis.set(ylim=(0, 1), xlabel="works, sorted", ylabel="right answers")


def _paint_roc(axis: Axes, groups: Shares) -> None:
    points = roc_points(*_scored(groups))
    axis.plot((0, 1), (0, 1), color=QUIET, linewidth=0.7, zorder=0)
    axis.step(points.fpr, points.tpr, where="post", color=colour(0))
    axis.set(xlabel="clean works above", ylabel="suspect works above", xlim=(0, 1), ylim=(0, 1.01))


def letters(scope: Scope) -> tuple[Figure | None, ...]:
    """What is chosen, and where the original is found, letter by letter; before and after calibration."""
    return (
        _by_letter(scope, "letters", "Probability of the letters, clean works", ("probability", "chosen"), (
            "Mean probability of the letters A to D over the clean works (the share of answers, where probabilities "
            "are not known), before and after calibration where there was one; dotted at a quarter."
        )),
        _by_letter(scope, "places", "Right answers by the place of the original, clean works", ("accuracy",), (
            "Share of right answers about clean works where the original stands at A, B, C or D, before and after "
            "calibration where there was one; dotted at a quarter."
        )),
    )  # fmt: skip


def _by_letter(scope: Scope, key: str, title: str, quantities: Sequence[str], alt: str) -> Figure | None:
    world = scope.world
    runs = [run for table in ("calibration", "books") for run in of_method(scope.of(table), DECOP)]
    targets = by_target(scope, list({run.anchor: run for run in runs}.values()))
    rows: dict[str, list[Row]] = {}
    for name, here in targets.items():
        for suffix, when in (("", "before"), (SUFFIX, "after")):
            quantity = next((one for one in quantities if _has(here, one + suffix)), None)
            if quantity is None:
                continue
            path = ("letters", "heldout", quantity + suffix)
            shown = [run for run in here if _has([run], quantity + suffix)]
            cells = tuple(Cell((number(shown, world.name, detail(*path, letter), three),)) for letter in LETTERS)
            rows.setdefault(name, []).append(Row(f"{name}, {when} calibration", cells))
    flat = tuple(row for found in rows.values() for row in found)
    bare = Block(f"numbers-{key}-{formats.slug(world.name)}", world.name, f"{title}. {world.title}", "target",
                 tuple(LETTERS), flat, ("share",))  # fmt: skip
    block = filled(bare, [say_medians(flat)]) if flat else None
    if block is None:
        return None

    def paint(canvas: Canvas) -> None:
        width = 0.38
        for axis, found in zip(panels(canvas, tuple(rows)), rows.values(), strict=True):
            for place, row in enumerate(found):
                heights = [cell.ours[0].value or 0.0 for cell in row.cells]
                axis.bar(np.arange(4) + (place - (len(found) - 1) / 2) * width, heights, width, color=colour(place),
                         label=row.name.rpartition(", ")[2])  # fmt: skip
            axis.axhline(CHANCE, color=QUIET, linewidth=0.7, linestyle=":")
            axis.set(xticks=range(4), ylim=(0, None))
            axis.set_xticklabels(list(LETTERS))
        most = max(canvas.axes, key=lambda axis: len(axis.get_legend_handles_labels()[1]))
        legend_below(canvas, most)

    return figure_of(key, world, title, alt, block, size_of_panels(len(rows)), paint)


def _has(runs: Sequence[Run], quantity: str) -> bool:
    return any(quantity in below(run, "letters", "heldout") for run in runs)
