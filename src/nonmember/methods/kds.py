"""Kernel divergence score (KDS): how much does tuning the target on documents move their embeddings among each other?

What the target has read moves less, so the higher the score, the larger the share that it has read. It is a number to
compare between sets or levels of contamination, under one model and one recipe: there is no test, and no threshold.
Beside it stand what simpler scores say of the same set: their means over the documents, and those of their deviations
when the target is tuned on the documents (FSD).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Annotated, TypedDict

import numpy as np

from nonmember.checks import Count
from nonmember.methods.base import (
    INVALID_WITHOUT_TEST,
    DocumentGroup,
    Method,
    Roles,
    ScoredDocuments,
    TestOutcome,
    Verdict,
    require_scores,
)
from nonmember.methods.details import Details
from nonmember.methods.order import OrderTest, statistic_of
from nonmember.models import ModelSpec, label_of
from nonmember.observations import Embedded, Measurement
from nonmember.records import FloatArray
from nonmember.records.groups import SUSPECT
from nonmember.records.requirements import Access, Requirements
from nonmember.scores import Score
from nonmember.stats.kernels import Bandwidth, KernelDivergence, check_bandwidth, kernel_divergence
from nonmember.training import Trained
from nonmember.training.recipes import TrainingRecipe

TARGET, TUNED, FSD = "target", "tuned", "fsd"  # roles; fsd: tuned as that method tunes
ORDER = "order"  # the group of shards
EMBEDDING = "embedding"
MOST_LAYERS = 10_000
SMALLEST_SCORE = 1e-6  # below it the tuning has not moved the model (docs/methods/kds.md)

CLAIM = (
    "None about these documents by themselves: the score may be compared with that of other sets of as many documents, "
    "under the same model and the same recipe. A higher one means that tuning moved them less, as it moves documents "
    "that were read before; sets that differ in length, date or style differ in it too."
)


class KernelRange(TypedDict):
    """Of the kernel's values between documents."""

    smallest: float
    largest: float


@dataclass(frozen=True, kw_only=True)
class KdsDetails(Details):
    normalizer: float  # of the score
    gamma_before: float  # bandwidth of the kernel before tuning
    gamma_after: float  # after tuning
    kernel_before: KernelRange  # range of its values before tuning
    kernel_after: KernelRange  # after tuning
    baselines: Mapping[str, float] | None = None  # name of a score -> its mean over the set, in units of the score
    fsd: Mapping[str, float] | None = None  # name of a score -> its mean deviation by tuning
    order_t: float | None = None  # statistic of the order test


