"""A model whose weights are kept in few bits."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from nonmember.artifacts import Builder
from nonmember.checks import require_count
from nonmember.corpora import Component
from nonmember.models.access import Access
from nonmember.models.base import ModelSpec

if TYPE_CHECKING:
    from nonmember.models.loading import LoadedModel


@dataclass(frozen=True)
class RoundedWeights(ModelSpec):
    """`base` with each row of its weight matrices rounded to integers of so many bits, times a scale of its own: the
    row's largest magnitude is the largest integer (symmetric, round to nearest). Vectors stay as they are.

    bits: 2 to 8. What quantised models have in common, without any one format's groups and corrections.
    """

    base: ModelSpec
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

    def parents(self) -> Iterable[ModelSpec]:
        return (self.base,)

    def made_of(self) -> Iterable[tuple[Access, ModelSpec]]:
        return ((Access.WEIGHTS, self.base),)

    def weights(self, builder: Builder) -> LoadedModel:
        from nonmember.models.weights import round_weights

        self.base.require_changeable()
        rounded = self.base.weights(builder)
        round_weights(rounded.model, self.bits)
        return rounded

    def load_tokenizer(self, builder: Builder) -> Any:
        return self.base.load_tokenizer(builder)

    def corpora_read(self) -> tuple[tuple[Component, ...], bool]:
        return self.base.corpora_read()

    def continued_from(self) -> ModelSpec:
        return self.base
