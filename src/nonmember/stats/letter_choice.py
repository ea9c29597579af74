"""Answers to questions with four options: how often the right one is chosen, how much that hangs on where it stands,
and DE-COP's calibration of the letters' probabilities.

Shapes: Q questions, L = 4 letters (A, B, C, D), U units (books, papers).
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from nonmember.stats._arrays import BoolArray, FloatArray, IntArray

LETTERS = "ABCD"
NONE = -1  # chosen: what was answered is no letter
WELL_CALIBRATED = (0.15, 0.35)  # the paper's interval for each letter's mean over a book (table 12)


@dataclass(frozen=True, eq=False)
class Choices:
    """Letters that were chosen in answer to questions.

    Attributes:
        unit_Q: Number of the unit a question is about.
        right_Q: The letter of the right option.
        chosen_Q: The letter that was answered, or NONE.
        probability_QL: Of the letters, adding up to 1; None where they are not known, and NaN in the rows of NONE.
    """

    unit_Q: IntArray
    right_Q: IntArray
    chosen_Q: IntArray
    probability_QL: FloatArray | None

    @property
    def num_units(self) -> int:
        return int(self.unit_Q.max(initial=-1)) + 1

    def accuracy_U(self) -> FloatArray:
        """Share of right answers; what is no letter is wrong."""
        return self._per_unit(self.chosen_Q == self.right_Q)

    def shares_L(self) -> FloatArray:
        """Of all letters that were chosen, the share of each; NaN where none was."""
        counts = np.bincount(self.chosen_Q[self.chosen_Q != NONE], minlength=len(LETTERS))
        with np.errstate(invalid="ignore"):
            shares: FloatArray = counts / counts.sum()
        return shares

    def accuracy_L(self) -> FloatArray:
        """Share of right answers where the right option stands at each letter: mean over units of the unit's share."""
        values = np.full(len(LETTERS), np.nan)
        for index in range(len(LETTERS)):
            here = self.right_Q == index
            per_unit = _means(self.unit_Q[here], (self.chosen_Q == self.right_Q)[here], self.num_units)
            known = per_unit[np.isfinite(per_unit)]
            values[index] = known.mean() if len(known) else np.nan
        return values

    def probability_UL(self) -> FloatArray:
        """Mean probability of each letter over each unit's questions that were answered by a letter."""
        assert self.probability_QL is not None
        known = self.chosen_Q != NONE
        return np.column_stack(
            [_means(self.unit_Q[known], column, self.num_units) for column in self.probability_QL[known].T]
        )

    def probability_L(self) -> FloatArray:
        """Mean over units of the units' means; NaN where nothing was answered by a letter."""
        known = self._known_units()
        return known.mean(axis=0) if len(known) else np.full(len(LETTERS), np.nan)

    def well_calibrated(self) -> float:
        """Share of the units of which each letter's mean probability lies within `WELL_CALIBRATED`."""
        known = self._known_units()
        low, high = WELL_CALIBRATED
        return float(((low <= known) & (known <= high)).all(axis=1).mean()) if len(known) else float("nan")

    def _known_units(self) -> FloatArray:
        """[units, L] of those with an answer by a letter."""
        per_unit = self.probability_UL()
        known: FloatArray = per_unit[np.isfinite(per_unit).all(axis=1)]
        return known

    def calibrated(self, offsets_L: FloatArray) -> Choices:
        """The same with the offsets added to the probabilities and nothing normalised again.

        The largest is chosen, of equal ones the earlier letter.
        """
        assert self.probability_QL is not None
        adjusted_QL = self.probability_QL + offsets_L
        chosen_Q = np.full_like(self.chosen_Q, NONE)
        known = self.chosen_Q != NONE
        chosen_Q[known] = largest(adjusted_QL[known])
        return Choices(self.unit_Q, self.right_Q, chosen_Q, adjusted_QL)

    def _per_unit(self, values_Q: npt.ArrayLike) -> FloatArray:
        return _means(self.unit_Q, np.asarray(values_Q), self.num_units)


def calibration_offsets(unseen: Choices) -> FloatArray:
    """What is to be added to each letter's probability so that each has a mean of one quarter over unseen documents.

    Delta_l = 0.25 - mean over documents of the document's mean probability of l.

    Args:
        unseen: Answers about certainly unread documents, with the probabilities of the letters.

    Returns:
        [L] offsets that add up to 0; NaN where nothing was answered by a letter.

    Source: DE-COP, algorithm 1.

    >>> import numpy as np
    >>> unseen = Choices(np.array([0]), np.array([0]), np.array([1]), np.array([[0.1, 0.6, 0.2, 0.1]]))
    >>> calibration_offsets(unseen)
    array([ 0.15, -0.35,  0.05,  0.15])
    """
    return 1 / len(LETTERS) - unseen.probability_L()


def largest(probability_QL: FloatArray) -> IntArray:
    """The likeliest letter, of equal ones the earlier. Equal means up to the rounding of adding an offset."""
    highest = probability_QL.max(axis=1, keepdims=True)
    places: IntArray = np.argmax(probability_QL >= highest - 1e-12, axis=1)
    return places


def unit_numbers(labels: Sequence[Hashable]) -> IntArray:
    """[N] labels as numbers from 0, in the order in which they first come."""
    place = {label: number for number, label in enumerate(dict.fromkeys(labels))}
    return np.array([place[label] for label in labels], dtype=np.int64)


def _means(unit: IntArray, values: FloatArray | BoolArray, num_units: int) -> FloatArray:
    """[U] NaN for a unit without any."""
    with np.errstate(invalid="ignore"):
        means: FloatArray = np.bincount(unit, values, minlength=num_units) / np.bincount(unit, minlength=num_units)
    return means
