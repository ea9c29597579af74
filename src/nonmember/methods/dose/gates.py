"""Gates of the dose meter: does reading leave a trace, is the base the one named, are all texts laid out alike?"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy

from nonmember.checks import require_count, require_number
from nonmember.methods.prism.gates import Finding, as_details, failures
from nonmember.records import FloatArray
from nonmember.stats.dose_curve import DoseCurve
from nonmember.stats.layout import layout_auc

__all__ = ["DoseGates", "Finding", "as_details", "failures"]


@dataclass(frozen=True)
class DoseGates:
    """min_separation: the rise of the curve from no reading to the heaviest dose, in standard deviations of single
    controls.   max_fall: by how many standard errors a heavier dose's mean may lie below a lighter one's.
    max_base_distance: how far the target's profile on the third text may lie from the controls', as a multiple of how
    far these lie from one another at most; where the base is said to be the target's own.   max_layout_auc: how well
    suspect and third text may be told apart by layout; null: any.   num_folds, seed: of that classifier.
    """

    min_separation: float
    max_fall: float
    max_base_distance: float
    max_layout_auc: float | None
    num_folds: int
    seed: int

    def __post_init__(self) -> None:
        for name in ("min_separation", "max_fall", "max_base_distance"):
            require_number(getattr(self, name), "(0, inf)", name)
        require_number(self.max_layout_auc, "[0.5, 1]", "max_layout_auc", or_null=True)
        require_count(self.num_folds, 2, "num_folds")

    def of_curve(self, curve: DoseCurve, alpha: float) -> list[Finding]:
        """Whether the controls' values rise with the dose, and far enough."""
        rise = float(curve.monotone[-1] - curve.monotone[0]) / curve.spread
        steps = np.diff(curve.means)
        errors = curve.spread * np.sqrt(
            [curve.covariance[i, i] + curve.covariance[i + 1, i + 1] - 2 * curve.covariance[i, i + 1]
             for i in range(len(steps))]
        )  # fmt: skip
        critical = float(scipy.special.stdtrit(curve.df, 1 - alpha / (2 * len(steps))))
        fall = float(np.max(-steps / errors))
        return [
            Finding("separation", rise, self.min_separation, False,
                    "The rise of the controls' values from no reading to the heaviest dose, in standard deviations,"),
            Finding("monotone", fall / critical, self.max_fall, True,
                    "The largest fall of the controls' values with the dose, as a share of what chance allows,"),
        ]  # fmt: skip

    def of_base(self, target: FloatArray, controls: Sequence[FloatArray]) -> list[Finding]:
        """Whether the target, document by document of the third text, is one more continuation of the controls' base.
        target, controls: [documents] scores less the reference's. What is common to all documents is left out."""
        profiles = np.array([one - one.mean() for one in controls])
        among = [_distance(one, np.delete(profiles, place, axis=0)) for place, one in enumerate(profiles)]
        distance = _distance(target - target.mean(), profiles) / max(among)
        what = (
            "The target's distance from the controls on text that none of them read, as a multiple of the largest "
            "among these (is it not continued from their base? Then say controls.own_base=false, or give its own),"
        )
        return [Finding("base", distance, self.max_base_distance, True, what)]

    def of_texts(self, suspect: Sequence[str], third: Sequence[str]) -> list[Finding]:
        if self.max_layout_auc is None:
            return []
        auc = layout_auc(suspect, third, num_folds=self.num_folds, seed=self.seed)
        what = "The AUC with which layout alone tells the suspect set from the third text"
        return [Finding("layout", auc, self.max_layout_auc, True, what)]


def _distance(profile: FloatArray, others: FloatArray) -> float:
    """Root mean square over documents from the mean of the others."""
    return math.sqrt(float(((profile - others.mean(axis=0)) ** 2).mean()))
