"""One test for each answer: what `method=auto` says from the results of at most two others.

Which ones is chosen from what was given, before any is run (`sweeps.auto`); each is an audit of its own. The hypotheses
of a test that may conclude *used* and of one that may conclude *not used* are opposite, so that at most one of both can
reject wrongly: neither p is adjusted, and none is merged with the other.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, TypedDict

import numpy as np

from nonmember.checks import OneOf
from nonmember.methods.base import Claim, DocumentGroup, Method, Roles, ScoredDocuments, TestOutcome, Verdict
from nonmember.methods.details import Details
from nonmember.models import ModelSpec
from nonmember.records.groups import SUSPECT
from nonmember.records.requirements import Requirements

VERDICTS: Mapping[Claim, Verdict] = {
    "membership": "evidence_of_membership",
    "non_membership": "evidence_of_non_membership",
}
IN_WORDS: Mapping[Claim, str] = {"membership": "used", "non_membership": "not used"}
CONTRADICTION = (
    "Nothing: both tests reject, that of 'used' and that of 'not used', so that a precondition of one does not hold."
)
INCONCLUSIVE = "No test rejected its hypothesis. That is evidence neither of use nor of its absence."
NOTHING = "No test could be run; nothing may be concluded."


class ChosenTest(TypedDict):
    """The one test that was to tell whether a claim holds."""

    method: str
    p_value: float | None
    verdict: str
    result: str  # path of its result.json below the folder
    audit: str  # key


@dataclass(frozen=True, kw_only=True)
class AutoDetails(Details):
    tests: Mapping[Claim, ChosenTest]  # by what each may conclude
    lacking: Mapping[Claim, str]  # where there is none, what it would take
    largest_blind_auc: float | None = None  # of the blind baseline, where held-out text was given


@dataclass(frozen=True)
class Found:
    """What the parts say.   claims: method -> what its verdict allows.   warnings: of all parts, with their names."""

    details: AutoDetails
    claims: Mapping[str, str]
    warnings: tuple[str, ...]


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
    requirements = Requirements(access=None, documents=2)

    def settings(self) -> dict[str, Any]:
        """With the keys of the parts on which the result rests."""
        given = {name: value for name, value in super().settings().items() if name != "found"}
        if self.found is None:
            return given
        tests, lacking = self.found.details.tests, self.found.details.lacking
        return given | {"parts": {claim: test["audit"] for claim, test in tests.items()}, "lacking": dict(lacking)}

    def groups(self, roles: Roles) -> dict[str, DocumentGroup]:
        """The parts measure."""
        return {SUSPECT: DocumentGroup(roles.suspect)}

    def asked_of(self, roles: Roles) -> Mapping[str, ModelSpec]:
        return {} if roles.target is None else {"target": roles.target}

    def test(self, documents: Mapping[str, ScoredDocuments], rng: np.random.Generator) -> TestOutcome:
        """No p and no statistic of its own: both p's stand side by side in the details."""
        if self.found is None:
            raise ValueError(
                "method=auto runs other methods, each as an audit; start it with `nonmember audit` or `nm.audit`, and "
                "not as a cell of another program."
            )
        details = self.found.details
        rejecting = [claim for claim, test in details.tests.items() if test["verdict"] == VERDICTS[claim]]
        verdict: Verdict
        if len(rejecting) > 1:
            verdict, says = "invalid", CONTRADICTION
        elif rejecting:
            verdict, says = VERDICTS[rejecting[0]], self.found.claims[details.tests[rejecting[0]]["method"]]
        elif details.tests:
            verdict, says = "inconclusive", INCONCLUSIVE
        else:
            verdict, says = "invalid", NOTHING
        told = "; ".join(f"{IN_WORDS[claim]}: {_told(claim, details)}" for claim in VERDICTS)
        return TestOutcome(
            alpha=self.alpha,
            verdict=verdict,
            allowed_claim=f"{says} ({told})",
            warnings=self.found.warnings,
            details=details,
        )


def _told(claim: Claim, details: AutoDetails) -> str:
    if (test := details.tests.get(claim)) is None:
        return f"no test; {details.lacking[claim]}"
    p = "no p" if test["p_value"] is None else f"p = {test['p_value']:.2g}"
    return f"{p} by {test['method']}, {test['verdict'].replace('_', ' ')}"
