import math

import numpy as np
import pytest
from scipy import stats

from nonmember.stats.margins import Extra, bound_factor, margin, pooled_spread, prediction_p_value

ONE = {"4x": [0.01, 0.03, 0.05]}
SEVERAL = {"2x": [0.06, 0.10], "4x": [0.01, 0.03, 0.05], "8x": [0.00]}


# --- against tables and by hand ---


@pytest.mark.parametrize(
    ("num_controls", "content", "confidence", "factor"),
    [
        (2, 0.95, 0.95, 26.260),
        (2, 0.90, 0.90, 10.253),
        (3, 0.95, 0.95, 7.656),
        (5, 0.95, 0.95, 4.203),
        (10, 0.95, 0.95, 2.911),
        (10, 0.99, 0.99, 5.074),
        (20, 0.90, 0.95, 1.926),
        (30, 0.90, 0.95, 1.777),
    ],
)
def test_tolerance_factors_are_the_published_ones(num_controls, content, confidence, factor):
    """One-sided, one normal sample: Hahn and Meeker (1991), table A.12; ISO 16269-6, standard deviation unknown."""
    assert bound_factor(num_controls, num_controls - 1, content=content, confidence=confidence) == pytest.approx(
        factor, abs=6e-4
    )


def test_prediction_factor_by_hand():
    """t(.95; 9) = 1.833, times sqrt(1.1)."""
    assert bound_factor(10, 9, content=0.95, confidence=None) == pytest.approx(1.8331 * math.sqrt(1.1), abs=1e-4)


def test_one_dose_by_hand():
    """Mean .03, s = .02 on 2 degrees of freedom."""
    found = margin(ONE, "4x", content=0.95, confidence=0.95)
    assert (found.mean, found.spread) == pytest.approx((0.03, 0.02))
    assert (found.num_controls, found.df) == (3, 2)
    assert found.bound == pytest.approx(0.03 + 7.656 * 0.02, abs=2e-5)
    assert found.factor == pytest.approx(7.656, abs=1e-3)
    assert (found.content, found.confidence) == (0.95, 0.95)


def test_other_doses_lend_their_spread_and_not_their_mean():
    """Squares .0008 and .0008 on 1 + 2 degrees of freedom; a single control adds none."""
    for at, mean, num_controls in (("2x", 0.08, 2), ("4x", 0.03, 3), ("8x", 0.0, 1)):
        found = pooled_spread(SEVERAL, at)
        assert (found.mean, found.num_controls, found.df) == (pytest.approx(mean, abs=1e-12), num_controls, 3)
        assert found.spread == pytest.approx(math.sqrt(0.0016 / 3))


def test_p_by_hand():
    """(.08 - .03) / (.02 sqrt(4/3)) = 2.165 on 2 degrees of freedom."""
    expected = stats.t.sf(0.05 / (0.02 * math.sqrt(4 / 3)), 2)
    assert prediction_p_value(0.08, ONE, "4x") == pytest.approx(expected, rel=1e-12)
    assert prediction_p_value(0.03, ONE, "4x") == pytest.approx(0.5)


def test_p_of_one_more_is_a_two_sample_t_test_of_one_against_several():
    rng = np.random.default_rng(0)
    controls, value = rng.normal(size=7), 1.3
    pooled = stats.t.sf((value - controls.mean()) / (controls.std(ddof=1) * math.sqrt(1 + 1 / 7)), 6)
    assert prediction_p_value(value, {"4x": controls.tolist()}, "4x") == pytest.approx(pooled, rel=1e-12)


@pytest.mark.parametrize("groups", [ONE, SEVERAL])
@pytest.mark.parametrize("alpha", [0.01, 0.05, 0.2])
def test_p_falls_below_alpha_at_the_prediction_bound(groups, alpha):
    bound = margin(groups, "4x", content=1 - alpha, confidence=None).bound
    assert prediction_p_value(bound, groups, "4x") == pytest.approx(alpha, rel=1e-9)


# --- coverage, where the model holds ---


def drawn(seed, *, num_worlds, num_controls, num_groups):
    """[worlds] groups of controls around a mean of 1 with standard deviation 2, the first group asked about."""
    rng = np.random.default_rng(seed)
    for _ in range(num_worlds):
        yield {group: rng.normal(1.0 + 5 * group, 2.0, num_controls).tolist() for group in range(num_groups)}, rng


@pytest.mark.slow
@pytest.mark.parametrize(("num_controls", "num_groups"), [(2, 1), (5, 1), (3, 4)])
def test_tolerance_bound_covers_with_the_stated_confidence(num_controls, num_groups):
    num_worlds = 1500
    above = 1.0 + 2.0 * stats.norm.ppf(0.9)  # 90% of such models lie below
    worlds = drawn(1, num_worlds=num_worlds, num_controls=num_controls, num_groups=num_groups)
    covered = sum(margin(groups, 0, content=0.9, confidence=0.8).bound >= above for groups, _ in worlds)
    low, high = stats.binom.interval(0.999, num_worlds, 0.8)
    assert low <= covered <= high


