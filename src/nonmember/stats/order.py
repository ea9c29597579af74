"""The sharded rank comparison test: is a file more likely in its own order than in random ones? (Oren et al., 2024)"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import scipy

from nonmember.stats.paired import paired_t_greater


@dataclass(frozen=True)
class OrderStatistic:
    """A t-test of a set's own order.

    Attributes:
        statistic: t, high where the own order is more likely; NaN with a `warning` if all differences are equal.
        p_value: One-sided, of t with `num_shards` - 1 degrees of freedom.
        mean_difference: Nats a shard.
    """

    statistic: float
    p_value: float
    mean_difference: float
    num_shards: int
    warning: str


def order_test(canonical: npt.ArrayLike, mean_shuffled: npt.ArrayLike, *, compat: bool) -> OrderStatistic:
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
    return OrderStatistic(statistic, p_value, test.mean_difference, test.num_pairs, test.warning)
