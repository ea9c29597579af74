"""The curve of the dose meter, and a target read off it: what `stats.dose_curve` does, written down a second time.

Other ways where there are any: the isotonic regression by its max-min formula, the monotone cubic by its own formula,
least squares by a singular value decomposition, tails by incomplete beta functions.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from nonmember_verify.bundle import FloatArray
from nonmember_verify.tails import f_above, t_below

DOSES, RELATED = 241, 13


@dataclass(frozen=True)
class Control:
    dose: float
    related: float
    features: FloatArray


@dataclass(frozen=True)
class Between:
    covariance: FloatArray
    relative: float
    df: float


@dataclass(frozen=True)
class Reading:
    estimate: float
    related: float
    low: float
    high: float | None
    cleared: float | None
    p_at_least: float
    p_at_most: float
    p_none: float
    p_fit: float


class Curve:
    """Raises ValueError where the controls do not make one."""

    def __init__(self, controls: list[Control], shape: FloatArray | None):
        dose = np.array([one.dose for one in controls], dtype=np.float64)
        related = np.array([one.related for one in controls], dtype=np.float64)
        features = np.array([one.features for one in controls], dtype=np.float64)
        self.doses = np.unique(dose)
        self.most_related = float(related.max())
        design = np.column_stack([dose[:, None] == self.doses, self.share(dose, related)]).astype(np.float64)
        left, singular, right = np.linalg.svd(design, full_matrices=False)
        kept = singular > singular.max() * max(design.shape) * np.finfo(np.float64).eps
        inverse = (right[kept].T / singular[kept]) @ left[:, kept].T
        self.inverse = (right[kept].T / singular[kept] ** 2) @ right[kept]
        estimates = inverse @ features
        errors = features - design @ estimates
        df = len(features) - int(kept.sum())
        if df < 1 or (np.abs(errors).max(axis=0) <= 1e-12).any():
            raise ValueError("too few controls")
        counts = design[:, :-1].sum(axis=0)
        self.monotone = np.column_stack([_monotone(column, counts) for column in estimates[:-1].T])
        self.effect = estimates[-1]
        self.covariance, self.df = _covariance(errors, df, shape)
        self.grid = _even(float(self.doses[-1]), DOSES)
        self.related_grid = _even(self.most_related, RELATED) if self.most_related else np.zeros(1)

    def share(self, dose: FloatArray, related: FloatArray) -> FloatArray:
        most = math.log1p(self.most_related) or 1.0
        return np.asarray((np.log1p(dose + related) - np.log1p(dose)) / most)

    @property
    def separation(self) -> float:
        rise = self.monotone[-1] - self.monotone[0]
        return math.sqrt(float(rise @ np.linalg.inv(self.covariance) @ rise))

    def read(
        self, features: FloatArray, wanted: float, alpha: float, between: Between | None = None, exceeded: float = 0.0
    ) -> Reading:
        means = np.column_stack([_cubic(self.doses, column, self.grid) for column in self.monotone.T])
        squared = self._distances(features, means, between)
        by_dose = squared.min(axis=1)
        best = int(by_dose.argmin())
        df = self.df if between is None else min(self.df, between.df)
        roots = np.sign(self.grid[best] - self.grid) * np.sqrt(np.maximum(by_dose - by_dose[best], 0.0))
        at_least = np.array([t_below(root, df) for root in roots])
        at_most = np.array([t_below(-root, df) for root in roots])
        kept = [place for place in range(DOSES) if min(at_least[place], at_most[place]) > alpha / 2]
        cleared = [place for place in range(DOSES) if at_least[place] >= alpha]
        after = cleared[-1] + 1 if cleared else 0
        place = int(squared[best].argmin())
        free = (0 < best < DOSES - 1) + (0 < place < len(self.related_grid) - 1)
        beyond = 0.0
        if best == DOSES - 1:
            error = features - means[-1] - float(self.share(self.grid[-1:], self.related_grid[place])[0]) * self.effect
            rise = self.monotone[-1] - self.monotone[-2]
            inverse = np.linalg.inv(self._covariances(means, between)[-1, place])
            along = float(rise @ inverse @ error)
            beyond = along**2 / float(rise @ inverse @ rise) if along > 0 else 0.0
        spare = max(1, len(features) - free - (beyond > 0))
        return Reading(
            float(self.grid[best]),
            float(self.related_grid[place]),
            float(self.grid[kept[0]]),
            None if kept[-1] == DOSES - 1 else float(self.grid[kept[-1]]),
            float(self.grid[after]) if after < DOSES else None,
            max([float(np.interp(wanted, self.grid, at_least)), *at_least[self.grid >= wanted].tolist()]),
            max([float(np.interp(exceeded, self.grid, at_most)), *at_most[self.grid <= exceeded].tolist()]),
            float(at_most[0]),
            f_above((float(by_dose[best]) - beyond) / spare, spare, df),
        )

    def _distances(self, features: FloatArray, means: FloatArray, between: Between | None) -> FloatArray:
        """[doses, related]"""
        share = self.share(self.grid[:, None], self.related_grid[None])
        errors = features - means[:, None] - share[..., None] * self.effect
        inverse = np.linalg.inv(self._covariances(means, between))
        return np.asarray((errors[..., None, :] @ inverse @ errors[..., None])[..., 0, 0])

    def _covariances(self, means: FloatArray, between: Between | None) -> FloatArray:
        """[doses, related, F, F] of one more model."""
        share = self.share(self.grid[:, None], self.related_grid[None])
        right = np.clip(np.searchsorted(self.doses, self.grid, side="right"), 1, len(self.doses) - 1)
        part = (self.grid - self.doses[right - 1]) / (self.doses[right] - self.doses[right - 1])
        weights = np.zeros((*share.shape, len(self.doses) + 1))
        for place, (after, of_after) in enumerate(zip(right, part, strict=True)):
            weights[place, :, after - 1], weights[place, :, after] = 1 - of_after, of_after
        weights[..., -1] = share
        leverage = ((weights @ self.inverse) * weights).sum(axis=-1)
        covariance = self.covariance * (1 + leverage)[..., None, None]
        if between is not None:
            rise = means - means[0]
            more = between.covariance + between.relative**2 * rise[:, :, None] * rise[:, None, :]
            covariance = covariance + more[:, None]
        return np.asarray(covariance)


def _even(most: float, number: int) -> FloatArray:
    return np.asarray(np.minimum(np.expm1(np.linspace(0, math.log1p(most), number)), most))


def _monotone(means: FloatArray, counts: FloatArray) -> FloatArray:
    """Weighted isotonic regression: greatest over where a block begins of the least over where it ends."""
    sign = 1.0 if means[-1] >= means[0] else -1.0
    values, number = sign * means, len(means)
    sums = np.concatenate([[0.0], np.cumsum(values * counts)])
    weights = np.concatenate([[0.0], np.cumsum(counts)])

    def mean(start: int, end: int) -> float:
        return float((sums[end + 1] - sums[start]) / (weights[end + 1] - weights[start]))

    return sign * np.array(
        [max(min(mean(start, end) for end in range(place, number)) for start in range(place + 1))
         for place in range(number)]
    )  # fmt: skip


def _cubic(x: FloatArray, y: FloatArray, at: FloatArray) -> FloatArray:
    """Fritsch and Carlson's monotone cubic, with the harmonic means and the ends of Fritsch and Butland."""
    steps, slopes = np.diff(x), np.diff(y) / np.diff(x)
    if len(x) == 2:
        return np.asarray(y[0] + slopes[0] * (at - x[0]))
    tangents = np.zeros(len(x))
    for place in range(1, len(x) - 1):
        before, after = slopes[place - 1], slopes[place]
        if before * after > 0:
            one, other = 2 * steps[place] + steps[place - 1], steps[place] + 2 * steps[place - 1]
            tangents[place] = (one + other) / (one / before + other / after)
    tangents[0] = _end(steps[0], steps[1], slopes[0], slopes[1])
    tangents[-1] = _end(steps[-1], steps[-2], slopes[-1], slopes[-2])
    left = np.clip(np.searchsorted(x, at, side="right") - 1, 0, len(x) - 2)
    step = steps[left]
    t = (at - x[left]) / step
    return np.asarray(
        (1 + 2 * t) * (1 - t) ** 2 * y[left] + t * (1 - t) ** 2 * step * tangents[left]
        + t * t * (3 - 2 * t) * y[left + 1] - t * t * (1 - t) * step * tangents[left + 1]
    )  # fmt: skip


def _end(step: float, other_step: float, slope: float, other: float) -> float:
    found = ((2 * step + other_step) * slope - step * other) / (step + other_step)
    if found * slope <= 0:
        return 0.0
    if slope * other <= 0 and abs(found) > 3 * abs(slope):
        return 3 * slope
    return float(found)


def _covariance(errors: FloatArray, df: int, shape: FloatArray | None) -> tuple[FloatArray, int]:
    number = errors.shape[1]
    products = errors.T @ errors
    if shape is None:
        spread = np.sqrt(np.diag(products) / df)
        correlation = products / df / np.outer(spread, spread)
        shape = (df * correlation + number * np.eye(number)) / (df + number) * np.outer(spread, spread)
    scale = float(np.trace(np.linalg.inv(shape) @ products)) / (number * df)
    return np.asarray(shape * scale), number * df
