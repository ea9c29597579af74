"""The order test, a sharded rank comparison: does the target find a file more likely in its own order than in others?
(Oren et al., 2024)

Nothing but having read the file in its order can make it so, if its examples are exchangeable before training. The
file is cut into shards; of each, the log-likelihood in its own order is compared with the mean over random ones, and a
one-sided t-test asks whether the difference lies above 0.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, TypedDict, get_args

import numpy as np

from nonmember.checks import Count
from nonmember.corpora import CorpusSpec, Sharded
from nonmember.methods.base import INVALID_CLAIM, DocumentGroup, Method, Roles, ScoredDocuments, TestOutcome, Verdict
from nonmember.methods.details import INLINED, Details
from nonmember.models import ModelSpec
from nonmember.observations import Measurement, OrderQuantity, Reordered
from nonmember.records.groups import SUSPECT
from nonmember.records.requirements import Access, Requirements
from nonmember.stats.paired import PairedT, order_test

TARGET, CONTROL = "target", "control"
ADVISED_SHARDS = 20

CLAIMS: dict[Verdict, str] = {
    "evidence_of_membership": (
        "There is statistical evidence that the target was trained on the suspect file in this order, provided that "
        "its examples were exchangeable before training: not sorted by date, length or topic, and none going on where "
        "another ends. It says nothing about single examples."
    ),
    "inconclusive": (
        "The test found no evidence that the target was trained on the file in this order. This is not evidence that "
        "the file was not used: training on its examples in another order leaves nothing for this test to see."
    ),
    "invalid": INVALID_CLAIM,
}


class OrderOfModel(TypedDict):
    """Of one model, over shards. mean_difference: nats a shard.   num_tokens_read: what observing cost."""

    mean_difference: float
    mean_difference_per_token: float
    share_of_shards_above_0: float
    num_shards: int
    num_tokens_of_file: int
    num_tokens_read: int


class OrderOfControl(OrderOfModel):
    p_value: float  # of the reference


@dataclass(frozen=True, kw_only=True)
class OrderDetails(Details):
    target: OrderOfModel = field(metadata=INLINED)  # the test's numbers
    control: OrderOfControl | None = None  # the same under the reference, which has not read the file


@dataclass(frozen=True)
class OrderTest(Method):
    """The suspect set is an ordered file."""

    num_shards: Annotated[int, Count(2)]  # consecutive parts of it, which the t-test is over
    max_examples: Annotated[int, Count(2)]  # so many from its beginning
    num_orders: Annotated[int, Count(1)]  # random ones of each shard
    window: Annotated[int, Count(2)]  # tokens read at once
    stride: Annotated[int, Count(1)]  # from one window to the next, where a shard is longer
    # Whether the audit's reference, which has not read the file, takes the same test; it must not prefer the order.
    control: bool
    compat: bool  # the deviation with N in place of N - 1, as in the authors' program
    alpha: float
    max_tokens: int  # as the window; no example is cut

    name = "order"
    statistic_name = "t"
    claim = "membership"
    guarantee = "asymptotic"
    null_hypothesis = "The target finds the file no more likely in its own order than in random ones."
    picture = "shards"
    details_type = OrderDetails
    requirements = Requirements(access=Access.PROMPT_LOGPROBS, documents=2, inputs=("order",), passes=251)  # shards

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.stride > self.window:
            raise ValueError(
                f"stride ({self.stride}) must be at most the window ({self.window}), or tokens would be left out."
            )

    def groups(self, roles: Roles) -> dict[str, DocumentGroup]:
        models = {TARGET: roles.target} | ({CONTROL: roles.reference} if self.control else {})
        return {
            SUSPECT: ordered_group(
                roles.suspect,
                models,
                num_shards=self.num_shards,
                max_examples=self.max_examples,
                num_orders=self.num_orders,
                window=self.window,
                stride=self.stride,
                seed=roles.seed,
            )
        }

    def test(self, documents: Mapping[str, ScoredDocuments], rng: np.random.Generator) -> TestOutcome:
        """The statistic is t; no interval is defined."""
        shards = documents[SUSPECT]
        test = statistic_of(shards, TARGET, compat=self.compat)
        control = statistic_of(shards, CONTROL, compat=self.compat) if self.control else None
        verdict: Verdict = "evidence_of_membership" if test.p_value < self.alpha else "inconclusive"
        if reasons := self._reasons_against(test, control):
            verdict = "invalid"
        return TestOutcome(
            statistic=test.statistic,
            p_value=test.p_value,
            alpha=self.alpha,
            verdict=verdict,
            allowed_claim=CLAIMS[verdict],
            warnings=(*self._warnings(test), *reasons),
            details=OrderDetails(
                target=self._as_details(shards, TARGET, test),
                control={**self._as_details(shards, CONTROL, control), "p_value": control.p_value} if control else None,
            ),
        )

    def _as_details(self, shards: ScoredDocuments, role: str, test: PairedT) -> OrderOfModel:
        values = {name: shards.values[column(role, name)] for name in QUANTITIES}
        differences = values["canonical"] - values["mean_shuffled"]
        return {
            "mean_difference": test.mean_difference,
            "mean_difference_per_token": float(differences.sum() / values["num_tokens"].sum()),
            "share_of_shards_above_0": float((differences > 0).mean()),
            "num_shards": test.num_pairs,
            "num_tokens_of_file": int(values["num_tokens"].sum()),
            "num_tokens_read": int(values["num_read"].sum()),
        }

    def _warnings(self, test: PairedT) -> list[str]:
        warnings = [test.warning] if test.warning else []
        if test.num_pairs < ADVISED_SHARDS:
            warnings.append(
                f"The t-test is over {test.num_pairs} shards; at least {ADVISED_SHARDS} are advised "
                "(method.num_shards), or its p-value depends on how the differences are distributed."
            )
        return warnings

    def _reasons_against(self, test: PairedT, control: PairedT | None) -> list[str]:
        reasons = []
        if not np.isfinite(test.statistic):
            reasons.append("The order of the examples makes no difference to the target, so there is nothing to test.")
        if control is not None and control.p_value < self.alpha:
            reasons.append(
                f"The reference, which has not read the file, prefers its order too (p = {control.p_value:.2g}): the "
                "examples are not exchangeable, or it has read the file."
            )
        return reasons


QUANTITIES: tuple[OrderQuantity, ...] = get_args(OrderQuantity)


def ordered_group(
    file: CorpusSpec,
    models: Mapping[str, ModelSpec],
    *,
    num_shards: int,
    max_examples: int,
    num_orders: int,
    window: int,
    stride: int,
    seed: int,
) -> DocumentGroup:
    """What the order test measures on an ordered file under one model per role; its documents are shards."""
    sharded = Sharded(file, num_shards, max_examples)
    measured: dict[str, Measurement] = {
        column(role, quantity): Reordered(role, model, sharded, quantity, num_orders, window, stride, seed)
        for role, model in models.items()
        for quantity in QUANTITIES
    }
    return DocumentGroup(sharded, measured)


def statistic_of(shards: ScoredDocuments, role: str, *, compat: bool) -> PairedT:
    """The t-test over what `ordered_group` measured."""
    canonical, mean_shuffled = (shards.values[column(role, name)] for name in ("canonical", "mean_shuffled"))
    return order_test(canonical, mean_shuffled, compat=compat)


def column(role: str, quantity: str) -> str:
    """Of scores.parquet."""
    return quantity if role == TARGET else f"{role}/{quantity}"
