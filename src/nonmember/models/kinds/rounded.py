"""A model whose weights are kept in few bits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from nonmember.artifacts import Builder
from nonmember.checks import require_count
from nonmember.models.kinds.changed import Changed


@dataclass(frozen=True)
class RoundedWeights(Changed):
    """`base` with each row of its weight matrices rounded to integers of so many bits, times a scale of its own: the
    row's largest magnitude is the largest integer (symmetric, round to nearest). Vectors stay as they are.

    bits: 2 to 8. What quantised models have in common, without any one format's groups and corrections.
    """

    bits: int

    def __post_init__(self) -> None:
        require_count(self.bits, 2, "bits of the rounded weights", at_most=8)

    @property
    def readable(self) -> str:
        return f"{self.base.readable}-{self.bits}bit"

    def recipe(self) -> dict[str, Any]:
        return {"base": self.base.recipe(), "bits": self.bits}

    def key(self, builder: Builder) -> dict[str, Any]:
        return {"rounded": self.base.key(builder), "bits": self.bits}

    def change(self, model: Any) -> None:
        from nonmember.models.weights import round_weights

        round_weights(model, self.bits)
