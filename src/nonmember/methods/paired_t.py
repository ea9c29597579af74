"""The paired t-test of Min-K%++ under target and distilled reference (PRISM, table 10): a cautionary baseline.

Levels of the score move with a model's size and family, so the test fails in both directions in the paper's own table.
Its verdict is therefore never more than `score_only`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated

import numpy as np

from nonmember.methods.base import (
    DocumentGroup,
    Roles,
    SampledMethod,
    ScoredDocuments,
    TestOutcome,
    on_suspect,
    require_score,
)
from nonmember.methods.details import Details
from nonmember.methods.prism.prism import Prism, distilled_reference
from nonmember.models import ModelSpec
from nonmember.records.groups import SUSPECT
from nonmember.scores import Score
from nonmember.stats.paired import paired_t_less
from nonmember.training.recipes import Distillation, require_distillation


@dataclass(frozen=True, kw_only=True)
class PairedDetails(Details):
    mean_difference: float  # of the scores under target and distilled reference, in units of the score


@dataclass(frozen=True)
class PairedT(SampledMethod):
    """H1: E f(x; target) < E f(x; distilled reference). The statistic is t; no interval is defined."""

    score: Annotated[Score, require_score]
    distillation: Annotated[Distillation, require_distillation]
    alpha: float
    max_tokens: int

    name = "paired_t"
    statistic_name = "t"
    claim = "non_membership"
    guarantee = "asymptotic"
    null_hypothesis = (
        "The suspect documents score on average no lower under the target than under the distilled reference."
    )
    picture = "pairs"
    details_type = PairedDetails
    requirements = replace(Prism.requirements, inputs=("reference",))

    def groups(self, roles: Roles) -> dict[str, DocumentGroup]:
        models: dict[str, ModelSpec] = {
            "target": roles.target,
            "distilled": distilled_reference(roles, self.distillation),
        }
        return on_suspect(roles, self.score, self.max_tokens, models)

    def distilled_roles(self) -> Mapping[str, Sequence[str]]:
        return {"target": ("distilled",)}

    def test(self, documents: Mapping[str, ScoredDocuments], rng: np.random.Generator) -> TestOutcome:
        if few := self.too_few_clusters(documents):
            return TestOutcome.invalid(few, alpha=self.alpha)
        scores = documents[SUSPECT]
        test = paired_t_less(scores.values["target"], scores.values["distilled"], self.clusters(documents))
        return TestOutcome(
            statistic=test.statistic,
            p_value=test.p_value,
            alpha=self.alpha,
            verdict="score_only",
            allowed_claim=(
                "None: this baseline is known to fail in both directions (PRISM, table 10). Shown for comparison."
            ),
            warnings=(test.warning,) if test.warning else (),
            details=PairedDetails(mean_difference=test.mean_difference),
        )
