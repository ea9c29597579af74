"""Correlation with the level, and the smallest gap that tells two draws apart, against SciPy and by hand."""

from __future__ import annotations

import runpy
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from nonmember.stats.contamination import consistency, level_correlation

LEVELS = np.linspace(0, 1, 21)


def scores(noise, *, draws=5, seed=0):
    return LEVELS + noise * np.random.default_rng(seed).normal(size=(draws, 21))


def test_correlations_are_scipys():
    scores_DL = scores(0.3)
    found = level_correlation(LEVELS, scores_DL)
    mean = scores_DL.mean(axis=0)
    assert found.spearman == pytest.approx(stats.spearmanr(LEVELS, mean).statistic, abs=1e-12)
    assert found.pearson == pytest.approx(stats.pearsonr(LEVELS, mean).statistic, abs=1e-12)
    each = [stats.spearmanr(LEVELS, row).statistic for row in scores_DL]
    assert (found.spearman_mean, found.spearman_sd) == pytest.approx((np.mean(each), np.std(each, ddof=1)), abs=1e-12)
    each = [stats.pearsonr(LEVELS, row).statistic for row in scores_DL]
    assert (found.pearson_mean, found.pearson_sd) == pytest.approx((np.mean(each), np.std(each, ddof=1)), abs=1e-12)
    assert found.spearman > found.spearman_mean, "averaging first takes out noise"


def test_the_order_of_levels_does_not_matter_and_the_sign_is_kept():
    order = np.random.default_rng(1).permutation(21)
    scores_DL = scores(0.3)
    assert level_correlation(LEVELS[order], scores_DL[:, order]).pearson == level_correlation(LEVELS, scores_DL).pearson
    assert level_correlation(LEVELS, -scores(0)).spearman == -1


def test_a_score_that_does_not_vary_correlates_with_nothing():
    found = level_correlation([0, 0.5, 1], [[2.0, 2, 2]])
    assert np.isnan([found.spearman, found.pearson, found.spearman_sd]).all()


def test_spread_by_hand():
    found = consistency([0, 1], [[1.0, 10], [3.0, 14]], alpha=0.05)
    np.testing.assert_allclose(found.mean, [2, 12])
    np.testing.assert_allclose(found.sd, [np.sqrt(2), np.sqrt(8)])
    np.testing.assert_allclose(found.variation, [np.sqrt(2) / 2, np.sqrt(8) / 12])
    assert (found.pooled_sd, found.degrees_of_freedom) == (pytest.approx(np.sqrt(5)), 2)
    np.testing.assert_allclose(found.gaps, [1])
    np.testing.assert_allclose(found.p_values, stats.t.sf(10 / np.sqrt(10), 2))
    assert found.smallest_gap == 1


def test_the_hardest_pair_at_a_distance_counts():
    """A score that stands still between .4 and .6, and rises elsewhere."""
    curve = np.interp(LEVELS, [0, 0.4, 0.6, 1], [0, 1, 1, 2])
    noise = 0.1 * stats.norm.ppf((np.arange(5) + 0.5) / 5)[:, None]
    found = consistency(LEVELS, curve + noise, alpha=0.05)
    np.testing.assert_allclose(found.gaps, LEVELS[1:], atol=1e-12)
    sd, freedom = noise.std(ddof=1), 84
    needed = stats.t.isf(0.05, freedom) * sd * np.sqrt(2)  # .23: .2 on the flat, .1 and a bit more to rise by that
    assert 0.125 < needed < 0.25
    assert found.smallest_gap == pytest.approx(0.3)
    assert found.p_values[3] == pytest.approx(0.5, abs=1e-9)


def test_less_noise_shows_smaller_gaps():
    gaps = [consistency(LEVELS, scores(noise), alpha=0.05).smallest_gap for noise in (0.01, 0.1, 0.3)]
    assert gaps == sorted(gaps)
    assert gaps[0] == pytest.approx(0.05)
    assert np.isnan(consistency(LEVELS, -scores(0.1), alpha=0.05).smallest_gap), "a score that falls"


def test_draws_that_do_not_differ():
    exact = np.repeat(LEVELS[None], 2, axis=0)
    assert consistency(LEVELS, exact, alpha=0.05).smallest_gap == pytest.approx(0.05)
    flat = consistency([0, 1], [[1.0, 1], [1.0, 1]], alpha=0.05)
    assert flat.p_values.tolist() == [1]
    assert np.isnan(consistency([0, 1], [[0.0, 1], [0.0, 1]], alpha=0.05).variation[0])


@pytest.mark.parametrize(
    ("levels", "given", "told"),
    [
        ([0, 1], [1.0, 2], "Expected scores .draws, levels."),
        ([0, 1, 2], [[1.0, 2]], "got shapes .1, 2. and .3,."),
        ([0, 1], [[1.0, np.nan]], "Expected a finite score"),
        ([0, 0], [[1.0, 2]], "at least 2 levels, each of them once"),
    ],
)
def test_what_cannot_be_correlated_is_refused(levels, given, told):
    with pytest.raises(ValueError, match=told):
        level_correlation(levels, given)


def test_one_draw_has_no_spread():
    with pytest.raises(ValueError, match="at least 2 draws"):
        consistency([0, 1], [[1.0, 2]], alpha=0.05)


@pytest.mark.slow
def test_worlds_of_noise_are_as_the_report_of_kds_says():
    """Fewer of the worlds of the script that made the numbers."""
    world = runpy.run_path(str(Path(__file__).parents[2] / "benchmarks" / "simulations.py"))["nested_mixtures"]
    beyond, size, gap = zip(*(world(np.random.default_rng(seed)).values() for seed in range(300)), strict=True)
    assert np.mean(beyond) == pytest.approx(0.37, abs=0.06)
    assert np.median(size) == pytest.approx(0.83, abs=0.03)
    assert np.mean(gap) == pytest.approx(0.09, abs=0.04)
