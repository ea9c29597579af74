"""A model whose weights are another's, changed on purpose."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from nonmember.artifacts import Builder
from nonmember.corpora import Component
from nonmember.models.base import ModelSpec
from nonmember.records.requirements import Access

if TYPE_CHECKING:
    from nonmember.models.loading import LoadedModel


@dataclass(frozen=True)
class Changed(ModelSpec):
    """`base` with other weights and all else its own. A subclass says how they are changed."""

    base: ModelSpec

    @abstractmethod
    def change(self, model: Any) -> None:
        """Its weights, in place."""

    def parents(self) -> Iterable[ModelSpec]:
        return (self.base,)

    def made_of(self) -> Iterable[tuple[Access, ModelSpec]]:
        return ((Access.WEIGHTS, self.base),)

    def weights(self, builder: Builder) -> LoadedModel:
        self.base.require_changeable()
        changed = self.base.weights(builder)
        self.change(changed.model)
        return changed

    def load_tokenizer(self, builder: Builder) -> Any:
        return self.base.load_tokenizer(builder)

    def corpora_read(self) -> tuple[tuple[Component, ...], bool]:
        return self.base.corpora_read()

    def continued_from(self) -> ModelSpec:
        return self.base
