"""The count-based engine against SciPy on the very same resamples."""

import itertools
import warnings

import numpy as np
import pytest
from scipy import stats

from nonmember.stats.bootstrap import count_draws
from nonmember.stats.correlation import Ordering, correlations_of_counts, rank_correlation

SCIPY = {"spearman": stats.spearmanr, "kendall": stats.kendalltau}


def correlations(draws, reference, target, distilled, metric):
    others = Ordering.of(np.asarray(reference, float)), Ordering.of(np.asarray(distilled, float))
    counts = count_draws(np.asarray(draws), len(target))
    return correlations_of_counts(counts, others, Ordering.of(np.asarray(target, float)), metric)


def scipy_correlations(draws, x, y, metric):
    x, y = np.asarray(x), np.asarray(y)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", stats.ConstantInputWarning)
        return np.array([SCIPY[metric](x[drawn], y[drawn]).statistic for drawn in np.asarray(draws)])


@pytest.mark.slow
@pytest.mark.parametrize("metric", ["spearman", "kendall"])
@pytest.mark.parametrize("tied_sides", [(), ("reference",), ("target",), ("reference", "target", "distilled")])
def test_same_numbers_as_scipy_on_the_same_draws(metric, tied_sides) -> None:
    rng = np.random.default_rng(7)
    target = rng.normal(size=150)  # more documents than rows of a panel
    scores = {
        "reference": target + 0.5 * rng.normal(size=target.size),
        "target": target,
        "distilled": -target + rng.normal(size=target.size),
    }
    scores = {name: x.round(0) if name in tied_sides else x for name, x in scores.items()}
    draws = rng.integers(target.size, size=(60, target.size))
    by_reference, by_distilled = correlations(draws, **scores, metric=metric)
    expected = scipy_correlations(draws, scores["reference"], scores["target"], metric)
    np.testing.assert_allclose(by_reference, expected, rtol=0, atol=1e-12)
    expected = scipy_correlations(draws, scores["distilled"], scores["target"], metric)
    np.testing.assert_allclose(by_distilled, expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("metric", ["spearman", "kendall"])
def test_undefined_in_the_same_draws_as_scipy(metric) -> None:
    """All 256 resamples of four documents, one side telling only the last of them apart."""
    draws = list(itertools.product(range(4), repeat=4))
    reference, target, distilled = [0, 0, 0, 1], [1, 2, 3, 4], [2, 2, 5, 5]
    by_reference, by_distilled = correlations(draws, reference, target, distilled, metric)
    assert np.isnan(by_reference).sum() == 3**4 + 1  # the last document never, or nothing else
    assert np.isnan(by_distilled).sum() == 2 * 2**4
    for got, x in ((by_reference, reference), (by_distilled, distilled)):
        np.testing.assert_allclose(got, scipy_correlations(draws, x, target, metric), rtol=0, atol=1e-12)


@pytest.mark.parametrize("metric", ["spearman", "kendall"])
def test_each_document_once_is_the_plain_correlation(metric) -> None:
    rng = np.random.default_rng(1)
    reference, target, distilled = rng.integers(12, size=(3, 40)).astype(float)
    got = correlations([np.arange(40)], reference, target, distilled, metric)
    assert got[0][0] == pytest.approx(rank_correlation(reference, target, metric), abs=1e-15)
    assert got[1][0] == pytest.approx(rank_correlation(distilled, target, metric), abs=1e-15)


@pytest.mark.parametrize("metric", ["spearman", "kendall"])
def test_equal_orders_correlate_exactly_one(metric) -> None:
    rng = np.random.default_rng(2)
    target = rng.normal(size=300).round(1)
    draws = rng.integers(300, size=(200, 300))
    same, opposite = correlations(draws, np.exp(target), target, -target, metric)
    assert (same == 1).all()
    assert (opposite == -1).all()


def test_a_named_resample() -> None:
    """Documents 0, 0, 2, 3, 4 of the small worked example."""
    reference, target, distilled = [1, 2, 3, 4, 5], [1.2, 2.5, 2.1, 4.4, 5.0], [2, 1, 5, 3, 4]
    by_reference, by_distilled = correlations([[0, 0, 2, 3, 4]], reference, target, distilled, "spearman")
    assert by_reference[0] == pytest.approx(1.0, abs=1e-12)
    assert by_distilled[0] == pytest.approx(0.684211, abs=1e-6)


def test_equal_scores_share_a_group() -> None:
    ordering = Ordering.of(np.array([2.0, -0.0, np.inf, 0.0, 2.0, -np.inf]))
    np.testing.assert_array_equal(ordering.level, [2, 1, 3, 1, 2, 0])
    np.testing.assert_array_equal(ordering.order, [5, 1, 3, 0, 4, 2])
    assert [group.tolist() for group in ordering.tied] == [[1, 3], [0, 4]]
