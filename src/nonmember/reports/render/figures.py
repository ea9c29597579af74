"""One style for all pictures, and pictures that live in a page: text stays text, colours are the page's.

No pyplot: a figure is a value, drawn without global state. The same numbers give the same bytes.
"""

from __future__ import annotations

import io
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

import matplotlib
import numpy as np
import scipy
from markupsafe import escape
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas

from nonmember.reports.core import formats
from nonmember.reports.core.grid import Block, Figure, TableRow
from nonmember.reports.core.worlds import World
from nonmember.results.pictures import COLOURS, QUIET, STYLE, png_of

MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<", ">")
PNG_DPI = 160
PANELS_IN_ROW = 3
PANEL_WIDTH, PANEL_HEIGHT = 2.75, 2.35


def figure_of(
    key: str,
    world: World,
    title: str,
    alt: str,
    block: Block | None,
    size: tuple[float, float],
    paint: Callable[[Canvas], None],
    read: Mapping[str, str] = MappingProxyType({}),
) -> Figure | None:
    """Drawn, with the table of its numbers, whose key follows from the figure's where it has none; None without them.
    read: as of `Figure`."""
    if block is None:
        return None
    name = f"{key}-{formats.slug(world.name)}"
    svg, png = draw(name, *size, paint)
    numbers = replace(block, key=block.key or f"numbers-{name}")
    return Figure(name, world.name, f"{title}, {world.title}", alt, svg, png, numbers, read)


def draw(name: str, width: float, height: float, paint: Callable[[Canvas], None]) -> tuple[str, bytes]:
    """SVG for pages and PNG, on white, for everything else. name: makes the ids inside the SVG its own."""
    with matplotlib.rc_context(STYLE):
        canvas = Canvas(figsize=(width, height), layout="constrained")
        paint(canvas)
        svg = _svg(canvas, name)
        canvas.set_layout_engine(None)  # laid out once: a third of the time of drawing
        return svg, png_of(canvas, PNG_DPI)


def svg_of(figure: Canvas, name: str, label: str) -> str:
    """A figure as SVG for a page. label: for those who cannot see it."""
    return _svg(figure, name).replace("<svg ", f'<svg role="img" aria-label="{escape(label)}" ', 1)


def _svg(figure: Canvas, name: str) -> str:
    vector = io.StringIO()
    style: Any = STYLE | {"svg.hashsalt": name}
    with matplotlib.rc_context(style):
        figure.savefig(vector, format="svg", metadata={"Date": None, "Creator": None})
    return embedded(vector.getvalue(), name)


def embedded(svg: str, name: str) -> str:
    """No prolog, ids of its own, the page's font, ink and colours, and no more bytes than are seen."""
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r"<metadata>.*?</metadata>\s*", "", svg, flags=re.DOTALL)
    svg = re.sub(r'\bid="([^"]+)"', rf'id="{name}-\1"', svg)
    svg = re.sub(r"url\(#", f"url(#{name}-", svg)
    svg = re.sub(r'href="#', f'href="#{name}-', svg)
    svg = re.sub(r"(font: [^;\"]*?px|font-family:) [^;\"]*", r"\1 system-ui, sans-serif", svg)
    svg = re.sub(r"#000000\b", "currentColor", svg)
    svg = svg.replace(QUIET, f"var(--quiet, {QUIET})")
    for index, colour in enumerate(COLOURS):
        svg = svg.replace(colour, f"var(--series-{index}, {colour})")
    # matplotlib leaves the colour of text to the viewer's default, which on a dark page is still black.
    return compact(re.sub(r"<svg ", '<svg fill="currentColor" ', svg, count=1).strip()) + "\n"


