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
    """Two-sided exact interval for the probability of a hit in each trial.

    Args:
        num_hits: Out of `num_trials`.
        num_trials: At least 1.
        alpha: The level is 1 - alpha.

    Returns:
        Both bounds, in [0, 1].

    Raises:
        ValueError: For more hits than trials, no trial, negative numbers, and an alpha outside [0, 1].

    Source: Clopper and Pearson, Biometrika 26, 1934.

    >>> low, high = exact_interval(8, 10, alpha=0.05)
    >>> round(low, 3), round(high, 3)
    (0.444, 0.975)
    """
    found = scipy.stats.binomtest(num_hits, num_trials).proportion_ci(1 - alpha, method="exact")
    return Interval(float(found.low), float(found.high))


def exact_upper_bound(num_hits: int, num_trials: int, alpha: float) -> float:
    """One-sided exact upper bound for the probability of a hit in each trial.

    Args:
        num_hits: As in `exact_interval`.
        num_trials: As in `exact_interval`.
        alpha: As in `exact_interval`.

    Returns:
        The bound of level 1 - alpha, in [0, 1].

    Raises:
        ValueError: As `exact_interval`.

    Source: Clopper and Pearson, Biometrika 26, 1934.

    >>> round(exact_upper_bound(0, 10, alpha=0.05), 3)
    0.259
    """
    found = scipy.stats.binomtest(num_hits, num_trials, alternative="less").proportion_ci(1 - alpha, method="exact")
    return float(found.high)


def fisher_greater(first_hits: int, num_first: int, second_hits: int, num_second: int) -> float:
    """Fisher's exact test of whether hits are more frequent in the first group.

    Args:
        first_hits: Units with a hit, out of `num_first`.
        num_first: Units of the first group.
        second_hits: Units with a hit, out of `num_second`.
        num_second: Units of the second group.

    Returns:
        The one-sided p, small where hits are more frequent in the first group.

    Raises:
        ValueError: For more hits than units, and negative numbers.

    Source: Fisher, Statistical Methods for Research Workers, 5th edition, 1934.

    >>> round(fisher_greater(8, 10, 2, 10), 4)
    0.0115
    """
    table = [[first_hits, num_first - first_hits], [second_hits, num_second - second_hits]]
    return float(scipy.stats.fisher_exact(table, alternative="greater").pvalue)


def shares_greater(
    first: npt.ArrayLike, second: npt.ArrayLike, *, num_permutations: int, rng: np.random.Generator
) -> float:
    """Permutation test of H0: the two groups are alike.

    Where all shares are 0 or 1 it is Fisher's exact test; else units change groups at random, or in all ways where
    there are no more than `num_permutations` of them: the same test, of the units' shares in place of hits. (For 0 and
    1 the sum of a group under permutation is hypergeometric, which is Fisher's distribution.)

    Args:
        first: [N] a share per unit (book, thread, document), in [0, 1].
        second: [N] the same of the second group.
        num_permutations: At most.
        rng: Of the permutations.

    Returns:
        The one-sided p, small where the mean of the first group lies above that of the second.

    Raises:
        ValueError: For NaN; and where units are permuted for fewer than two in a group, and fewer than one permutation.

    Source: Ours; docs/methods/prefix_completion.md.

    >>> import numpy as np
    >>> round(shares_greater([1, 1, 1, 0], [0, 0, 0, 1], num_permutations=1000, rng=np.random.default_rng(0)), 3)
    0.243
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
