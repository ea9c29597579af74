"""Difference in differences: does the target prefer the suspect documents to held-out ones by more than a reference
does that has read neither?

The reference takes away how hard each text is (difficulty calibration: Carlini et al. 2021; Watson et al. 2022), the
held-out text what the target has learnt of texts of this kind (as in LLM dataset inference: Maini et al. 2024). Each by
itself leaves the other in.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated

import numpy as np

from nonmember.methods.base import (
    INVALID_CLAIM,
    MIN_CLUSTERS,
    SAME_DISTRIBUTION,
    DocumentGroup,
    Method,
    Roles,
    ScoredDocuments,
    TestOutcome,
    Verdict,
    check_clusters,
    require_score_by_itself,
)
from nonmember.methods.comparison import GainDetails, permuted_means
from nonmember.models import ModelSpec
from nonmember.records import Corpus
from nonmember.records.groups import HELDOUT, SUSPECT
from nonmember.records.requirements import Access, Requirements
from nonmember.scores import Score

REFERENCE_READ = (
    "The reference must have read neither set: had it read held-out text, the target would seem to have read the "
    "suspect set."
)
CLAIMS: Mapping[Verdict, str] = {
    "evidence_of_membership": (
        "There is statistical evidence that the suspect set as a whole was used for training, provided that suspect "
        "and held-out text are draws from one distribution and the reference has read neither."
    ),
    "inconclusive": (
        "The test found no evidence of membership. This is not evidence that the dataset was not used for training."
    ),
    "invalid": INVALID_CLAIM,
}


@dataclass(frozen=True)
class DifferenceInDifferences(Method):
    """The statistic is the mean of score(target) - score(reference) over suspect documents less that over held-out
    ones, in units of the score; p is of a one-sided permutation of documents, or of clusters of them, between the two
    sets, its interval Welch's."""

    score: Annotated[Score, require_score_by_itself]  # any that target and reference can be asked for
    num_permutations: int  # to begin with; more are drawn where p lies near alpha
    alpha: float
    max_tokens: int

    name = "difference_in_differences"
    statistic_name = "difference in differences"
    claim = "membership"
    guarantee = "exact"
    null_hypothesis = (
        "The target's score less the reference's is on average no higher on suspect documents than on held-out ones."
    )
    picture = "gains"
    details_type = GainDetails
    requirements = Requirements(
        access=Access.PROMPT_LOGPROBS, documents=30, inputs=("heldout", "reference"), same_draw=True, passes=4
    )

    def groups(self, roles: Roles) -> dict[str, DocumentGroup]:
        models: dict[str, ModelSpec] = {"target": roles.target, "reference": roles.reference}
        corpora = {SUSPECT: roles.suspect, HELDOUT: roles.need("heldout", self.name)}
        return {
            group: DocumentGroup(
                corpus,
                {
                    role: roles.scored(self.score, corpus, self.max_tokens, role, model)
                    for role, model in models.items()
                },
            )
            for group, corpus in corpora.items()
        }

    def alike_tokenized(self, roles: Roles) -> Sequence[tuple[ModelSpec, ModelSpec]]:
        models = (roles.target, roles.reference)
        return [models] if self.score.compares_tokens and all(model.has_weights for model in models) else ()

    def check(self, corpora: Mapping[str, Corpus]) -> None:
        check_clusters(self.name, corpora)

    def test(self, documents: Mapping[str, ScoredDocuments], rng: np.random.Generator) -> TestOutcome:
        found = permuted_means(self, documents, self.num_permutations, CLAIMS, MIN_CLUSTERS, rng)
        return found if found.verdict == "invalid" else replace(found, warnings=[SAME_DISTRIBUTION, REFERENCE_READ])
