"""One small plot as SVG, written by hand: a page of an audit must cost no second, as importing matplotlib does.

Colours are the page's (classes s0, s1, ... and ink), all text is escaped.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np
from markupsafe import Markup

from nonmember.records import FloatArray

WIDTH, HEIGHT = 360, 270
LEFT, RIGHT, TOP, BOTTOM = 52, 12, 12, 44
FEWEST_TICKS = 4
FAR = 2.0  # widths of the range of most values beyond which a value is left out of a picture


def ticks_of(low: float, high: float) -> list[float]:
    """At least four round numbers (1, 2 or 5 times a power of ten apart) within the range, as few as that gives."""
    power = 10.0 ** math.floor(math.log10(high - low))
    for step in (factor * power for factor in (5, 2, 1, 0.5, 0.2, 0.1)):
        first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
        if last - first + 1 >= FEWEST_TICKS:
            break
    return [round(index * step, 12) for index in range(first, last + 1)]


def range_of(*values: Iterable[float], room_beside: float = 0.04) -> tuple[float, float]:
    """From the smallest to the largest finite value, with some room beside them; (0, 1) where there is none."""
    finite = [float(value) for some in values for value in some if math.isfinite(value)]
    if not finite:
        return 0.0, 1.0
    low, high = min(finite), max(finite)
    room = (high - low) * room_beside or max(abs(high), 1e-6) * 0.5
    return low - room, high + room


def most_of(values: FloatArray) -> tuple[float, float]:
    """The range of the finite values; where a few lie far from all others, of all but the outermost hundredth on either
    side, since they would leave no room for the rest."""
    finite = values[np.isfinite(values)]
    if not len(finite):
        return 0.0, 1.0
    low, high = np.quantile(finite, [0.01, 0.99])
    room = FAR * (high - low)
    return (
        (low, high)
        if high > low and (finite.min() < low - room or finite.max() > high + room)
        else (finite.min(), finite.max())
    )


class SvgPlot:
    """Axes from x[0] to x[1] and y[0] to y[1]; marks are added one after the other, then `svg` gives the picture."""

    def __init__(
        self,
        x: tuple[float, float],
        y: tuple[float, float],
        x_label: str,
        y_label: str,
        *,
        x_names: Sequence[str] | None = None,
        y_names: Sequence[str] | None = None,
        height: int = HEIGHT,
        left: int = LEFT,
    ) -> None:
        """x_names, y_names: written at 0, 1, ... in the place of numbers."""
        self._x, self._y, self._height, self._left = x, y, height, left
        self._labels, self._names = (x_label, y_label), (x_names, y_names)
        self._marks: list[Markup] = []

    def _px(self, value: float) -> float:
        low, high = self._x
        return round(self._left + (value - low) / (high - low) * (WIDTH - self._left - RIGHT), 1)

    def _py(self, value: float) -> float:
        low, high = self._y
        return round(self._height - BOTTOM - (value - low) / (high - low) * (self._height - TOP - BOTTOM), 1)

    # Marks ----------------------------------------------------------------------------------------------------------

    def points(self, xs: FloatArray, ys: FloatArray, series: int = 0) -> None:
        """Dots, as one path: a thousand of them take ten kilobytes."""
        path = "".join(f"M{self._px(x):g} {self._py(y):g}h0" for x, y in zip(xs, ys, strict=True))
        size = "fine" if len(xs) > 1000 else "dots"
        self._marks.append(Markup('<path class="{} s{}" d="{}"/>').format(size, series, path))

    def histogram(self, edges: FloatArray, counts: FloatArray, series: int = 0) -> None:
        base = self._py(self._y[0])
        heights = "".join(
            f"V{self._py(count):g}H{self._px(right):g}" for count, right in zip(counts, edges[1:], strict=True)
        )
        path = f"M{self._px(edges[0]):g} {base:g}{heights}V{base:g}Z"
        self._marks.append(Markup('<path class="area s{}" d="{}"/>').format(series, path))

    def bar(self, centre: float, start: float, end: float, series: str, *, width: float = 0.8) -> None:
        """An upright bar around x = centre, from start to end."""
        x0, x1 = self._px(centre - width / 2), self._px(centre + width / 2)
        y0, y1 = sorted((self._py(start), self._py(end)))
        self._rectangle(x0, y0, x1 - x0, y1 - y0, series)

    def lying_bar(self, centre: float, start: float, end: float, series: str, *, width: float = 0.6) -> None:
        """A bar around y = centre, from x = start to x = end."""
        y0, y1 = sorted((self._py(centre - width / 2), self._py(centre + width / 2)))
        x0, x1 = self._px(start), self._px(end)
        self._rectangle(x0, y0, x1 - x0, y1 - y0, series)

    def _rectangle(self, x: float, y: float, width: float, height: float, series: str) -> None:
        shape = Markup('<rect class="bar {}" x="{:g}" y="{:g}" width="{:g}" height="{:g}"/>')
        self._marks.append(shape.format(series, x, y, max(width, 0.0), max(height, 0.6)))

    def band(self, low: float, high: float) -> None:
        """An interval on the x axis, behind what comes after it."""
        x0, x1 = self._px(max(low, self._x[0])), self._px(min(high, self._x[1]))
        box = Markup('<rect class="band" x="{:g}" y="{}" width="{:g}" height="{}"/>')
        self._marks.append(box.format(x0, TOP, max(x1 - x0, 0.5), self._height - TOP - BOTTOM))

    def lying_band(self, low: float, high: float) -> None:
        """An interval on the y axis, behind what comes after it."""
        y0, y1 = self._py(min(high, self._y[1])), self._py(max(low, self._y[0]))
        box = Markup('<rect class="band" x="{}" y="{:g}" width="{}" height="{:g}"/>')
        self._marks.append(box.format(self._left, y0, WIDTH - RIGHT - self._left, max(y1 - y0, 0.5)))

    def upright(self, x: float, kind: str) -> None:
        """kind: zero, value or bound."""
        line = Markup('<line class="{}" x1="{x:g}" x2="{x:g}" y1="{}" y2="{}"/>')
        self._marks.append(line.format(kind, TOP, self._height - BOTTOM, x=self._px(x)))

    def level(self, y: float, kind: str) -> None:
        line = Markup('<line class="{}" x1="{}" x2="{}" y1="{y:g}" y2="{y:g}"/>')
        self._marks.append(line.format(kind, self._left, WIDTH - RIGHT, y=self._py(y)))

    def diagonal(self) -> None:
        low, high = max(self._x[0], self._y[0]), min(self._x[1], self._y[1])
        line = Markup('<line class="zero" x1="{:g}" y1="{:g}" x2="{:g}" y2="{:g}"/>')
        self._marks.append(line.format(self._px(low), self._py(low), self._px(high), self._py(high)))

    def interval(self, position: float, low: float, high: float, middle: float, series: int = 0) -> None:
        """A lying interval with its middle."""
        y = self._py(position)
        line = Markup('<line x1="{:g}" x2="{:g}" y1="{y:g}" y2="{y:g}"/>').format(self._px(low), self._px(high), y=y)
        dot = Markup('<circle cx="{:g}" cy="{:g}" r="4"/>').format(self._px(middle), y)
        self._marks.append(Markup('<g class="span s{}">{}{}</g>').format(series, line, dot))

    # The picture ----------------------------------------------------------------------------------------------------

    def svg(self, name: str) -> Markup:
        """name: what it shows, for those who cannot see it."""
        bottom, right = self._height - BOTTOM, WIDTH - RIGHT
        parts = [
            *self._marks,
            Markup('<path class="axes" d="M{} {}V{}H{}"/>').format(self._left, TOP, bottom, right),
            *self._x_ticks(bottom),
            *self._y_ticks(),
            Markup('<text class="label" x="{:g}" y="{}">{}</text>').format(
                (self._left + right) / 2, self._height - 8, self._labels[0]
            ),
        ]
        if self._labels[1]:
            turned = Markup('<text class="label" transform="translate(13 {:g}) rotate(-90)">{}</text>')
            parts.append(turned.format((TOP + bottom) / 2, self._labels[1]))
        frame = Markup('<svg role="img" aria-label="{}" viewBox="0 0 {} {}" class="plot">{}</svg>')
        return frame.format(name, WIDTH, self._height, Markup("").join(parts))

    def _x_ticks(self, bottom: float) -> Iterable[Markup]:
        for value, text in _ticks(self._x, self._names[0]):
            yield Markup('<text class="tick" x="{:g}" y="{}">{}</text>').format(self._px(value), bottom + 15, text)

    def _y_ticks(self) -> Iterable[Markup]:
        for value, text in _ticks(self._y, self._names[1]):
            yield Markup('<text class="tick end" x="{}" y="{:g}">{}</text>').format(
                self._left - 6, self._py(value) + 3.5, text
            )


def _ticks(limits: tuple[float, float], names: Sequence[str] | None) -> list[tuple[float, str]]:
    if names is not None:
        return [(float(index), name) for index, name in enumerate(names)]
    return [(value, f"{value:g}".replace("-", "\N{MINUS SIGN}")) for value in ticks_of(*limits)]


def average_ranks(values: FloatArray) -> FloatArray:
    """1 for the smallest; equal values share their mean rank."""
    _, index, counts = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    ranks: FloatArray = (last - (counts - 1) / 2.0)[index]
    return ranks
