"""The scores that DE-COP is compared with, on the same works: the mean over a work's passages, and how well it tells
suspect works from clean ones (Duarte et al., 2024, tables 2 and 11).

They need the probabilities of the text itself. Old works and new ones differ in more than having been read, and this
shows in all of these scores: no membership follows, so the verdict is score_only.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from nonmember.methods.asked import by_unit, require_few
from nonmember.methods.base import (
    Access,
    Bounds,
    DocumentGroup,
    Method,
    Picture,
    Roles,
    ScoredDocuments,
    TestOutcome,
    require_scores,
)
from nonmember.methods.decop.answers import Comparison, comparison
from nonmember.methods.details import Details
from nonmember.records.groups import HELDOUT, SUSPECT
from nonmember.records.requirements import Requirements
from nonmember.scores import Score
from nonmember.stats.multiplicity import holm
from nonmember.stats.two_groups import GroupComparison, compare_groups

CLAIM = (
    "None about membership: the numbers say how well each score tells these two groups of works apart, whatever the "
    "cause. Groups of different age differ in their language, too."
)


class BaselineComparison(Comparison):
    """p_value: Welch's, two-sided.   p_value_holm: adjusted for the number of scores."""

    p_value: float
    p_value_holm: float


@dataclass(frozen=True, kw_only=True)
class BaselineDetails(Details):
    """Of results of `DecopBaselines`.

    Attributes:
        scores: Name of a score -> how it tells the groups apart.
    """

    scores: Mapping[str, BaselineComparison]


@dataclass(frozen=True)
class DecopBaselines(Method):
    """scores: the first gives the statistic, its area under the ROC curve; p is Welch's of it, two-sided, and stands in
    the details for the others, with Holm's adjustment.   num_resamples, num_few: as of `Decop`."""

    scores: Sequence[Score]
    num_resamples: int
    num_few: int
    alpha: float
    max_tokens: int

    name: ClassVar[str] = "decop_baselines"
    statistic_name: ClassVar[str] = "AUC"
    statistic_bounds: ClassVar[Bounds] = (0.0, 1.0)
    picture: ClassVar[Picture] = "groups"
    details_type: ClassVar[type[Details]] = BaselineDetails
    requirements: ClassVar[Requirements] = Requirements(
        access=Access.PROMPT_LOGPROBS, documents=5, inputs=("heldout",), passes=2
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        require_scores(self.scores, "scores")
        require_few(self.num_few, self.num_resamples, self.alpha)

    def groups(self, roles: Roles) -> dict[str, DocumentGroup]:
        return {
            group: DocumentGroup(
                corpus, {item.name: roles.scored(item, corpus, self.max_tokens) for item in self.scores}
            )
            for group, corpus in ((SUSPECT, roles.suspect), (HELDOUT, roles.need_heldout(self.name)))
        }

    def test(self, documents: Mapping[str, ScoredDocuments], rng: np.random.Generator) -> TestOutcome:
        found = {item.name: self._compared(documents, item.name, rng) for item in self.scores}
        p_values = [item.p_value for item in found.values()]
        adjusted = holm(p_values) if np.isfinite(p_values).all() else [np.nan] * len(p_values)
        first = next(iter(found.values()))
        return TestOutcome(
            statistic=first.roc_auc,
            p_value=first.p_value,
            ci_low=first.auc_low,
            ci_high=first.auc_high,
            alpha=self.alpha,
            verdict="score_only",
            allowed_claim=CLAIM,
            details=BaselineDetails(
                scores={
                    name: {**comparison(item), "p_value": item.p_value, "p_value_holm": p_adjusted}
                    for (name, item), p_adjusted in zip(found.items(), adjusted, strict=True)
                }
            ),
        )

    def _compared(
        self, documents: Mapping[str, ScoredDocuments], score: str, rng: np.random.Generator
    ) -> GroupComparison:
        (_, first), (_, second) = (by_unit(documents[group], score, group) for group in (SUSPECT, HELDOUT))
        return compare_groups(
            first, second, num_resamples=self.num_resamples, num_few=self.num_few, alpha=self.alpha, rng=rng
        )
