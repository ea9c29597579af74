"""Training recipes: all settings that determine the weights. Plain data; importing it loads nothing heavy."""

from __future__ import annotations

import importlib
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Annotated, Any, ClassVar, Literal

from nonmember.checks import Checked, Count, Number, require_count, require_kind, require_number, wrong

# Of tau: below, either side is one token and nothing else; above, both are uniform over the vocabulary.
TEMPERATURES = "[0.1, 100]"
MOST_SEQUENCES = 1_000_000  # a step: no study comes near it, and 1e9 is a slip
Rank = Annotated[int, Count(1, 1_000_000)]
ALL_LINEAR = "all-linear"


def _require_warmup(value: object, name: str) -> None:
    if isinstance(value, float):
        require_number(value, "[0, 1)", f"{name}, as a share of the steps,")
    else:
        require_count(value, 0, f"{name}, as a number of steps,", hint="0.05 would be a share of them.")


def _two_betas(values: Any, name: str) -> tuple[float, float]:
    if not isinstance(values, list | tuple) or len(values) != 2:
        raise ValueError(wrong(name, "a list of two numbers in [0, 1)", values, "The usual are [0.9, 0.999]."))
    for value in values:
        require_number(value, "[0, 1)", f"each of {name}")
    return values[0], values[1]


def _names(values: Any, name: str, *, or_null: bool = True) -> tuple[str, ...]:
    """Names of modules in one order."""
    if not isinstance(values, list | tuple) or not values or not all(isinstance(item, str) and item for item in values):
        raise ValueError(wrong(name, "a list of names or null", values, "null stands for the usual modules."))
    return tuple(sorted(values))


def _target_modules(value: Any, name: str, *, or_null: bool = True) -> str | tuple[str, ...]:
    return ALL_LINEAR if value == ALL_LINEAR else _names(value, name)


OPTIMIZERS, SCHEDULES = ("adamw", "sgd"), ("linear", "cosine", "constant")
NUM_STEPS = "num_steps"  # as the value of an argument: the number of steps of the training


@dataclass(frozen=True)
class Chosen:
    """An optimizer or a schedule by its class, as a recipe and a key hold it."""

    target: str  # name of the class
    arguments: tuple[tuple[str, Any], ...]  # (name, plain value), by name; `num_steps` stands for the number of steps

    def make(self, first: Any, *, num_steps: int, **further: Any) -> Any:
        """first: the parameters of an optimizer, or the optimizer of a schedule."""
        module, _, name = self.target.rpartition(".")
        given = {key: num_steps if value == NUM_STEPS else value for key, value in self.arguments}
        return getattr(importlib.import_module(module), name)(first, **given, **further)


def _chosen(value: Any, name: str, words: tuple[str, ...]) -> Chosen | None:
    if value in words or isinstance(value, Chosen):
        return None
    if not isinstance(value, partial):
        hint = f"A class of your choice: {name}={{_target_: torch.optim...,_partial_: true,...}}."
        raise ValueError(wrong(name, f"one of {', '.join(words)}", value, hint))
    kind, arguments = value.func, {key: _plain(item, f"{key} of {name}") for key, item in value.keywords.items()}
    module, called = kind.__module__, kind.__qualname__
    if called == "LBFGS":  # reads the last micro-batch of a step anew, as if it were the whole
        raise ValueError(f"{name} must be one that takes a step for each gradient; got LBFGS. Choose another.")
    if module.startswith("torch.optim.") and module != "torch.optim.lr_scheduler":
        module = "torch.optim"  # where all versions of torch have it
    return Chosen(f"{module}.{called}", tuple(sorted(arguments.items())))


def _plain(value: Any, name: str) -> Any:
    if isinstance(value, list | tuple):
        return tuple(_plain(item, name) for item in value)
    if value is not None and not isinstance(value, bool | int | float | str):
        raise ValueError(wrong(name, "a number, a text, true, false, null or a list of these", value))
    return value


class RuinedWeights(ValueError):
    """Training ended with weights that are no finite numbers, or with a loss above that of its start."""


@dataclass(frozen=True)
class Optimization(Checked):
    """AdamW, SGD or an optimizer by its class, with linear warm-up and decay or a schedule by its class; gradients are
    those of the mean over all tokens of a step."""

    learning_rate: Annotated[float, Number("(0, inf)", "The paper's is 5e-5.")]
    # Sequences per optimizer step, however they are divided over micro-batches and devices.
    batch_size: Annotated[int, Count(1, MOST_SEQUENCES)]
    epochs: Annotated[int, Count(1)]
    warmup: Annotated[float | int, _require_warmup]  # share of the steps, or a whole number of steps
    # A name, or a partial that is given the optimizer and steps after each step (warmup and final_fraction then mean
    # nothing). The argument `num_steps` of a partial is the number of steps of the training.
    schedule: Annotated[Literal["linear", "cosine", "constant"] | Chosen, partial(_chosen, words=SCHEDULES)]
    # Learning rate at the end as a fraction of the peak.
    final_fraction: Annotated[float, Number("[0, 1]", "It is a share of learning_rate; 0.0 ends at nothing.")]
    betas: Annotated[tuple[float, float], _two_betas]
    epsilon: Annotated[float, Number("(0, 1]", "The usual is 1e-8.")]
    weight_decay: Annotated[float, Number("[0, 1]")]
    # Bound on the global norm, or null.
    gradient_clip: Annotated[float | None, Number("(0, inf)", "null leaves gradients as they are.")]
    # adamw, sgd (without momentum; betas and epsilon then mean nothing), or a partial of a class of torch.optim or
    # one's own, which is given the parameters, `learning_rate` as lr and the partial's own arguments (betas, epsilon
    # and weight_decay then mean nothing).
    optimizer: Annotated[Literal["adamw", "sgd"] | Chosen, partial(_chosen, words=OPTIMIZERS)] = "adamw"


