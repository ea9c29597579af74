"""Gates of the dose meter: does reading leave a trace, is the base the one named, are all texts laid out alike?"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

import numpy as np
import scipy

from nonmember.checks import Checked, Count, Number
from nonmember.methods.gates import Finding, above, below
from nonmember.records import FloatArray
from nonmember.stats.blind import layout_auc
from nonmember.stats.correlation import rank_correlation
from nonmember.stats.dose_curve import DoseReading


@dataclass(frozen=True)
class DoseGates(Checked):
    # Distance between models that read nothing and the heaviest dose, in standard deviations of single models.
    min_separation: Annotated[float, Number("(0, inf)")]
    # Rank correlation between what controls have read and what the meter says of each.
    min_order: Annotated[float, Number("[-1, 1)")]
    # P-value of the target's being like some model that read so or so often.
    min_fit: Annotated[float, Number("[0, 1)")]
    # P-value of as many controls, each read by a meter made of the others, lying outside their intervals, where each
    # does so with probability alpha.
    min_left_out: Annotated[float, Number("[0, 1)")]
    # How far the target's mean score on the third text may lie from the controls', in standard deviations of one more
    # control; a target that read much more or less other text than they stands elsewhere on their curve; null: any.
    max_shift: Annotated[float | None, Number("(0, inf)")]
    # How many times further than those of any control, or less far, the target's weights may have moved from the base,
    # where they are at hand; one that was trained at another rate, by an adapter, or on more text, before or after,
    # counts otherwise than they; null: not looked at.
    max_weight_ratio: Annotated[float | None, Number("(1, inf)")]
    # How far the target's profile on the third text may lie from the controls', as a multiple of how far these lie from
    # one another at most; both where the base is said to be the target's own.
    max_base_distance: Annotated[float, Number("(0, inf)")]
    # How well layout may distinguish suspect and third text; null: any.
    max_layout_auc: Annotated[float | None, Number("[0.5, 1]")]
    # num_folds, seed: of that classifier
    num_folds: Annotated[int, Count(2)]
    seed: int

    def of_curve(self, separation: float, readings: Sequence[tuple[float, float]]) -> list[Finding]:
        """Whether reading leaves a trace on this set, and controls rise with the dose. readings: of each control what
        it has read and what the meter says of it: the meter made of all, since of eight controls one is too many to
        leave out."""
        planted, estimated = zip(*readings, strict=True)
        order = rank_correlation(planted, estimated, "spearman")
        return [
            above(
                "separation",
                separation,
                self.min_separation,
                "The distance of controls of the heaviest dose from those that read nothing, in standard deviations,",
            ),
            above(
                "order",
                0.0 if math.isnan(order) else order,
                self.min_order,
                "The rank correlation of what the controls have read with what the meter says of them",
            ),
        ]

    def of_left_out(self, held: Sequence[bool], alpha: float) -> Finding:
        """Whether intervals hold what is known to be true. held: of each control, read by a meter made of the others,
        whether its interval holds its dose."""
        outside = len(held) - sum(held)
        what = (
            f"{outside} of {len(held)} controls lie outside the interval of a meter made of the others. The p-value of "
            "so many (does the order of training, or something else that they do not share, move them?)"
        )
        return above("left_out", float(scipy.stats.binom.sf(outside - 1, len(held), alpha)), self.min_left_out, what)

    def of_fit(self, reading: DoseReading) -> Finding:
        """Whether the target is like any model that read so or so often, or more often than the heaviest dose."""
        what = (
            "The p-value of the target's being like a model that read the set, or nothing of it (else it was changed "
            "on these texts: unlearning, noise in what is served, another layout; that is no sign of innocence)"
        )
        return above("fit", reading.p_fit, self.min_fit, what)

    def of_base(self, target: FloatArray, controls: Sequence[FloatArray]) -> list[Finding]:
        """Whether the target, document by document of the third text, is one more continuation of the controls' base,
        and one that read about as much other text.   target, controls: [documents] scores less the reference's."""
        profiles = np.array([item - item.mean() for item in controls])
        among = [_distance(item, np.delete(profiles, index, axis=0)) for index, item in enumerate(profiles)]
        distance = _distance(target - target.mean(), profiles) / max(among)
        what = (
            "The target's distance from the controls on text that none of them read, as a multiple of the largest "
            "among these (is it not continued from their base? Then say controls.own_base=false, or give its own),"
        )
        found = [below("base", distance, self.max_base_distance, what)]
        if self.max_shift is not None:
            means = np.array([item.mean() for item in controls])
            spread = float(means.std(ddof=1)) * math.sqrt(1 + 1 / len(means))
            moved = (
                "The target's shift from the controls on that text, in standard deviations (did it read much more or "
                "less other text than they? Then make controls that read as much, as late),"
            )
            shift = abs(float(target.mean() - means.mean())) / spread
            found.append(below("shift", shift, self.max_shift, moved))
        return found

    def of_weights(self, target: float, controls: Sequence[float]) -> Finding:
        """Whether the target was trained as the controls were.   target, controls: how far their weights have moved
        from the base, as shares of its own; NaN where they have no matrix in common with it."""
        assert self.max_weight_ratio is not None
        ratio = max(target / max(controls), min(controls) / target) if target > 0 else math.inf
        what = (
            "How many times further from the base than any control's, or less far, the target's weights have moved "
            "(was it trained at another rate, by an adapter, or on other text before or after? Then train controls "
            "like it; were its weights rounded, do it to theirs)"
        )
        return below("weights", ratio, self.max_weight_ratio, what)

    def of_texts(self, suspect: Sequence[str], third: Sequence[str]) -> list[Finding]:
        if self.max_layout_auc is None:
            return []
        auc = layout_auc(suspect, third, num_folds=self.num_folds, seed=self.seed)
        what = "The AUC with which layout alone tells the suspect set from the third text"
        return [below("layout", auc, self.max_layout_auc, what)]


def _distance(profile: FloatArray, others: FloatArray) -> float:
    """Root mean square over documents from the mean of the others."""
    return math.sqrt(float(((profile - others.mean(axis=0)) ** 2).mean()))
