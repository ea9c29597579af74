"""Difference in differences: does the target prefer the suspect documents to held-out ones by more than a reference
does that has read neither?

The reference takes away how hard each text is (difficulty calibration: Carlini et al. 2021; Watson et al. 2022), the
held-out text what the target has learnt of texts of this kind (as in LLM dataset inference: Maini et al. 2024). Each by
itself leaves the other in.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
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
    units,
)
from nonmember.methods.details import Details
from nonmember.models import ModelSpec
from nonmember.records import Corpus, FloatArray
from nonmember.records.groups import HELDOUT, SUSPECT
from nonmember.records.requirements import Access, Requirements
from nonmember.scores import Score
from nonmember.stats.monte_carlo import PermutationP
from nonmember.stats.two_groups import mean_difference, permuted_mean_difference

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


@dataclass(frozen=True, kw_only=True)
class GainDetails(Details):
    t: float  # Welch's, with variances by clusters; p is of its permutations
    degrees_of_freedom: float  # of that t in the interval, which is Welch's
    effect_size: float  # of the difference, in standard deviations of single documents
    mean: Mapping[str, float]  # group -> mean of the target's score less the reference's, in units of the score
    num_clusters: Mapping[str, int]  # group -> number of its clusters
    num_heldout: int  # documents of the held-out set


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
        corpora = {SUSPECT: roles.suspect, HELDOUT: roles.need_heldout(self.name)}
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
        groups = [documents[group] for group in (SUSPECT, HELDOUT)]
        suspect, heldout = map(_gains, groups)
        clusters = [units(group, name) for group, name in zip(groups, (SUSPECT, HELDOUT), strict=True)]
        numbers = [len(set(names)) for names in clusters]
        few = self._too_few(groups, numbers)
        if min(numbers) < 2:
            return TestOutcome.invalid([few], alpha=self.alpha)
        test = mean_difference(suspect, heldout, *clusters, alpha=self.alpha)
        varies = not np.isnan(test.p_value)
        permuted = PermutationP(np.nan)
        if varies:
            permuted = permuted_mean_difference(
                suspect, heldout, *clusters, num_permutations=self.num_permutations, alpha=self.alpha, rng=rng
            )
        verdict: Verdict = "evidence_of_membership" if permuted.p_value < self.alpha else "inconclusive"
        warnings = [SAME_DISTRIBUTION, REFERENCE_READ]
        if not varies:
            few = "The target's score less the reference's is alike for all documents, and t is undefined."
        if few:
            verdict, warnings = "invalid", [few]
        return TestOutcome(
            statistic=test.difference,
            p_value=permuted.p_value,
            p_error=permuted.p_error,
            ci_low=test.ci_low,
            ci_high=test.ci_high,
            alpha=self.alpha,
            verdict=verdict,
            allowed_claim=CLAIMS[verdict],
            warnings=warnings,
            details=GainDetails(
                t=test.t,
                degrees_of_freedom=test.degrees_of_freedom,
                effect_size=test.effect_size,
                mean={SUSPECT: float(suspect.mean()), HELDOUT: float(heldout.mean())},
                num_clusters=dict(zip((SUSPECT, HELDOUT), test.num_clusters, strict=True)),
                num_heldout=len(heldout),
            ),
        )

    def _too_few(self, groups: Sequence[ScoredDocuments], num_clusters: Sequence[int]) -> str:
        """What is left where documents could not be scored."""
        for name, group, number in zip((SUSPECT, HELDOUT), groups, num_clusters, strict=True):
            if len(group.doc_ids) < self.requirements.documents or number < MIN_CLUSTERS:
                return (
                    f"{len(group.doc_ids)} documents of {number} clusters are left of the {name} set; the test needs "
                    f"{self.requirements.documents} documents and {MIN_CLUSTERS} clusters."
                )
        return ""


def _gains(documents: ScoredDocuments) -> FloatArray:
    """[documents] of the target over the reference."""
    return documents.values["target"] - documents.values["reference"]
