"""A method: what it measures on which documents under which models, and what follows from the numbers."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from entropy import Entropies

from nonmember.methods import Access, DocumentGroup, Method, Requirements, Roles, ScoredDocuments, TestOutcome


@dataclass(frozen=True)
class ConfidenceGap(Method):
    """Is the target more confident on the documents than the reference? Mean difference of their entropies, nats."""

    alpha: float
    max_tokens: int

    name = "confidence_gap"
    requirements = Requirements(access=Access.FULL_LOGITS, documents=10)

    def groups(self, roles: Roles) -> dict[str, DocumentGroup]:
        measured = {
            role: Entropies(model, roles.suspect, role, self.max_tokens)
            for role, model in (("target", roles.target), ("reference", roles.reference))
        }
        return {"suspect": DocumentGroup(roles.suspect, measured)}

    def test(self, documents: Mapping[str, ScoredDocuments], rng: np.random.Generator) -> TestOutcome:
        values = documents["suspect"].values
        gap = values["reference"] - values["target"]
        return TestOutcome(
            statistic=float(gap.mean()),
            alpha=self.alpha,
            verdict="score_only",
            allowed_claim="None: a difference of entropies has no decision rule. Compare it between targets.",
        )
