"""What the dose meter looks at in a model: features of its scores, and their fixed combination."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from nonmember.checks import require_choice, require_kind, require_number, require_text
from nonmember.methods.base import require_score
from nonmember.records import FloatArray
from nonmember.scores import Score
from nonmember.stats.correlation import rank_correlation

Quantity = Literal["level", "rank_correlation", "upper_tail", "slope", "spread"]
TAIL = 0.1


@dataclass(frozen=True)
class Feature:
    """One number of a model on a set. With delta = score under the model - score under the reference:

    level: mean of delta over the set, less that over the third text.   rank_correlation: of the scores under both, on
    the set (Spearman).   upper_tail: mean of delta's highest tenth less its median, less the same of the third text
    (few documents that were read often).   slope: of delta on the reference's score, less that of the third text (hard
    documents gain more).   spread: standard deviation of delta, less that of the third text.

    weight: in the combination.
    """

    score: Score
    quantity: Quantity
    weight: float

    def __post_init__(self) -> None:
        require_score(self.score)
        require_choice(self.quantity, get_args(Quantity), "quantity of a feature")
        require_number(self.weight, "(-inf, inf)", "weight of a feature")

    def __call__(self, suspect: Scores, third: Scores) -> float:
        if self.quantity == "rank_correlation":
            return rank_correlation(suspect.reference, suspect.model, "spearman")
        return _of_delta(self.quantity, suspect) - _of_delta(self.quantity, third)


@dataclass(frozen=True)
class Scores:
    """[documents] under the model and under the reference."""

    model: FloatArray
    reference: FloatArray


@dataclass(frozen=True)
class Panel:
    """features: by name.   version, origin: of the weights and where they were measured."""

    features: Mapping[str, Feature]
    version: str
    origin: str

    def __post_init__(self) -> None:
        require_kind(self.features, Mapping, "features of the panel", "a mapping from names to features")
        if not any(feature.weight for feature in self.features.values()):
            raise ValueError("One of the panel's features must have a weight other than 0.")
        require_text(self.version, "version of the panel")
        require_text(self.origin, "origin of the panel")

    @property
    def scores(self) -> dict[str, Score]:
        """Those that have to be measured, by name."""
        return {feature.score.name: feature.score for feature in self.features.values()}

    def of(self, suspect: Mapping[str, Scores], third: Mapping[str, Scores]) -> dict[str, float]:
        """The features of one model. suspect, third: by name of the score."""
        return {
            name: feature(suspect[feature.score.name], third[feature.score.name])
            for name, feature in self.features.items()
        }

    def combined(self, values: Mapping[str, float]) -> float:
        """Their weighted sum, z."""
        return float(sum(feature.weight * values[name] for name, feature in self.features.items() if feature.weight))


def _of_delta(quantity: Quantity, scores: Scores) -> float:
    delta = scores.model - scores.reference
    if quantity == "level":
        return float(delta.mean())
    if quantity == "spread":
        return float(delta.std(ddof=1))
    if quantity == "upper_tail":
        highest = np.sort(delta)[-max(1, round(TAIL * len(delta))) :]
        return float(highest.mean() - np.median(delta))
    centred = scores.reference - scores.reference.mean()
    return float((centred * delta).sum() / (centred**2).sum())