def panels(canvas: Canvas, titles: Sequence[str], *, sharey: bool = True) -> Iterator[Axes]:
    """Small multiples, as many as titles, with common axes."""
    columns = min(PANELS_IN_ROW, len(titles))
    rows = -(-len(titles) // columns)
    axes = canvas.subplots(rows, columns, sharex=True, sharey=sharey, squeeze=False)
    for index, axis in enumerate(axes.flat):
        if index >= len(titles):
            axis.set_axis_off()
            continue
        if len(titles) > 1:
            axis.set_title(titles[index])
        is_lowest = index + columns >= len(titles)
        axis.xaxis.set_tick_params(labelbottom=is_lowest)
        axis.xaxis.label.set_visible(is_lowest)
        yield axis


def size_of_panels(number: int, height: float = PANEL_HEIGHT) -> tuple[float, float]:
    """Width and height in inches; one panel alone is wider."""
    if number < 2:
        return 5.2, max(3.1, height)
    columns = min(PANELS_IN_ROW, number)
    return PANEL_WIDTH * columns, height * -(-number // columns) + 0.55


def zero_line(axis: Axes, level: float = 0) -> None:
    axis.axhline(level, color=QUIET, linewidth=0.7, zorder=0)


def legend_below(canvas: Canvas, axis: Axes, columns: int = 4) -> None:
    """One legend for all panels."""
    handles, labels = axis.get_legend_handles_labels()
    if handles:
        canvas.legend(handles, labels, loc="outside lower center", ncols=min(columns, len(labels)))


# ---------------------------------------------------------------------------------------------- lines


@dataclass(frozen=True)
class PlotLine:
    """A row of numbers as a line: x, and at each x the value with the ends of its bar (NaN: no bar)."""

    name: str
    points: tuple[tuple[float, float, float, float], ...]


def lines_of(block: Block, xs: Iterable[float]) -> dict[str, PlotLine]:
    """The rows of a block as lines, by name; cells hold a value, or a value with two ends."""
    xs, lines = list(xs), {}
    for row in block.rows:
        points = []
        for x, cell in zip(xs, row.cells, strict=True):
            values = [math.nan if item.value is None else item.value for item in cell.ours]
            points.append((float(x), values[0], *(values[1:3] if len(values) > 2 else (math.nan, math.nan))))
        lines[row.name] = PlotLine(row.name, tuple(points))
    return lines


Share = tuple[float, float, float, float]  # x, the share, and the ends of its interval


def shares_of(row: TableRow, xs: Iterable[float]) -> list[Share]:
    """Of cells `k of n [low, high]`, those that have a number."""
    points = []
    for x, cell in zip(xs, row.cells, strict=True):
        count, of, low, high = (math.nan if item.value is None else item.value for item in cell.ours)
        points += [(x, count / of, low, high)] if of > 0 else []
    return points


def draw_shares(axis: Axes, name: str, points: Sequence[Share], index: int, shift: float = 0.0, **style: Any) -> None:
    """Shares with the bars of their intervals."""
    xs, shares, low, high = np.array(points).reshape(-1, 4).T
    axis.errorbar(
        xs + shift,
        shares,
        yerr=np.maximum([shares - low, high - shares], 0),
        color=colour(index),
        label=name,
        marker=MARKERS[index],
        elinewidth=1,
        **style,
    )


def share_axis(axis: Axes, error: float | None = None) -> None:
    """From 0 to 1, with a line at an error."""
    axis.set_ylim(-0.03, 1.03)
    if error is not None:
        axis.axhline(error, color=QUIET, linewidth=0.8, linestyle=(0, (4, 3)))


def quantile_axis(axis: Axes, found: Sequence[float], index: int) -> None:
    """Sorted p-values against those expected of a uniform distribution, with the band of each rank (95%)."""
    ranks = np.arange(1, len(found) + 1)
    expected = ranks / (len(found) + 1)
    axis.fill_between(
        expected, *scipy.stats.beta.interval(0.95, ranks, ranks[::-1]), color=QUIET, alpha=0.15, linewidth=0
    )
    axis.plot((0, 1), (0, 1), color=QUIET, linewidth=0.7, zorder=0)
    axis.plot(expected, found, marker=MARKERS[0], linestyle="", color=colour(index))
    axis.set(xlabel="expected p", xlim=(0, 1), ylim=(0, 1))


def log_axis(axis: Axes, xs: Sequence[float], labels: Sequence[str]) -> None:
    """A logarithmic axis with these ticks alone."""
    axis.set(xscale="log", xticks=xs)
    axis.set_xticks([], minor=True)
    axis.set_xticklabels(labels)


def draw_line(axis: Axes, line: PlotLine, index: int, *, band: bool = False) -> None:
    """A line with its markers, in the colour of its index; with a band between the ends where it has them."""
    points = [point for point in line.points if math.isfinite(point[1])]
    xs, ys = [point[0] for point in points], [point[1] for point in points]
    axis.plot(xs, ys, marker=MARKERS[index % len(MARKERS)], color=colour(index), label=line.name)
    if band and points and all(math.isfinite(point[2]) for point in points):
        axis.fill_between(
            xs,
            [point[2] for point in points],
            [point[3] for point in points],
            color=colour(index),
            alpha=0.13,
            linewidth=0,
        )


def colour(index: int) -> str:
    return COLOURS[index % len(COLOURS)]


# Shrinking SVG: coordinates are rounded, and the style that matplotlib repeats at every marker is written once --------

DIGITS = 2  # of a point, which is 1/72 inch

_COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
_BETWEEN_TAGS = re.compile(r">\s+<")
_TAG = re.compile(r"<[^<>]*>")
_ID = re.compile(r' id="([^"]*)"')
_NAMED = re.compile(r"#([\w.-]+)")
_UNTURNED = re.compile(r' transform="rotate\(-?0(?: [^)]*)?\)"')
_PLACE = re.compile(r'(?<= )(?:d|x|y|transform)="[^"]*"')
_NUMBER = re.compile(r"-?\d+\.\d+")
_PATH = re.compile(r'(?<= d=")[^"]*')
_AROUND_LETTERS = re.compile(r"\s*([A-Za-z])\s*")
_MARKERS = re.compile(r"<g([^<>]*)>((?:\n<use[^<>]*/>)+)\n</g>")
_STYLE = re.compile(r' style="[^"]*"')


def compact(svg: str) -> str:
    """The same picture: places rounded, one style for the markers of a group that share it, ids numbered and only
    where something names them, no indentation. Doing it again changes nothing.
    """
    svg = _BETWEEN_TAGS.sub(">\n<", _COMMENT.sub("", svg))
    ids = _numbered(svg)
    return _MARKERS.sub(_styled_once, _TAG.sub(lambda tag: _shortened(tag[0], ids), svg))


def _numbered(svg: str) -> dict[str, str]:
    """Id that something names -> the same with a number for its last part."""
    named = set(_NAMED.findall(svg))
    ids = [item for item in _ID.findall(svg) if item in named]
    return {item: f"{item.rpartition('-')[0]}-{index}" for index, item in enumerate(ids, 1)}


def _shortened(tag: str, ids: Mapping[str, str]) -> str:
    tag = _ID.sub(lambda item: f' id="{ids[item[1]]}"' if item[1] in ids else "", _UNTURNED.sub("", tag))
    tag = _NAMED.sub(lambda item: f"#{ids.get(item[1], item[1])}", tag)
    tag = _PLACE.sub(lambda coordinates: _NUMBER.sub(_rounded, coordinates[0]), tag)
    return _PATH.sub(lambda path: " ".join(_AROUND_LETTERS.sub(r"\1", path[0]).split()), tag)


def _rounded(number: re.Match[str]) -> str:
    text = f"{float(number[0]):.{DIGITS}f}".rstrip("0").rstrip(".")
    return "0" if text == "-0" else text


def _styled_once(group: re.Match[str]) -> str:
    styles = _STYLE.findall(group[2])
    if len(set(styles)) != 1 or len(styles) != group[2].count("<use") or "style=" in group[1]:
        return group[0]
    return f"<g{group[1]}{styles[0]}>{_STYLE.sub('', group[2])}\n</g>"
