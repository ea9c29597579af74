"""The order test against SciPy and the authors' formula, and its error rate where order means nothing."""

import numpy as np
import pytest
from scipy import stats

from marks import slow
from nonmember.stats.paired import order_test


def likelihoods(shift: float = 0.0, shards: int = 12) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    mean_shuffled = rng.normal(-700, 50, size=shards)
    return mean_shuffled + rng.normal(shift, 3, size=shards), mean_shuffled


@pytest.mark.parametrize("shift", [-2.0, 0.0, 2.0])
def test_is_the_one_sample_t_test_of_the_differences(shift):
    canonical, mean_shuffled = likelihoods(shift)
    test = order_test(canonical, mean_shuffled, compat=False)
    expected = stats.ttest_1samp(canonical - mean_shuffled, 0, alternative="greater")
    assert test.statistic == pytest.approx(expected.statistic, rel=1e-9)
    assert test.p_value == pytest.approx(expected.pvalue, rel=1e-9)
    assert test.mean_difference == pytest.approx((canonical - mean_shuffled).mean())
    assert (test.num_pairs, test.warning) == (12, "")


@pytest.mark.parametrize(("shards", "inflation"), [(4, 1.1547), (50, 1.0102)])
def test_compat_is_the_authors_formula(shards, inflation):
    canonical, mean_shuffled = likelihoods(2.0, shards)
    differences = canonical - mean_shuffled
    test = order_test(canonical, mean_shuffled, compat=True)
    assert test.statistic == pytest.approx(np.mean(differences) / np.std(differences) * np.sqrt(shards), rel=1e-9)
    assert test.p_value == pytest.approx(1 - stats.t.cdf(test.statistic, shards - 1), rel=1e-6)
    ours = order_test(canonical, mean_shuffled, compat=False)
    assert test.statistic / ours.statistic == pytest.approx(inflation, abs=1e-4)


def test_a_likelier_own_order_gives_a_small_p():
    canonical, mean_shuffled = likelihoods(10.0)
    assert order_test(canonical, mean_shuffled, compat=False).p_value < 1e-4
    assert order_test(mean_shuffled, canonical, compat=False).p_value > 1 - 1e-4


@pytest.mark.parametrize("difference", [0.0, 0.1, -0.1])
@pytest.mark.parametrize("compat", [False, True])
def test_without_spread_p_is_one(difference, compat):
    mean_shuffled = np.array([0.1, 0.2, 0.3, 0.7])
    test = order_test(mean_shuffled + difference, mean_shuffled, compat=compat)
    assert test.p_value == 1.0
    assert np.isnan(test.statistic)
    assert "All 4 differences" in test.warning


@pytest.mark.parametrize(
    ("canonical", "message"), [([1.0], "at least 2"), ([1.0, np.nan], "NaN"), ([1, np.inf], "finite")]
)
def test_refusals(canonical, message):
    with pytest.raises(ValueError, match=message):
        order_test(canonical, np.zeros(len(canonical)), compat=False)


def p_values_of_worlds_without_reading(worlds: int, shards: int, examples: int, orders: int) -> np.ndarray:
    """A model that likes some examples after some others, whatever it has read: the likelihood of an order is the sum
    of what each pair of neighbours is worth (heavy-tailed), and the own order is a random one."""
    rng = np.random.default_rng(1)
    p_values = []
    for _ in range(worlds):
        worth_SEE = rng.standard_t(4, size=(shards, examples, examples))
        own_S1E = np.tile(np.arange(examples), (shards, 1, 1))
        orders_SME = rng.permuted(np.tile(np.arange(examples), (shards, orders, 1)), axis=2)
        canonical_S1, shuffled_SM = (
            worth_SEE[np.arange(shards)[:, None, None], them[..., :-1], them[..., 1:]].sum(-1)
            for them in (own_S1E, orders_SME)
        )
        p_values.append(order_test(canonical_S1[:, 0], shuffled_SM.mean(1), compat=False).p_value)
    return np.array(p_values)


@pytest.mark.slow
@pytest.mark.parametrize(("shards", "examples"), [slow(50, 6), (20, 2)])
def test_p_is_uniform_where_nobody_has_read(shards, examples):
    p_values = p_values_of_worlds_without_reading(1500, shards, examples, orders=20)
    assert stats.kstest(p_values, "uniform").pvalue > 0.01
    assert abs((p_values < 0.05).mean() - 0.05) < 3 * np.sqrt(0.05 * 0.95 / 1500)
