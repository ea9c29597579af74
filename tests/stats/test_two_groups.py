"""Two groups of documents: Welch's test against SciPy, the two figures that are both called AUC, the bootstrap."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats
from sklearn.metrics import roc_auc_score

from nonmember.stats.bootstrap import draw_counts
from nonmember.stats.two_groups import compare_groups, welch_t

RNG = np.random.default_rng(7)
HIGH, LOW = RNG.normal(0.5, 0.1, 40).round(2), RNG.normal(0.4, 0.05, 25).round(2)  # rounded: with ties


def compared(first=HIGH, second=LOW, *, num_resamples=200, num_few=10, seed=3):
    return compare_groups(
        first, second, num_resamples=num_resamples, num_few=num_few, alpha=0.05, rng=np.random.default_rng(seed)
    )


def test_the_welch_test_is_scipys():
    expected = stats.ttest_ind(HIGH, LOW, equal_var=False)
    one_sided = stats.ttest_ind(HIGH, LOW, equal_var=False, alternative="greater")
    found = compared()
    assert (found.t, found.degrees_of_freedom) == pytest.approx((expected.statistic, expected.df))
    assert (found.p_value, found.p_value_greater) == pytest.approx((expected.pvalue, one_sided.pvalue))
    assert found.difference == pytest.approx(HIGH.mean() - LOW.mean())


def test_what_de_cop_calls_auc_is_not_the_area_under_the_curve():
    """docs/methods/checks.md, TV7: there the figure of the thresholded values is the higher one."""
    found = compared([0.9, 0.7, 0.4], [0.6, 0.5, 0.3])
    assert found.roc_auc == pytest.approx(0.777778, abs=1e-6)
    assert found.best_balanced_accuracy == pytest.approx(0.833333, abs=1e-6)
    assert found.threshold == 0.7


@pytest.mark.slow
def test_both_figures_of_a_resample_are_scikit_learns():
    """Ten resamples, drawn as the comparison draws them."""
    rng = np.random.default_rng(3)
    counts = [np.empty((group.size, 200)) for group in (HIGH, LOW)]
    for item in counts:
        draw_counts(rng, out=item)
    areas, accuracies, means = [], [], []
    for draw in range(10):
        first, second = (np.repeat(g, c[:, draw].astype(int)) for g, c in zip((HIGH, LOW), counts, strict=True))
        values, labels = np.concatenate([first, second]), np.repeat([1, 0], [first.size, second.size])
        areas.append(roc_auc_score(labels, values))
        # As the paper's script has it: the ROC area of the values thresholded where TPR - FPR is largest.
        accuracies.append(max(roc_auc_score(labels, values >= cut) for cut in np.unique(values)))
        means.append(first.mean())
    few = compared().few
    for name, values in (("roc_auc", areas), ("best_balanced_accuracy", accuracies), ("mean_first", means)):
        found = few[name].mean, few[name].sd
        assert found == pytest.approx((np.mean(values), np.std(values, ddof=1)), rel=1e-12), name


@pytest.mark.slow
def test_the_interval_covers_the_difference_as_often_as_it_says():
    rng = np.random.default_rng(0)
    covered = 0
    for _ in range(200):
        found = compare_groups(
            rng.normal(0.1, 1, 40), rng.normal(0, 2, 40), num_resamples=200, num_few=2, alpha=0.1, rng=rng
        )
        covered += found.ci_low <= 0.1 <= found.ci_high
    assert 0.84 <= covered / 200 <= 0.95


def test_no_interval_leaves_the_range():
    """Groups apart: the area is 1 in all resamples, and a sum of thirteenths may round beyond."""
    found = [compared(np.arange(number) + 2.0, np.linspace(0, 1, 13)) for number in range(2, 6)]
    assert max(item.auc_high for item in found) == 1


def test_groups_without_spread_have_no_test():
    assert all(map(math.isnan, welch_t([0.25] * 4, [0.25] * 5)))
    found = compared([0.25] * 4, [0.25] * 5)
    assert math.isnan(found.p_value)
    assert (found.difference, found.roc_auc, found.best_balanced_accuracy) == (0, 0.5, 0.5)


def test_where_the_first_group_is_lower_nothing_is_above_a_threshold():
    assert compared([0.1, 0.2], [0.8, 0.9]).threshold == math.inf
    found = compared(LOW, HIGH)
    assert found.p_value_greater > 0.99
    assert found.p_value < 0.001


def test_what_cannot_be_compared_is_refused():
    for first, second, message in [
        ([0.5], LOW, "first group"),
        (HIGH, [0.5, np.inf], "second group"),
        (HIGH, [0.5, np.nan], "NaN"),
    ]:
        with pytest.raises(ValueError, match=message):
            compared(first, second)
    with pytest.raises(ValueError, match="num_few"):
        compared(num_few=500)
