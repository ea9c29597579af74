"""A kind of model with weights: it says its key and how its weights come about."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from nonmember.artifacts import Builder
from nonmember.models import Access, ModelSpec

if TYPE_CHECKING:
    from nonmember.models.loading import LoadedModel


@dataclass(frozen=True)
class Averaged(ModelSpec):
    """Two models of one architecture, averaged weight by weight (a model soup). share: of the first, in [0, 1]."""

    first: ModelSpec
    second: ModelSpec
    share: float

    def __post_init__(self) -> None:
        if not 0 <= self.share <= 1:
            raise ValueError(f"share must lie in [0, 1]; got {self.share!r}.")

    @property
    def readable(self) -> str:
        return f"{self.first.readable}+{self.second.readable}"

    def recipe(self) -> dict[str, Any]:
        return {"averaged": [self.first.recipe(), self.second.recipe()], "share": self.share}

    def key(self, builder: Builder) -> dict[str, Any]:
        return {"averaged": [self.first.key(builder), self.second.key(builder)], "share": self.share}

    def parents(self) -> Iterable[ModelSpec]:
        return (self.first, self.second)

    def made_of(self) -> Iterable[tuple[Access, ModelSpec]]:
        return ((Access.WEIGHTS, self.first), (Access.WEIGHTS, self.second))

    def weights(self, builder: Builder) -> "LoadedModel":
        averaged = self.first.weights(builder)  # a copy of its own, which may be changed
        other = builder.get(self.second).model.state_dict()
        for name, tensor in averaged.model.state_dict().items():
            tensor.mul_(self.share).add_(other[name], alpha=1 - self.share)
        return averaged

    def load_tokenizer(self, builder: Builder) -> Any:
        return self.first.load_tokenizer(builder)
