"""Exact bounds and the comparison of shares, against their definitions."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy import stats

from nonmember.stats.proportions import exact_interval, exact_upper_bound, fisher_greater, shares_greater


@pytest.mark.parametrize(("hits", "number"), [(0, 20), (3, 20), (20, 20), (7, 521)])
def test_exact_bounds_leave_alpha_beyond_them(hits, number):
    """Clopper and Pearson: at the bound, as few or as many hits have just the probability that is allowed."""
    upper = exact_upper_bound(hits, number, 0.05)
    assert upper == pytest.approx(1 if hits == number else stats.beta.ppf(0.95, hits + 1, number - hits))
    if hits < number:
        assert stats.binom.cdf(hits, number, upper) == pytest.approx(0.05)
    low, high = exact_interval(hits, number, 0.05)
    assert low == pytest.approx(stats.beta.ppf(0.025, hits, number - hits + 1) if hits else 0)
    assert high == pytest.approx(stats.beta.ppf(0.975, hits + 1, number - hits) if hits < number else 1)


def test_nothing_in_sixty_leaves_five_percent():
    """The rule of three, exactly: 1 - .05 ^ (1/60)."""
    assert exact_upper_bound(0, 60, 0.05) == pytest.approx(1 - 0.05 ** (1 / 60))


def test_fisher_is_the_hypergeometric_tail():
    hits, number, other_hits, others = 5, 12, 1, 15
    total = math.comb(number + others, hits + other_hits)
    tail = sum(math.comb(number, more) * math.comb(others, hits + other_hits - more) / total for more in range(hits, 7))
    assert fisher_greater(hits, number, other_hits, others) == pytest.approx(tail)
    assert fisher_greater(0, 12, 3, 15) == pytest.approx(1)


def p_of_all_orders(first: list[float], second: list[float]) -> float:
    values, number = [*first, *second], len(first)
    means = [
        np.mean([values[place] for place in chosen]) - np.mean([v for i, v in enumerate(values) if i not in chosen])
        for chosen in itertools.combinations(range(len(values)), number)
    ]
    return float(np.mean([item >= means[0] - 1e-12 for item in means]))


@pytest.mark.parametrize(
    ("first", "second"),
    [([0.5, 0.25, 1.0, 0.0], [0.0, 0.25, 0.0, 0.5, 0.1]), ([0.5], [0.5, 0.2, 1.0]), ([0.5, 0.2, 1.0], [0.2])],
)
def test_shares_are_compared_over_all_orders_of_units(first, second):
    found = shares_greater(first, second, num_permutations=1000, alpha=0.05, rng=np.random.default_rng(0))
    assert found.p_value == pytest.approx(p_of_all_orders(first, second))


def test_units_of_one_document_make_it_fishers_test():
    first, second = [1, 0, 1, 1, 0], [0, 0, 1, 0, 0, 0]
    found = shares_greater(first, second, num_permutations=10, alpha=0.05, rng=np.random.default_rng(0))
    assert found.p_value == pytest.approx(fisher_greater(3, 5, 1, 6)) == pytest.approx(p_of_all_orders(first, second))


def test_random_orders_come_close_and_never_give_nothing():
    rng = np.random.default_rng(1)
    first, second = rng.uniform(0.6, 1, 30), rng.uniform(0, 0.4, 30)
    found = shares_greater(first, second, num_permutations=199, alpha=0.05, rng=np.random.default_rng(0))
    assert found.p_value == pytest.approx(1 / 200)
