"""Memory and arithmetic of training, observing and writing, as bounds told from shapes.

Training in mixed precision holds float32 weights and gradients and the optimizer's two moments, 16 bytes a parameter
(8 with plain SGD). Activations are those of Korthikanti et al. (arXiv 2205.05198, table 2) without stored attention
weights, 34 bytes a token, layer and unit of width at 16 bits; with gradient checkpointing what each layer reads, and
one layer's own. A pass without gradients holds one layer's.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

from nonmember.feasibility.meta import Shape
from nonmember.runtime.compute import MIB
from nonmember.runtime.expectations import EFFICIENCY, memory_of, speed

GIB = 2**30
ACTIVATIONS, CHECKPOINTED = 34, 2  # bytes a token, layer and unit of width, at 16 bits
ONE_LAYER = 8  # values a token and unit of width that live at once without gradients; of the inner layer two
OF_ADAMW, OF_SGD = 16, 8  # bytes a trained parameter; other optimizers are taken to hold as much as AdamW
CPU_WRITING = 0.15  # share of its arithmetic that a CPU reaches in writing token by token
USABLE = 0.92  # of a device's memory; the rest is the library's and lost in pieces


@dataclass(frozen=True)
class Machine:
    """What there is, by default an H100."""

    gib: float = 80  # memory of a device
    tflops: float = 989  # its arithmetic at 16 bits, at best
    utilisation: float = 0.3  # the share of it that training and reading reach
    writing: float = 0.03  # the share that writing token by token reaches
    device: str = "GPU"  # GPU, or CPU, over several of which no model is spread
    seconds_per_request: float = 2.0  # until a service has answered, assumed, as no service was measured

    @classmethod
    def here(cls) -> Machine:
        """This one, its arithmetic measured: a large product of matrices, at 16 bits on a GPU."""
        import torch

        kind, dtype = ("cuda", torch.bfloat16) if torch.cuda.is_available() else ("cpu", torch.float32)
        gib, tflops = memory_of(torch.device(kind)) / GIB, speed(kind, None, dtype) / 1e12
        if kind == "cpu":  # which loses less by writing token by token
            return cls(gib, tflops, EFFICIENCY, CPU_WRITING, device="CPU")
        return cls(gib, tflops, EFFICIENCY)

    @property
    def usable(self) -> float:
        return USABLE * self.gib * GIB


@dataclass(frozen=True)
class TrainerSettings:
    """Of the trainer, as far as memory hangs on them."""

    micro_batch_size: int
    max_batch_tokens: int
    logits_budget_mib: int
    block_mib: int
    cache_mib: int
    mixed: bool
    gradient_checkpointing: bool

    @property
    def bytes_of_activations(self) -> int:
        return 1 if self.mixed else 2  # as multiples of those at 16 bits


@dataclass(frozen=True)
class MemoryUse:
    """Bytes. shared: weights and states, which several devices can divide.   fixed: what each of them holds."""

    shared: float
    fixed: float

    @property
    def total(self) -> float:
        return self.shared + self.fixed

    def devices(self, machine: Machine) -> int | None:
        """How many it takes; None where no number would do."""
        if self.total <= machine.usable:
            return 1
        return math.ceil(self.shared / (machine.usable - self.fixed)) if self.fixed < machine.usable else None


def observing(shape: Shape, weights: float, settings: TrainerSettings) -> MemoryUse:
    values = settings.max_batch_tokens * (ONE_LAYER * shape.hidden + 2 * shape.intermediate)
    return MemoryUse(weights, values * 2 * settings.bytes_of_activations + settings.block_mib * MIB)


def writing(shape: Shape, weights: float, settings: TrainerSettings) -> MemoryUse:
    """A batch has as many tokens as the memory for keys and values holds, at 16 bits each."""
    kept = settings.cache_mib * MIB
    num_tokens = kept // (2 * shape.num_layers * shape.width_of_keys * 2)
    at = observing(shape, weights, replace(settings, max_batch_tokens=num_tokens))
    return replace(at, fixed=at.fixed + kept)


def training(
    shape: Shape, frozen: float, trained: int, optimizer: object, tokens: int, settings: TrainerSettings
) -> MemoryUse:
    """frozen: bytes of weights that are only read (base of an adapter, teacher).   trained: number of parameters.
    tokens: of a sequence."""
    wide = settings.micro_batch_size * tokens * shape.hidden * settings.bytes_of_activations
    layers = (
        CHECKPOINTED * shape.num_layers + ACTIVATIONS
        if settings.gradient_checkpointing
        else (ACTIVATIONS * shape.num_layers)
    )
    return MemoryUse(
        frozen + (OF_SGD if optimizer == "sgd" else OF_ADAMW) * trained,
        wide * layers + settings.logits_budget_mib * MIB,
    )


def smaller(settings: TrainerSettings) -> Iterator[tuple[TrainerSettings, tuple[str, ...]]]:
    """Settings of less memory and the same result, with the words for them; the given ones first."""
    yield settings, ()
    checkpointed = replace(settings, gradient_checkpointing=True)
    yield checkpointed, ("trainer.gradient_checkpointing=true",)
    fewer = replace(checkpointed, micro_batch_size=1, max_batch_tokens=min(2048, settings.max_batch_tokens))
    yield fewer, ("trainer.gradient_checkpointing=true", "trainer.micro_batch_size=1", "trainer.max_batch_tokens=2048")
