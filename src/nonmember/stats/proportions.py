"""How often something happened: exact bounds of a share, and whether it happened more often in one group."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import scipy

from nonmember.stats._arrays import as_scores


class Interval(NamedTuple):
    low: float
    high: float


def exact_interval(num_hits: int, num_trials: int, alpha: float) -> Interval:
    """Clopper and Pearson's two-sided interval of level 1 - alpha for the probability of a hit in each trial."""
    found = scipy.stats.binomtest(num_hits, num_trials).proportion_ci(1 - alpha, method="exact")
    return Interval(float(found.low), float(found.high))


def exact_upper_bound(num_hits: int, num_trials: int, alpha: float) -> float:
    """Clopper and Pearson's one-sided upper bound of level 1 - alpha."""
    found = scipy.stats.binomtest(num_hits, num_trials, alternative="less").proportion_ci(1 - alpha, method="exact")
    return float(found.high)


def fisher_greater(first_hits: int, num_first: int, second_hits: int, num_second: int) -> float:
    """One-sided p of Fisher's exact test, small where hits are more frequent in the first group."""
    table = [[first_hits, num_first - first_hits], [second_hits, num_second - second_hits]]
    return float(scipy.stats.fisher_exact(table, alternative="greater").pvalue)


def shares_greater(
    first: npt.ArrayLike, second: npt.ArrayLike, *, num_permutations: int, rng: np.random.Generator
) -> float:
    """One-sided p of H0: the two groups are alike, small where the mean of the first lies above that of the second.

    first, second: [N] a share per unit (book, thread, document), in [0, 1]. Where all are 0 or 1 it is Fisher's exact
    test; else units change groups at random, or in all ways where there are no more than `num_permutations` of them:
    the same test, of the units' shares in place of hits. (For 0 and 1 the sum of a group under permutation is
    hypergeometric, which is Fisher's distribution.)
    """
    first, second = as_scores("first", first), as_scores("second", second)
    if np.isin(np.concatenate([first, second]), (0, 1)).all():
        return fisher_greater(int(first.sum()), first.size, int(second.sum()), second.size)
    found = scipy.stats.permutation_test(
        (first, second), _difference, vectorized=True, n_resamples=num_permutations, alternative="greater", rng=rng
    )
    return float(found.pvalue)


def _difference(first: npt.NDArray[np.float64], second: npt.NDArray[np.float64], axis: int) -> npt.NDArray[np.float64]:
    difference: npt.NDArray[np.float64] = first.mean(axis=axis) - second.mean(axis=axis)
    return difference
