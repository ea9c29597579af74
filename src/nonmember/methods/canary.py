"""Canaries: of exchangeable variants one was published at random, the others kept secret. Does the target prefer those
that were published?

To a target that read none of them a canary's variants are alike, so that p is exact whatever the model (Meeus et al.,
2024; Wei et al., 2024; STAMP: Rastogi et al., 2025). No other method here has a guaranteed error rate.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated

import numpy as np

from nonmember.checks import as_sha256
from nonmember.methods.base import (
    INVALID_CLAIM,
    DocumentGroup,
    Method,
    Roles,
    ScoredDocuments,
    TestOutcome,
    Verdict,
    require_score_by_itself,
)
from nonmember.methods.comparison import NO_COMMITMENT
from nonmember.methods.details import Details
from nonmember.records import Corpus, FloatArray
from nonmember.records.groups import SUSPECT
from nonmember.records.requirements import Access, Requirements
from nonmember.scores import Score
from nonmember.stats.canaries import rank_sum_test

PRIVATE = "private"  # the group of the variants that were kept secret

CLAIMS: Mapping[Verdict, str] = {
    "evidence_of_membership": (
        "There is statistical evidence that the target was trained on text that holds the published variants of the "
        "canaries, provided that the variants were drawn alike, the published ones chosen at random, and the others "
        "kept secret. It says nothing about documents without canaries."
    ),
    "inconclusive": (
        "The target does not evidently prefer the published variants. This is not evidence that the documents were not "
        "used for training: canaries may have been filtered out, or read too rarely."
    ),
    "invalid": INVALID_CLAIM,
}


@dataclass(frozen=True, kw_only=True)
class CanaryDetails(Details):
    """Of canaries that could be scored; of identifiers the private variants are the alternatives."""

    # Of each published variant among those of its canary; 1 is the highest score, ties count against it.
    ranks: Sequence[int]
    num_variants: Sequence[int]  # of each canary, the published one among them
    mean_difference: float  # of published less mean private scores, in units of the score
    # The same in standard deviations of a canary's private variants.
    shift: float
    num_private: int  # private variants of all canaries
    forms: Mapping[str, int] | None = None  # of natural identifiers: form -> how many were scored


@dataclass(frozen=True)
class CanaryTest(Method):
    """The statistic is the mean share of private variants that score lower than the published one: .5 where nothing was
    read, 1 at most."""

    score: Annotated[Score, require_score_by_itself]  # of one model
    # To the private file, as it was made public; recorded for who verifies.
    commitment: Annotated[str | None, as_sha256]
    alpha: float
    max_tokens: int

    name = "canary"
    is_drawn = True
    statistic_name = "share below"
    statistic_bounds = (0.0, 1.0)
    claim = "membership"
    guarantee = "exact"
    null_hypothesis = "To the target the published variant of each canary is exchangeable with its private variants."
    picture = "groups"
    details_type = CanaryDetails
    requirements = Requirements(
        access=Access.PROMPT_LOGPROBS, documents=1, inputs=("canaries",), passes=100
    )  # variants

    def groups(self, roles: Roles) -> dict[str, DocumentGroup]:
        return {
            group: DocumentGroup(corpus, {"target": roles.scored(self.score, corpus, self.max_tokens)})
            for group, corpus in {SUSPECT: roles.suspect, PRIVATE: roles.heldout}.items()
            if corpus is not None
        }

    def check(self, corpora: Mapping[str, Corpus]) -> None:
        of = {name: [item.cluster_id for item in corpus.documents] for name, corpus in corpora.items()}
        published, private = of[SUSPECT], set(of.get(PRIVATE, ()))
        if not all(published) or len(set(published)) < len(published) or set(published) != private:
            raise ValueError(
                "canary needs one published variant of each canary and private ones beside it, of one cluster. Name "
                "the file that `nonmember plant` wrote: data=canaries data.path=canaries.private.json."
            )

    def test(self, documents: Mapping[str, ScoredDocuments], rng: np.random.Generator) -> TestOutcome:
        found = by_ranks(documents, PRIVATE, CLAIMS, self.alpha)
        if found.verdict == "invalid":
            return found
        assert isinstance(found.details, CanaryDetails)
        return replace(found, warnings=self._warnings(found.details.num_variants))

    def _warnings(self, num_variants: Sequence[int]) -> list[str]:
        warnings = [] if self.commitment else [NO_COMMITMENT]
        least = 1 / math.prod(num_variants)
        if least >= self.alpha:
            warnings.append(
                f"{len(num_variants)} canaries of {', '.join(map(str, num_variants))} variants allow no p below "
                f"{least:.3g}, so nothing can be found at alpha = {self.alpha:g}. Plant more of either."
            )
        return warnings


def by_ranks(
    documents: Mapping[str, ScoredDocuments], others: str, claims: Mapping[Verdict, str], alpha: float
) -> TestOutcome:
    """Do published variants score higher than those of their cluster in the group `others`?"""
    published, private = _variants(documents, others)
    if not published:
        return TestOutcome.invalid([f"No published variant and one of the {others} set have a score."], alpha=alpha)
    test = rank_sum_test(published, private)
    verdict: Verdict = "evidence_of_membership" if test.p_value < alpha else "inconclusive"
    return TestOutcome(
        statistic=test.share_below,
        p_value=test.p_value,
        alpha=alpha,
        verdict=verdict,
        allowed_claim=claims[verdict],
        details=CanaryDetails(
            ranks=test.ranks,
            num_variants=test.num_variants,
            mean_difference=test.mean_difference,
            shift=test.shift,
            num_private=sum(map(len, private)),
        ),
    )


def _variants(documents: Mapping[str, ScoredDocuments], others: str) -> tuple[list[float], list[FloatArray]]:
    """Scores of the published variant of each canary and of its other ones, where both are there."""
    of: dict[str, list[float]] = {}
    for canary, value in zip(documents[others].cluster_ids, documents[others].values["target"].tolist(), strict=True):
        of.setdefault(canary, []).append(value)
    suspect = documents[SUSPECT]
    pairs = [
        (value, np.array(of[canary]))
        for canary, value in zip(suspect.cluster_ids, suspect.values["target"].tolist(), strict=True)
        if canary in of
    ]
    return [value for value, _ in pairs], [others for _, others in pairs]
