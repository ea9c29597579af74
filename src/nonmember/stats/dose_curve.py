"""How often was a set read? A monotone curve of readings from models with planted members, read backwards.

A control is a model that read the set x times, and related text r times; of each a value z is measured (the level of a
score, or a fixed combination of such features). Per set,

    z = f(x) + g h(r) + error,    h(r) = log(1 + r) / log(1 + greatest planted r),

f(x) a mean for each planted dose, made monotone by weighted isotonic regression and continued between doses by a
monotone cubic (Fritsch and Carlson, 1980); g by least squares with f; one variance s^2 of single controls for all
doses, on (controls - doses - 1) degrees of freedom. Another model that read x times is one more draw:

    z ~ f(x) + g h(r) + t_df sqrt(s^2 (1 + leverage) + v(x)),

leverage that of its estimated mean, v(x) the variance by which a target of another base differs from controls of its
dose (`Between`), zero for the controls' own base; degrees of freedom by Satterthwaite (`stats.margins`).

What the target has read of related text is not known. So every bound is taken at the r, between none and the greatest
planted, that makes the claim hardest.

Source: own; the prediction bounds as in Hahn and Meeker, Statistical Intervals (1991), chapter 4, for a linear model.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy
from scipy.interpolate import PchipInterpolator

from nonmember.records import FloatArray
from nonmember.stats.margins import Extra

GRID = 1201  # doses at which curve and bounds are looked at, evenly on the scale of log(1 + dose)


@dataclass(frozen=True)
class Control:
    """A model that read the set `dose` times and related text `related` times, and its value."""

    dose: float
    related: float
    value: float


@dataclass(frozen=True)
class Between:
    """Standard deviation by which a target of another base differs from controls of its dose.

    additive: at any dose, in units of z.   relative: as a share of f(x) - f(0).   df: degrees of freedom on which both
    were measured, infinity where they are known.
    """

    additive: float = 0.0
    relative: float = 0.0
    df: float = math.inf

    def __post_init__(self) -> None:
        if not (0 <= self.additive < math.inf and 0 <= self.relative < math.inf and self.df > 0):
            raise ValueError(
                "Expected standard deviations of 0 or more on more than 0 degrees of freedom; got "
                f"{self.additive}, {self.relative} on {self.df}. Leave them out where the base is the controls' own."
            )

    @property
    def is_none(self) -> bool:
        return self.additive == self.relative == 0


OWN_BASE = Between()


@dataclass(frozen=True)
class DoseReading:
    """What a value says about the readings.

    estimate: readings, had the target read half as much related text as the controls at most (on the scale of h); the
    last planted dose where its value lies above the curve, 0 where below.   low, high: ends of the
    interval; high None where the last planted dose is not rejected either; both NaN where even no reading is rejected
    from below.   cleared_dose: least dose such that it and all heavier ones are rejected; None where none is.
    p_cleared: of "read the wanted dose or more".   p_member: of "read nothing of it", whatever related text it read.
    p_below: of "read nothing" against still lower values.
    """

    estimate: float
    low: float
    high: float | None
    cleared_dose: float | None
    p_cleared: float
    p_member: float
    p_below: float


@dataclass(frozen=True)
class DoseCurve:
    """doses: planted, ascending, the first 0.   means: f at these, before it is made monotone.   monotone: after.
    related_effect: g.   most_related: greatest planted r.   spread: s.   df: of s.   covariance: [doses + 1] squared,
    of (means, g) in units of s^2."""

    doses: FloatArray
    means: FloatArray
    monotone: FloatArray
    related_effect: float
    most_related: float
    spread: float
    df: int
    covariance: FloatArray

    @cached_property
    def _interpolated(self) -> PchipInterpolator:
        return PchipInterpolator(self.doses, self.monotone)

    @cached_property
    def grid(self) -> FloatArray:
        """Doses from 0 to the last planted one."""
        between = np.expm1(np.linspace(0, math.log1p(self.doses[-1]), GRID))
        return np.asarray(np.minimum(between, self.doses[-1]))

    def at(self, dose: float | FloatArray, related: float = 0.0) -> FloatArray:
        """f(dose) + g h(related), for doses from 0 to the last planted one."""
        return np.asarray(self._interpolated(dose)) + self.related_effect * self._h(related)

    def scale(self, dose: float | FloatArray, related: float, between: Between) -> tuple[FloatArray, FloatArray]:
        """Standard deviation of one more model about `at`, and its degrees of freedom."""
        dose = np.atleast_1d(np.asarray(dose, dtype=np.float64))
        of_controls = self.spread**2 * (1 + self._leverage(dose, related))
        rise = np.abs(self.at(dose) - self.at(0.0))
        others = np.hypot(between.additive, between.relative * rise) ** 2
        sums = [
            Extra(float(b), between.df).added_to(float(a), self.df) for a, b in zip(of_controls, others, strict=True)
        ]
        return np.sqrt([total for total, _ in sums]), np.array([df for _, df in sums])

    def _h(self, related: float) -> float:
        return math.log1p(related) / math.log1p(self.most_related) if self.most_related else 0.0

    def _leverage(self, dose: FloatArray, related: float) -> FloatArray:
        """Of the mean at each dose, on the straight line between the planted ones beside it."""
        right = np.clip(np.searchsorted(self.doses, dose, side="right"), 1, len(self.doses) - 1)
        share = (dose - self.doses[right - 1]) / (self.doses[right] - self.doses[right - 1])
        weights = np.zeros((len(dose), len(self.doses) + 1))
        rows = np.arange(len(dose))
        weights[rows, right - 1], weights[rows, right] = 1 - share, share
        weights[:, -1] = self._h(related)
        return np.asarray(np.einsum("ni,ij,nj->n", weights, self.covariance, weights))

    def tails(
        self, value: float, dose: float | FloatArray, between: Between = OWN_BASE
    ) -> tuple[FloatArray, FloatArray]:
        """For each dose, one-sided p of "one more model that read so often": against lower values than its own, and
        against higher ones; each at the related reading, none or the most, at which it is largest."""
        dose = np.atleast_1d(np.asarray(dose, dtype=np.float64))
        lower, upper = np.zeros(len(dose)), np.zeros(len(dose))
        for related in {0.0, self.most_related}:
            scale, df = self.scale(dose, related, between)
            distance = (value - self.at(dose, related)) / scale
            lower = np.maximum(lower, scipy.special.stdtr(df, distance))
            upper = np.maximum(upper, scipy.special.stdtr(df, -distance))
        return lower, upper

    def read(self, value: float, *, wanted: float, alpha: float, between: Between = OWN_BASE) -> DoseReading:
        """Read a target's value off the curve. wanted: dose of p_cleared.   alpha: level of each test, and 1 - that of
        the interval.   Raises ValueError on a value that is not finite, and a wanted dose that was not planted."""
        if not math.isfinite(value):
            raise ValueError(f"Expected the value of the target; got {value}.")
        if not 0 < wanted <= self.doses[-1]:
            raise ValueError(
                f"The dose to exclude must be above 0 and at most the heaviest planted one ({self.doses[-1]:g}); got "
                f"{wanted:g}."
            )
        grid = self.grid
        p_lower, p_upper = self.tails(value, grid, between)
        low, high = _interval(grid, p_lower, p_upper, alpha / 2)
        return DoseReading(
            estimate=_crossing(grid, self.at(grid) + 0.5 * self.related_effect, value),
            low=low,
            high=high,
            cleared_dose=_least_rejected(grid, p_lower, alpha),
            p_cleared=float(self.tails(value, wanted, between)[0][0]),
            p_member=float(p_upper[0]),
            p_below=float(p_lower[0]),
        )


def dose_curve(controls: Sequence[Control]) -> DoseCurve:
    """Fit the curve. Raises ValueError without controls of dose 0, with fewer than two doses, and where no dose has two
    controls or they do not differ.

    >>> points = [Control(0, 0, 0.0), Control(0, 0, 0.02), Control(1, 0, 0.1), Control(1, 0, 0.12), Control(4, 0, 0.4)]
    >>> curve = dose_curve(points)
    >>> round(float(curve.at(1.0)), 3), round(curve.spread, 4)
    (0.11, 0.0141)
    """
    doses = np.array(sorted({control.dose for control in controls}), dtype=np.float64)
    values = np.array([control.value for control in controls], dtype=np.float64)
    if not len(doses) or doses[0] != 0 or len(doses) < 2:
        raise ValueError(
            f"Controls must be planted at dose 0 and at one more at least; got {', '.join(f'{d:g}' for d in doses)}."
        )
    if not np.isfinite(values).all():
        raise ValueError("Expected a value of every control; one is missing or infinite. Leave that control out.")
    most_related = max(control.related for control in controls)
    related = np.log1p([control.related for control in controls]) / (math.log1p(most_related) or 1.0)
    by_dose = [[float(control.dose == dose) for control in controls] for dose in doses]
    design = np.column_stack([*by_dose, related])
    rank = int(np.linalg.matrix_rank(design))
    inverse = np.linalg.pinv(design.T @ design)
    estimates = inverse @ design.T @ values
    df = len(values) - rank
    rest = float(((values - design @ estimates) ** 2).sum())
    if df < 1 or rest <= 1e-24:
        raise ValueError(
            "Expected at least two seeds of controls that differ, since one says nothing about how much they differ; "
            f"got {len(values)} controls of {len(doses)} doses. Add a seed to the controls."
        )
    means = estimates[:-1]
    counts = design[:, :-1].sum(axis=0)
    monotone = scipy.optimize.isotonic_regression(means, weights=counts).x
    return DoseCurve(
        doses, means, np.asarray(monotone), float(estimates[-1]), most_related, math.sqrt(rest / df), df, inverse
    )


def _interval(grid: FloatArray, p_lower: FloatArray, p_upper: FloatArray, alpha: float) -> tuple[float, float | None]:
    """Of the doses that neither side rejects."""
    not_too_low, not_too_high = p_lower > alpha, p_upper > alpha
    if not not_too_low[0]:
        return math.nan, math.nan
    high = float(grid[np.nonzero(not_too_low)[0][-1]])
    low = float(grid[np.nonzero(not_too_high)[0][0]]) if not_too_high.any() else float(grid[-1])
    return min(low, high), None if not_too_low[-1] else high


def _least_rejected(grid: FloatArray, p_lower: FloatArray, alpha: float) -> float | None:
    """The least dose such that it and all above are rejected."""
    kept = np.nonzero(p_lower >= alpha)[0]
    if not len(kept):
        return 0.0
    return float(grid[kept[-1] + 1]) if kept[-1] + 1 < len(grid) else None


def _crossing(grid: FloatArray, curve: FloatArray, value: float) -> float:
    """Where a nondecreasing curve reaches the value; an end where it does not."""
    if value <= curve[0]:
        return 0.0
    if value >= curve[-1]:
        return float(grid[-1])
    place = int(np.searchsorted(curve, value, side="left"))
    share = (value - curve[place - 1]) / (curve[place] - curve[place - 1])
    return float(grid[place - 1] + share * (grid[place] - grid[place - 1]))
