"""Planning the dose meter: against simulated audits, and in the limits."""

from __future__ import annotations

import numpy as np
import pytest
import scipy

from nonmember.stats.dose_curve import Between, Control, dose_curve
from nonmember.stats.dose_planning import DosePilot, least_excluded, power_by_dose, scale_by_documents

READINGS = [(0, 0), (0, 0), (0, 4), (0, 12), (1, 0), (1, 4), (2, 1), (2, 8), (4, 0), (4, 2), (8, 1), (8, 0), (12, 0)]
COVARIANCE = 0.3**2 * np.array([[1.0, 0.3], [0.3, 2.0]])


def expected(dose, related):
    return np.log1p(dose) * np.array([1.0, 0.8]) + np.log1p(related / (1 + dose)) * np.array([0.2, 0.6])


def drawn(rng, of_models=COVARIANCE):
    return [Control(x, r, expected(x, r) + rng.multivariate_normal(np.zeros(2), of_models)) for x, r in READINGS]


@pytest.fixture(scope="module")
def pilot():
    exact = dose_curve(drawn(np.random.default_rng(0), 1e-8 * COVARIANCE), COVARIANCE)
    known = dose_curve(drawn(np.random.default_rng(0)), COVARIANCE)
    curve = type(known)(**{**vars(exact), "covariance": COVARIANCE, "df": known.df})
    return DosePilot(curve, READINGS, models=0.6, documents=40.0)


@pytest.mark.slow
def test_the_least_excluded_dose_is_that_of_simulated_audits(pilot):
    planned = least_excluded(pilot, 100, 1, error=0.05, power=0.9)
    rng = np.random.default_rng(5)
    least = []
    for index in range(150):
        target = expected(0, (2, 4, 8)[index % 3]) + rng.multivariate_normal(np.zeros(2), COVARIANCE)
        found = dose_curve(drawn(rng), COVARIANCE).read(target, wanted=1, alpha=0.05).cleared_dose
        least.append(np.inf if found is None else found)
    assert np.quantile(least, 0.9) == pytest.approx(planned, rel=0.2)


def test_power_is_the_error_at_no_reading_and_rises_with_the_dose(pilot):
    doses, power = power_by_dose(pilot, 100, 1, error=0.05)
    assert (doses[0], power[0]) == (0, pytest.approx(0.05, abs=1e-6))
    by_dose = np.interp([0, 0.5, 1, 2, 4], doses, power)
    assert (np.diff(by_dose) > 0).all()
    assert power[-1] > 0.99


def test_one_feature_without_related_text_is_the_noncentral_t_of_two_samples():
    points = [(0, 0.0), (0, 0.2), (4, 3.0), (4, 3.2)]
    curve = dose_curve([Control(dose, 0, np.array([value])) for dose, value in points])
    simple = DosePilot(curve, [(dose, 0) for dose, _ in points], models=1.0, documents=0.0)
    _, power = power_by_dose(simple, 10, 1, error=0.05)
    spread = np.sqrt(0.02 * (1 + 1 / 2))
    by_hand = scipy.stats.nct.sf(scipy.stats.t.isf(0.05, 2), 2, 3.0 / spread)
    assert power[-1] == pytest.approx(by_hand, rel=1e-6)


def test_more_documents_and_more_controls_exclude_less_and_another_base_more(pilot):
    def least(documents, rounds, of=pilot):
        return least_excluded(of, documents, rounds, error=0.05, power=0.9)

    assert least(1000, 1) < least(100, 1) < least(20, 1)
    assert least(100, 5) < least(100, 1)
    other = Between(0.2 * COVARIANCE, relative=0.2, df=5)
    assert least(100, 1, DosePilot(pilot.curve, READINGS, 0.6, 40.0, other)) > least(100, 1)


def test_one_model_of_each_reading_tells_nothing(pilot):
    with pytest.raises(ValueError, match="leaves nothing to tell"):
        DosePilot(pilot.curve, [(0, 0), (1, 0), (4, 0), (12, 0), (0, 4)], 1.0, 0.0).planned(100, 1)


def test_a_scale_that_documents_do_not_change_has_no_part_of_theirs():
    assert scale_by_documents([25, 50, 100], [0.5, 0.5, 0.5]) == pytest.approx((0.5, 0.0))
    assert scale_by_documents([25, 50, 100], [0.4, 0.5, 0.6])[1] == 0  # never below none
