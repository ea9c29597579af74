"""p-values from random draws: how far chance moves them, and how long to draw so that chance decides no verdict."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import scipy

MOST_DRAWS = 1_000_000
_BLOCK_ELEMENTS = 2**20  # units times permutations of a block: 8 MiB an array
SIGMAS = 4.0  # standard errors between p and alpha from which on a verdict does not depend on the draws


def monte_carlo_error(p_value: float, num_draws: int) -> float:
    """Standard error of a p-value from so many independent draws, sqrt(p (1 - p) / B).

    Source: Davison and Hinkley, Bootstrap Methods and their Application (1997), section 4.2.5.

    >>> round(monte_carlo_error(0.05, 10_000), 4)
    0.0022
    """
    return math.sqrt(p_value * (1 - p_value) / num_draws)


def draws_to_add(p_value: float, num_draws: int, alpha: float) -> int:
    """How many more draws a verdict at `alpha` needs: as many again while p lies within four standard errors of alpha,
    up to a million in all; none otherwise.

    A stop after each doubling costs next to nothing: p is four standard errors away wherever it ends before a million.

    >>> draws_to_add(0.0513, 10_000, alpha=0.05), draws_to_add(0.2, 10_000, alpha=0.05)
    (10000, 0)
    """
    if abs(p_value - alpha) > SIGMAS * monte_carlo_error(p_value, num_draws):
        return 0
    return max(0, min(num_draws, MOST_DRAWS - num_draws))


class PermutationP(NamedTuple):
    """p of a permutation test.

    Attributes:
        num_draws: Random permutations; None where all of them were enumerated, or p was computed exactly.
    """

    p_value: float
    num_draws: int | None = None

    @property
    def p_error(self) -> float | None:
        """Monte-Carlo standard error of p; None where it is exact."""
        return None if self.num_draws is None else monte_carlo_error(self.p_value, self.num_draws)


def permutation_p(
    first: npt.NDArray[Any],
    second: npt.NDArray[Any],
    statistic: Callable[..., npt.NDArray[np.float64]],
    *,
    num_permutations: int,
    alpha: float,
    rng: np.random.Generator,
    strata: npt.NDArray[np.int64] | None = None,
) -> PermutationP:
    """One-sided p of a statistic of two groups whose units change groups at random.

    All ways are enumerated where there are no more than `num_permutations` of them; else
    p = (1 + #{at least as high}) / (1 + B), with B drawn on while p lies near alpha (`draws_to_add`).

    Args:
        first: [N] units of the first group.
        second: [N] units of the second.
        statistic: Of two arrays of units and `axis=-1`, high where the first group has more.
        num_permutations: B to begin with.
        alpha: Level of the test.
        rng: Of the permutations.
        strata: [units of the first group, then of the second] whole numbers; units change groups within their stratum
            alone, so that each keeps its numbers. None: all are one.

    Raises:
        ValueError: For an empty group, or one of a single unit.

    Source: Fisher, The Design of Experiments, 1935; the added one: Phipson and Smyth, 2010.

    >>> def difference(x, y, axis):
    ...     return x.mean(axis=axis) - y.mean(axis=axis)
    >>> rng, first, second = np.random.default_rng(0), np.array([3.0, 4.0, 6.0]), np.array([1.0, 2.0, 3.5])
    >>> permutation_p(first, second, difference, num_permutations=100, alpha=0.05, rng=rng)
    PermutationP(p_value=0.1, num_draws=None)
    """
    if strata is not None and len(np.unique(strata)) > 1:
        return _within_strata(
            np.concatenate([first, second]), first.size, strata, statistic, num_permutations, alpha, rng
        )
    if math.comb(first.size + second.size, first.size) <= num_permutations:
        enumerated = scipy.stats.permutation_test(
            (first, second), statistic, vectorized=True, n_resamples=math.inf, alternative="greater"
        )
        return PermutationP(float(enumerated.pvalue))
    as_high, num_draws, more, p_value = 0, 0, num_permutations, 1.0
    while more:
        drawn = scipy.stats.permutation_test(
            (first, second),
            statistic,
            vectorized=True,
            n_resamples=more,
            alternative="greater",
            rng=rng,
            batch=max(1, _BLOCK_ELEMENTS // (first.size + second.size)),
        )
        as_high += round(float(drawn.pvalue) * (more + 1)) - 1
        num_draws += more
        p_value = (1 + as_high) / (1 + num_draws)
        more = draws_to_add(p_value, num_draws, alpha)
    return PermutationP(p_value, num_draws)


def _within_strata(
    units: npt.NDArray[Any],
    number: int,
    strata: npt.NDArray[np.int64],
    statistic: Callable[..., npt.NDArray[np.float64]],
    num_permutations: int,
    alpha: float,
    rng: np.random.Generator,
) -> PermutationP:
    """number: units of the first group, which come first."""
    observed = float(statistic(units[:number], units[number:], axis=-1))
    least = observed - abs(observed) * 1e-14  # sums in another order
    of_stratum = [np.flatnonzero(strata == stratum) for stratum in np.unique(strata)]
    num_first = [int((members < number).sum()) for members in of_stratum]

    def count(first_BN: npt.NDArray[np.int64]) -> int:
        """How many of these first groups reach what was observed."""
        is_first = np.zeros((len(first_BN), units.size), dtype=bool)
        np.put_along_axis(is_first, first_BN, True, axis=1)
        second_BN = np.nonzero(~is_first)[1].reshape(len(first_BN), -1)
        return int((statistic(units[first_BN], units[second_BN], axis=-1) >= least).sum())

    if (num_ways := math.prod(map(math.comb, map(len, of_stratum), num_first))) <= num_permutations:
        ways = itertools.product(*map(itertools.combinations, of_stratum, num_first))
        return PermutationP(count(np.array([list(itertools.chain(*way)) for way in ways])) / num_ways)
    as_high, num_draws, more, p_value = 0, 0, num_permutations, 1.0
    while more:
        for start in range(0, more, block := max(1, _BLOCK_ELEMENTS // units.size)):
            keys = rng.random((min(block, more - start), units.size))
            drawn = [
                members[np.argsort(keys[:, members], axis=1)[:, :size]]
                for members, size in zip(of_stratum, num_first, strict=True)
            ]
            as_high += count(np.concatenate(drawn, axis=1))
        num_draws += more
        p_value = (1 + as_high) / (1 + num_draws)
        more = draws_to_add(p_value, num_draws, alpha)
    return PermutationP(p_value, num_draws)
