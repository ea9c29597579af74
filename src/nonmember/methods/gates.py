"""Gates: a measured number against its bound, and what several methods measure in the same way.

Each method's own gates stand beside it (`prism.gates`, `dose.gates`). They are put to shams too, which must fail them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from nonmember.checks import told_apart
from nonmember.methods.details import Gate
from nonmember.stats.blind import blind_baseline, layout_auc

FOLDS, INVERSE_PENALTY = 5, 0.1  # of classifiers of texts, as of method=blind


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


def kinds_told_apart(suspect: Sequence[str], third: Sequence[str]) -> float:
    """The AUC at which layout or words, whichever does better, distinguish two groups of texts."""
    blind = blind_baseline(
        suspect,
        third,
        num_folds=FOLDS,
        inverse_penalty=INVERSE_PENALTY,
        num_resamples=1,  # of an interval that is not asked for
        alpha=0.05,
        rng=np.random.default_rng(FOLDS),
    )
    return max(layout_auc(suspect, third, num_folds=FOLDS, seed=0), blind.words.auc)
