import math

import numpy as np
import pytest
from scipy import stats

from nonmember.stats.detection import detection_curve
from nonmember.stats.margins import prediction_p_value

# Delta falls with dose and with share; half of it read 4 times looks heavier than all of it read 4 times.
GRID = {
    (0.5, 1): [0.09, 0.11],
    (0.5, 4): [0.01, 0.03],
    (1.0, 1): [0.07, 0.09],
    (1.0, 4): [0.05, 0.07],
    (1.0, 16): [-0.09, -0.07],
}
UNTOUCHED = [0.10, 0.12, 0.14]


def curve(observed, controls=GRID, negatives=UNTOUCHED, alpha=0.05):
    return detection_curve(observed, controls, negatives, alpha=alpha)


def by_reading(found):
    return {(point.share, point.dose): point for point in found.points}


def test_each_point_is_the_test_of_one_more_control():
    found = by_reading(curve(0.1))
    assert list(found) == sorted(GRID)
    for reading, point in found.items():
        assert point.p_value == prediction_p_value(0.1, GRID, reading)
        assert point.noticed == (point.p_value < 0.05)
        assert (point.mean, point.num_controls) == (pytest.approx(np.mean(GRID[reading])), 2)


def test_at_least_is_as_weak_as_its_weakest_heavier_reading():
    found = by_reading(curve(0.09))
    raw = {reading: point.p_value for reading, point in found.items()}
    assert raw[0.5, 4] < 0.05 < raw[1.0, 4]
    assert found[0.5, 4].p_at_least == raw[1.0, 4]
    assert found[0.5, 1].p_at_least == max(raw.values())
    assert found[1.0, 1].p_at_least == max(raw[1.0, 1], raw[1.0, 4], raw[1.0, 16])
    assert found[1.0, 16].p_at_least == raw[1.0, 16]
    assert found[0.5, 4].noticed
    assert not found[0.5, 4].noticed_at_least


def test_monotone_takes_over_what_a_lighter_reading_shows():
    found = curve(0.09)
    points = by_reading(found)
    assert points[1.0, 4].p_monotone == points[0.5, 4].p_value
    assert points[0.5, 1].p_monotone == points[0.5, 1].p_value
    assert points[1.0, 1].p_monotone == min(points[0.5, 1].p_value, points[1.0, 1].p_value)
    for point in found.points:
        assert point.p_monotone <= point.p_value <= point.p_at_least


def test_smallest_doses_are_measured_ones_or_none():
    assert curve(0.09).smallest_noticed_dose() == {0.5: None, 1.0: 16}
    assert curve(0.2).smallest_noticed_dose() == {0.5: 1, 1.0: 1}
    assert curve(-0.2).smallest_noticed_dose() == {0.5: None, 1.0: None}
    assert curve(0.0).smallest_detectable_dose(0.9) == {0.5: None, 1.0: 16}


def test_power_is_that_of_one_more_untouched_model():
    """By hand: critical Delta mean + t(.95; 5) s sqrt(1 + 1/2), untouched t on 5 + 2 degrees of freedom."""
    point = by_reading(curve(0.1))[1.0, 4]
    spread = math.sqrt(5 * 0.0002 / 5)
    critical = 0.06 + stats.t.ppf(0.95, 5) * spread * math.sqrt(1.5)
    pooled = math.sqrt((5 * 0.0002 + 0.0008) / 7)
    expected = stats.t.sf((critical - 0.12) / (pooled * math.sqrt(1 + 1 / 3)), 7)
    assert point.power == pytest.approx(expected, rel=1e-9)
    assert point.counted_power == np.mean(np.array(UNTOUCHED) > critical) == 1.0
    assert by_reading(curve(0.1))[0.5, 4].power_at_least == point.power


def test_power_does_not_depend_on_the_target():
    assert [point.power for point in curve(0.1).points] == [point.power for point in curve(-0.3).points]


def test_without_negative_controls_power_is_unknown():
    found = curve(0.1, negatives=[])
    assert all(math.isnan(item) for point in found.points for item in (point.power, point.power_at_least))
    assert all(math.isnan(point.counted_power) for point in found.points)
    assert found.smallest_detectable_dose(0.9) == {0.5: None, 1.0: None}
    assert [point.p_value for point in found.points] == [point.p_value for point in curve(0.1).points]


@pytest.mark.slow
def test_noticed_at_least_errs_no_more_often_than_alpha_for_any_reading():
    """Targets that did read at one of three equal doses, over and over: the smallest p errs, the largest does not."""
    rng, wrong, lucky, num_worlds = np.random.default_rng(4), 0, 0, 1500
    for _ in range(num_worlds):
        grid = {(1.0, dose): rng.normal(size=3).tolist() for dose in (1, 2, 4)}
        points = by_reading(curve(rng.normal(), grid, []))
        wrong += points[1.0, 1].noticed_at_least
        lucky += points[1.0, 4].p_monotone < 0.05
    assert wrong / num_worlds < 0.05
    assert lucky / num_worlds > 0.06


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"controls": {}}, "there are none"),
        ({"controls": {(0.0, 1): [0.1, 0.2]}}, "got 0.0 and 1"),
        ({"controls": {(50, 1): [0.1, 0.2]}}, "got 50 and 1"),
        ({"controls": {(0.5, 0): [0.1, 0.2]}}, "are the negatives"),
        ({"controls": {(0.5, 1): [0.1]}}, "at least 2 control models"),
        ({"alpha": 95}, "alpha=95"),
        ({"observed": math.nan}, "Delta of the target; got nan"),
        ({"negatives": [0.1, math.nan]}, "Leave that control out"),
    ],
)
def test_refuses_bad_input(changed, message):
    with pytest.raises(ValueError, match=message):
        curve(**{"observed": 0.1, **changed})
