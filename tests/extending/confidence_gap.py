"""A method: what it measures on which documents under which models, and what follows from the numbers."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from entropy import Entropies

from nonmember.methods import Access, DocumentGroup, Method, Roles, ScoredDocuments, TestOutcome


@dataclass(frozen=True)
class ConfidenceGap(Method):
    """Is the target more confident on the documents than the reference? Mean difference of their entropies, nats."""

    alpha: float
    max_tokens: int

    name: ClassVar[str] = "confidence_gap"
    target_access: ClassVar[Access] = Access.FULL_LOGITS
    min_documents: ClassVar[int] = 10

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
            p_value=np.nan,
            ci_low=np.nan,
            ci_high=np.nan,
            alpha=self.alpha,
            verdict="score_only",
            allowed_claim="None: a difference of entropies has no decision rule. Compare it between targets.",
        )
