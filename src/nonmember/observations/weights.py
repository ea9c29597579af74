"""How far the weights of one model lie from those of another."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nonmember.artifacts import Builder, Spec
from nonmember.artifacts.store import Entry
from nonmember.models.base import ModelSpec, Whole

FORMAT = 2  # as that of other observations


@dataclass(frozen=True)
class WeightChange(Spec[float]):
    """||W - W_base|| / ||W_base||, Frobenius norms over all weight matrices that both models have in one shape; NaN
    where there are none. An adapter counts as merged."""

    model: ModelSpec
    base: ModelSpec

    kind = "observations"

    @property
    def readable(self) -> str:
        return f"{self.model.readable}-weights"

    def key(self, builder: Builder) -> dict[str, Any]:
        weights, less = (Whole(item).key(builder) for item in (self.model, self.base))
        return {"format": FORMAT, "weights": weights, "less": less}

    def parents(self) -> Iterable[Spec[Any]]:
        return (self.base, self.model)

    def alike(self) -> str:
        return f"{type(self).__name__} of {self.model.shape}"

    def make(self, builder: Builder, folder: Path) -> dict[str, Any]:
        base, model = builder.get(Whole(self.base)), builder.get(Whole(self.model))
        return {"change": relative_change(model.model, base.model)}

    def load(self, builder: Builder, entry: Entry) -> float:
        change = entry.facts["change"]
        return float("nan") if change is None else float(change)


def weights_at_hand(model: ModelSpec) -> bool:
    """Whether its own weights can be looked at: not those behind an endpoint, nor such as are kept packed."""
    try:
        model.require_changeable()
    except ValueError:
        return False
    return model.has_weights


def relative_change(model: Any, base: Any) -> float | None:
    """||W - W_base|| / ||W_base|| over the weight matrices that both have by one name in one shape, but for rows that
    one of them has further, as those of added tokens; None where there are none. One matrix at a time is copied to the
    processor."""
    before = {name: weights for name, weights in base.named_parameters() if weights.dim() >= 2}
    moved, whole = [], []
    for name, weights in model.named_parameters():
        if name in before and before[name].shape[1:] == weights.shape[1:]:
            rows = min(len(weights), len(before[name]))
            own, other = (item.detach()[:rows].float().cpu() for item in (weights, before[name]))
            moved.append(float((own - other).square().double().sum()))
            whole.append(float(other.square().double().sum()))
    if not math.fsum(whole):
        return None
    return math.sqrt(math.fsum(moved) / math.fsum(whole))
