"""One-sided paired t-tests, and the sharded rank comparison test: is a file more likely in its own order than in random
ones? (Oren et al., 2024)
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import numpy.typing as npt
import scipy

from nonmember.stats._arrays import as_paired_scores, mean_by_clusters, numbered_clusters


@dataclass(frozen=True)
class PairedT:
    """A paired t-test.

    Attributes:
        statistic: t, of the same sign as `mean_difference`; NaN with a `warning` if all differences are equal.
        p_value: One-sided, of t with `num_pairs` - 1 degrees of freedom, fewer by clusters.
        mean_difference: Mean of x - y.
        warning: Empty, or why the numbers are not those of an ordinary t-test.
    """

    statistic: float
    p_value: float
    mean_difference: float
    num_pairs: int
    warning: str


def paired_t_less(x: npt.ArrayLike, y: npt.ArrayLike, clusters: Sequence[Hashable] | None = None) -> PairedT:
    """Paired t of H0: E x = E y against H1: E x < E y.

    Args:
        x: [N] scores of documents, N >= 2.
        y: [N] scores of the same documents in the same order.
        clusters: [N] what documents belong together (book, thread), which are then no independent draws. None: each
            stands alone.

    Returns:
        t = mean(d) / (sd(d) / sqrt(N)), d = x - y, sd with N - 1, and a one-sided p; by clusters, with the standard
        error and the degrees of freedom of `two_groups.mean_difference`. Where all differences are equal t
        is undefined; then p = 1 if their mean is >= 0, else 0, with a warning. Equal means up to the rounding of the
        subtraction, and a mean within that rounding counts as 0.

    Raises:
        ValueError: On NaN or infinite scores, unequal lengths and fewer than two documents.

    Source: the paired-t baseline of PRISM, table 10, where x is f(.; target) and y is f(.; distilled). The
    paper does not say what happens when all differences are equal.

    >>> found = paired_t_less([1.0, 2.0, 3.0], [2.0, 2.5, 4.0])
    >>> round(found.statistic, 3), round(found.p_value, 3)
    (-5.0, 0.019)
    """
    return _paired_t(x, y, clusters, "less")


def paired_t_greater(x: npt.ArrayLike, y: npt.ArrayLike, clusters: Sequence[Hashable] | None = None) -> PairedT:
    """Paired t of H0: E x = E y against H1: E x > E y.

    Args:
        x: As in `paired_t_less`.
        y: As in `paired_t_less`.
        clusters: As in `paired_t_less`.

    Returns:
        t and a one-sided p as `paired_t_less`, but equal differences give p = 1.

    Raises:
        ValueError: As `paired_t_less`.

    Source: PaCoST, where x is the confidence in the texts and y that in their rephrasings.

    >>> round(paired_t_greater([2.0, 2.5, 4.0], [1.0, 2.0, 3.0]).p_value, 3)
    0.019
    """
    return _paired_t(x, y, clusters, "greater")


def _paired_t(
    x: npt.ArrayLike, y: npt.ArrayLike, clusters: Sequence[Hashable] | None, alternative: Literal["less", "greater"]
) -> PairedT:
    x, y = as_paired_scores(x=x, y=y)
    if not (np.isfinite(x).all() and np.isfinite(y).all()):
        raise ValueError(
            "Expected finite scores; got an infinite one, and a mean over it is undefined. "
            "Clamp it in the score, or leave the document out and count it."
        )
    difference = x - y
    mean = float(difference.mean())
    rounding = 4 * np.finfo(np.float64).eps * max(np.abs(x).max(), np.abs(y).max())
    if np.ptp(difference) <= rounding:
        p_value = 0.0 if alternative == "less" and mean < -rounding else 1.0
        warning = f"All {x.size} differences equal {mean:.6g}: t is undefined, p is set to {p_value:g}."
        return PairedT(float("nan"), p_value, mean, x.size, warning)
    if clusters is not None:
        _, error, free, number = mean_by_clusters(difference, numbered_clusters(clusters, x.size))
        if error <= rounding:
            return PairedT(
                float("nan"), 1.0, mean, x.size, f"All {number} clusters have one mean: t is undefined, p is 1."
            )
        t = mean / error
        return PairedT(t, float(scipy.stats.t.sf(t if alternative == "greater" else -t, free)), mean, x.size, "")
    test = scipy.stats.ttest_rel(x, y, alternative=alternative)
    return PairedT(float(test.statistic), float(test.pvalue), mean, x.size, "")


# The sharded rank comparison test -------------------------------------------------------------------------------------


def order_test(canonical: npt.ArrayLike, mean_shuffled: npt.ArrayLike, *, compat: bool) -> PairedT:
    """t-test over shards of s = canonical - mean_shuffled against H1: E s > 0.

    Where the shards' examples are exchangeable, every s has expectation 0, and p is uniform as far as t is distributed
    like t.

    Args:
        canonical: [shards] log-likelihood of each shard in its own order, nats.
        mean_shuffled: [shards] mean of its log-likelihoods in random orders.
        compat: The deviation with N in place of N - 1, as in the authors' program, which makes t larger by sqrt(N / (N
            - 1)).

    Returns:
        t = mean(s) / sd(s) * sqrt(shards) with a one-sided p. Where all s are equal (up to rounding) t is undefined and
        p = 1.

    Raises:
        ValueError: On NaN or infinite values, unequal lengths and fewer than two shards.

    Source: Oren et al., 2024; docs/methods/order.md.

    >>> found = order_test([-9.0, -8.0, -9.5], [-10.0, -10.0, -10.0], compat=False)
    >>> round(found.statistic, 3), round(found.p_value, 3)
    (2.646, 0.059)
    """
    test = paired_t_greater(canonical, mean_shuffled)
    statistic, p_value = test.statistic, test.p_value
    if compat and np.isfinite(statistic):
        statistic *= float(np.sqrt(test.num_pairs / (test.num_pairs - 1)))
        p_value = float(scipy.stats.t.sf(statistic, test.num_pairs - 1))
    return replace(test, statistic=statistic, p_value=p_value)
