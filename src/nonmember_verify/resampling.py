"""Rank correlations, their bootstrap, and permutations; drawn on while p lies near alpha, so that no seed decides."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import stats

from nonmember_verify.bundle import FloatArray, IntArray

Statistic = Callable[..., FloatArray]  # of two arrays of units and the axis that they lie along
ZERO = 1e-12  # a difference of correlations that is zero may come out as that
BLOCK = 2**21  # numbers of a block of resamples


def correlation(x: FloatArray, y: FloatArray, metric: str) -> float:
    """Spearman's rho or Kendall's tau-b; NaN for a constant."""
    return float(correlations(x[None], y[None], metric)[0])


def correlations(x_BN: FloatArray, y_BN: FloatArray, metric: str) -> FloatArray:
    """[B] of the rows."""
    if metric == "kendall":
        return np.array([stats.kendalltau(x, y, variant="b").statistic for x, y in zip(x_BN, y_BN, strict=True)])
    # Twice the centred ranks are whole numbers: the sums carry no rounding.
    x, y = (2 * stats.rankdata(item, axis=1) - (item.shape[1] + 1) for item in (x_BN, y_BN))
    with np.errstate(invalid="ignore", divide="ignore"):
        scale = np.sqrt((x * x).sum(axis=1) * (y * y).sum(axis=1))
        return np.asarray(np.where(scale > 0, (x * y).sum(axis=1) / scale, np.nan))


def resampled(
    others: list[FloatArray],
    target: FloatArray,
    metric: str,
    rng: np.random.Generator,
    num_resamples: int,
    clusters: IntArray | None = None,
) -> FloatArray:
    """[others, B]: correlation of each with the target where documents, or clusters, are drawn with replacement."""
    number, blocks = len(target) if clusters is None else int(clusters.max()) + 1, []
    step = 1 if clusters is not None else max(1, BLOCK // number)
    members = [] if clusters is None else [np.flatnonzero(clusters == item) for item in range(number)]
    for start in range(0, num_resamples, step):
        rows = rng.integers(number, size=(min(step, num_resamples - start), number))
        if clusters is not None:
            rows = np.concatenate([members[item] for item in rows[0]])[None]
        blocks.append([correlations(other[rows], target[rows], metric) for other in others])
    return np.concatenate(blocks, axis=1)


def num_reached(distribution: FloatArray, margin: float) -> int:
    """Resamples at or below the margin, or undefined."""
    return len(distribution) - int((distribution > margin + ZERO).sum())


def until_decided(reached: Callable[[int], int], number: int, alpha: float) -> tuple[float, int]:
    """p of random draws and how many they were: as many again while p lies within four standard errors of alpha, up to
    a million in all. reached: of so many more draws, how many come up to what was observed."""
    drawn, count = number, reached(number)
    while True:
        p = (1 + count) / (1 + drawn)
        more = min(drawn, 1_000_000 - drawn)
        if more <= 0 or abs(p - alpha) > 4 * math.sqrt(p * (1 - p) / drawn):
            return p, drawn
        drawn, count = drawn + more, count + reached(more)


def permuted(
    first: FloatArray, second: FloatArray, statistic: Statistic, number: int, alpha: float, rng: np.random.Generator
) -> tuple[float, int | None]:
    """One-sided p of units that change groups, and how many random permutations it took; all ways where they are no
    more than the number."""

    def p_of(number: float) -> float:
        batch = max(1, BLOCK // (len(first) + len(second)))
        options: Any = {"n_resamples": number, "batch": batch, "alternative": "greater", "rng": rng}
        return float(stats.permutation_test((first, second), statistic, vectorized=True, **options).pvalue)

    if math.comb(len(first) + len(second), len(first)) <= number:
        return p_of(math.inf), None
    return until_decided(lambda more: round(p_of(more) * (more + 1)) - 1, number, alpha)


def permuted_within_strata(
    strata: IntArray, number: int, statistic: Statistic, draws: int, alpha: float, rng: np.random.Generator
) -> tuple[float, int | None]:
    """The same of units that change groups within their stratum alone; the first `number` units are the first group."""
    members = [np.flatnonzero(strata == name) for name in np.unique(strata)]
    sizes = [int((item < number).sum()) for item in members]
    units = np.arange(len(strata))
    observed = float(statistic(units[:number].astype(float), units[number:].astype(float), -1))

    def reach(first: IntArray) -> int:
        rest = np.array([np.setdiff1d(units, row) for row in first])
        return int((statistic(first.astype(float), rest.astype(float), -1) >= observed - abs(observed) * 1e-14).sum())

    def random(more: int) -> int:
        found, step = 0, max(1, 2**20 // len(units))
        for start in range(0, more, step):
            keys = rng.random((min(step, more - start), len(units)))
            order = [item[np.argsort(keys[:, item], axis=1)] for item in members]
            found += reach(np.hstack([rows[:, :size] for rows, size in zip(order, sizes, strict=True)]))
        return found

    ways = math.prod(math.comb(len(item), size) for item, size in zip(members, sizes, strict=True))
    if ways > draws:
        return until_decided(random, draws, alpha)
    chosen = itertools.product(*(itertools.combinations(item, size) for item, size in zip(members, sizes, strict=True)))
    return reach(np.array([np.concatenate(way) for way in chosen]).astype(np.int64)) / ways, None


def interval_of(distribution: FloatArray, alpha: float) -> tuple[float | None, float | None]:
    defined = distribution[~np.isnan(distribution)]
    if not len(defined):
        return None, None
    low, high = np.quantile(defined, (alpha / 2, 1 - alpha / 2))
    return float(low), float(high)
