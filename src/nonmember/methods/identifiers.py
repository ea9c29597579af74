"""Natural identifiers: canaries of which chance, and not we, chose the variant. Does the target prefer hashes, UUIDs
and keys that stand in the documents to others of the same form, drawn now?

To a target that read none of them they are alike, so that p is exact whatever the model (Rossi et al., 2026), and the
documents may have been published long ago.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Annotated

import numpy as np

from nonmember.checks import Count
from nonmember.corpora import Identifiers
from nonmember.methods.base import INVALID_CLAIM, DocumentGroup, Method, Roles, ScoredDocuments, TestOutcome, Verdict
from nonmember.methods.canary import CanaryDetails, by_ranks
from nonmember.records.groups import SUSPECT
from nonmember.records.requirements import Access, Requirements
from nonmember.scores import LogProbability

ALTERNATIVES = "alternatives"  # the group of the strings that are drawn now
FEW = 5

CLAIMS: Mapping[Verdict, str] = {
    "evidence_of_membership": (
        "There is statistical evidence that the target was trained on text that holds these identifiers, provided that "
        "they were drawn uniformly at random, independently of each other and of everything else that the target read. "
        "It says nothing about documents without identifiers."
    ),
    "inconclusive": (
        "The target does not evidently prefer the identifiers of the documents. This is not evidence that these were "
        "not used for training: few models remember a random string that they read once."
    ),
    "invalid": INVALID_CLAIM,
}


@dataclass(frozen=True)
class IdentifierTest(Method):
    """The statistic is the mean share of alternatives that score lower than the identifier: .5 where nothing was read,
    1 at most."""

    num_alternatives: Annotated[int, Count(1)]  # of each identifier, drawn by the audit's seed
    alpha: float
    max_tokens: int

    name = "identifiers"
    score = LogProbability()
    statistic_name = "share below"
    statistic_bounds = (0.0, 1.0)
    claim = "membership"
    guarantee = "exact"
    null_hypothesis = "To the target each identifier is exchangeable with alternatives of its form."
    picture = "groups"
    details_type = CanaryDetails
    # Its tokenizer says where the string begins.
    requirements = Requirements(access=Access.WEIGHTS, documents=1, inputs=("identifiers",), passes=100)

    def groups(self, roles: Roles) -> dict[str, DocumentGroup]:
        corpora = {
            SUSPECT: Identifiers(roles.suspect, "published", self.num_alternatives, roles.seed),
            ALTERNATIVES: Identifiers(roles.suspect, "alternatives", self.num_alternatives, roles.seed),
        }
        return {
            group: DocumentGroup(corpus, {"target": roles.scored(self.score, corpus, self.max_tokens)})
            for group, corpus in corpora.items()
        }

    def test(self, documents: Mapping[str, ScoredDocuments], rng: np.random.Generator) -> TestOutcome:
        found = by_ranks(documents, ALTERNATIVES, CLAIMS, self.alpha)
        if found.verdict == "invalid":
            return found
        assert isinstance(found.details, CanaryDetails)
        names = documents[SUSPECT].cluster_ids
        details = replace(found.details, forms=dict(Counter(item.split(":")[0] for item in names)))
        least = 1 / math.prod(found.details.num_variants)
        few = len(names) < FEW or least >= self.alpha
        warning = f"Only {len(names)} identifiers were found, which allow no p below {least:.3g}."
        return replace(found, details=details, warnings=[warning] if few else [])
