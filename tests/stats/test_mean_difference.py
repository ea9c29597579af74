"""Difference of two means: SciPy's Welch test where each document stands alone, and clusters where they do not."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from marks import slow
from nonmember.stats.two_groups import mean_difference, permuted_mean_difference

RNG = np.random.default_rng(3)
HIGH, LOW = RNG.normal(0.5, 1.0, 40), RNG.normal(0.0, 2.0, 25)


def compared(first=HIGH, second=LOW, clusters=None, others=None, alpha=0.05):
    return mean_difference(first, second, clusters or range(len(first)), others or range(len(second)), alpha=alpha)


def test_documents_that_stand_alone_give_scipys_welch_test():
    found, expected = compared(), stats.ttest_ind(HIGH, LOW, equal_var=False, alternative="greater")
    both_sides = stats.ttest_ind(HIGH, LOW, equal_var=False).confidence_interval(0.95)
    assert (found.t, found.degrees_of_freedom) == pytest.approx((expected.statistic, expected.df))
    assert found.p_value == pytest.approx(expected.pvalue)
    assert (found.ci_low, found.ci_high) == pytest.approx((both_sides.low, both_sides.high))
    spread = math.sqrt((HIGH.var(ddof=1) + LOW.var(ddof=1)) / 2)
    assert found.effect_size == pytest.approx((HIGH.mean() - LOW.mean()) / spread)


def test_copies_of_a_document_add_nothing():
    """A cluster of three equal documents weighs as one document: but for N, the test of the clusters' means."""
    tripled = compared(np.repeat(HIGH, 3), np.repeat(LOW, 3), [*np.repeat(range(40), 3)], [*np.repeat(range(25), 3)])
    plain = compared()
    assert (tripled.t, tripled.p_value) == pytest.approx((plain.t, plain.p_value))
    assert tripled.num_clusters == (40, 25)
    assert compared(np.repeat(HIGH, 3), np.repeat(LOW, 3)).t > 1.5 * plain.t


@pytest.mark.slow
def test_under_the_null_it_rejects_as_often_as_it_says_and_documents_alone_far_too_often():
    """Clusters of unequal size whose documents are alike: 600 worlds at 5%."""
    sizes = [np.random.default_rng(0).geometric(0.3, 40), np.random.default_rng(1).geometric(0.3, 30)]
    clusters = [np.repeat(np.arange(len(item)), item).tolist() for item in sizes]
    rng, by_cluster, alone = np.random.default_rng(5), 0, 0
    for _ in range(600):
        groups = [rng.standard_t(4, len(item)).repeat(item) + rng.normal(size=item.sum()) for item in sizes]
        by_cluster += compared(*groups, *clusters).p_value < 0.05
        alone += compared(*groups).p_value < 0.05
    assert 15 <= by_cluster <= 48, by_cluster  # 30 expected; beyond these ends with a chance of .002
    assert alone > 70


def test_the_error_is_that_of_leaving_each_cluster_out():
    clusters = [0] * 20 + [1] * 9 + [*range(2, 13)]
    without = np.array([HIGH[np.array(clusters) != item].mean() for item in range(13)])
    error = math.sqrt(12 / 13 * ((without - HIGH.mean()) ** 2).sum())
    found = compared(HIGH, np.full(25, 0.2), clusters)
    assert found.t == pytest.approx((HIGH.mean() - 0.2) / error)
    assert found.degrees_of_freedom == pytest.approx(40**2 / (20**2 + 9**2 + 11) - 1)


def test_one_large_cluster_among_small_ones_is_not_taken_for_many():
    """By the number of clusters every fourth such world is rejected at 5%."""
    rng, sizes, rejected = np.random.default_rng(8), np.array([1] * 9 + [91]), 0
    for _ in range(400):
        group = rng.normal(size=10).repeat(sizes) + 0.5 * rng.normal(size=100)
        rejected += compared(group, rng.normal(size=100), np.arange(10).repeat(sizes).tolist()).p_value < 0.05
    assert rejected <= 32  # 20 expected at most


@pytest.mark.parametrize(("sizes", "sign"), [((200, 30), 1), slow((30, 200), -1), ((50, 50), 1)])
def test_permutations_keep_their_level_under_skew_where_welch_does_not(sizes, sign):
    """Exponential gains without a difference, 400 worlds at 5%; Welch rejects 8 to 16% of the first two kinds."""
    rng, rejected = np.random.default_rng(11), 0
    for _ in range(400):
        first, second = (sign * rng.exponential(1.0, size) for size in sizes)
        found = permuted_mean_difference(
            first, second, range(sizes[0]), range(sizes[1]), num_permutations=199, alpha=1e-9, rng=rng
        )
        rejected += found.p_value <= 0.05
    assert 8 <= rejected <= 34, rejected  # 20 expected; beyond these ends with a chance of .002


def test_whole_clusters_are_permuted():
    """Few: all ways are enumerated, of clusters and not of documents."""
    rng = np.random.default_rng(0)
    first, second = np.repeat([3.0, 4.0, 6.0], [4, 1, 2]), np.repeat([1.0, 2.0, 2.5], [1, 3, 3])
    of_first, of_second = np.repeat(range(3), [4, 1, 2]).tolist(), np.repeat(range(3), [1, 3, 3]).tolist()
    found = permuted_mean_difference(first, second, of_first, of_second, num_permutations=99, alpha=0.05, rng=rng)
    assert found == (pytest.approx(1 / 20), None)
    alone = permuted_mean_difference(first, second, range(7), range(7), num_permutations=9999, alpha=0.05, rng=rng)
    assert alone.num_draws is None
    assert alone.p_value < 0.01


def test_what_cannot_be_compared():
    constant = compared([1.0, 1.0, 1.0], [0.5, 0.5])
    assert (constant.difference, math.isnan(constant.p_value), math.isnan(constant.ci_low)) == (0.5, True, True)
    with pytest.raises(
        ValueError, match=r"at least 2 clusters in the second group; got 1\. Documents of one cluster say"
    ):
        compared(others=["one"] * 25)
    with pytest.raises(ValueError, match="finite values in the first group; got 1 that are not"):
        compared([1.0, math.inf, 2.0])
