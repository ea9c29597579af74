import numpy as np
import pytest
from scipy import stats

from nonmember.stats.paired import paired_t_greater, paired_t_less


def test_worked_example() -> None:
    test = paired_t_less([-1.2, -0.8, -1.5, -0.9], [-1.0, -0.7, -1.1, -1.0])
    assert test.statistic == pytest.approx(-1.441153, abs=1e-6)
    assert test.p_value == pytest.approx(0.122597, abs=1e-6)
    assert test.mean_difference == pytest.approx(-0.15)
    assert (test.num_pairs, test.warning) == (4, "")


def test_is_the_textbook_formula_and_points_down() -> None:
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(2, 30))
    difference = x - y
    t = difference.mean() / (difference.std(ddof=1) / np.sqrt(30))
    test = paired_t_less(x, y)
    assert test.statistic == pytest.approx(t, rel=1e-12)
    assert test.p_value == pytest.approx(stats.t.cdf(t, 29), rel=1e-9)
    assert paired_t_less(y, x).p_value == pytest.approx(1 - test.p_value)
    assert paired_t_less(x, x + 1 + 0.1 * y).p_value < 1e-12


def test_documents_of_one_cluster_are_no_independent_draws() -> None:
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(2, 30))
    once = paired_t_greater(x, y)
    copies = [np.repeat(item, 4) for item in (x, y)]
    together = paired_t_greater(*copies, np.repeat(range(30), 4).tolist())
    assert (together.statistic, together.p_value) == pytest.approx((once.statistic, once.p_value))
    assert paired_t_greater(x, y, range(30)).p_value == pytest.approx(once.p_value)
    uneven = np.array([0] * 15 + list(range(1, 16)))  # the jackknife by hand: one cluster of half the documents
    difference, without = x - y, []
    for cluster in range(16):
        without.append((x - y)[uneven != cluster].mean())
    error = np.sqrt(15 / 16 * ((np.array(without) - difference.mean()) ** 2).sum())
    found = paired_t_less(x, y, uneven.tolist())
    assert found.statistic == pytest.approx(difference.mean() / error)
    assert found.p_value == pytest.approx(stats.t.cdf(found.statistic, 30**2 / (15**2 + 15) - 1))
    assert "All 2 clusters" in paired_t_less([0.0, 1.0, 1.0, 0.0], [0.5] * 4, "aabb").warning


@pytest.mark.parametrize(("shift", "p_value"), [(0.0, 1.0), (0.1, 1.0), (-0.1, 0.0)])
def test_equal_differences_are_decided_by_sign_with_a_warning(shift, p_value) -> None:
    y = np.array([0.1, 0.2, 0.3, 0.7, 1.1])  # y + shift - y differs from shift in the last bits
    test = paired_t_less(y + shift, y)
    assert test.p_value == p_value
    assert np.isnan(test.statistic)
    assert "All 5 differences" in test.warning


def test_rounding_below_zero_is_not_evidence() -> None:
    y = np.array([0.3, 0.3])
    x = np.array([0.1 + 0.2, 0.1 + 0.2]) - 2 * np.spacing(0.3)  # below y in the last bit only
    assert (x < y).all()
    assert paired_t_less(x, y).p_value == 1.0


def test_small_but_real_spread_is_tested() -> None:
    test = paired_t_less([1.0, 2.0, 3.0], [1.0 + 1e-9, 2.0 + 2e-9, 3.0 + 3e-9])
    assert test.warning == ""
    assert 0 < test.p_value < 0.05


@pytest.mark.parametrize(
    ("x", "y", "message"),
    [
        ([1, 2, np.nan], [1, 2, 3], "`x`; 1 of 3 are NaN"),
        ([1, 2], [1, 2, 3], "got x 2, y 3"),
        ([1], [2], "at least 2 documents"),
        ([1, np.inf], [1, 2], "finite scores"),
    ],
)
def test_refuses_bad_input(x, y, message) -> None:
    with pytest.raises(ValueError, match=message):
        paired_t_less(x, y)


def test_greater_mirrors_less() -> None:
    rng = np.random.default_rng(1)
    x, y = rng.normal(size=(2, 30))
    up, down = paired_t_greater(x, y), paired_t_less(y, x)
    assert up.p_value == pytest.approx(down.p_value)
    assert up.statistic == pytest.approx(-down.statistic)
    assert up.mean_difference == pytest.approx(-down.mean_difference)


@pytest.mark.parametrize("shift", [0.0, 0.1, -0.1])
def test_equal_differences_are_no_evidence_that_x_is_greater(shift) -> None:
    y = np.array([0.1, 0.2, 0.3, 0.7, 1.1])
    test = paired_t_greater(y + shift, y)
    assert (test.p_value, np.isnan(test.statistic)) == (1.0, True)
    assert "All 5 differences" in test.warning
