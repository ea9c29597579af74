"""Several methods on one question, joined: what `method=auto` decides from the results of its parts.

Each part is an audit of its own (`audits.joined` runs them). Tests of non-membership and of membership are joined
apart: their hypotheses are opposite, and no p-value of one is evidence for the other.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal, TypedDict

import numpy as np

from nonmember.checks import Count, OneOf, require_distinct
from nonmember.methods.base import Claim, DocumentGroup, Method, Roles, ScoredDocuments, TestOutcome, Verdict
from nonmember.methods.details import Details
from nonmember.records.groups import SUSPECT
from nonmember.records.requirements import Requirements
from nonmember.stats.multiplicity import harmonic_mean_p, holm, twice_the_mean

Combination = Literal["harmonic_mean", "twice_the_mean"]
MERGES = {"harmonic_mean": harmonic_mean_p, "twice_the_mean": twice_the_mean}
VERDICTS: Mapping[Claim, Verdict] = {
    "non_membership": "evidence_of_non_membership",
    "membership": "evidence_of_membership",
}
IN_WORDS: Mapping[Claim, str] = {"non_membership": "non-membership", "membership": "membership"}

INCONCLUSIVE = (
    "No combination of the tests rejected its hypotheses. That is evidence neither of use nor of its absence."
)
WOULD_STAND = " By Holm's adjustment in place of the combination {} would stand; the verdict goes by the latter alone."
NULL_HYPOTHESIS = "The hypotheses of all tests of the claim are true."  # of the merged p of a claim
NOTHING = "No part gave a test; nothing may be concluded."
CONTRADICTION = (
    "Nothing: the tests of non-membership and those of membership both reject, so that a precondition of some part "
    "does not hold. See the parts."
)


@dataclass(frozen=True)
class PartResult:
    method: str  # its name
    decision: str  # of its result
    p_values: Mapping[Claim, float]  # by what they speak for; empty where it has no test


@dataclass(frozen=True)
class ClaimTests:
    """The tests of one claim.   p: merged.   parts: method -> its p.   adjusted: the same by Holm."""

    claim: Claim
    p: float
    parts: Mapping[str, float]
    adjusted: Mapping[str, float]

    def alone(self, alpha: float) -> list[str]:
        """The methods that stand by themselves."""
        return [name for name, p in self.adjusted.items() if p < alpha]


class FamilyDetails(TypedDict):
    p: float  # merged
    parts: Mapping[str, float]  # method -> its p
    holm: Mapping[str, float]  # the same, adjusted


class LeftOut(TypedDict):
    """A part that was not run, and why."""

    method: str
    left_out: str


class PartDetails(TypedDict):
    """A part that was run."""

    method: str
    result: str  # path of its result.json below the folder
    sha256: str  # of that file
    audit: str  # key
    verdict: str
    claim: str  # what it may say
    p_value: float | None


@dataclass(frozen=True, kw_only=True)
class AutoDetails(Details):
    families: Mapping[str, FamilyDetails]  # claim -> its tests, joined
    combination: str  # how p-values were merged
    parts: Sequence[PartDetails | LeftOut] | None = None  # in the order in which they were run


@dataclass(frozen=True)
class Auto(Method):
    methods: Sequence[str] | None  # names, or None: those that are advised
    given: Mapping[str, Mapping[str, Any]]  # name of a part -> its settings, as below `method.`
    # What data.heldout is: same_draw, other_date or none.
    heldout: Annotated[str, OneOf(("same_draw", "other_date", "none"))]
    follows: bool  # whether the target follows instructions
    # max_models, max_tokens_read, max_requests: the budget, of all parts together, as `nonmember advise` reckons it;
    # None for no limit. Parts are run cheapest first, as far as it goes.
    max_models: Annotated[int | None, Count(0)]
    max_tokens_read: Annotated[int | None, Count(0)]
    max_requests: Annotated[int | None, Count(0)]
    combination: Combination  # how p-values of one claim are merged
    alpha: float
    max_tokens: int

    name = "auto"
    details_type = AutoDetails
    requirements = Requirements(access=None, documents=2)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.methods is not None:
            require_distinct(self.methods, "methods", "names of methods")
            if self.name in self.methods:
                raise ValueError("methods must be names of other methods; got auto, which runs them.")

    def groups(self, roles: Roles) -> dict[str, DocumentGroup]:
        """The parts measure."""
        return {SUSPECT: DocumentGroup(roles.suspect)}

    def test(self, documents: Mapping[str, ScoredDocuments], rng: np.random.Generator) -> TestOutcome:
        raise ValueError(
            "method=auto runs other methods, each as an audit; start it with `nonmember audit` or `nm.audit`, and not "
            "as a cell of another program."
        )

    def join(self, parts: Sequence[PartResult]) -> TestOutcome:
        """What follows from all parts, as far as each may say it (`_counted`)."""
        families = [self._family(claim, parts) for claim in VERDICTS if any(claim in item.p_values for item in parts)]
        rejecting = [item for item in families if item.p < self.alpha]
        verdict, claim_text = self._decided(families, rejecting)
        shown = min(rejecting or families, key=lambda item: item.p, default=None)
        return TestOutcome(
            p_value=np.nan if shown is None else shown.p,
            alpha=self.alpha,
            verdict=verdict,
            allowed_claim=claim_text,
            details=AutoDetails(
                families={item.claim: _as_details(item) for item in families}, combination=self.combination
            ),
        )

    def _family(self, claim: Claim, parts: Sequence[PartResult]) -> ClaimTests:
        p_values = {item.method: self._counted(claim, item) for item in parts if claim in item.p_values}
        adjusted = dict(zip(p_values, holm(list(p_values.values())), strict=True))
        return ClaimTests(claim, MERGES[self.combination](list(p_values.values())), p_values, adjusted)

    def _counted(self, claim: Claim, part: PartResult) -> float:
        """The part's p, or 1 where it is below alpha and the part itself does not decide so: a gate failed, the number
        has no verdict, or it speaks for the opposite. So no joined test rejects for what no part would say."""
        p = part.p_values[claim]
        says_nothing = part.decision in ("invalid", "score_only")
        return 1.0 if says_nothing or (p < self.alpha and part.decision != VERDICTS[claim]) else p

    def _decided(self, families: Sequence[ClaimTests], rejecting: Sequence[ClaimTests]) -> tuple[Verdict, str]:
        if not families:
            return "invalid", NOTHING
        if len(rejecting) > 1:
            return "invalid", CONTRADICTION
        if not rejecting:
            alone = [name for family in families for name in family.alone(self.alpha)]
            return "inconclusive", INCONCLUSIVE + (WOULD_STAND.format(", ".join(alone)) if alone else "")
        (family,) = rejecting
        return VERDICTS[family.claim], self._claim_text(family)

    def _claim_text(self, family: ClaimTests) -> str:
        tests = ", ".join(family.parts)
        alone = family.alone(self.alpha)
        stand = f"{', '.join(alone)}" if alone else "none of them"
        return (
            f"There is evidence of {IN_WORDS[family.claim]} of the set as a whole: not all of the hypotheses that "
            f"{tests} test are true (merged p {family.p:.2g}). By itself, after Holm's adjustment, stands {stand}; "
            "what each may say stands in its own result."
        )


def _as_details(family: ClaimTests) -> FamilyDetails:
    return {"p": family.p, "parts": dict(family.parts), "holm": dict(family.adjusted)}
