"""Selects the largest learning rate at which PRISM's gates hold, without using the suspect set.

Part of the general text takes the suspect set's place, with the target as teacher: the same distillation as in the
audit, on other documents. Rates are tried from the largest down.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated

from nonmember.checks import Checked, Count, Distinct, Number
from nonmember.corpora import CorpusSpec
from nonmember.methods.base import DocumentGroup, Roles, ScoredDocuments
from nonmember.methods.details import LadderDetails, TriedRate
from nonmember.methods.gates import Finding, as_details, failures
from nonmember.records.groups import SUSPECT, THIRD
from nonmember.training.recipes import RuinedWeights

if TYPE_CHECKING:
    from nonmember.methods.prism.prism import Prism

log = logging.getLogger(__name__)

PRACTICE = "practice"
Measure = Callable[[DocumentGroup], ScoredDocuments]


@dataclass(frozen=True)
class Ladder(Checked):
    """rates: learning rates to be tried.   num_documents: of the general text to practise on, at most; null: as many as
    the suspect set has. The number of steps goes with it, and so does the rate that fits."""

    rates: Annotated[Sequence[float], Distinct("different learning rates above 0", Number("(0, inf)"))]
    num_documents: Annotated[int | None, Count(1)] = None

    fields_called = "ladder.{field}"

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "rates", tuple(sorted(self.rates, reverse=True)))

    def trial_text(self, method: Prism, roles: Roles) -> CorpusSpec:
        """What plays the suspect set; a prefix of one order, so that fewer documents are a part of more."""
        assert method.gates is not None
        return method.gates.neutral(roles, PRACTICE, self.num_documents)


@dataclass(frozen=True)
class LadderResult:
    """The rates tried, from the largest down, and the rate at which all gates passed; None if they passed at none."""

    tried: Mapping[float, Sequence[Finding]]
    rate: float | None

    def as_details(self) -> LadderDetails:
        tried: list[TriedRate] = [
            {"learning_rate": rate, "passed": not failures(f), "gates": as_details(f)} for rate, f in self.tried.items()
        ]
        return {"chosen": self.rate, "tried": tried}

    @property
    def obstacle(self) -> str:
        """Empty where a rate was found."""
        if self.rate is not None:
            return ""
        last, findings = list(self.tried.items())[-1]
        return (
            f"No learning rate of the ladder passes the gates on general text; at the smallest, {last:g}: "
            f"{' '.join(failures(findings))} Give other rates (ladder.rates=[...]) or another reference."
        )


def search(method: Prism, roles: Roles, measure: Measure) -> LadderResult:
    """Try the rates. measure: makes what is missing, and reads the documents of a group."""
    assert method.ladder is not None
    assert method.gates is not None
    tried: dict[float, Sequence[Finding]] = {}
    for rate in method.ladder.rates:
        log.info("Trying the learning rate %g on general text.", rate)
        try:
            documents = {name: measure(group) for name, group in step_groups(method, roles, rate).items()}
        except RuinedWeights as error:
            tried[rate] = [Finding("finite", 0.0, 0.0, False, str(error))]
            continue
        tried[rate] = method.gates.of_training("distilled", documents[SUSPECT], documents[THIRD])
        if not failures(tried[rate]):
            return LadderResult(tried, rate)
    return LadderResult(tried, None)


def step_groups(method: Prism, roles: Roles, rate: float) -> dict[str, DocumentGroup]:
    """What is measured to try a rate."""
    assert method.ladder is not None
    assert method.gates is not None
    stand_in = replace(roles, suspect=method.ladder.trial_text(method, roles))
    distilled = with_rate(method, rate).distilled(stand_in)
    return method.gates.groups(stand_in, distilled, method.gates.third(roles), method.max_tokens)


def with_rate(method: Prism, rate: float) -> Prism:
    recipe = method.distillation
    optimization = replace(recipe.optimization, learning_rate=rate)
    return replace(method, distillation=replace(recipe, optimization=optimization))
