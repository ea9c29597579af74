import numpy as np
import pytest
from scipy import stats

from nonmember.stats.correlation import rank_correlation


def test_ties_take_average_ranks() -> None:
    x, y = [1, 2, 2, 4, 5], [2, 1, 4, 4, 6]
    assert rank_correlation(x, y, "spearman") == pytest.approx(0.763158, abs=1e-6)  # the shortcut says 0.775
    assert rank_correlation(x, y, "kendall") == pytest.approx(0.666667, abs=1e-6)


@pytest.mark.parametrize(("metric", "scipy"), [("spearman", stats.spearmanr), ("kendall", stats.kendalltau)])
@pytest.mark.parametrize("decimals", [0, 8])
def test_agrees_with_scipy(metric, scipy, decimals) -> None:
    rng = np.random.default_rng(3)
    x = rng.normal(size=60)
    y = x + rng.normal(size=60)
    x, y = x.round(decimals), y.round(decimals)
    assert rank_correlation(x, y, metric) == pytest.approx(scipy(x, y).statistic, abs=1e-12)


@pytest.mark.parametrize("metric", ["spearman", "kendall"])
def test_sign_and_limits(metric) -> None:
    x = np.array([-np.inf, 0.1, 0.2, 7.0, np.inf])
    assert rank_correlation(x, np.exp(np.arange(5)), metric) == pytest.approx(1, abs=1e-15)
    assert rank_correlation(x, -x, metric) == pytest.approx(-1, abs=1e-15)
    assert rank_correlation([1, 2], [1, 2], metric) == pytest.approx(1, abs=1e-15)


@pytest.mark.parametrize("metric", ["spearman", "kendall"])
def test_a_constant_side_orders_nothing(metric) -> None:
    assert np.isnan(rank_correlation([3, 3, 3], [1, 2, 3], metric))
    assert np.isnan(rank_correlation([1, 2, 3], [3, 3, 3], metric))


@pytest.mark.parametrize(
    ("x", "y", "metric", "message"),
    [
        ([1, np.nan, 3], [1, 2, 3], "spearman", r"`x`; 1 of 3 are NaN, the first at index 1"),
        ([1, 2, 3], [1, 2], "spearman", "equal length; got x 3, y 2"),
        ([1], [1], "kendall", "at least 2 documents; got 1"),
        ([[1, 2]], [1, 2], "kendall", r"`x`.*got shape \(1, 2\)"),
        ([1, 2], [1, 2], "pearson", "got 'pearson'"),
    ],
)
def test_refuses_what_it_cannot_rank(x, y, metric, message) -> None:
    with pytest.raises(ValueError, match=message):
        rank_correlation(x, y, metric)
