"""Where and how work is done, as far as results do not depend on it: devices, micro-batches, memory budgets."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import lightning

MIB = 2**20


@dataclass(frozen=True)
class Compute:
    """The `trainer=` group.

    make_trainer: `lightning.Trainer` with the devices, strategy and precision of the config; the rest is added here.
    micro_batch_size: sequences per forward pass in training, over all devices.
    max_batch_tokens: most tokens of a batch in observing, padding included.
    logits_budget_mib: bound on the largest [tokens, vocabulary] table in training.
    block_mib: the same in observing; best when it fits the processor's cache.
    checkpoint_seconds: training saves a point to resume from this often.
    """

    make_trainer: Callable[..., lightning.Trainer]
    precision: str
    micro_batch_size: int
    max_batch_tokens: int
    logits_budget_mib: int
    block_mib: int
    checkpoint_seconds: float
    gradient_checkpointing: bool

    def trainer(self, **arguments: object) -> lightning.Trainer:
        return self.make_trainer(precision=self.precision, **arguments)
