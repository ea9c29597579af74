"""How alike two models rank documents, by any score (PRISM, tables 1 and 7; figures 4 and 6).

No distillation and no decision: numbers to compare between targets that read the documents and targets that did not.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, TypedDict

import numpy as np
import scipy

from nonmember.checks import Count
from nonmember.methods.base import (
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
from nonmember.records.requirements import Access, Requirements
from nonmember.scores import Score
from nonmember.stats.bootstrap import BootstrapCorrelation, bootstrap_correlation
from nonmember.stats.correlation import RankMetric

DOCUMENTS = 30  # at least
DIGITS = 6  # of the plotted numbers: enough for any picture


class OfRanks(Method):
    """The statistic is a rank correlation."""

    score: Score

    statistic_name = "rho"
    statistic_bounds = (-1.0, 1.0)
    picture = "ranks"
    requirements = Requirements(access=Access.PROMPT_LOGPROBS, documents=DOCUMENTS, inputs=("reference",), passes=2)

    def groups(self, roles: Roles) -> dict[str, DocumentGroup]:
        return on_suspect(roles, self.score, self.max_tokens, {"target": roles.target, "reference": roles.reference})

    def outcome(self, correlation: BootstrapCorrelation, claim: str, undefined: str, details: Details) -> TestOutcome:
        """undefined: why there is no correlation, where there is none."""
        verdict: Verdict = "score_only" if np.isfinite(correlation.statistic) else "invalid"
        return TestOutcome(
            statistic=correlation.statistic,
            ci_low=correlation.ci_low,
            ci_high=correlation.ci_high,
            alpha=self.alpha,
            verdict=verdict,
            allowed_claim=claim,
            warnings=() if verdict == "score_only" else (undefined,),
            details=details,
            distribution=correlation.distribution,
        )


# Agreement ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class AgreementDetails(Details):
    rho_reference_target: float  # the statistic


@dataclass(frozen=True)
class RankAgreement(OfRanks):
    score: Annotated[Score, require_score]  # per-document score
    rank_metric: RankMetric  # spearman or kendall
    num_resamples: int  # of the interval's bootstrap
    alpha: float
    max_tokens: int

    name = "rank_agreement"
    details_type = AgreementDetails

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
        return self.outcome(
            agreement,
            "None: a rank correlation has no decision rule of its own. Compare it between targets, on the same "
            "documents.",
            "A constant score has no rank correlation.",
            AgreementDetails(rho_reference_target=agreement.statistic),
        )


# Shift ----------------------------------------------------------------------------------------------------------------


class Bin(TypedDict):
    """Documents of like surprise: its mean x, their mean shift with an interval, their number."""

    x: float
    mean: float
    low: float
    high: float
    count: int


@dataclass(frozen=True, kw_only=True)
class ShiftDetails(Details):
    """Shifts are in ranks, surprise in units of the score."""

    slope_per_unit_of_surprise: float  # least squares; None where all documents are alike
    bins: Sequence[Bin]  # by surprise, as many documents in each
    points: Sequence[Sequence[float]]  # [surprise, shift] of each document


@dataclass(frozen=True)
class RankShift(OfRanks):
    """Which documents rise in rank from the reference to the target: the hard ones, if the target has read them.

    x is minus the score under the reference (high: surprising), y the rank under the target minus that under the
    reference, rank 1 being the most member-like document: below 0 a document has gained. A downward slope alone proves
    nothing: any two imperfectly correlated rankings regress to the mean. The same plot for two models of which neither
    read the documents is its control.
    """

    score: Annotated[Score, require_score]
    num_bins: Annotated[int, Count(2, DOCUMENTS // 2)]  # of equally many documents, by surprise
    num_resamples: int  # of the interval of the rank correlation of x, y
    alpha: float
    max_tokens: int

    name = "rank_shift"
    details_type = ShiftDetails

    def test(self, documents: Mapping[str, ScoredDocuments], rng: np.random.Generator) -> TestOutcome:
        values = documents[SUSPECT].values
        surprise = -values["reference"]
        shift = scipy.stats.rankdata(-values["target"]) - scipy.stats.rankdata(-values["reference"])
        trend = bootstrap_correlation(
            surprise, shift, metric="spearman", num_resamples=self.num_resamples, alpha=self.alpha, rng=rng
        )
        return self.outcome(
            trend,
            "None: the slope shows reading only in so far as it is steeper than that of two models that did not read.",
            "No rank moved: the two models rank the documents alike.",
            ShiftDetails(
                slope_per_unit_of_surprise=_slope(surprise, shift),
                bins=self._bins(surprise, shift),
                points=np.column_stack([np.round(surprise, DIGITS), shift]).tolist(),
            ),
        )

    def _bins(self, surprise: np.ndarray, shift: np.ndarray) -> list[Bin]:
        """Mean shift by surprise, with the interval mean +- 1.96 standard errors."""
        bins: list[Bin] = []
        for members in np.array_split(np.argsort(surprise, kind="stable"), self.num_bins):
            mean, error = shift[members].mean(), 1.96 * shift[members].std(ddof=1) / np.sqrt(len(members))
            numbers = (surprise[members].mean(), mean, mean - error, mean + error)
            x, mean, low, high = (round(float(value), DIGITS) for value in numbers)
            bins.append({"x": x, "mean": mean, "low": low, "high": high, "count": len(members)})
        return bins


def _slope(x: np.ndarray, y: np.ndarray) -> float:
    """Least squares; NaN where x is constant."""
    centred = x - x.mean()
    squares = float(centred @ centred)
    return float(centred @ y) / squares if squares > 0 else float("nan")
