"""A model whose weights are another's, changed on purpose."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

from nonmember.artifacts import Builder
from nonmember.checks import Count, Number, require_seed
from nonmember.corpora import Component
from nonmember.models.base import ModelSpec
from nonmember.records.requirements import Access

if TYPE_CHECKING:
    from nonmember.models.loading import LoadedModel


@dataclass(frozen=True)
class Changed(ModelSpec):
    """`base` with something about it changed and all else its own. A subclass says how."""

    base: ModelSpec

    @abstractmethod
    def change(self, model: Any) -> None:
        """In place."""

    def parents(self) -> Iterable[ModelSpec]:
        return (self.base,)

    def weights(self, builder: Builder) -> LoadedModel:
        changed = self.base.weights(builder)
        self.change(changed.model)
        return changed

    def load_tokenizer(self, builder: Builder) -> Any:
        return self.base.load_tokenizer(builder)

    def corpora_read(self) -> tuple[tuple[Component, ...], bool]:
        return self.base.corpora_read()

    def continued_from(self) -> ModelSpec:
        return self.base


class ChangedWeights(Changed):
    """`base` with other weights."""

    def made_of(self) -> Iterable[tuple[Access, ModelSpec]]:
        return ((Access.WEIGHTS, self.base),)

    def weights(self, builder: Builder) -> LoadedModel:
        self.base.require_changeable()
        return super().weights(builder)


@dataclass(frozen=True)
class Noised(ChangedWeights):
    """`base` with Gaussian noise on its weights.

    scale: standard deviation of the noise, as a share of that of each weight tensor.
    """

    scale: Annotated[float, Number("(0, inf)")]
    seed: Annotated[int, require_seed]

    fields_called = "{field} of the noise"

    @property
    def readable(self) -> str:
        return f"{self.base.readable}-noised"

    def recipe(self) -> dict[str, Any]:
        return {"base": self.base.recipe(), "noise": self.scale, "seed": self.seed}

    def key(self, builder: Builder) -> dict[str, Any]:
        return {"noised": self.base.key(builder), "scale": self.scale, "seed": self.seed}

    def change(self, model: Any) -> None:
        from nonmember.models.weights import add_noise

        add_noise(model, self.scale, self.seed)


@dataclass(frozen=True)
class PerturbedOutputs(Changed):
    """`base` with noise on its log-probabilities, or rounded ones, or both.

    noise: standard deviation in nats, for each token of each answer; the same question gets the same answer.
    decimals: that are left of a log-probability; 0 for whole nats, None for all.

    Whatever reads such a model gets these answers: scores, distillation, divergences. Its hidden states are the base's.
    """

    noise: Annotated[float, Number("[0, inf)")]
    decimals: Annotated[int | None, Count(0)]
    seed: Annotated[int, require_seed]

    fields_called = "{field} of perturbed outputs"

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.noise and self.decimals is None:
            raise ValueError("Outputs without noise and with all decimals are the model's own; name that model.")

    @property
    def readable(self) -> str:
        return f"{self.base.readable}-served"

    def recipe(self) -> dict[str, Any]:
        return {"base": self.base.recipe(), "served": self._answers()}

    def key(self, builder: Builder) -> dict[str, Any]:
        return {"served": self.base.key(builder), **self._answers()}

    def _answers(self) -> dict[str, Any]:
        return {"noise": self.noise, "decimals": self.decimals, "seed": self.seed}

    def change(self, model: Any) -> None:
        from nonmember.models.weights import serve

        serve(model, **self._answers())

    def require_trainable(self) -> None:
        raise ValueError(f"{self.readable} can only be queried; train or change the model behind it.")
