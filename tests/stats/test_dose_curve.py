"""Reading a dose off a curve of planted controls: against statsmodels-free formulas, by hand and by simulation."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy

from nonmember.stats.dose_curve import Between, Control, dose_curve

TWO_DOSES = [Control(0, 0, 0.0), Control(0, 0, 0.04), Control(0, 0, 0.02), Control(4, 0, 1.0), Control(4, 0, 1.04)]
LADDER = [0, 0, 1, 1, 2, 2, 4, 4, 8, 8]


def simulated(rng: np.random.Generator, *, related: float = 0.0, spread: float = 0.05) -> list[Control]:
    """z = .2 log2(1 + dose) + what related text adds + noise; the latter read 0 or 12 times in turn."""
    return [
        Control(dose, read, value_of(dose, read, related) + spread * rng.standard_normal())
        for place, dose in enumerate(LADDER)
        for read in (12.0 * (place % 2) if related else 0.0,)
    ]


def value_of(dose: float, read: float, related: float) -> float:
    return 0.2 * math.log2(1 + dose) + related * math.log1p(read) / math.log1p(12)


def test_p_values_are_the_two_sample_t_test_with_one_observation():
    curve = dose_curve(TWO_DOSES)
    own, others = np.array([0.5]), np.array([1.0, 1.04])
    pooled = math.sqrt((3 * 0.02**2 * 2 / 3 + 2 * 0.02**2) / 3)
    assert curve.spread == pytest.approx(pooled)
    t = (own[0] - others.mean()) / (pooled * math.sqrt(1 + 1 / 2))
    reading = curve.read(0.5, wanted=4, alpha=0.05)
    assert reading.p_cleared == pytest.approx(scipy.stats.t.cdf(t, 3))
    t_none = (own[0] - 0.02) / (pooled * math.sqrt(1 + 1 / 3))
    assert reading.p_member == pytest.approx(scipy.stats.t.sf(t_none, 3))
    assert reading.p_below == pytest.approx(scipy.stats.t.cdf(t_none, 3))


def test_with_related_text_the_curve_is_the_least_squares_fit():
    controls = simulated(np.random.default_rng(3), related=0.3)
    curve = dose_curve(controls)
    doses = sorted(set(LADDER))
    design = np.array(
        [[float(one.dose == dose) for dose in doses] + [math.log1p(one.related) / math.log1p(12)] for one in controls]
    )
    values = np.array([one.value for one in controls])
    expected, rest, _, _ = np.linalg.lstsq(design, values, rcond=None)
    assert curve.means == pytest.approx(expected[:-1])
    assert curve.related_effect == pytest.approx(expected[-1])
    assert (curve.spread**2 * curve.df, curve.df) == pytest.approx((float(rest[0]), len(LADDER) - 6))
    # One more model at dose 2 beside the most related text: the usual prediction variance of a linear model.
    row = np.array([0, 0, 1, 0, 0, 1.0])
    variance = curve.spread**2 * (1 + row @ np.linalg.inv(design.T @ design) @ row)
    assert curve.scale(2.0, 12.0, Between())[0][0] == pytest.approx(math.sqrt(variance))


def test_the_curve_never_falls_and_meets_monotone_means():
    falling = [Control(0, 0, 0.0), Control(0, 0, 0.02), Control(1, 0, 0.3), Control(2, 0, 0.2), Control(4, 0, 0.6)]
    curve = dose_curve(falling)
    assert (np.diff(curve.at(curve.grid)) >= -1e-12).all()
    assert curve.at(1.0) == pytest.approx(0.25)
    assert curve.at(2.0) == pytest.approx(0.25)
    assert curve.at(4.0) == pytest.approx(0.6)


@pytest.mark.parametrize("dose", [0, 1, 3, 8])
@pytest.mark.parametrize("related", [0.0, 0.15])
def test_coverage_and_error_rates(dose: int, related: float):
    """The interval holds the truth at least as often as it says, and the tests reject a true hypothesis as seldom; with
    related text of unknown amount more seldom, since the hardest is assumed."""
    rng = np.random.default_rng(17)
    readings = []
    for _ in range(400):
        curve = dose_curve(simulated(rng, related=related))
        read = float(rng.choice([0.0, 12.0])) if related else 0.0
        value = value_of(dose, read, related) + 0.05 * rng.standard_normal()
        readings.append(curve.read(value, wanted=max(dose, 1), alpha=0.1))
    held = np.mean([
        not math.isnan(one.low) and one.low <= dose and (one.high is None or one.high >= dose) for one in readings
    ])  # fmt: skip
    assert held > 0.9 - 3 * math.sqrt(0.09 / 400)
    if dose == 3:
        return  # between two planted doses: on the curve, not on the truth
    bound = 0.1 + 3 * math.sqrt(0.09 / 400)
    if dose:
        assert np.mean([one.p_cleared < 0.1 for one in readings]) < bound
        assert np.mean([one.p_member < 0.1 for one in readings]) > (0.5 if dose == 8 else 0.0)
    else:
        assert np.mean([one.p_member < 0.1 for one in readings]) < bound
        assert np.mean([math.isnan(one.low) for one in readings]) < bound


def test_a_target_of_another_base_is_judged_with_more_room():
    curve = dose_curve(simulated(np.random.default_rng(5)))
    own = curve.read(0.0, wanted=1, alpha=0.05)
    other = curve.read(0.0, wanted=1, alpha=0.05, between=Between(0.05, 0.2, 6))
    assert own.p_cleared < other.p_cleared < 0.5
    assert other.high > own.high
    scale, _ = curve.scale(4.0, 0.0, Between(0.05, 0.2, 6))
    rise = float(curve.at(4.0) - curve.at(0.0))
    own_scale, _ = curve.scale(4.0, 0.0, Between())
    assert scale[0] ** 2 == pytest.approx(own_scale[0] ** 2 + 0.05**2 + (0.2 * rise) ** 2)


def test_ends_of_the_scale():
    curve = dose_curve(simulated(np.random.default_rng(5), spread=0.01))
    above = curve.read(2.0, wanted=1, alpha=0.05)
    assert (above.estimate, above.low, above.high, above.cleared_dose) == (8.0, 8.0, None, None)
    below = curve.read(-2.0, wanted=1, alpha=0.05)
    assert math.isnan(below.low)
    assert below.estimate == 0
    assert below.p_below < 1e-4
    none = curve.read(0.0, wanted=1, alpha=0.05)
    assert none.low == 0
    assert 0 < none.cleared_dose < 1
    assert none.cleared_dose < none.high
    middle = curve.read(0.2 * math.log2(5), wanted=1, alpha=0.05)
    assert middle.estimate == pytest.approx(4, rel=0.15)
    assert middle.low < 4 < middle.high
    assert middle.p_cleared > 0.5
    assert middle.p_member < 1e-4


@pytest.mark.parametrize(
    ("controls", "message"),
    [
        ([Control(1, 0, 0.1), Control(1, 0, 0.2), Control(2, 0, 0.3)], "dose 0"),
        ([Control(0, 0, 0.1), Control(0, 0, 0.2)], "one more at least"),
        ([Control(0, 0, 0.1), Control(1, 0, 0.2)], "two seeds"),
        ([Control(0, 0, 0.1), Control(0, 0, 0.1), Control(1, 0, 0.2)], "two seeds"),
        ([Control(0, 0, math.nan), Control(0, 0, 0.1), Control(1, 0, 0.2)], "missing or infinite"),
    ],
)
def test_controls_that_cannot_be_judged_by(controls: list[Control], message: str):
    with pytest.raises(ValueError, match=message):
        dose_curve(controls)


def test_what_cannot_be_read():
    curve = dose_curve(TWO_DOSES)
    with pytest.raises(ValueError, match="heaviest planted"):
        curve.read(0.1, wanted=5, alpha=0.05)
    with pytest.raises(ValueError, match="value of the target"):
        curve.read(math.inf, wanted=1, alpha=0.05)
    with pytest.raises(ValueError, match="degrees of freedom"):
        Between(0.1, -0.1)
