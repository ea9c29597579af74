"""Gates of clearance: preconditions on the distilled reference; were all texts prepared alike?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from nonmember.methods.base import ScoredDocuments
from nonmember.methods.gates import LOSS, Finding, HealthBounds, above, below, change, same_layout
from nonmember.stats.correlation import RankMetric, rank_correlation


@dataclass(frozen=True)
class Gates(HealthBounds):
    """Bounds of calibrated clearance."""

    # The gain in cross-entropy as a share of what the controls' distilled references gain, which were made alike.
    min_ce_share: float
    min_rank_correlation: float  # with the reference, on the suspect set
    max_seed_sd: float  # of Delta over distillation seeds
    max_layout_auc: float  # how well layout may distinguish suspect and third text
    num_folds: int  # of that classifier
    # How far the mean Delta of controls that read what is excluded must lie below that of controls that read nothing.
    # Where reading leaves no trace in Delta, as with a reference too weak for the set, it decides nothing.
    min_separation: float

    def of_model(
        self, role: str, suspect: ScoredDocuments, third: ScoredDocuments, metric: RankMetric, alike: Sequence[str]
    ) -> list[Finding]:
        """Of a (distilled) reference by its role, its scores under the role itself.   alike: roles of the controls'
        distilled references."""
        ce, *others = self.of_training(role, suspect, third)
        gain_of_others = float(np.mean([-change(suspect, LOSS, other) for other in alike]))
        rho = rank_correlation(suspect.values[role], suspect.values["reference"], metric)
        return [
            ce,
            above(
                "ce_share",
                ce.value / gain_of_others if gain_of_others > 0 else 0.0,
                self.min_ce_share,
                f"That gain of {role} as a share of what the controls' distilled references gain",
            ),
            *others,
            above(
                "rank_correlation", rho, self.min_rank_correlation, f"The rank correlation of {role} with the reference"
            ),
        ]

    def of_seeds(self, deltas: Sequence[float]) -> list[Finding]:
        if len(deltas) < 2:
            return []
        spread = float(np.std(deltas, ddof=1))
        return [below("seeds", spread, self.max_seed_sd, "The standard deviation of Delta over seeds")]

    def of_controls(self, untouched: Sequence[float], readers: Sequence[float]) -> list[Finding]:
        """Of Delta: of each control that read nothing (without any there is no gate), and the mean of those with each
        excluded reading, of which the largest counts."""
        if not untouched:
            return []
        separation = float(np.mean(untouched)) - max(readers)
        what = (
            "Delta does not tell controls that read the set from those that did not (take more documents or seeds, "
            "exclude a heavier reading, or use a stronger reference): the difference of their means"
        )
        return [above("separation", separation, self.min_separation, what)]

    def of_texts(self, suspect: ScoredDocuments, third: ScoredDocuments, seed: int) -> list[Finding]:
        return [same_layout(suspect.texts, third.texts, self.max_layout_auc, num_folds=self.num_folds, seed=seed)]
