"""Merging p-values: their error under strong dependence, by simulation and at the worst case there is."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from marks import slow
from nonmember.stats.multiplicity import harmonic_factor, harmonic_mean_p, twice_the_mean

ALPHA, DRAWS = 0.05, 2000
BOTH = [harmonic_mean_p, twice_the_mean]


def correlated(number, correlation, rng):
    """[draws, tests] one-sided p of normals that correlate pairwise; the last may be turned round."""
    common = rng.normal(size=(DRAWS, 1))
    own = rng.normal(size=(DRAWS, number))
    z = math.sqrt(abs(correlation)) * common + math.sqrt(1 - abs(correlation)) * own
    if correlation < 0:  # half of the tests against the other half
        z[:, : number // 2] = -math.sqrt(-correlation) * common + math.sqrt(1 + correlation) * own[:, : number // 2]
    return stats.norm.sf(z)


def share_rejected(merge, p_values):
    return float(np.mean([merge(row) < ALPHA for row in p_values]))


@pytest.mark.parametrize("merge", BOTH)
@pytest.mark.parametrize("number", [2, 3, 6])
@pytest.mark.parametrize("correlation", [slow(0.0), 0.5, slow(0.99), slow(-0.99)])
def test_the_error_is_kept_under_dependence(merge, number, correlation):
    p_values = correlated(number, correlation, np.random.default_rng([number, int(100 * correlation) % 1000]))
    share = share_rejected(merge, p_values)
    assert share <= ALPHA + 3 * math.sqrt(ALPHA * (1 - ALPHA) / DRAWS)


def test_heavy_tails_and_copies_keep_it_too():
    """Student's t with one degree of freedom, all but copies of each other: what breaks approximate combinations."""
    rng = np.random.default_rng(7)
    common = rng.standard_t(1, size=(DRAWS, 1))
    p_values = stats.t.sf(np.hstack([common, common + 0.1 * rng.standard_t(1, size=(DRAWS, 3))]), 1)
    p_values = np.argsort(np.argsort(p_values, axis=0), axis=0) / DRAWS + 0.5 / DRAWS  # exactly uniform each
    for merge in BOTH:
        assert share_rejected(merge, p_values) <= ALPHA + 3 * math.sqrt(ALPHA / DRAWS)


def as_even_as_can_be(tail):
    """[rows, 3] the smallest `tail` of three uniform p-values, arranged so that their harmonic means are nearly equal:
    the worst dependence there is (the rearrangement algorithm of Embrechts et al., 2013, on 1 / p)."""
    size = 4000
    columns = np.tile(size / (np.arange(int(tail * size)) + 0.5), (3, 1)).T
    np.random.default_rng(1).permuted(columns, axis=0, out=columns)
    for _ in range(40):
        for index in range(3):
            others = np.delete(columns, index, axis=1).sum(axis=1)
            columns[np.argsort(others), index] = np.sort(columns[:, index])[::-1]
    return 1 / columns


def test_at_the_worst_dependence_the_harmonic_mean_without_a_factor_errs_and_with_it_does_not():
    plain = as_even_as_can_be(0.13)
    harmonic = 3 / (1 / plain).sum(axis=1)
    assert float((harmonic < ALPHA).mean()) * 0.13 > 2 * ALPHA, "without the factor more than twice the level"
    worst = max(share_rejected(harmonic_mean_p, as_even_as_can_be(tail)) * tail for tail in (0.04, 0.05, 0.06, 0.13))
    assert 0.03 < worst <= ALPHA + 0.001, "the factor is no larger than it must be"


def test_factors_of_the_paper():
    """Table 1 of Vovk and Wang gives the factor over ln K: 2.499 for K = 3, 1.980 for K = 10; below e ln K."""
    assert harmonic_factor(3) / math.log(3) == pytest.approx(2.499, abs=5e-4)
    assert harmonic_factor(10) / math.log(10) == pytest.approx(1.980, abs=5e-4)
    for number in (3, 5, 20, 1000):
        assert math.log(number) < harmonic_factor(number) < min(number, math.e * math.log(number))


def test_between_bonferroni_and_the_smallest():
    rng = np.random.default_rng(2)
    for number in (1, 2, 3, 7):
        p = rng.uniform(size=number)
        assert min(p) <= harmonic_mean_p(p)
        assert harmonic_mean_p(p) <= min(1.0, harmonic_factor(number) * number * min(p))
    assert harmonic_mean_p([0.0, 1.0]) == 0.0
    assert harmonic_mean_p([0.02, 0.9]) == pytest.approx(0.04)
    assert harmonic_mean_p([0.3]) == twice_the_mean([0.3]) == pytest.approx(0.3)
    assert twice_the_mean([0.9, 0.9]) == harmonic_mean_p([1.0, 1.0]) == 1.0


@pytest.mark.parametrize("merge", BOTH)
@pytest.mark.parametrize("bad", [[], [0.1, 1.2], [float("nan")]])
def test_what_is_no_p_value_is_refused(merge, bad):
    with pytest.raises(ValueError, match="p-value"):
        merge(bad)
