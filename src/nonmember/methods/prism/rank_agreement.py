"""How alike two models rank documents: rho(reference, target) by any score (PRISM, tables 1 and 7; figures 4a and 6).

No distillation and no decision: a number to compare between targets that read the documents and targets that did not.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated

import numpy as np

from nonmember.methods.base import (
    Access,
    DocumentGroup,
    Method,
    Roles,
    ScoredDocuments,
    TestOutcome,
    Verdict,
    on_suspect,
    require_score,
)
from nonmember.methods.details import Details
from nonmember.records.groups import SUSPECT
from nonmember.records.requirements import Requirements
from nonmember.scores import Score
from nonmember.stats.bootstrap import bootstrap_correlation
from nonmember.stats.correlation import RankMetric

CLAIM = "None: a rank correlation has no decision rule of its own. Compare it between targets, on the same documents."


@dataclass(frozen=True, kw_only=True)
class AgreementDetails(Details):
    """Of results of `RankAgreement`.

    Attributes:
        rho_reference_target: The statistic.
    """

    rho_reference_target: float


@dataclass(frozen=True)
class RankAgreement(Method):
    """score: per-document score.   rank_metric: spearman or kendall.   num_resamples: of the interval's bootstrap."""

    score: Annotated[Score, require_score]
    rank_metric: RankMetric
    num_resamples: int
    alpha: float
    max_tokens: int

    name = "rank_agreement"
    statistic_name = "rho"
    statistic_bounds = (-1.0, 1.0)
    picture = "ranks"
    details_type = AgreementDetails
    requirements = Requirements(access=Access.PROMPT_LOGPROBS, documents=30, inputs=("reference",), passes=2)

    def groups(self, roles: Roles) -> dict[str, DocumentGroup]:
        return on_suspect(roles, self.score, self.max_tokens, {"target": roles.target, "reference": roles.reference})

    def test(self, documents: Mapping[str, ScoredDocuments], rng: np.random.Generator) -> TestOutcome:
        values = documents[SUSPECT].values
        agreement = bootstrap_correlation(
            values["reference"],
            values["target"],
            metric=self.rank_metric,
            num_resamples=self.num_resamples,
            alpha=self.alpha,
            rng=rng,
        )
        verdict: Verdict = "score_only" if np.isfinite(agreement.statistic) else "invalid"
        return TestOutcome(
            statistic=agreement.statistic,
            ci_low=agreement.ci_low,
            ci_high=agreement.ci_high,
            alpha=self.alpha,
            verdict=verdict,
            allowed_claim=CLAIM,
            warnings=() if verdict == "score_only" else ("A constant score has no rank correlation.",),
            details=AgreementDetails(rho_reference_target=agreement.statistic),
            distribution=agreement.distribution,
        )