@pytest.mark.parametrize(("num_controls", "num_groups"), [(2, 1), (5, 1), (3, 4)])
def test_p_of_one_more_control_is_uniform(num_controls, num_groups):
    worlds = drawn(2, num_worlds=2000, num_controls=num_controls, num_groups=num_groups)
    p_values = [prediction_p_value(rng.normal(1.0, 2.0), groups, 0) for groups, rng in worlds]
    assert stats.kstest(p_values, "uniform").pvalue > 0.001


def test_p_with_an_extra_variance_keeps_its_level():
    """Estimated on 4 degrees of freedom, as large as that of the controls."""
    num_worlds, alpha = 3000, 0.05
    rejected = 0
    for groups, rng in drawn(3, num_worlds=num_worlds, num_controls=5, num_groups=1):
        value = rng.normal(1.0, math.sqrt(4.0 + 4.0))
        extra = 4.0 * rng.chisquare(4) / 4
        rejected += prediction_p_value(value, groups, 0, extra=Extra(extra, 4)) < alpha
    assert 0.03 < rejected / num_worlds < 0.065
    three = {0: [0.0, 1.0, 2.0]}
    assert prediction_p_value(3.0, three, 0) < prediction_p_value(3.0, three, 0, extra=Extra(9.0))


@pytest.mark.slow
def test_the_tolerance_bound_with_an_extra_variance_covers_as_often_as_it_says():
    """Of 90% of targets that differ from the controls by as much again, with 80% confidence."""
    num_worlds = 2000
    above = stats.norm(1.0, math.sqrt(8.0)).ppf(0.9)
    covered = 0
    for groups, rng in drawn(4, num_worlds=num_worlds, num_controls=5, num_groups=1):
        extra = Extra(4.0 * rng.chisquare(4) / 4, 4)
        covered += margin(groups, 0, content=0.9, confidence=0.8, extra=extra).bound >= above
    assert 0.77 < covered / num_worlds < 0.85


def test_an_extra_variance_by_hand():
    """.02^2 (1 + 1/3) + .03^2 = .0379^2 on .00143333^2 / (.00053333^2 / 2 + .0009^2 / 6) = 7.40 degrees of freedom."""
    found = margin(ONE, "4x", content=0.95, confidence=None, extra=Extra(0.03**2, 6))
    total = 0.02**2 * 4 / 3 + 0.03**2
    df = total**2 / ((0.02**2 * 4 / 3) ** 2 / 2 + 0.03**4 / 6)
    assert df == pytest.approx(7.40, abs=0.02)
    assert found.bound == pytest.approx(0.03 + stats.t(df).ppf(0.95) * math.sqrt(total))
    assert prediction_p_value(found.bound, ONE, "4x", extra=Extra(0.03**2, 6)) == pytest.approx(0.05)
    assert margin(ONE, "4x", content=0.9, confidence=0.8, extra=Extra()) == margin(
        ONE, "4x", content=0.9, confidence=0.8
    )


# --- what must hold, and what is refused ---


def test_more_content_more_confidence_and_fewer_controls_give_larger_margins():
    bounds = [margin(ONE, "4x", content=0.9, confidence=item).bound for item in (None, 0.9, 0.95)]
    assert bounds == sorted(bounds)
    assert margin(ONE, "4x", content=0.99, confidence=0.95).bound > bounds[-1]
    assert (
        margin(SEVERAL, "4x", content=0.95, confidence=0.95).factor
        < margin(ONE, "4x", content=0.95, confidence=0.95).factor
    )


@pytest.mark.parametrize(
    ("groups", "at", "message"),
    [
        ({}, "4x", "there are: none"),
        ({"2x": [0.1, 0.2]}, "4x", "read at 4x; there are: 2x"),
        ({"2x": [0.1, 0.2], "4x": []}, "4x", "read at 4x; there are: 2x"),
        ({"4x": [0.1]}, "4x", "at least 2 control models of one dose"),
        ({"2x": [0.3], "4x": [0.1]}, "4x", "got 2 in all"),
        ({"4x": [0.1, math.nan]}, "4x", "Leave that control out"),
        ({"2x": [0.1, math.inf], "4x": [0.1, 0.2]}, "4x", "Leave that control out"),
        ({"4x": [0.1, 0.1]}, "4x", "its own seed"),
        ({"4x": [0.1, 0.1, 0.1]}, "4x", "its own seed"),  # whose mean is another number, by rounding
    ],
)
def test_refuses_controls_that_cannot_answer(groups, at, message):
    with pytest.raises(ValueError, match=message):
        margin(groups, at, content=0.95, confidence=0.95)
    with pytest.raises(ValueError, match=message):
        prediction_p_value(0.1, groups, at)


@pytest.mark.parametrize(("content", "confidence"), [(95, 0.95), (0.95, 1.0), (0.0, None)])
def test_refuses_settings_out_of_range(content, confidence):
    with pytest.raises(ValueError, match="between 0 and 1"):
        margin(ONE, "4x", content=content, confidence=confidence)


def test_refuses_a_target_without_a_delta():
    with pytest.raises(ValueError, match="Delta of the target; got nan"):
        prediction_p_value(math.nan, ONE, "4x")
    with pytest.raises(ValueError, match="extra variance of at least 0"):
        Extra(-1.0)