@dataclass(frozen=True)
class Kds(Method):
    training: TrainingRecipe  # how the target is tuned, on the suspect documents themselves
    # Of the embeddings, an entry of the tuple of hidden states; -1 is the last.
    layer: Annotated[int, Count(-MOST_LAYERS, MOST_LAYERS, "-1 is the last hidden state.")]
    # bandwidth, gamma: as of `stats.kernel_divergence`
    bandwidth: Bandwidth
    gamma: float | None
    # Scores whose means over the documents are reported too.
    baselines: Annotated[Sequence[Score], partial(require_scores, may_be_empty=True)]
    # How the target is tuned on the documents for the deviations of these; None: without deviations.
    fsd: TrainingRecipe | None
    order_test: OrderTest | None  # whose t over the documents, as they stand, is reported too; None: without
    # The tuned model is not put into evaluation mode, so that the adapter drops out in the second pass, as in the
    # authors' program.
    compat: bool
    alpha: float
    max_tokens: int

    name = "kds"
    statistic_name = "KDS"
    picture = "changes"
    details_type = KdsDetails
    requirements = Requirements(
        access=Access.WEIGHTS, documents=1, passes=2, tuned=1
    )  # fewer than 3 have a result, which says that it is invalid

    def __post_init__(self) -> None:
        super().__post_init__()
        check_bandwidth(self.bandwidth, self.gamma)
        if self.compat and not self.training.adapts:
            raise ValueError("compat=true lets an adapter drop out, and this training has none. Use compat=false.")

    # What is measured ---------------------------------------------------------------------------------------------

    def groups(self, roles: Roles) -> dict[str, DocumentGroup]:
        measured: dict[str, Measurement] = self._scores(TARGET, roles.target, roles)
        seed = roles.seed if self.compat else None
        measured |= {
            column(TARGET, EMBEDDING): Embedded(roles.target, roles.suspect, TARGET, self.layer, self.max_tokens),
            column(TUNED, EMBEDDING): Embedded(
                tuned(roles, self.training), roles.suspect, TUNED, self.layer, self.max_tokens, seed
            ),
        }
        if self.fsd is not None:
            measured |= self._scores(FSD, tuned(roles, self.fsd), roles)
        groups = {SUSPECT: DocumentGroup(roles.suspect, measured)}
        return groups | ({ORDER: self.order_test.groups(roles)[SUSPECT]} if self.order_test else {})

    def _scores(self, role: str, model: ModelSpec, roles: Roles) -> dict[str, Measurement]:
        return {
            column(role, score.name): roles.scored(score, roles.suspect, self.max_tokens, role, model)
            for score in self.baselines
        }

    def least(self, group: str) -> int:
        return self.order_test.least(SUSPECT) if group == ORDER and self.order_test else self.requirements.documents

    # What it means ------------------------------------------------------------------------------------------------

    def test(self, documents: Mapping[str, ScoredDocuments], rng: np.random.Generator) -> TestOutcome:
        """The statistic is S; there is neither p-value nor interval."""
        suspect = documents[SUSPECT]
        found = kernel_divergence(
            *(suspect.embeddings[column(role, EMBEDDING)] for role in (TARGET, TUNED)),
            bandwidth=self.bandwidth,
            gamma=self.gamma,
        )
        problem = found.problem or _too_small(found)
        verdict: Verdict = "invalid" if problem else "score_only"
        return TestOutcome(
            statistic=found.score,
            alpha=self.alpha,
            verdict=verdict,
            allowed_claim=INVALID_WITHOUT_TEST if problem else CLAIM,
            warnings=(f"There is no kernel divergence score: {problem}.",) if problem else (),
            details=self._with_others(
                KdsDetails(
                    normalizer=found.normalizer,
                    gamma_before=found.gamma_before,
                    gamma_after=found.gamma_after,
                    kernel_before=_range(found.kernel_before),
                    kernel_after=_range(found.kernel_after),
                ),
                documents,
            ),
        )

    def _with_others(self, details: KdsDetails, documents: Mapping[str, ScoredDocuments]) -> KdsDetails:
        """And what other scores say of the set, each the higher, the more of it was read."""
        values, names = documents[SUSPECT].values, [score.name for score in self.baselines]
        if names:
            details = replace(details, baselines={name: _mean(values[column(TARGET, name)]) for name in names})
        if names and self.fsd is not None:
            deviations = {name: values[column(TARGET, name)] - values[column(FSD, name)] for name in names}
            details = replace(details, fsd={name: _mean(item) for name, item in deviations.items()})
        if self.order_test is not None:
            order = statistic_of(documents[ORDER], TARGET, compat=self.order_test.compat)
            details = replace(details, order_t=order.statistic)
        return details


def tuned(roles: Roles, training: TrainingRecipe) -> Trained:
    """The target tuned on the suspect documents."""
    return Trained(roles.target, training, roles.suspect, seed=roles.seed, label=f"{label_of(roles.target)}-tuned")


def column(role: str, name: str) -> str:
    """Of scores.parquet."""
    return f"{role}/{name}"


def _too_small(found: KernelDivergence) -> str:
    if abs(found.score) >= SMALLEST_SCORE:
        return ""
    return (
        f"it is {found.score:.1e}, closer to 0 than {SMALLEST_SCORE:.0e}, so tuning has not moved the embeddings "
        "(raise the learning rate or the number of steps)"
    )


def _mean(values: FloatArray) -> float:
    return float(values.mean()) if len(values) else np.nan


def _range(limits: tuple[float, float]) -> KernelRange:
    return {"smallest": limits[0], "largest": limits[1]}
