"""Sealed hold-out: does the target prefer documents that were published to those that a secret key kept back?

The key chose, so to a target that read none the two parts are exchangeable: p is exact whatever the
model and the texts.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
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
from nonmember.methods.comparison import NO_COMMITMENT, GainDetails, permuted_means
from nonmember.records.groups import HELDOUT, SUSPECT
from nonmember.records.requirements import Access, Requirements
from nonmember.scores import Score

CLAIMS: Mapping[Verdict, str] = {
    "evidence_of_membership": (
        "There is statistical evidence that the target was trained on published documents of the draw, provided that "
        "they were chosen at random and the others kept secret."
    ),
    "inconclusive": (
        "The target does not evidently prefer the published documents. This is not evidence that they were not used "
        "for training."
    ),
    "invalid": INVALID_CLAIM,
}


@dataclass(frozen=True)
class Holdout(Method):
    """The statistic is the mean score of published documents less that of kept ones; p is of a permutation of the draw,
    by whole clusters and within strata."""

    score: Annotated[Score, require_score_by_itself]  # of the target; those that take a reference subtract it
    commitment: Annotated[str | None, as_sha256]  # to the private file, as it was made public
    num_permutations: int  # to begin with; all where there are no more, further ones where p lies near alpha
    alpha: float
    max_tokens: int

    name = "holdout"
    is_drawn = True
    statistic_name = "difference of means"
    claim = "membership"
    guarantee = "exact"
    null_hypothesis = "To the target the published documents are exchangeable with those that the draw kept."
    picture = "groups"
    details_type = GainDetails
    requirements = Requirements(access=Access.PROMPT_LOGPROBS, documents=2, inputs=("holdout",), passes=2)

    def groups(self, roles: Roles) -> dict[str, DocumentGroup]:
        corpora = {SUSPECT: roles.suspect, HELDOUT: roles.need("heldout", self.name)}
        return {
            group: DocumentGroup(corpus, {"target": roles.scored(self.score, corpus, self.max_tokens)})
            for group, corpus in corpora.items()
        }

    def test(self, documents: Mapping[str, ScoredDocuments], rng: np.random.Generator) -> TestOutcome:
        strata = [name for group in (SUSPECT, HELDOUT) for name in documents[group].domains] or None
        found = permuted_means(self, documents, self.num_permutations, CLAIMS, 2, rng, strata)
        if found.verdict == "invalid":
            return found
        warnings = [] if self.commitment else [NO_COMMITMENT.replace("variants", "documents")]
        assert isinstance(found.details, GainDetails)
        published, kept = found.details.num_clusters.values()
        least = 1 / math.comb(published + kept, kept)
        if least >= self.alpha:
            warnings.append(
                f"{published} published and {kept} kept clusters allow no p below {least:.3g}, so nothing can be found "
                f"at alpha = {self.alpha:g}."
            )
        return replace(found, warnings=warnings)
