"""A model that is damaged on purpose."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from nonmember.artifacts import Builder
from nonmember.checks import require_number, require_seed
from nonmember.models.kinds.changed import Changed


@dataclass(frozen=True)
class Noised(Changed):
    """`base` with Gaussian noise on its weights.

    scale: standard deviation of the noise, as a share of that of each weight tensor.
    """

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

    def change(self, model: Any) -> None:
        from nonmember.models.weights import add_noise

        add_noise(model, self.scale, self.seed)
