"""Exact tests of canaries against enumeration, SciPy and simulated nulls."""

import itertools
import math

import numpy as np
import pytest
from scipy import stats

from nonmember.stats.canaries import canary_power, rank_sum_cdf, rank_sum_test


@pytest.mark.parametrize("sizes", [[6], [6, 6], [2, 3, 5], [10, 10, 10], [4, 1, 7]])
def test_the_distribution_of_a_sum_of_ranks_is_that_of_all_sums(sizes):
    sums = [sum(item) for item in itertools.product(*(range(1, size + 1) for size in sizes))]
    for total in range(len(sizes) - 1, sum(sizes) + 2):
        assert rank_sum_cdf(total, sizes) == pytest.approx(np.mean([item <= total for item in sums]), abs=1e-15)


def test_many_canaries_are_normal_and_their_tail_is_exact():
    mean, variance = 50 * 101 / 2, 50 * (100**2 - 1) / 12
    for total in (2200, 2400, 2525, 2700):
        normal = stats.norm.cdf(total + 0.5, mean, math.sqrt(variance))
        assert rank_sum_cdf(total, [100] * 50) == pytest.approx(normal, abs=1e-3)
    assert rank_sum_cdf(10, [100] * 10) == pytest.approx(1e-20, rel=1e-9)
    assert rank_sum_cdf(12, [100] * 10) == pytest.approx(math.comb(12, 2) * 1e-20, rel=1e-9)


def test_ties_count_against_the_published_variant():
    test = rank_sum_test([1.0], [[1.0, 1.0, 0.0]])
    assert (test.p_value, test.ranks, test.num_variants, test.share_below) == (0.75, (3,), (4,), pytest.approx(1 / 3))
    assert rank_sum_test([2.0], [[2.0] * 9]).p_value == 1.0


def test_p_of_a_canary_is_its_rank_in_k():
    rng = np.random.default_rng(3)
    for _ in range(20):
        scores = rng.normal(size=100)
        test = rank_sum_test(scores[:1], [scores[1:]])
        assert test.p_value == pytest.approx(stats.rankdata(-scores)[0] / 100, abs=1e-14)
        assert test.shift == pytest.approx((scores[0] - scores[1:].mean()) / scores[1:].std(ddof=1))


@pytest.mark.slow
@pytest.mark.parametrize("skewed", [True, False])
def test_p_is_uniform_where_nothing_was_read(skewed):
    """Kolmogorov-Smirnov over 300 nulls: whatever the scores' distribution, and however canaries differ. A sum of
    ranks takes few values, between which p is drawn."""
    rng = np.random.default_rng(11)
    p_values = []
    for _ in range(300):
        scores = rng.exponential(size=(12, 20)) ** 3 if skewed else rng.normal(size=(12, 20))
        scores = scores * rng.uniform(0.5, 3, size=(12, 1))
        published = rng.integers(20, size=12)
        own = scores[np.arange(12), published]
        others = [np.delete(row, index) for row, index in zip(scores, published, strict=True)]
        test = rank_sum_test(own, others)
        less = rank_sum_cdf(sum(test.ranks) - 1, test.num_variants)
        p_values.append(rng.uniform(less, test.p_value))
    assert stats.kstest(p_values, "uniform").pvalue > 0.01
    assert np.mean(np.array(p_values) <= 0.05) < 0.09


def test_power_is_that_of_simulated_audits():
    rng = np.random.default_rng(7)
    found = []
    for _ in range(600):
        scores = rng.normal(size=(5, 20))
        scores[:, 0] += 0.7
        found.append(rank_sum_test(scores[:, 0], scores[:, 1:]).p_value < 0.05)
    assert canary_power(0.7, 5, 20, alpha=0.05) == pytest.approx(np.mean(found), abs=0.06)
    assert canary_power(0.0, 10, 100, alpha=0.05) == pytest.approx(0.05, abs=1e-3)
    assert canary_power(9.0, 1, 10, alpha=0.05) == 0.0  # the least p is .1
    powers = [canary_power(0.5, number, 100, alpha=0.05) for number in (1, 5, 20, 60)]
    assert powers == sorted(powers)
    assert powers[-1] > 0.95


def test_what_cannot_be_tested_is_refused():
    with pytest.raises(ValueError, match="at least one private variant"):
        rank_sum_test([1.0], [[]])
    with pytest.raises(ValueError, match="at least one private variant"):
        rank_sum_test([], [])
    with pytest.raises(ValueError, match="NaN"):
        rank_sum_test([1.0], [[np.nan]])
