"""How alike two models rank documents: rho(reference, target) by any score (PRISM, tables 1 and 7; figures 4a and 6).

No distillation and no decision: a number to compare between targets that read the documents and targets that did not.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, get_args

import numpy as np

from nonmember.checks import require_choice
from nonmember.methods.base import (
    Access,
    Bounds,
    DocumentGroup,
    Method,
    Picture,
    Roles,
    ScoredDocuments,
    TestOutcome,
    Verdict,
    on_suspect,
    require_resamples,
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

    score: Score
    rank_metric: RankMetric
    num_resamples: int
    alpha: float
    max_tokens: int

    name: ClassVar[str] = "rank_agreement"
    statistic_name: ClassVar[str] = "rho"
    statistic_bounds: ClassVar[Bounds] = (-1.0, 1.0)
    picture: ClassVar[Picture] = "ranks"
    details_type: ClassVar[type[Details]] = AgreementDetails
    requirements: ClassVar[Requirements] = Requirements(
        access=Access.PROMPT_LOGPROBS, documents=30, inputs=("reference",), passes=2
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        require_score(self.score)
        require_choice(self.rank_metric, get_args(RankMetric), "rank_metric")
        require_resamples(self.num_resamples, self.alpha)

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
