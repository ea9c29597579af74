"""One test for each answer: what `method=auto` says from the results of at most two others.

Which ones is chosen from what was given, before any is run (`sweeps.auto`); each is an audit of its own. The hypotheses
of a test that may conclude *used* and of one that may conclude *not used* are opposite, so that at most one of both can
reject wrongly: neither p is adjusted, and none is merged with the other.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, TypedDict

import numpy as np

from nonmember.checks import OneOf
from nonmember.methods.base import Claim, DocumentGroup, Method, Roles, ScoredDocuments, TestOutcome, Verdict
from nonmember.methods.details import Details
from nonmember.models import ModelSpec
from nonmember.observations import Scored
from nonmember.records.groups import SUSPECT
from nonmember.records.requirements import Requirements
from nonmember.scores import Loss

VERDICTS: Mapping[Claim, Verdict] = {
    "membership": "evidence_of_membership",
    "non_membership": "evidence_of_non_membership",
}
IN_WORDS: Mapping[Claim, str] = {"membership": "used", "non_membership": "not used"}
CONTRADICTION = (
    "Both tests conclude, one 'used' and the other 'not used', so a precondition of one of them does not hold."
)
INCONCLUSIVE = "No test rejected its hypothesis, which is evidence neither of use nor of its absence."
NOTHING = "No test could be run, and a score by itself has no error rate."


class ChosenTest(TypedDict):
    """The one test that was to tell whether a claim holds."""

    method: str
    p_value: float | None
    p_error: float | None
    verdict: str
    null_hypothesis: str
    guarantee: str  # of the test's error rate
    because: str  # the first reason of its answer
    next: str  # what would help it most
    result: str  # path of its result.json below the folder
    audit: str  # key


@dataclass(frozen=True, kw_only=True)
class AutoDetails(Details):
    tests: Mapping[Claim, ChosenTest]  # by what each may conclude
    lacking: Mapping[Claim, str]  # where there is none, what it would take
    passed_over: Mapping[str, str] = field(default_factory=dict)  # method -> why it was not run
    largest_blind_auc: float | None = None  # of the blind baseline, where held-out text was given


@dataclass(frozen=True)
class Found:
    """What the parts say.   claims: method -> what its verdict allows.   warnings: of all parts, with their names."""

    details: AutoDetails
    claims: Mapping[str, str]
    warnings: tuple[str, ...]
    scores: bool = False  # whether the documents are scored, since no test could be run


@dataclass(frozen=True)
class Auto(Method):
    given: Mapping[str, Mapping[str, Any]]  # name of a method -> its settings, as below `method.`
    # What data.heldout is: same_draw, other_date or none.
    heldout: Annotated[str, OneOf(("same_draw", "other_date", "none"))]
    follows: bool  # whether the target follows instructions, so that methods that ask it may be chosen
    alpha: float
    max_tokens: int
    found: Found | None = field(default=None, kw_only=True)  # once the parts have been run

    name = "auto"
    details_type = AutoDetails
    picture = "tests"
    requirements = Requirements(access=None, documents=2)

    def settings(self) -> dict[str, Any]:
        """With the keys of the parts on which the result rests."""
        given = {name: value for name, value in super().settings().items() if name != "found"}
        if self.found is None:
            return given
        tests, lacking = self.found.details.tests, self.found.details.lacking
        return given | {"parts": {claim: test["audit"] for claim, test in tests.items()}, "lacking": dict(lacking)}

    def groups(self, roles: Roles) -> dict[str, DocumentGroup]:
        """The parts measure. Where there is none the loss is, and so a target is asked for."""
        if roles.target is None or (self.found is not None and not self.found.scores):
            return {SUSPECT: DocumentGroup(roles.suspect)}
        loss = Scored("target", roles.target, roles.suspect, Loss(), self.max_tokens)
        return {SUSPECT: DocumentGroup(roles.suspect, {"target/loss": loss})}

    def asked_of(self, roles: Roles) -> Mapping[str, ModelSpec]:
        return {} if roles.target is None else {"target": roles.target}

    def test(self, documents: Mapping[str, ScoredDocuments], rng: np.random.Generator) -> TestOutcome:
        """p is that of the test that decides; where none or both do there is none. All stand in the details."""
        if self.found is None:
            raise ValueError(
                "method=auto runs other methods, each as an audit; start it with `nonmember audit` or `nm.audit`, and "
                "not as a cell of another program."
            )
        details = self.found.details
        rejecting = [claim for claim, test in details.tests.items() if test["verdict"] == VERDICTS[claim]]
        told = "; ".join(f"{IN_WORDS[claim]}: {_told(claim, details)}" for claim in VERDICTS)
        if len(rejecting) == 1:
            claim = rejecting[0]
            decisive = details.tests[claim]
            return TestOutcome(
                p_value=math.nan if decisive["p_value"] is None else decisive["p_value"],
                p_error=decisive["p_error"],
                claim=claim,
                null_hypothesis=decisive["null_hypothesis"],
                alpha=self.alpha,
                verdict=VERDICTS[claim],
                allowed_claim=f"{self.found.claims[decisive['method']]} ({told})",
                warnings=self.found.warnings,
                details=details,
            )
        verdict: Verdict = "invalid" if rejecting else "inconclusive" if details.tests else "score_only"
        says = CONTRADICTION if rejecting else INCONCLUSIVE if details.tests else NOTHING
        warnings = (CONTRADICTION, *self.found.warnings) if rejecting else self.found.warnings
        allowed = f"{says} ({told})" if details.tests else says
        return TestOutcome(alpha=self.alpha, verdict=verdict, allowed_claim=allowed, warnings=warnings, details=details)


def _told(claim: Claim, details: AutoDetails) -> str:
    if (test := details.tests.get(claim)) is None:
        return f"no test; {details.lacking[claim]}"
    if test["verdict"] == "invalid":
        return f"{test['method']}: invalid"
    p = "no p" if test["p_value"] is None else f"p = {test['p_value']:.2g}"
    return f"{p} by {test['method']}"
