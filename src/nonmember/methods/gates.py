"""Gates: a measured number against its bound, and what several methods measure in the same way.

Each method's own gates stand beside it (`prism.gates`, `clearance.gates`, `dose.gates`). They are put to shams too,
which must fail them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from nonmember.checks import told_apart
from nonmember.corpora import CorpusSpec
from nonmember.methods.base import Measurement, ScoredDocuments
from nonmember.methods.details import Gate
from nonmember.models import ModelSpec
from nonmember.observations import Diverged, Scored
from nonmember.scores import Loss
from nonmember.stats.blind import layout_auc

LOSS, KL = "loss", "kl"  # columns: loss/<role>, kl/<role>
LIKELIHOOD = Loss()


@dataclass(frozen=True)
class Finding:
    """One gate. passed: value > bound, or < bound where `upper`."""

    name: str
    value: float
    bound: float
    upper: bool
    what: str

    @property
    def passed(self) -> bool:
        return self.room > 0

    @property
    def room(self) -> float:
        """How far inside its bound the value is; negative where it failed."""
        return self.bound - self.value if self.upper else self.value - self.bound

    @property
    def sentence(self) -> str:
        verb = "below" if self.upper else "above"
        value, bound = told_apart(self.value, self.bound)
        return f"{self.what} is {value}, and must be {verb} {bound}."

    def as_details(self) -> Gate:
        value = self.value if np.isfinite(self.value) else None
        return {"value": value, "bound": self.bound, "upper": self.upper, "passed": self.passed}


def above(name: str, value: float, bound: float, what: str) -> Finding:
    return Finding(name, value, bound, False, what)


def below(name: str, value: float, bound: float, what: str) -> Finding:
    return Finding(name, value, bound, True, what)


def failures(findings: Sequence[Finding]) -> list[str]:
    return [finding.sentence for finding in findings if not finding.passed]


def as_details(findings: Sequence[Finding]) -> Mapping[str, Gate]:
    return {finding.name: finding.as_details() for finding in findings}


def same_layout(suspect: Sequence[str], third: Sequence[str], bound: float, *, num_folds: int, seed: int) -> Finding:
    """Whether two groups of texts were prepared alike."""
    auc = layout_auc(suspect, third, num_folds=num_folds, seed=seed)
    return below("layout", auc, bound, "The AUC with which layout alone tells the suspect set from the third text")


@dataclass(frozen=True)
class HealthBounds:
    """Bounds on what training did to a distilled reference. Nats per token, means over documents."""

    min_ce_gain: float  # by how much it must find the suspect set more likely than the reference does
    # By how much it must have come closer to the target there; below 0: how much farther away it may be.
    min_kl_gain: float
    max_kl_rise: float  # how much farther from the target it may be on a third text
    max_nll_rise: float  # how much less likely it may find the third text
    # As near the target as this none has to come closer: one that starts nearer may move away as far as this. None: all
    # must come closer.
    near_kl: float | None = field(default=None, kw_only=True)

    def of_training(self, role: str, suspect: ScoredDocuments, third: ScoredDocuments) -> list[Finding]:
        """Of a (distilled) reference by its role; `values` of both groups hold the columns of `health_measurements`."""
        return [
            above(
                "ce",
                -change(suspect, LOSS, role),
                self.min_ce_gain,
                f"The gain of {role} in cross-entropy on the suspect set",
            ),
            above(
                "kl",
                -change(suspect, KL, role),
                self._least_kl_gain(suspect),
                f"The fall of {role}'s divergence from the target on the suspect set",
            ),
            below(
                "kl_third",
                change(third, KL, role),
                self.max_kl_rise,
                f"The rise of {role}'s divergence from the target on the third text",
            ),
            below(
                "nll_third",
                change(third, LOSS, role),
                self.max_nll_rise,
                f"The rise of {role}'s loss on the third text",
            ),
        ]

    def _least_kl_gain(self, suspect: ScoredDocuments) -> float:
        if self.near_kl is None:
            return self.min_kl_gain
        return min(self.min_kl_gain, start_of(suspect) - self.near_kl)


def start_of(suspect: ScoredDocuments) -> float:
    """The reference's own divergence from the target on the set, nats per token."""
    return float(np.mean(suspect.values[f"{KL}/reference"]))


def health_measurements(
    role: str, model: ModelSpec, target: ModelSpec, corpus: CorpusSpec, max_tokens: int
) -> dict[str, Measurement]:
    """What the gates look at in a model by its role: its loss on a text and its divergence from the target there."""
    return {
        f"{LOSS}/{role}": Scored(role, model, corpus, LIKELIHOOD, max_tokens),
        f"{KL}/{role}": Diverged(model, corpus, role, target, max_tokens),
    }


def change(documents: ScoredDocuments, what: str, role: str) -> float:
    """Mean change from the reference to the model, of a loss (from its score, minus the loss) or a divergence."""
    sign = -1.0 if what == LOSS else 1.0
    return sign * float(np.mean(documents.values[f"{what}/{role}"] - documents.values[f"{what}/reference"]))
