"""Exact tests of canaries: of exchangeable variants one was drawn at random and published, the others kept secret."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import scipy

from nonmember.stats._arrays import FloatArray, as_scores, check_level


@dataclass(frozen=True)
class CanaryRanks:
    """Where the published variants stand among their own.

    Attributes:
        p_value: One-sided; small where published variants score higher than private ones.
        ranks: [canaries], 1 for the highest score; a tie counts against the published variant.
        num_variants: [canaries], the published one among them.
        share_below: Mean share of the private variants that score lower than the published one.
        mean_difference: Of the published variant's score and the mean of its private ones, over canaries.
        shift: The same in standard deviations of the private variants; NaN where those of some canary do not vary.
    """

    p_value: float
    ranks: tuple[int, ...]
    num_variants: tuple[int, ...]
    share_below: float
    mean_difference: float
    shift: float


def rank_sum_test(published: npt.ArrayLike, private: Sequence[npt.ArrayLike]) -> CanaryRanks:
    """Sum of the ranks of published variants, against its exact distribution where none was read.

    Of a canary that was not read, the published variant is any of its k with the same chance, so that its rank is
    uniform on 1 to k whatever the model; of one canary p = rank / k. The canaries' draws are independent, so that their
    ranks are. Ties count as if the private variant scored higher, which makes p larger.

    Args:
        published: [canaries] score of the variant that was published; higher means more likely read.
        private: Of each canary the scores of the others, at least one.

    Returns:
        p = P(sum of independent uniform ranks <= sum of the ranks).

    Raises:
        ValueError: For no canary, NaN, and a canary without a private variant.

    Source: Meeus et al., 2024 (copyright traps); Wei et al., 2024 (data watermarks); docs/methods/canary.md.

    >>> rank_sum_test([3.0, 5.0], [[1.0, 2.0, 4.0], [0.0, 1.0, 2.0]]).p_value  # ranks 2 and 1 of 4: 3 pairs of 16
    0.1875
    """
    scores, others = _variants(published, private)
    ranks = tuple(1 + int((other >= score).sum()) for score, other in zip(scores.tolist(), others, strict=True))
    sizes = tuple(other.size + 1 for other in others)
    return _described(rank_sum_cdf(sum(ranks), sizes), ranks, sizes, scores, others)


def rank_sum_cdf(total: int, sizes: Sequence[int]) -> float:
    """P(sum of independent ranks <= total), each uniform on 1 to its size, by convolution.

    >>> rank_sum_cdf(3, [6, 6])  # two dice
    0.08333333333333333
    """
    room = total - len(sizes)
    if not 0 <= room < sum(sizes) - len(sizes):
        return float(room >= 0)
    mass = np.ones(1)
    for size in sizes:
        mass = np.convolve(mass, np.full(size, 1 / size))[: room + 1]
    return min(1.0, float(mass.sum()))


def canary_power(shift: float, num_canaries: int, num_variants: int, *, alpha: float) -> float:
    """Probability that `rank_sum_test` finds p < alpha where reading moves a score by `shift`.

    Args:
        shift: Of the published variant's score, in standard deviations between variants, whose scores are normal.
        num_canaries: Independent ones.
        num_variants: Of each, the published one among them.
        alpha: Of the test.

    Returns:
        Exact under that model, by quadrature and convolution; 0 where no ranks give p < alpha.

    Source: own; docs/methods/canary.md.

    >>> canary_power(0.0, 1, 100, alpha=0.055)
    0.05
    """
    check_level(alpha)
    null = np.ones(1)
    for _ in range(num_canaries):
        null = np.convolve(null, np.full(num_variants, 1 / num_variants))
    num_rejected = int((np.cumsum(null) < alpha * (1 - 1e-12)).sum())
    if not num_rejected:
        return 0.0
    above = np.arange(num_variants)
    points = shift + np.linspace(-8.0, 8.0, 2001)
    chances = scipy.stats.binom.pmf(above[:, None], num_variants - 1, scipy.stats.norm.sf(points)[None])
    rank = scipy.integrate.trapezoid(chances * scipy.stats.norm.pdf(points - shift), points, axis=1)
    mass = np.ones(1)
    for _ in range(num_canaries):
        mass = np.convolve(mass, rank / rank.sum())[:num_rejected]
    return round(float(mass.sum()), 12)


def _variants(published: npt.ArrayLike, private: Sequence[npt.ArrayLike]) -> tuple[FloatArray, list[FloatArray]]:
    scores = as_scores("published", published)
    others = [as_scores("private", item) for item in private]
    if not others or len(others) != scores.size or not all(item.size for item in others):
        raise ValueError(
            f"Expected the scores of at least one private variant for each of at least one published variant; got "
            f"{scores.size} published ones and {[item.size for item in others]} private ones."
        )
    return scores, others


def _described(
    p_value: float, ranks: tuple[int, ...], sizes: tuple[int, ...], scores: FloatArray, others: Sequence[FloatArray]
) -> CanaryRanks:
    below = [float((other < score).mean()) for score, other in zip(scores.tolist(), others, strict=True)]
    gains = scores - np.array([other.mean() for other in others])
    spreads = np.array([other.std(ddof=1) if other.size > 1 else 0.0 for other in others])
    shift = float((gains / spreads).mean()) if (spreads > 0).all() else math.nan
    return CanaryRanks(p_value, ranks, sizes, float(np.mean(below)), float(gains.mean()), shift)
