"""Gates: a measured number against its bound."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from nonmember.methods.details import Gate


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
        return f"{self.what} is {self.value:.3f}, and must be {verb} {self.bound:.3f}."

    def as_details(self) -> Gate:
        value = self.value if np.isfinite(self.value) else None
        return {"value": value, "bound": self.bound, "upper": self.upper, "passed": self.passed}


def failures(findings: Sequence[Finding]) -> list[str]:
    return [finding.sentence for finding in findings if not finding.passed]


def as_details(findings: Sequence[Finding]) -> Mapping[str, Gate]:
    return {finding.name: finding.as_details() for finding in findings}
