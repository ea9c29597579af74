"""How often was a set read? Features of models with planted members, and a target read off them.

A control is a model that read the set x times, and related text r times; F features z of it are measured (levels and
slopes of scores). Per set and feature,

    z = f(x) + g h(x, r) + error,    h(x, r) = log((1 + x + r) / (1 + x)) / log(1 + greatest planted r),

f(x) a mean for each planted dose, made monotone by weighted isotonic regression and continued between doses by a
monotone cubic (Fritsch and Carlson, 1980), g by least squares with f. h falls with x, because a set and text related to
it teach the same things: the more of either was read, the less another reading of related text adds. The errors of
features are normal. Their covariance is estimated from these controls' errors, with products S on n = controls - doses
- 1 degrees of freedom, and a prior: a shape C (from the study) counts as much as nu = 4 further degrees of freedom,

    (nu k C + S) / (nu + n),    k = trace(C^-1 S) / (F n),

on nu + n - F + 1 degrees of freedom, so that a shape which is another in this world costs width and not coverage.
Without a given shape it is estimated with shrinkage, k C on F n degrees of freedom.

Another model that read (x, r) is one more draw, at the squared distance

    D2(x, r) = e' [covariance (1 + leverage) + V(x)]^-1 e,    e = z - f(x) - g h(x, r),

V(x) the covariance by which a target of another base differs from controls (`Between`), zero for the controls' own
base. What the target read of related text is not known: D2(x) is the least over r from none to the most that was
planted (profile likelihood). With x^ where it is least, sign(x^ - x) sqrt(D2(x) - D2(x^)) is taken as a t variable:
one-sided p-values for "x or more" and "x or less", and the interval of the doses that neither rejects. D2(x^) itself
tells whether the target is like any model that read so or so often (F distribution).

Source: own; multivariate calibration as in P. J. Brown, J. R. Statist. Soc. B 44 (1982), 287-321.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
import scipy

from nonmember.records import FloatArray

PRIOR_DF = 4  # degrees of freedom that a given shape of errors counts for beside those of the controls
DOSES, RELATED = 241, 13  # how finely readings of the set and of related text are looked at, evenly in log(1 + x)


@dataclass(frozen=True)
class Control:
    """A model that read the set and related text so often.

    Attributes:
        dose: How often it read the set.
        related: How often it read related text.
        values: [F] its features.
    """

    dose: float
    related: float
    values: FloatArray


@dataclass(frozen=True)
class Between:
    """How a target of another base differs from controls of its dose.

    Attributes:
        covariance: [F, F] at any dose.
        relative: Standard deviation of the rise f(x) - f(0), all features together, as a share of it.
        df: Degrees of freedom on which both were measured.
    """

    covariance: FloatArray
    relative: float
    df: float

    def __post_init__(self) -> None:
        if not (0 <= self.relative < math.inf and self.df > 0 and np.allclose(self.covariance, self.covariance.T)):
            raise ValueError(
                "Expected a symmetric covariance, a relative deviation of 0 or more and more than 0 degrees of freedom "
                "of the difference between bases. Leave it out where the base is the controls' own."
            )


@dataclass(frozen=True)
class DoseReading:
    """What a target's features say about its readings.

    Attributes:
        estimate: Of the set.
        related: Of related text, at that estimate.
        low: Lower end of the interval.
        high: Upper end of the interval; None where the heaviest planted dose is not rejected either.
        cleared_dose: Least dose such that it and all heavier ones are rejected; None where none is.
        p_at_least: Of "the wanted dose or more".
        p_at_most: Of "the exceeded dose or less".
        p_none: Of "nothing of it".
        p_fit: Of "like some model that read so or so often".
    """

    estimate: float
    related: float
    low: float
    high: float | None
    cleared_dose: float | None
    p_at_least: float
    p_at_most: float
    p_none: float
    p_fit: float


@dataclass(frozen=True)
class DoseCurve:
    """Features by dose, as fitted to controls.

    Attributes:
        doses: [X] planted, ascending, the first 0.
        means: [X, F] of the controls.
        monotone: [X, F] the same made monotone.
        related_effect: [F] g.
        most_related: Greatest planted r.
        covariance: [F, F] of the errors of one model.
        df: Its degrees of freedom.
        inverse: [X + 1, X + 1] covariance of (means, g) in units of the errors'.
    """

    doses: FloatArray
    means: FloatArray
    monotone: FloatArray
    related_effect: FloatArray
    most_related: float
    covariance: FloatArray
    df: int
    inverse: FloatArray

    @cached_property
    def grid(self) -> FloatArray:
        """Doses from 0 to the heaviest planted one."""
        return _to(float(self.doses[-1]), DOSES)

    @cached_property
    def _related_grid(self) -> FloatArray:
        return _to(self.most_related, RELATED) if self.most_related else np.zeros(1)

    def at(self, dose: FloatArray, related: float | FloatArray = 0.0) -> FloatArray:
        """Expected features of a model that read so.

        Args:
            dose: Within the planted range.

        Returns:
            [..., F] features.
        """
        share = related_share(dose, related, self.most_related)
        return np.asarray(
            scipy.interpolate.PchipInterpolator(self.doses, self.monotone)(dose)
            + share[..., None] * self.related_effect
        )

    @property
    def separation(self) -> float:
        """Distance between models that read nothing and the heaviest dose, in standard deviations of single ones."""
        rise = self.monotone[-1] - self.monotone[0]
        return math.sqrt(float(rise @ np.linalg.solve(self.covariance, rise)))

    def read(
        self, values: FloatArray, *, wanted: float, exceeded: float = 0.0, alpha: float, between: Between | None = None
    ) -> DoseReading:
        """Read a target off the curve.

        Args:
            values: [F].
            wanted: Dose of p_at_least.
            exceeded: That of p_at_most.
            alpha: 1 - that of the interval, and level of cleared_dose.

        Raises:
            ValueError: On values that are not finite, and a dose beyond the planted.
        """
        if not np.isfinite(values).all():
            raise ValueError(f"Expected finite features of the target; got {values}.")
        if not 0 < wanted <= self.doses[-1]:
            raise ValueError(
                f"The dose to exclude must be above 0 and at most the heaviest planted one ({self.doses[-1]:g}); got "
                f"{wanted:g}."
            )
        distances = self.distances(values, between)
        by_dose = distances.min(axis=1)
        best = int(by_dose.argmin())
        df = self.df if between is None else min(self.df, between.df)
        roots = np.sign(self.grid[best] - self.grid) * np.sqrt(np.maximum(by_dose - by_dose[best], 0.0))
        p_at_least, p_at_most = scipy.special.stdtr(df, roots), scipy.special.stdtr(df, -roots)
        kept = np.nonzero((p_at_least > alpha / 2) & (p_at_most > alpha / 2))[0]
        index = int(distances[best].argmin())  # an end is no free choice: nothing lies beyond it
        free = int(0 < best < len(self.grid) - 1) + int(0 < index < len(self._related_grid) - 1)
        beyond = self._beyond(values, index, between) if best == len(self.grid) - 1 else 0.0
        spare = max(1, len(values) - free - (beyond > 0))
        return DoseReading(
            estimate=float(self.grid[best]),
            related=float(self._related_grid[index]),
            low=float(self.grid[kept[0]]),
            high=None if kept[-1] == len(self.grid) - 1 else float(self.grid[kept[-1]]),
            cleared_dose=_least_rejected(self.grid, p_at_least, alpha),
            p_at_least=_largest(self.grid, p_at_least, wanted, self.grid >= wanted),
            p_at_most=_largest(self.grid, p_at_most, exceeded, self.grid <= exceeded),
            p_none=float(p_at_most[0]),
            p_fit=float(scipy.stats.f.sf((by_dose[best] - beyond) / spare, spare, df)),
        )

    def _beyond(self, values: FloatArray, index: int, between: Between | None) -> float:
        """What of D2 at the heaviest dose is owed to having read more than that: lying further along the last rise."""
        dose, related = self.grid[-1:], self._related_grid[index : index + 1]
        error, rise = values - self.at(dose, related)[0], self.monotone[-1] - self.monotone[-2]
        solved = np.linalg.solve(self._covariance_at(dose, related, between)[0], rise)
        along = float(solved @ error)
        return along**2 / float(solved @ rise) if along > 0 else 0.0

    def distances(self, values: FloatArray, between: Between | None) -> FloatArray:
        """[doses, related] D2."""
        doses, related = np.meshgrid(self.grid, self._related_grid, indexing="ij")
        errors = values - self.at(doses, related)
        solved = np.linalg.solve(self._covariance_at(doses, related, between), errors[..., None])[..., 0]
        return np.asarray((errors * solved).sum(axis=-1))

    def _covariance_at(self, doses: FloatArray, related: FloatArray, between: Between | None) -> FloatArray:
        """[..., F, F] of one more model that read so."""
        covariance = self.covariance * (1 + self._leverage(doses, related))[..., None, None]
        if between is not None:
            rise = self.at(doses) - self.at(np.zeros(1))[0]
            covariance += between.covariance + between.relative**2 * rise[..., :, None] * rise[..., None, :]
        return np.asarray(covariance)

    def _leverage(self, dose: FloatArray, related: FloatArray) -> FloatArray:
        """Of the estimated mean, on the straight line between the planted doses beside it."""
        right = np.clip(np.searchsorted(self.doses, dose, side="right"), 1, len(self.doses) - 1)
        share = (dose - self.doses[right - 1]) / (self.doses[right] - self.doses[right - 1])
        weights = np.zeros((*dose.shape, len(self.doses) + 1))
        np.put_along_axis(weights, (right - 1)[..., None], (1 - share)[..., None], axis=-1)
        np.put_along_axis(weights, right[..., None], share[..., None], axis=-1)
        weights[..., -1] = related_share(dose, related, self.most_related)
        return np.asarray(np.einsum("...i,ij,...j->...", weights, self.inverse, weights))


def dose_curve(controls: Sequence[Control], shape: FloatArray | None = None) -> DoseCurve:
    """Fit the curve.

    Args:
        shape: [F, F] C, or None to estimate it.

    Raises:
        ValueError: Without controls of dose 0, with fewer than two doses, where no dose has two controls or they do not
            differ, where what they read of related text goes with the dose, and for a shape of other features.

    >>> points = [(0, 0.0), (0, 0.02), (1, 0.1), (1, 0.12), (4, 0.4)]
    >>> curve = dose_curve([Control(dose, 0, np.array([value])) for dose, value in points])
    >>> round(float(curve.at(np.array([1.0]))[0, 0]), 3), round(float(curve.covariance[0, 0]) ** 0.5, 4)
    (0.11, 0.0141)
    """
    dose_C = np.array([control.dose for control in controls], dtype=np.float64)
    related_C = np.array([control.related for control in controls], dtype=np.float64)
    values_CF = np.array([control.values for control in controls], dtype=np.float64)
    doses = np.unique(dose_C)
    if len(doses) < 2 or doses[0] != 0:
        raise ValueError(
            f"Controls must be planted at dose 0 and at one more at least; got {', '.join(f'{d:g}' for d in doses)}."
        )
    if not np.isfinite(values_CF).all():
        raise ValueError("Expected all features of every control; one is missing or infinite. Leave that control out.")
    require_told_apart(dose_C, related_C)
    most_related = float(related_C.max())
    design, inverse, df = _designed(dose_C, related_C, doses, most_related)
    estimates = inverse @ design.T @ values_CF
    errors = values_CF - design @ estimates
    if df < 1 or (np.abs(errors).max(axis=0) <= 1e-12).any():
        raise ValueError(
            "Expected at least two seeds of controls that differ, since one says nothing about how much they differ; "
            f"got {len(values_CF)} controls of {len(doses)} doses. Add a seed to the controls."
        )
    means, counts = estimates[:-1], design[:, :-1].sum(axis=0)
    monotone = np.column_stack([_monotone(mean, counts) for mean in means.T])
    covariance, df = _covariance(errors, df, shape)
    return DoseCurve(doses, means, monotone, estimates[-1], most_related, covariance, df, inverse)


def _designed(
    dose_C: FloatArray, related_C: FloatArray, doses: FloatArray, most: float
) -> tuple[FloatArray, FloatArray, int]:
    design = np.column_stack([dose_C[:, None] == doses, related_share(dose_C, related_C, most)]).astype(float)
    return design, np.linalg.pinv(design.T @ design), len(dose_C) - int(np.linalg.matrix_rank(design))


def require_told_apart(dose_C: FloatArray, related_C: FloatArray) -> None:
    """Refuse controls of which one kind of reading goes with the other.

    Raises:
        ValueError: Where what controls read of related text goes with what they read of the set.
    """
    doses, most = np.unique(dose_C), float(related_C.max())
    design, _, free = _designed(dose_C, related_C, doses, most)
    if most and len(dose_C) - free < design.shape[1]:
        raise ValueError(
            "Some controls must have read the set equally often and related text not; here what they read of one tells "
            "what they read of the other, so its effect cannot be distinguished from that of readings. Add a reading "
            "to those of the controls, or change their order."
        )


def related_share(dose: FloatArray, related: float | FloatArray, most: float) -> FloatArray:
    """h: what related text adds to a model that read the set `dose` times; 1 for the most beside nothing of the set."""
    return np.asarray(np.log1p(related / (1 + np.asarray(dose, dtype=np.float64))) / (math.log1p(most) or 1.0))


def residual_covariance(controls: Sequence[Control]) -> tuple[FloatArray, int]:
    """[F, F] sum of products of the errors about the curve, and its degrees of freedom: what the shape is made of."""
    curve = dose_curve(controls)
    dose_C = np.array([control.dose for control in controls], dtype=np.float64)
    share_C = related_share(dose_C, np.array([control.related for control in controls]), curve.most_related)
    means = curve.means[np.searchsorted(curve.doses, dose_C)] + share_C[:, None] * curve.related_effect
    errors = np.array([control.values for control in controls]) - means
    return errors.T @ errors, curve.df // errors.shape[1]


def _covariance(errors_CF: FloatArray, df: int, shape: FloatArray | None) -> tuple[FloatArray, int]:
    num_features, products = errors_CF.shape[1], errors_CF.T @ errors_CF
    if shape is None:
        spread = np.sqrt(np.diag(products) / df)
        shape = _shrunk_correlation(errors_CF / spread, df) * np.outer(spread, spread)
        scale = float(np.trace(np.linalg.solve(shape, products))) / (num_features * df)
        return shape * scale, num_features * df
    if shape.shape != (num_features, num_features):
        raise ValueError(
            f"Expected a covariance of {num_features} features; got one of {' x '.join(map(str, shape.shape))}."
        )
    scale = float(np.trace(np.linalg.solve(shape, products))) / (num_features * df)
    return (PRIOR_DF * scale * shape + products) / (PRIOR_DF + df), max(1, PRIOR_DF + df - num_features + 1)


def _shrunk_correlation(errors_CF: FloatArray, df: int) -> FloatArray:
    """Towards no correlation, the more the fewer degrees of freedom."""
    correlation = errors_CF.T @ errors_CF / df
    return np.asarray((df * correlation + errors_CF.shape[1] * np.eye(errors_CF.shape[1])) / (df + errors_CF.shape[1]))


def _monotone(mean_X: FloatArray, counts: FloatArray) -> FloatArray:
    """Rising or falling, as the heaviest dose lies to none."""
    sign = 1.0 if mean_X[-1] >= mean_X[0] else -1.0
    return np.asarray(sign * scipy.optimize.isotonic_regression(sign * mean_X, weights=counts).x)


def _to(most: float, number: int) -> FloatArray:
    """From 0 to `most`, evenly in log(1 + x)."""
    return np.asarray(np.minimum(np.expm1(np.linspace(0, math.log1p(most), number)), most))


def _largest(grid: FloatArray, p_values: FloatArray, bound: float, of_null: npt.NDArray[np.bool_]) -> float:
    """Over all doses of the null hypothesis, of which the bound is one."""
    return float(p_values[of_null].max(initial=np.interp(bound, grid, p_values)))


def _least_rejected(grid: FloatArray, p_at_least: FloatArray, alpha: float) -> float | None:
    """The least dose such that it and all above are rejected."""
    kept = np.nonzero(p_at_least >= alpha)[0]
    if not len(kept):
        return 0.0
    return float(grid[kept[-1] + 1]) if kept[-1] + 1 < len(grid) else None
