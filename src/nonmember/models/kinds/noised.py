"""A model that is damaged on purpose."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from nonmember.artifacts import Builder
from nonmember.checks import require_number, require_seed
from nonmember.corpora import Component
from nonmember.models.access import Access
from nonmember.models.base import ModelSpec

if TYPE_CHECKING:
    from nonmember.models.loading import LoadedModel


@dataclass(frozen=True)
class Noised(ModelSpec):
    """`base` with Gaussian noise on its weights.

    scale: standard deviation of the noise, as a share of that of each weight tensor.
    """

    base: ModelSpec
    scale: float
    seed: int

    def __post_init__(self) -> None:
        require_number(self.scale, "(0, inf)", "scale of the noise")
        require_seed(self.seed)

    @property
    def readable(self) -> str:
        return f"{self.base.readable}-noised"

    def recipe(self) -> dict[str, Any]:
        return {"base": self.base.recipe(), "noise": self.scale, "seed": self.seed}

    def key(self, builder: Builder) -> dict[str, Any]:
        return {"noised": self.base.key(builder), "scale": self.scale, "seed": self.seed}

    def parents(self) -> Iterable[ModelSpec]:
        return (self.base,)

    def made_of(self) -> Iterable[tuple[Access, ModelSpec]]:
        return ((Access.WEIGHTS, self.base),)

    def weights(self, builder: Builder) -> LoadedModel:
        from nonmember.models.weights import add_noise

        self.base.require_changeable()
        noised = self.base.weights(builder)
        add_noise(noised.model, self.scale, self.seed)
        return noised

    def load_tokenizer(self, builder: Builder) -> Any:
        return self.base.load_tokenizer(builder)

    def corpora_read(self) -> tuple[tuple[Component, ...], bool]:
        return self.base.corpora_read()

    def continued_from(self) -> ModelSpec:
        return self.base
