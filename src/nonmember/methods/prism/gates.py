"""Gates of clearance: preconditions on the distilled reference and on text preparation; were all texts
prepared alike?

A gate compares one measured number with a bound. The same gates are put to shams, which must fail them. PRISM's gates:
`nonmember.methods.prism.prism_gates`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from nonmember.corpora import CorpusSpec
from nonmember.methods.base import Measurement, ScoredDocuments
from nonmember.methods.findings import Finding
from nonmember.models import ModelSpec
from nonmember.observations import Diverged, Scored
from nonmember.scores import Loss
from nonmember.stats.blind import layout_auc
from nonmember.stats.correlation import RankMetric, rank_correlation

LOSS, KL = "loss", "kl"  # columns: loss/<role>, kl/<role>
LIKELIHOOD = Loss()


@dataclass(frozen=True)
class HealthBounds:
    """Bounds on what training did to a distilled reference. Nats per token, means over documents.

    min_ce_gain: by how much it must find the suspect set more likely than the reference does.
    min_kl_gain: by how much it must have come closer to the target there; below 0: how much farther away it may be.
    max_kl_rise: how much farther from the target it may be on a third text.   max_nll_rise: how much less likely it may
    find the third text.
    """

    min_ce_gain: float
    min_kl_gain: float
    max_kl_rise: float
    max_nll_rise: float

    def of_training(self, role: str, suspect: ScoredDocuments, third: ScoredDocuments) -> list[Finding]:
        """Of a (distilled) reference by its role; `values` of both groups hold the columns of `health_measurements`."""
        return [
            Finding(
                "ce",
                -_change(suspect, LOSS, role),
                self.min_ce_gain,
                False,
                f"The gain of {role} in cross-entropy on the suspect set",
            ),
            Finding(
                "kl",
                -_change(suspect, KL, role),
                self.min_kl_gain,
                False,
                f"The fall of {role}'s divergence from the target on the suspect set",
            ),
            Finding(
                "kl_third",
                _change(third, KL, role),
                self.max_kl_rise,
                True,
                f"The rise of {role}'s divergence from the target on the third text",
            ),
            Finding(
                "nll_third",
                _change(third, LOSS, role),
                self.max_nll_rise,
                True,
                f"The rise of {role}'s loss on the third text",
            ),
        ]


@dataclass(frozen=True)
class Gates(HealthBounds):
    """Bounds of calibrated clearance.

    min_ce_share: the gain in cross-entropy as a share of what the controls' distilled references gain, which were made
    alike.   min_rank_correlation: with the reference, on the suspect set.   max_seed_sd: of Delta over distillation
    seeds.   max_layout_auc: how well suspect and third text may be told apart by layout; num_folds: of that classifier.
    min_separation: how far the mean Delta of controls that read what is excluded must lie below that of controls that
    read nothing. Where reading leaves no trace in Delta, as with a reference too weak for the set, it decides nothing.
    """

    min_ce_share: float
    min_rank_correlation: float
    max_seed_sd: float
    max_layout_auc: float
    num_folds: int
    min_separation: float

    def of_model(
        self, role: str, suspect: ScoredDocuments, third: ScoredDocuments, metric: RankMetric, alike: Sequence[str]
    ) -> list[Finding]:
        """Of a (distilled) reference by its role, its scores under the role itself.   alike: roles of the controls'
        distilled references."""
        ce, *others = self.of_training(role, suspect, third)
        gain_of_others = float(np.mean([-_change(suspect, LOSS, other) for other in alike]))
        rho = rank_correlation(suspect.values[role], suspect.values["reference"], metric)
        return [
            ce,
            Finding(
                "ce_share",
                ce.value / gain_of_others if gain_of_others > 0 else 0.0,
                self.min_ce_share,
                False,
                f"That gain of {role} as a share of what the controls' distilled references gain",
            ),
            *others,
            Finding(
                "rank_correlation",
                rho,
                self.min_rank_correlation,
                False,
                f"The rank correlation of {role} with the reference",
            ),
        ]

    def of_seeds(self, deltas: Sequence[float]) -> list[Finding]:
        if len(deltas) < 2:
            return []
        spread = float(np.std(deltas, ddof=1))
        return [Finding("seeds", spread, self.max_seed_sd, True, "The standard deviation of Delta over seeds")]

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
        return [Finding("separation", separation, self.min_separation, False, what)]

    def of_texts(self, suspect: ScoredDocuments, third: ScoredDocuments, seed: int) -> list[Finding]:
        auc = layout_auc(suspect.texts, third.texts, num_folds=self.num_folds, seed=seed)
        what = "The AUC with which layout alone tells the suspect set from the third text"
        return [Finding("layout", auc, self.max_layout_auc, True, what)]


def health_measurements(
    role: str, model: ModelSpec, target: ModelSpec, corpus: CorpusSpec, max_tokens: int
) -> dict[str, Measurement]:
    """What the gates look at in a model by its role: its loss on a text and its divergence from the target there."""
    return {
        f"{LOSS}/{role}": Scored(role, model, corpus, LIKELIHOOD, max_tokens),
        f"{KL}/{role}": Diverged(model, corpus, role, target, max_tokens),
    }


def _change(documents: ScoredDocuments, what: str, role: str) -> float:
    """Mean change from the reference to the model, of a loss (from its score, minus the loss) or a divergence."""
    sign = -1.0 if what == LOSS else 1.0
    return sign * float(np.mean(documents.values[f"{what}/{role}"] - documents.values[f"{what}/reference"]))
