"""Figures of the paper's printed tables under margins: where the limits of Delta lie, and what each margin clears."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas

from nonmember.reports.core import formats
from nonmember.reports.core.grid import PUBLISHED, Block, Figure, Numeral, TableCell
from nonmember.reports.render.blocks import cross_table
from nonmember.reports.render.figures import MARKERS, QUIET, colour, draw, legend_below
from nonmember_papers.published_margins.rereading import CRITICAL, RereadCell, count

MEMBER, OTHER = 1, 0  # indices of their colours
RIGHTMOST = 0.3  # of the margins that are drawn
FINE = np.linspace(0, RIGHTMOST, 301)
COARSE = tuple(round(0.05 * step, 2) for step in range(7))


def with_intervals(cells: Sequence[RereadCell], margins: Sequence[float]) -> Figure:
    """Delta and its limits, set by set."""
    sets, targets = (tuple(dict.fromkeys(name(cell) for cell in cells)) for name in (_suspect, _target))

    def paint(canvas: Canvas) -> None:
        axis = canvas.subplots()
        lines_at(axis, margins)
        for cell in cells:
            index = targets.index(cell.target)
            y = sets.index(cell.suspect) + 0.15 * (index - 2)
            upper = cell.delta[0] + CRITICAL * cell.error[0]
            paint_as = colour(MEMBER if cell.member else OTHER)
            axis.plot((cell.limit[0], upper), (y, y), color=paint_as, linewidth=1.2)
            label = cell.target if cell.suspect == sets[0] else None
            axis.plot(cell.delta[0], y, marker=MARKERS[index], color=paint_as, linestyle="", label=label)
        axis.set(xlabel="Delta, with its lower and upper 95% limit", yticks=range(len(sets)))
        axis.set_yticklabels(sets)
        axis.tick_params(axis="y", length=0)
        axis.invert_yaxis()
        legend_below(canvas, axis, columns=5)

    alt = (
        "Delta of each target on each set, with a bar between its lower and upper one-sided 95% limits: red for "
        "410m-CPT, which read the set, blue for targets that did not. Vertical lines: the margins. A target is cleared "
        "under those left of its bar."
    )
    return _figure("table2-limits", "Tables 2, 8 and 9: Delta against margins", alt, (6.6, 5.4), paint)


def by_p_alone(held_out: Sequence[RereadCell], weak: Sequence[RereadCell], margins: Sequence[float]) -> Figure:
    """Where the lower limit of Delta may lie."""
    panels = {
        "410m-CPT, held out": held_out,
        "410m, weak reference": [cell for cell in weak if not cell.member],
        "410m-CPT, weak reference": [cell for cell in weak if cell.member],
    }

    def paint(canvas: Canvas) -> None:
        for axis, (title, cells) in zip(canvas.subplots(1, len(panels), sharex=True), panels.items(), strict=True):
            axis.set_title(title)
            lines_at(axis, margins)
            for y, cell in enumerate(cells):
                _limit_bar(axis, cell, y)
            names = [cell.suspect if cell.tables == (3,) else f"{cell.suspect}, {cell.reference}" for cell in cells]
            axis.set(yticks=range(len(cells)), xlim=(-0.16, 0.19), xticks=list(margins))
            axis.set_yticklabels(names)
            axis.set_xticklabels([f"{margin:g}" for margin in margins])
            axis.tick_params(axis="y", length=0)
            axis.invert_yaxis()
        canvas.supxlabel("lower 95% limit of Delta", fontsize=9)

    alt = (
        "The range in which the lower one-sided 95% limit of Delta lies, cell by cell; an arrow where p is at the "
        "floor of the resamples and bounds it from below only. Red: members. Vertical lines: the margins. A target "
        "is cleared under those left of its range."
    )
    return _figure("table5-limits", "Tables 3 and 5: limits of Delta against margins", alt, (8.2, 2.9), paint)


def _limit_bar(axis: Axes, cell: RereadCell, y: int) -> None:
    low, high = cell.limit
    paint_as = colour(MEMBER if cell.member else OTHER)
    if math.isinf(high):
        axis.annotate("", (0.19, y), (low, y), arrowprops={"arrowstyle": "->", "color": paint_as, "linewidth": 1.2})
        axis.plot(low, y, marker="|", color=paint_as, markersize=7)
    else:
        axis.plot((low, high), (y, y), color=paint_as, linewidth=3, solid_capstyle="butt", marker="|", markersize=7)


def against_margin(
    exact: Sequence[RereadCell], held_out: Sequence[RereadCell], weak: Sequence[RereadCell], margins: Sequence[float]
) -> Figure:
    """Share of cells that are cleared."""
    lines: dict[str, dict[str, Sequence[RereadCell]]] = {
        "members": {"tables 2, 8 and 9": _members(exact), "table 5, weak references": _members(weak)},
        "non-members": {
            "tables 2, 8 and 9": _others(exact),
            "table 5, weak references": _others(weak),
            "table 3, held-out halves": held_out,
        },
    }
    rows = {f"{kind}, {name}": cells for kind, of_kind in lines.items() for name, cells in of_kind.items()}
    columns, quantities = {f"margin {margin:g}": margin for margin in COARSE}, ("at least", "at most")
    key, title = "numbers-margins-published", "Share of cells cleared"
    block = cross_table(key, PUBLISHED, title, "cells", rows, columns, quantities, cell=_share)

    def paint(canvas: Canvas) -> None:
        left, right = canvas.subplots(1, 2, sharex=True, sharey=True)
        for axis, (kind, of_kind) in zip((left, right), lines.items(), strict=True):
            axis.set_title(kind)
            lines_at(axis, margins)
            for index, (name, cells) in enumerate(of_kind.items()):
                found = [count(cells, margin) for margin in FINE]
                least, most = ([getattr(item, end) / item.of for item in found] for end in ("least", "most"))
                axis.plot(FINE, least, color=colour(index), label=name)
                axis.fill_between(FINE, least, most, color=colour(index), alpha=0.15, linewidth=0)
            axis.set(xlabel="margin", xlim=(0, RIGHTMOST), ylim=(-0.02, 1.02))
        left.set_ylabel("share cleared")
        legend_below(canvas, right, columns=3)

    alt = (
        "Share of the cells that are cleared against the margin, members on the left and non-members on the right; "
        "bands where the print does not decide. Vertical lines: the margins of the tables."
    )
    return _figure("margins", "Cleared against the margin", alt, (7.2, 3.2), paint, block)


def _share(cells: Sequence[RereadCell], margin: float) -> TableCell:
    found = count(cells, margin)
    shares = (found.least / found.of, found.most / found.of)[: 1 if found.least == found.most else 2]
    numbers = tuple(Numeral(formats.decimals(share, 2), share, PUBLISHED) for share in shares)
    return TableCell(numbers, (), "{} to {}" if len(numbers) > 1 else "{}")


def lines_at(axis: Axes, margins: Sequence[float]) -> None:
    for margin in margins:
        axis.axvline(margin, color=QUIET, linewidth=0.7, linestyle=(0, (4, 3)) if margin else "-", zorder=0)


def _members(cells: Sequence[RereadCell]) -> list[RereadCell]:
    return [cell for cell in cells if cell.member]


def _others(cells: Sequence[RereadCell]) -> list[RereadCell]:
    return [cell for cell in cells if not cell.member]


def _suspect(cell: RereadCell) -> str:
    return cell.suspect


def _target(cell: RereadCell) -> str:
    return cell.target


def _figure(
    name: str,
    title: str,
    alt: str,
    size: tuple[float, float],
    paint: Callable[[Canvas], None],
    block: Block | None = None,
) -> Figure:
    svg, png = draw(name, *size, paint)
    return Figure(name, PUBLISHED, title, alt, svg, png, block)
