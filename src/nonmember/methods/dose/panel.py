"""What the dose meter looks at in a model: features of its scores, and how their errors go together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Annotated, Any, Literal

import numpy as np

from nonmember.checks import Checked, Number, require_kind, require_text
from nonmember.methods.base import require_score_by_itself
from nonmember.records import FloatArray
from nonmember.scores import Score
from nonmember.stats.correlation import rank_correlation

Quantity = Literal["level", "rank_correlation", "upper_tail", "slope", "spread"]
TAIL = 0.1


@dataclass(frozen=True)
class Feature(Checked):
    """One number of a model on a set. With delta = score under the model - score under the reference:

    level: mean of delta over the set, less that over the third text.   rank_correlation: of the scores under both, on
    the set (Spearman).   upper_tail: mean of delta's highest tenth less its median, less the same of the third text
    (few documents that were read often).   slope: of delta on the reference's score, less that of the third text (hard
    documents gain more).   spread: standard deviation of delta, less that of the third text.
    """

    score: Annotated[Score, require_score_by_itself]
    quantity: Quantity

    fields_called = "{field} of a feature"

    def __call__(self, suspect: Scores, third: Scores) -> float:
        return quantity_of(self.quantity, suspect, third)


@dataclass(frozen=True)
class Scores:
    """[documents] under the model and under the reference."""

    model: FloatArray
    reference: FloatArray


@dataclass(frozen=True)
class Panel(Checked):
    features: Mapping[str, Feature]  # by name
    # Covariance of their errors up to a factor, a row and a column each in their order; None: estimated from each
    # audit's own controls.
    shape: Sequence[Sequence[float]] | None
    between: BetweenBases | None  # how a target of another base differs from controls, None where that was not measured
    # version, origin: of shape and between, and where they were measured
    version: Annotated[str, require_text]
    origin: Annotated[str, require_text]

    fields_called = "{field} of the panel"

    def __post_init__(self) -> None:
        super().__post_init__()
        require_kind(self.features, Mapping, "features of the panel", "a mapping from names to features")
        if not self.features:
            raise ValueError("The panel must have a feature or more.")
        if self.shape is not None:
            self._require_matrix("shape", self.shape)
            if np.linalg.eigvalsh(np.asarray(self.shape, dtype=np.float64))[0] <= 0:
                raise ValueError(
                    "shape of the panel must have an inverse; one of its features follows from the others."
                )
        if self.between is not None:
            self._require_matrix("covariance", self.between.covariance)

    def _require_matrix(self, name: str, matrix: Sequence[Sequence[float]]) -> None:
        number, given = len(self.features), np.asarray(matrix, dtype=np.float64)
        if given.shape != (number, number) or not np.allclose(given, given.T) or np.linalg.eigvalsh(given)[0] < 0:
            raise ValueError(
                f"{name} of the panel must be a covariance of its {number} features, a row and a column each; got "
                f"{' x '.join(map(str, given.shape))}."
            )

    def described(self) -> dict[str, Any]:
        """As plain values, scores by their names: Min-K% and Min-K%++ have the same settings."""
        features = {name: {"quantity": item.quantity, "score": item.score.name} for name, item in self.features.items()}
        return {**vars(self), "features": features, "between": self.between and asdict(self.between)}

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


@dataclass(frozen=True)
class BetweenBases(Checked):
    """See `stats.dose_curve.Between`."""

    covariance: Sequence[Sequence[float]]
    relative: Annotated[float, Number("[0, inf)")]
    df: Annotated[float, Number("(0, inf)")]

    fields_called = "{field} of the panel's between"


def quantity_of(quantity: Quantity, suspect: Scores, third: Scores) -> float:
    """As `Feature` says, whatever score it is of."""
    if quantity == "rank_correlation":
        return rank_correlation(suspect.reference, suspect.model, "spearman")
    return _of_delta(quantity, suspect) - _of_delta(quantity, third)


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
