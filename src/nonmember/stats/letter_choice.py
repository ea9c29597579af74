"""Answers to questions with four options: how often the right one is chosen, how much that hangs on where it stands,
and DE-COP's calibration of the letters' probabilities.

Paraphrases are written by another author, a model. Where their length, their vocabulary or their likeness to each other
gives the original away, a model that never read it can choose it too; `blind_guesses` asks no model. If that is easier
in one group of documents than in the other, it looks like membership.

Shapes: Q questions, L = 4 letters (A, B, C, D), N passages, U units (books, papers).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy

from nonmember.stats._arrays import BoolArray, FloatArray, IntArray
from nonmember.stats.multiplicity import holm
from nonmember.stats.two_groups import welch_t

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
        return _means(self.unit_Q, self.chosen_Q == self.right_Q, self.num_units)

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
            at_letter = self.right_Q == index
            per_unit = _means(self.unit_Q[at_letter], (self.chosen_Q == self.right_Q)[at_letter], self.num_units)
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
    first: IntArray = np.argmax(probability_QL >= highest - 1e-12, axis=1)
    return first


def _means(unit: IntArray, values: FloatArray | BoolArray, num_units: int = 0) -> FloatArray:
    """[U] NaN for a unit without any. num_units: where the last ones may lack values."""
    with np.errstate(invalid="ignore"):
        means: FloatArray = np.bincount(unit, values, minlength=num_units) / np.bincount(unit, minlength=num_units)
    return means


# The original among its paraphrases -----------------------------------------------------------------------------------


CHANCE = 0.25


@dataclass(frozen=True)
class BlindGuess:
    """How often one rule picks the original, as means over units.

    All p-values are adjusted (Holm) for the number of rules, those of chance also for the two groups. NaN where
    undefined. A rule that picks the original *less* often than by chance gives it away just as well.

    Attributes:
        first: Mean of the first group.
        second: Mean of the second group.
        p_chance_first: Two-sided, of the first group's mean being a quarter.
        p_chance_second: Two-sided, of the second group's mean being a quarter.
        p_groups: Two-sided, of the two means being equal.
    """

    first: float
    second: float
    p_chance_first: float
    p_chance_second: float
    p_groups: float


def blind_guesses(
    first: Sequence[Sequence[str]], second: Sequence[Sequence[str]], first_units: IntArray, second_units: IntArray
) -> dict[str, BlindGuess]:
    """How often three rules pick the original among its paraphrases, in two groups of documents.

    Args:
        first: [N] passages of the first group, each the original and then its paraphrases, as many for every passage.
        second: [N] those of the second group.
        first_units: [N] number of the unit (book, paper) of each passage of `first`, from 0.
        second_units: [N] those of `second`.

    Returns:
        A `BlindGuess` by the name of the rule, which is longest (most characters), rarest (rarest words) or odd (least
        like the others).

    Raises:
        ValueError: For texts without a word, and for units that do not match the passages.

    Source: Ours; docs/methods/decop.md.

    >>> import numpy as np
    >>> passages = [["the longest text of all of these four", "a short one", "another one", "one more text"]] * 6
    >>> found = blind_guesses(passages, passages, np.arange(6), np.arange(6))
    >>> found["longest"].first
    1.0
    """
    rules = picks([*first, *second])
    means = {
        name: (_means(first_units, hits[: len(first)]), _means(second_units, hits[len(first) :]))
        for name, hits in rules.items()
    }
    chance = _adjusted([_p_chance(values) for both in means.values() for values in both])
    groups = _adjusted([welch_t(*both).p_value if min(map(len, both)) > 1 else np.nan for both in means.values()])
    return {
        name: BlindGuess(
            float(both[0].mean()), float(both[1].mean()), chance[2 * index], chance[2 * index + 1], groups[index]
        )
        for index, (name, both) in enumerate(means.items())
    }


def picks(passages: Sequence[Sequence[str]]) -> dict[str, FloatArray]:
    """What each of three rules picks of each passage.

    The rules are longest (most characters), rarest (the words that fewest of all these texts have, on average) and odd
    (least like the other three, by the cosine of their TF-IDF vectors).

    Returns:
        [N] by rule, 1 where it picks the original (the first text), 1 / k where k texts tie with it, else 0.
    """
    from sklearn.feature_extraction.text import TfidfVectorizer

    texts = [text for passage in passages for text in passage]
    vectorizer = TfidfVectorizer(token_pattern=r"\w+")
    vectors = vectorizer.fit_transform(texts)
    lengths = np.array([len(text) for text in texts], dtype=np.float64)
    rarity = _mean_idf(vectorizer, texts)
    size = len(passages[0]) if passages else 0
    scores: dict[str, list[FloatArray]] = {"longest": [], "rarest": [], "odd": []}
    for index in range(len(passages)):
        rows = slice(index * size, (index + 1) * size)
        likeness = (vectors[rows] @ vectors[rows].T).toarray()
        scores["longest"].append(lengths[rows])
        scores["rarest"].append(rarity[rows])
        scores["odd"].append(-(likeness.sum(axis=1) - likeness.diagonal()))
    return {name: np.array([_hit(item) for item in found]) for name, found in scores.items()}


def _mean_idf(vectorizer: Any, texts: Sequence[str]) -> FloatArray:
    words = vectorizer.build_analyzer()
    weight = dict(zip(vectorizer.get_feature_names_out(), vectorizer.idf_, strict=True))
    means = [np.mean([weight[word] for word in found]) if (found := words(text)) else 0.0 for text in texts]
    return np.array(means, dtype=np.float64)


def _hit(scores: FloatArray) -> float:
    best = np.flatnonzero(scores >= scores.max() - 1e-12)
    return 1 / len(best) if best[0] == 0 else 0.0


def _p_chance(values: FloatArray) -> float:
    if len(values) < 2 or np.ptp(values) == 0:
        return float("nan") if len(values) < 2 or values[0] == CHANCE else 0.0
    return float(scipy.stats.ttest_1samp(values, CHANCE).pvalue)


def _adjusted(p_values: Sequence[float]) -> list[float]:
    """Holm, over those that are defined."""
    defined = [index for index, p in enumerate(p_values) if np.isfinite(p)]
    adjusted = [float("nan")] * len(p_values)
    for index, p in zip(defined, holm([p_values[index] for index in defined]), strict=True):
        adjusted[index] = p
    return adjusted
