"""Reading a dose off planted controls: against formulas of one feature, by hand and by simulation."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy

from marks import slow
from nonmember.stats.dose_curve import Between, Control, dose_curve, residual_covariance

LADDER = [0, 0, 0, 1, 1, 2, 2, 4, 4, 8, 8]
RISES, RELATED = np.array([1.0, 0.4, -0.3]), np.array([0.2, 0.5, 0.0])  # by feature
COVARIANCE = 0.05**2 * np.array([[1.0, 0.5, 0.0], [0.5, 2.0, 0.3], [0.0, 0.3, 0.5]])


def one(dose: float, value: float, related: float = 0.0) -> Control:
    return Control(dose, related, np.array([value]))


TWO_DOSES = [one(0, 0.0), one(0, 0.04), one(0, 0.02), one(4, 1.0), one(4, 1.04)]


def expected(dose: float, related: float) -> np.ndarray:
    return 0.2 * math.log2(1 + dose) * RISES + 0.3 * math.log1p(related / (1 + dose)) / math.log1p(12) * RELATED


def draw(rng: np.random.Generator, dose: float, related: float) -> np.ndarray:
    return expected(dose, related) + rng.multivariate_normal(np.zeros(3), COVARIANCE)


def controls(rng: np.random.Generator) -> list[Control]:
    return [
        Control(dose, read, draw(rng, dose, read))
        for index, dose in enumerate(LADDER)
        for read in (12.0 * (index % 2),)
    ]


def test_p_values_of_one_feature_are_the_two_sample_t_test_with_one_observation():
    curve = dose_curve(TWO_DOSES)
    pooled = math.sqrt((2 * 0.02**2 + 2 * 0.02**2) / 3)
    assert curve.covariance[0, 0] == pytest.approx(pooled**2)
    reading = curve.read(np.array([0.5]), wanted=4, alpha=0.05)
    heavier = (0.5 - 1.02) / (pooled * math.sqrt(1 + 1 / 2))
    assert reading.p_at_least == pytest.approx(scipy.stats.t.cdf(heavier, 3), rel=1e-3)
    none = (0.5 - 0.02) / (pooled * math.sqrt(1 + 1 / 3))
    assert reading.p_none == pytest.approx(scipy.stats.t.sf(none, 3), rel=1e-3)


def test_more_than_the_heaviest_dose_lies_along_the_last_rise_and_not_beside_it():
    rng = np.random.default_rng(3)
    curve = dose_curve(controls(rng), COVARIANCE)
    heavier = curve.at(np.array([8.0]))[0] + 4 * (curve.monotone[-1] - curve.monotone[-2])
    reading = curve.read(heavier, wanted=1, alpha=0.05)
    assert reading.estimate == 8
    assert reading.p_fit > 0.2
    beside = curve.read(heavier + np.array([0, 0, 1.0]), wanted=1, alpha=0.05)
    assert (beside.estimate, beside.p_fit < 1e-4) == (8, True)


def test_to_deny_a_dose_is_to_deny_all_heavier_ones():
    """With features that all but go together a heavier dose may fit better than a lighter one."""
    rng = np.random.default_rng(11)
    together = np.array([[1.0, 0.97], [0.97, 1.0]])
    for _ in range(40):
        rises = {dose: rng.normal(size=2) * math.log1p(dose) for dose in (0, 1, 8)}
        planted = [Control(dose, 0.0, rises[dose] + 0.05 * rng.normal(size=2)) for dose in (0, 0, 0, 1, 1, 8, 8)]
        curve, target = dose_curve(planted, together), rng.normal(size=2)
        denied = [curve.read(target, wanted=dose, exceeded=dose / 2, alpha=0.05) for dose in (0.5, 1, 2, 8)]
        assert (np.diff([item.p_at_least for item in denied]) <= 1e-12).all()
        assert (np.diff([item.p_at_most for item in denied]) >= -1e-12).all()


def test_the_fit_is_that_of_least_squares():
    planted = controls(np.random.default_rng(3))
    curve = dose_curve(planted, COVARIANCE)
    doses = sorted(set(LADDER))
    design = np.array(
        [
            [float(it.dose == dose) for dose in doses] + [math.log1p(it.related / (1 + it.dose)) / math.log1p(12)]
            for it in planted
        ]
    )
    values = np.array([it.values for it in planted])
    fitted, _, _, _ = np.linalg.lstsq(design, values, rcond=None)
    assert curve.means == pytest.approx(fitted[:-1])
    assert curve.related_effect == pytest.approx(fitted[-1])
    errors = values - design @ fitted
    df = len(LADDER) - 6
    scale = sum(error @ np.linalg.inv(COVARIANCE) @ error for error in errors) / (3 * df)
    assert curve.covariance == pytest.approx((4 * scale * COVARIANCE + errors.T @ errors) / (4 + df))
    assert curve.df == 4 + df - 3 + 1
    products, its_df = residual_covariance(planted)
    assert (products, its_df) == (pytest.approx(errors.T @ errors), df)


def test_the_curve_never_turns_and_meets_monotone_means():
    curve = dose_curve([one(0, 0.0), one(0, 0.02), one(1, 0.3), one(2, 0.2), one(4, 0.6)])
    assert (np.diff(curve.at(curve.grid)[:, 0]) >= -1e-12).all()
    assert curve.at(np.array([1.0, 2.0, 4.0]))[:, 0] == pytest.approx([0.25, 0.25, 0.6])
    falling = dose_curve([one(0, 0.0), one(0, 0.02), one(1, -0.3), one(2, -0.2), one(4, -0.6)])
    assert falling.at(np.array([1.0, 2.0]))[:, 0] == pytest.approx([-0.25, -0.25])


@pytest.mark.slow
@pytest.mark.parametrize("dose", [0, 1, 8])
@pytest.mark.parametrize("related", [0.0, slow(4.0), 12.0])
def test_coverage_and_error_rates(dose: int, related: float):
    """Whatever related text was read: a true hypothesis is rejected about as seldom as alpha says."""
    rng = np.random.default_rng(17)
    readings = [
        dose_curve(controls(rng), COVARIANCE).read(draw(rng, dose, related), wanted=max(dose, 1), alpha=0.1)
        for _ in range(120)
    ]
    bound = 0.1 + 3 * math.sqrt(0.09 / 120)
    held = [it.low <= dose and (it.high is None or it.high >= dose) for it in readings]
    assert np.mean(held) > 1 - bound
    assert np.mean([it.p_fit < 0.1 for it in readings]) < bound + 0.05
    wrong = [it.p_at_least < 0.1 for it in readings] if dose else [it.p_none < 0.1 for it in readings]
    assert np.mean(wrong) < bound
    if dose == 8:
        assert np.mean([it.p_none < 0.1 for it in readings]) == 1
        assert np.median([it.estimate for it in readings]) == pytest.approx(8, rel=0.2)


def test_a_second_feature_tells_reading_from_related_text():
    """One feature cannot: both raise it."""
    planted = controls(np.random.default_rng(8))
    values = expected(0, 12)
    alone = dose_curve([Control(it.dose, it.related, it.values[1:2]) for it in planted], COVARIANCE[1:2, 1:2])
    both = dose_curve(planted, COVARIANCE)
    apart = both.read(values, wanted=2, alpha=0.05)
    assert alone.read(values[1:2], wanted=2, alpha=0.05).high > 1.5 * apart.high
    assert apart.related > 4
    assert apart.low == 0


def test_a_target_of_another_base_is_judged_with_more_room():
    curve = dose_curve(controls(np.random.default_rng(5)), COVARIANCE)
    values = expected(0, 0)
    own = curve.read(values, wanted=2, alpha=0.05)
    other = curve.read(values, wanted=2, alpha=0.05, between=Between(COVARIANCE, 0.2, 6))
    assert own.p_at_least < other.p_at_least < 0.5
    assert other.high > own.high


def test_ends_of_the_scale():
    curve = dose_curve(controls(np.random.default_rng(5)), COVARIANCE)
    above = curve.read(expected(40, 0), wanted=1, alpha=0.05)
    assert (above.estimate, above.high, above.cleared_dose) == (8.0, None, None)
    assert above.low > 6
    none = curve.read(expected(0, 0), wanted=2, alpha=0.05)
    assert none.low == 0
    assert 0 < none.cleared_dose < none.high
    below = curve.read(expected(0, 0) - RISES, wanted=1, alpha=0.05)
    assert below.p_fit < 1e-3 < none.p_fit


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ([one(1, 0.1), one(1, 0.2), one(2, 0.3)], "dose 0"),
        ([one(0, 0.1), one(0, 0.2)], "one more at least"),
        ([one(0, 0.1), one(1, 0.2)], "two seeds"),
        ([one(0, 0.1), one(0, 0.1), one(1, 0.2)], "two seeds"),
        ([one(0, math.nan), one(0, 0.1), one(1, 0.2)], "missing or infinite"),
    ],
)
def test_controls_that_cannot_be_judged_by(given: list[Control], message: str):
    with pytest.raises(ValueError, match=message):
        dose_curve(given)


def test_what_cannot_be_read():
    curve = dose_curve(TWO_DOSES)
    with pytest.raises(ValueError, match="heaviest planted"):
        curve.read(np.array([0.1]), wanted=5, alpha=0.05)
    with pytest.raises(ValueError, match="finite features"):
        curve.read(np.array([math.inf]), wanted=1, alpha=0.05)
    with pytest.raises(ValueError, match="degrees of freedom"):
        Between(COVARIANCE, -0.1, 3)
    with pytest.raises(ValueError, match="of 1 features; got one of 3 x 3"):
        dose_curve(TWO_DOSES, COVARIANCE)
