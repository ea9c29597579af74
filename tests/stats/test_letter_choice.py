"""Answers by letter: shares, what hangs on the place of the right option, and calibration by hand."""

from __future__ import annotations

import numpy as np
import pytest

from nonmember.stats._arrays import numbered
from nonmember.stats.letter_choice import NONE, Choices, calibration_offsets, largest

A, B, C, D = range(4)


def choices(rows, *, probabilities=None) -> Choices:
    """rows: unit, right, chosen."""
    unit, right, chosen = (np.array(column, dtype=np.int64) for column in zip(*rows, strict=True))
    return Choices(unit, right, chosen, None if probabilities is None else np.array(probabilities, dtype=np.float64))


def test_calibration_is_the_published_vector():
    """docs/methods/checks.md, TV7."""
    unseen = choices([(0, A, A)], probabilities=[[0.45, 0.30, 0.15, 0.10]])
    offsets = calibration_offsets(unseen)
    np.testing.assert_allclose(offsets, [-0.20, -0.05, 0.10, 0.15], atol=1e-12)
    asked = choices([(0, B, A)], probabilities=[[0.40, 0.35, 0.15, 0.10]])
    after = asked.calibrated(offsets)
    np.testing.assert_allclose(after.probability_QL, [[0.20, 0.30, 0.25, 0.25]], atol=1e-12)
    assert (asked.chosen_Q.tolist(), after.chosen_Q.tolist()) == ([A], [B])
    assert (asked.accuracy_U().tolist(), after.accuracy_U().tolist()) == ([0.0], [1.0])


def test_offsets_are_of_units_and_not_of_questions():
    """A work of three questions weighs as much as one of one."""
    unseen = choices(
        [(0, A, A), (1, A, B), (1, B, B), (1, C, B)],
        probabilities=[[1, 0, 0, 0], [0, 1, 0, 0], [0, 1, 0, 0], [0, 1, 0, 0]],
    )
    np.testing.assert_allclose(calibration_offsets(unseen), [-0.25, -0.25, 0.25, 0.25])
    np.testing.assert_allclose(unseen.calibrated(calibration_offsets(unseen)).probability_L(), [0.25] * 4)


def test_ties_go_to_the_earlier_letter_also_after_rounding():
    assert largest(np.array([[0.25, 0.25, 0.25, 0.25], [0.1, 0.3, 0.3, 0.3]])).tolist() == [A, B]
    assert largest(np.array([[0.1 + 0.2, 0.3, 0.2, 0.2], [0.3, 0.1 + 0.2, 0.2, 0.2]])).tolist() == [A, A]


def test_what_is_no_letter_is_wrong_and_never_calibrated():
    nothing = [np.nan] * 4
    asked = choices([(0, A, A), (0, B, NONE), (1, C, D)], probabilities=[[0.7, 0.1, 0.1, 0.1], nothing, [0, 0, 0, 1]])
    assert asked.accuracy_U().tolist() == [0.5, 0.0]
    np.testing.assert_allclose(asked.shares_L(), [0.5, 0, 0, 0.5])
    assert asked.calibrated(np.zeros(4)).chosen_Q.tolist() == [A, NONE, D]
    np.testing.assert_allclose(asked.probability_UL(), [[0.7, 0.1, 0.1, 0.1], [0, 0, 0, 1]])


def test_accuracy_by_the_place_of_the_right_option():
    asked = choices([(0, A, A), (0, A, B), (0, B, B), (1, A, A), (1, D, A)])
    np.testing.assert_allclose(asked.accuracy_L(), [0.75, 1.0, np.nan, 0.0])


def test_well_calibrated_is_each_letter_within_the_papers_interval():
    asked = choices(
        [(0, A, A), (1, A, A), (2, A, NONE)],
        probabilities=[[0.35, 0.15, 0.25, 0.25], [0.36, 0.14, 0.25, 0.25], [np.nan] * 4],
    )
    assert asked.well_calibrated() == 0.5


@pytest.mark.filterwarnings("error")
def test_a_model_that_answers_no_letter_at_all():
    asked = choices([(0, A, NONE), (1, B, NONE)], probabilities=[[np.nan] * 4] * 2)
    assert asked.accuracy_U().tolist() == [0, 0]
    for values in (asked.shares_L(), asked.probability_L(), calibration_offsets(asked), [asked.well_calibrated()]):
        assert np.isnan(values).all()


def test_units_are_numbered_as_they_come():
    assert numbered(["b", "a", "b", "c"]).tolist() == [0, 1, 0, 2]
