"""The blind multiple-choice control: can the original be told from its paraphrases without asking any model?

Paraphrases are written by another author, a model. Where their length, their vocabulary or their likeness to each other
gives the original away, a model that never read it can choose it too. If that is easier in one group of documents than
in the other, it looks like membership.

Shapes: N passages, U units (books, papers).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy

from nonmember.stats._arrays import FloatArray, IntArray
from nonmember.stats.multiplicity import holm
from nonmember.stats.two_groups import welch_t

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
        name: (_unit_means(hits[: len(first)], first_units), _unit_means(hits[len(first) :], second_units))
        for name, hits in rules.items()
    }
    chance = _adjusted([_p_chance(values) for both in means.values() for values in both])
    groups = _adjusted([_p_groups(*both) for both in means.values()])
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


def _unit_means(values: FloatArray, units: IntArray) -> FloatArray:
    means: FloatArray = np.bincount(units, values) / np.bincount(units)
    return means


def _p_chance(values: FloatArray) -> float:
    if len(values) < 2 or np.ptp(values) == 0:
        return float("nan") if len(values) < 2 or values[0] == CHANCE else 0.0
    return float(scipy.stats.ttest_1samp(values, CHANCE).pvalue)


def _p_groups(first: FloatArray, second: FloatArray) -> float:
    return welch_t(first, second).p_value if min(len(first), len(second)) > 1 else float("nan")


def _adjusted(p_values: Sequence[float]) -> list[float]:
    """Holm, over those that are defined."""
    defined = [index for index, p in enumerate(p_values) if np.isfinite(p)]
    adjusted = [float("nan")] * len(p_values)
    for index, p in zip(defined, holm([p_values[index] for index in defined]), strict=True):
        adjusted[index] = p
    return adjusted
