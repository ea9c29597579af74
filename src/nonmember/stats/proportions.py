"""How often something happened: exact bounds of a share, whether it happened more often in one group, and by how much
(`difference_of_rates`, by bootstrap and in large samples).

Shapes: N units (documents, or clusters of them), B resamples, K kinds of units: those with as many questions and as
many hits are the same to a resample, so it is enough to count the kinds. The counts of a draw of n units with
replacement are multinomial, which is exactly the draw itself: nothing is approximated.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import scipy

from nonmember.checks import require_count
from nonmember.stats._arrays import FloatArray, IntArray, as_scores
from nonmember.stats.monte_carlo import PermutationP, draws_to_add, monte_carlo_error, permutation_p


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
    first: npt.ArrayLike, second: npt.ArrayLike, *, num_permutations: int, alpha: float, rng: np.random.Generator
) -> PermutationP:
    """Permutation test of H0: the two groups are alike.

    Where all shares are 0 or 1 it is Fisher's exact test; else units change groups (`monte_carlo.permutation_p`): the
    same test, of the units' shares in place of hits. (For 0 and 1 the sum of a group under permutation is
    hypergeometric, which is Fisher's distribution.)

    Args:
        first: [N] a share per unit (book, thread, document), in [0, 1].
        second: [N] the same of the second group.
        num_permutations: As in `permutation_p`.
        alpha: As there.
        rng: As there.

    Returns:
        The one-sided p, small where the mean of the first group lies above that of the second.

    Raises:
        ValueError: For NaN; and where units are permuted for an empty group, and fewer than one permutation.

    Source: Ours; docs/methods/prefix_completion.md.

    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> round(shares_greater([1, 1, 1, 0], [0, 0, 0, 1], num_permutations=1000, alpha=0.05, rng=rng).p_value, 3)
    0.243
    """
    first, second = as_scores("first", first), as_scores("second", second)
    if np.isin(np.concatenate([first, second]), (0, 1)).all():
        return PermutationP(fisher_greater(int(first.sum()), first.size, int(second.sum()), second.size))
    if min(first.size, second.size) == 1:  # which SciPy refuses: the one may be any of them all
        both = np.concatenate([first, second])
        return PermutationP(float((both >= first[0] if first.size == 1 else both <= second[0]).mean()))
    return permutation_p(first, second, _difference, num_permutations=num_permutations, alpha=alpha, rng=rng)


def _difference(first: FloatArray, second: FloatArray, axis: int) -> FloatArray:
    difference: FloatArray = first.mean(axis=axis) - second.mean(axis=axis)
    return difference


# Rates of questions about units ---------------------------------------------------------------------------------------


_BLOCK_ELEMENTS = 2**22  # resamples times kinds of a block


@dataclass(frozen=True)
class Hits:
    """Hits of some units.

    Attributes:
        hits: [N] of each unit.
        asked: [N] questions about it, at least 1, of which no more than these are hits.

    Raises:
        ValueError: Without any unit.
    """

    hits: IntArray
    asked: IntArray

    def __post_init__(self) -> None:
        hits, asked = np.asarray(self.hits, np.int64), np.asarray(self.asked, np.int64)
        assert hits.shape == asked.shape
        assert ((hits >= 0) & (hits <= asked) & (asked > 0)).all()
        if not len(hits):
            raise ValueError("There is nothing to compare: no document of one of the sets has an answer.")
        object.__setattr__(self, "hits", hits)
        object.__setattr__(self, "asked", asked)

    @property
    def rate(self) -> float:
        """Of all questions together."""
        return float(self.hits.sum() / self.asked.sum())

    @property
    def variance_of_rate(self) -> float:
        """In large samples, over units: r (1 - r) / N for one question each."""
        return float(((self.hits - self.rate * self.asked) ** 2).sum() / self.asked.sum() ** 2)

    def first(self, number: int) -> Hits:
        return Hits(self.hits[:number], self.asked[:number])


FEW_HITS, FEW_PERMUTATIONS = 5, 1999
FEW = (
    f"One set has fewer than {FEW_HITS} {{what}}, which is too few to see how much they vary; an exact test decides "
    "too (p = {p:.2g})."
)


def exact_where_few(less: Hits, more: Hits, alpha: float) -> dict[str, float]:
    """Permutation test of the units' shares where a side has fewer than `FEW_HITS` hits, or misses.

    One without any seems not to vary, and the smaller side is without any often by chance: tests that estimate how much
    rates vary then reject far too often.

    Args:
        less: Hits of the units of one side.
        more: Hits of the units of the other.
        alpha: Level of the test.

    Returns:
        "hits" or "misses", of which there are few -> one-sided p of `shares_greater`, small where `more` has more; its
        permutations are always the same.

    Source: Ours; docs/methods/mc_pdd.md.

    >>> exact_where_few(Hits([0, 0, 0], [9, 9, 9]), Hits([2, 4, 5], [9, 9, 9]), alpha=0.05)
    {'hits': 0.05}
    """
    numbers = {"hits": (less.hits, more.hits), "misses": (less.asked - less.hits, more.asked - more.hits)}
    few = [what for what, both in numbers.items() if min(int(item.sum()) for item in both) < FEW_HITS]
    if not few:
        return {}
    shares = [np.sort(side.hits / side.asked) for side in (more, less)]  # so that the order of units does not matter
    rng = np.random.default_rng(0)
    return {" and ".join(few): shares_greater(*shares, num_permutations=FEW_PERMUTATIONS, alpha=alpha, rng=rng).p_value}


@dataclass(frozen=True, eq=False)
class RateDifference:
    """Difference of two rates, less minus more, and its bootstrap.

    Attributes:
        difference: The rate of `less` minus that of `more`.
        p_value: One-sided, small where `less` has less.
        num_resamples: Drawn in all: as many as were asked for, or more where p lay near alpha.
        lower: As far on the other side as `upper`.
        upper: Bound of level 1 - alpha on the difference.
        z: Of the difference over its standard error in large samples, NaN where that is 0.
        z_p_value: p of `z`, NaN likewise.
        distribution: [B] resampled differences.
    """

    difference: float
    p_value: float
    num_resamples: int
    lower: float
    upper: float
    z: float
    z_p_value: float
    distribution: FloatArray = field(repr=False)

    @property
    def p_error(self) -> float:
        """Monte-Carlo standard error of p."""
        return monte_carlo_error(self.p_value, self.num_resamples)


def difference_of_rates(
    less: Hits, more: Hits, *, num_resamples: int, alpha: float, rng: np.random.Generator, size: int | None = None
) -> RateDifference:
    """One-sided bootstrap of Delta = rate(less) - rate(more). H1: Delta < 0.

    A resample draws units with replacement from each side by itself.

        p = (1 + #{b: Delta^(b) >= 0}) / (B + 1)

    Ties count, by exact arithmetic. While p lies within four standard errors of alpha, B is doubled, up to a million
    (`monte_carlo.draws_to_add`). The upper bound is the 1 - alpha quantile of Delta^(b), linearly interpolated.

    Args:
        less: Hits of the units of one side.
        more: Hits of the units of the other.
        num_resamples: B to begin with.
        alpha: Level of the test and of the bounds.
        rng: Of the resamples.
        size: Units that a resample draws of each side; None: as many as there are.

    Returns:
        Delta in [-1, 1] with its p, bounds and z.

    Raises:
        ValueError: For fewer than one resample, a negative size, and an alpha outside [0, 1].

    Source: MC-PDD says "bootstrap" and no more. This was recovered from its tables VI, XI and XIII, whose p-values are
    multiples of 1/50,000 (without the 1 of ours) and whose bounds are these quantiles.

    >>> import numpy as np
    >>> less, more = Hits([1, 0, 0, 0], [2, 2, 2, 2]), Hits([2, 1, 2, 1], [2, 2, 2, 2])
    >>> found = difference_of_rates(less, more, num_resamples=1000, alpha=0.05, rng=np.random.default_rng(0))
    >>> found.difference, found.p_value < 0.01
    (-0.625, True)
    """
    require_count(num_resamples, 1, "num_resamples")
    numbers = [len(side.hits) if size is None else size for side in (less, more)]
    distribution, num_reached, more_draws = np.empty(0), 0, num_resamples
    while more_draws:
        (hits_less, asked_less), (hits_more, asked_more) = (
            _resampled(side, number, more_draws, rng) for side, number in zip((less, more), numbers, strict=True)
        )
        num_reached += int((hits_less * asked_more >= hits_more * asked_less).sum())  # Delta >= 0 without a division
        distribution = np.concatenate([distribution, hits_less / asked_less - hits_more / asked_more])
        p_value = (1 + num_reached) / (distribution.size + 1)
        more_draws = draws_to_add(p_value, distribution.size, alpha)
    lower, upper = np.quantile(distribution, (alpha, 1 - alpha))
    error = math.sqrt(
        sum(side.variance_of_rate * len(side.hits) / number for side, number in zip((less, more), numbers, strict=True))
    )
    z = (less.rate - more.rate) / error if error > 0 else float("nan")
    return RateDifference(
        difference=less.rate - more.rate,
        p_value=p_value,
        num_resamples=distribution.size,
        lower=float(lower),
        upper=float(upper),
        z=z,
        z_p_value=float(scipy.stats.norm.cdf(z)),
        distribution=distribution,
    )


def _resampled(
    side: Hits, number: int, num_resamples: int, rng: np.random.Generator
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """[B] hits and [B] questions of draws of so many units with replacement."""
    kinds_K2, counts_K = np.unique(np.stack([side.hits, side.asked], axis=1), axis=0, return_counts=True)
    block = max(1, _BLOCK_ELEMENTS // len(kinds_K2))
    totals = [
        rng.multinomial(number, counts_K / counts_K.sum(), size=min(block, num_resamples - start)) @ kinds_K2
        for start in range(0, num_resamples, block)
    ]
    hits_B, asked_B = np.concatenate(totals).T
    return hits_B, asked_B