class _Recipe(Checked):
    work: ClassVar[str] = "training"  # its name in lists of work
    adapts: ClassVar[bool] = False  # whether only weights beside those of the base are trained


@dataclass(frozen=True)
class Pretraining(_Recipe):
    """Next-token prediction on documents joined by the end-of-text token and cut into equal sequences.

    Serves pretraining from scratch and continued pretraining alike: the base tells which.
    """

    optimization: Annotated[Optimization, _require_optimization]
    sequence_length: Annotated[int, Count(2)]

    max_tokens: ClassVar[int | None] = None  # documents are not cut


@dataclass(frozen=True)
class Distillation(_Recipe):
    """PRISM's distilled reference: (1 - lambda) CE + lambda tau^2 KL(teacher || student), one document a sequence."""

    optimization: Annotated[Optimization, _require_optimization]
    lambda_: Annotated[float, Number("[0, 1]", "The paper's is 0.7.")]  # weight of the KL term
    # Temperature of both sides of the KL; CE is taken at temperature 1.
    tau: Annotated[float, Number(TEMPERATURES, "The paper's is 2.0; its ablation goes from 0.5 to 6.")]
    max_tokens: Annotated[int, Count(2)]  # documents are cut to so many ids, on the right
    # Optimizer steps, going through the documents as often as they take; None: the epochs of `optimization`.
    num_steps: Annotated[int | None, Count(1)] = None

    work: ClassVar[str] = "distilling"

    def num_epochs(self, num_documents: int) -> int:
        """Passes through the documents, the last of which may be a part."""
        if self.num_steps is None:
            return self.optimization.epochs
        return math.ceil(self.num_steps * self.optimization.batch_size / num_documents)


@dataclass(frozen=True)
class _Adapter(Checked):
    # Last parts of the names of the modules to adapt; null: the usual ones of the model type; all-linear: every linear
    # layer but the output matrix.
    target_modules: Annotated[Sequence[str] | None, _target_modules]

    fields_called = "{field} of the adapter"


@dataclass(frozen=True)
class Lora(_Adapter):
    """W + alpha / rank B A, B and A of `rank`; dropout on what A reads; no bias (Hu et al., arXiv 2106.09685)."""

    rank: Rank
    alpha: Annotated[float, Number("[1, inf)")]
    dropout: Annotated[float, Number("[0, 1)")]
    kind: str = field(default="lora", init=False)


@dataclass(frozen=True)
class AdaLora(_Adapter):
    """LoRA as P diag(E) Q, whose ranks begin at `initial_rank` and are cut to `rank` on average, the least important
    first (Zhang et al., arXiv 2303.10512)."""

    initial_rank: Rank
    rank: Rank
    alpha: Annotated[float, Number("[1, inf)")]
    dropout: Annotated[float, Number("[0, 1)")]
    # before, after: shares of the steps at full and at final rank
    before: Annotated[float, Number("[0, 1)")]
    after: Annotated[float, Number("[0, 1)")]
    interval: Rank  # steps from one cut to the next
    beta: Annotated[float, Number("(0, 1)")]  # memory of the importance and of its uncertainty
    orthogonality: Annotated[float, Number("[0, inf)")]  # weight of the loss that keeps P and Q so
    kind: str = field(default="adalora", init=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.initial_rank <= self.rank:
            raise ValueError(wrong("initial_rank", f"larger than rank ({self.rank})", self.initial_rank))
        if self.before + self.after >= 1:
            raise ValueError(
                f"before and after must be shares of the steps that leave some in between; got {self.before} and "
                f"{self.after}."
            )


@dataclass(frozen=True)
class Ia3(_Adapter):
    """Learned factors of keys, values and inner activations (Liu et al., arXiv 2205.05638)."""

    # Those of target_modules whose input is scaled and not their output; null where these are null.
    feedforward_modules: Annotated[Sequence[str] | None, _names]
    kind: str = field(default="ia3", init=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.target_modules == ALL_LINEAR:
            raise ValueError("target_modules of IA3 must be names or null; got all-linear, which is LoRA's.")
        if (self.target_modules is None) != (self.feedforward_modules is None):
            raise ValueError("target_modules and feedforward_modules of IA3 must be given both or neither; got one.")
        if others := set(self.feedforward_modules or ()) - set(self.target_modules or ()):
            raise ValueError(
                f"feedforward_modules must be among the target_modules; got {', '.join(sorted(others))} beside them."
            )


@dataclass(frozen=True)
class AdapterTuning(_Recipe):
    """An adapter is trained by next-token prediction and the model's own weights are left alone; one document is one
    sequence, nothing is packed and no end-of-text token added."""

    optimization: Annotated[Optimization, _require_optimization]
    adapter: Annotated[Lora | AdaLora | Ia3, _require_adapter]
    max_tokens: Annotated[int, Count(2)]  # documents are cut to so many ids, on the right
    drop_last: bool  # whether each epoch leaves out the documents that do not fill a batch

    work: ClassVar[str] = "tuning"
    adapts: ClassVar[bool] = True


TrainingRecipe = Pretraining | Distillation | AdapterTuning


def require_distillation(value: object, name: str = "distillation") -> None:
    """What a method's `distillation` must be."""
    require_kind(
        value, Distillation, name, "a distillation", hint="Name one: +training@method.distillation=distillation."
    )


def _require_optimization(value: object, name: str) -> None:
    require_kind(value, Optimization, name, "an Optimization", hint="Is its `_target_` missing?")


def _require_adapter(value: object, name: str) -> None:
    require_kind(value, Lora | AdaLora | Ia3, name, "an adapter (Lora, AdaLora or Ia3)")
