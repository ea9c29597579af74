"""Training recipes: all settings that determine the weights. Plain data; importing it loads nothing heavy."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

from nonmember.checks import require_choice, require_count, require_flag, require_kind, require_number, wrong

# Of tau: below, either side is one token and nothing else; above, both are uniform over the vocabulary.
TEMPERATURES = "[0.1, 100]"
MOST_SEQUENCES = 1_000_000  # a step: no study comes near it, and 1e9 is a slip
LARGEST_RANK = 1_000_000
ALL_LINEAR = "all-linear"


class RuinedWeights(ValueError):
    """Training ended with weights that are no finite numbers."""


@dataclass(frozen=True)
class Optimization:
    """AdamW (or SGD) with linear warm-up; gradients are those of the mean over all tokens of a step.

    batch_size: sequences per optimizer step, however they are divided over micro-batches and devices.
    warmup: share of the steps, or a whole number of steps.   final_fraction: learning rate at the end as a fraction of
        the peak.   gradient_clip: bound on the global norm, or null.
    optimizer: adamw, or sgd (without momentum; betas and epsilon then mean nothing).
    """

    learning_rate: float
    batch_size: int
    epochs: int
    warmup: float | int
    schedule: Literal["linear", "cosine", "constant"]
    final_fraction: float
    betas: tuple[float, float]
    epsilon: float
    weight_decay: float
    gradient_clip: float | None
    optimizer: Literal["adamw", "sgd"] = "adamw"

    def __post_init__(self) -> None:
        require_number(self.learning_rate, "(0, inf)", "learning_rate", hint="The paper's is 5e-5.")
        require_count(self.batch_size, 1, "batch_size", at_most=MOST_SEQUENCES)
        require_count(self.epochs, 1, "epochs")
        self._check_warmup()
        require_choice(self.schedule, ("linear", "cosine", "constant"), "schedule")
        require_number(
            self.final_fraction, "[0, 1]", "final_fraction", hint="It is a share of learning_rate; 0.0 ends at nothing."
        )
        if not isinstance(self.betas, list | tuple) or len(self.betas) != 2:
            raise ValueError(
                wrong("betas", "a list of two numbers in [0, 1)", self.betas, "The usual are [0.9, 0.999].")
            )
        for beta in self.betas:
            require_number(beta, "[0, 1)", "each of betas")
        object.__setattr__(self, "betas", tuple(self.betas))
        require_number(self.epsilon, "(0, 1]", "epsilon", hint="The usual is 1e-8.")
        require_number(self.weight_decay, "[0, 1]", "weight_decay")
        require_number(
            self.gradient_clip, "(0, inf)", "gradient_clip", or_null=True, hint="null leaves gradients as they are."
        )
        require_choice(self.optimizer, ("adamw", "sgd"), "optimizer")

    def _check_warmup(self) -> None:
        if isinstance(self.warmup, float):
            require_number(self.warmup, "[0, 1)", "warmup, as a share of the steps,")
        else:
            require_count(self.warmup, 0, "warmup, as a number of steps,", hint="0.05 would be a share of them.")


class _Recipe:
    """work: its name in lists of work.   adapts: whether only weights beside those of the base are trained.   unlearns:
    whether what is read is to be forgotten."""

    work: ClassVar[str] = "training"
    adapts: ClassVar[bool] = False
    unlearns: ClassVar[bool] = False


@dataclass(frozen=True)
class Pretraining(_Recipe):
    """Next-token prediction on documents joined by the end-of-text token and cut into equal sequences.

    Serves pretraining from scratch and continued pretraining alike: the base tells which.

    shuffle_buffer: sequences of a streamed corpus that are shuffled at a time, after its chunks were put in an order
    drawn over all of it. A corpus in memory is shuffled as a whole.
    """

    optimization: Optimization
    sequence_length: int
    shuffle_buffer: int = 10_000

    max_tokens: ClassVar[int | None] = None  # documents are not cut

    def __post_init__(self) -> None:
        _require_optimization(self.optimization)
        require_count(self.sequence_length, 2, "sequence_length")
        require_count(self.shuffle_buffer, 1, "shuffle_buffer", at_most=MOST_SEQUENCES)


@dataclass(frozen=True)
class GradientAscent(Pretraining):
    """As `Pretraining`, but each step raises the loss where that lowers it: what was read is to be unlearned (Jang et
    al., arXiv 2210.01504)."""

    unlearns: ClassVar[bool] = True


@dataclass(frozen=True)
class Distillation(_Recipe):
    """PRISM's distilled reference: (1 - lambda) CE + lambda tau^2 KL(teacher || student), one document a sequence.

    lambda_: weight of the KL term.   tau: temperature of both sides of the KL; CE is taken at temperature 1.
    max_tokens: documents are cut to so many ids, on the right.
    num_steps: optimizer steps, going through the documents as often as they take; None: the epochs of `optimization`.
    """

    optimization: Optimization
    lambda_: float
    tau: float
    max_tokens: int
    num_steps: int | None = None

    work: ClassVar[str] = "distilling"

    def __post_init__(self) -> None:
        _require_optimization(self.optimization)
        require_number(self.lambda_, "[0, 1]", "lambda_", hint="The paper's is 0.7.")
        require_number(self.tau, TEMPERATURES, "tau", hint="The paper's is 2.0; its ablation goes from 0.5 to 6.")
        require_count(self.max_tokens, 2, "max_tokens")
        require_count(self.num_steps, 1, "num_steps", or_null=True)

    def num_epochs(self, num_documents: int) -> int:
        """Passes through the documents, the last of which may be a part."""
        if self.num_steps is None:
            return self.optimization.epochs
        return math.ceil(self.num_steps * self.optimization.batch_size / num_documents)


@dataclass(frozen=True)
class _Adapter:
    """target_modules: last parts of the names of the modules to adapt; null: the usual ones of the model type;
    all-linear: every linear layer but the output matrix."""

    target_modules: Sequence[str] | None

    def __post_init__(self) -> None:
        if self.target_modules != ALL_LINEAR:
            object.__setattr__(self, "target_modules", _names(self.target_modules, "target_modules"))
        for name in ("initial_rank", "rank", "interval"):
            require_count(getattr(self, name, 1), 1, f"{name} of the adapter", at_most=LARGEST_RANK)
        require_number(getattr(self, "alpha", 1), "[1, inf)", "alpha of the adapter")
        require_number(getattr(self, "dropout", 0), "[0, 1)", "dropout of the adapter")


@dataclass(frozen=True)
class Lora(_Adapter):
    """W + alpha / rank B A, B and A of `rank`; dropout on what A reads; no bias (Hu et al., arXiv 2106.09685)."""

    rank: int
    alpha: float
    dropout: float
    kind: str = field(default="lora", init=False)


@dataclass(frozen=True)
class AdaLora(_Adapter):
    """LoRA as P diag(E) Q, whose ranks begin at `initial_rank` and are cut to `rank` on average, the least important
    first (Zhang et al., arXiv 2303.10512).

    before, after: shares of the steps at full and at final rank.   interval: steps from one cut to the next.
    beta: memory of the importance and of its uncertainty.   orthogonality: weight of the loss that keeps P and Q so.
    """

    initial_rank: int
    rank: int
    alpha: float
    dropout: float
    before: float
    after: float
    interval: int
    beta: float
    orthogonality: float
    kind: str = field(default="adalora", init=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.initial_rank <= self.rank:
            raise ValueError(wrong("initial_rank", f"larger than rank ({self.rank})", self.initial_rank))
        for name in ("before", "after"):
            require_number(getattr(self, name), "[0, 1)", name)
        if self.before + self.after >= 1:
            raise ValueError(
                f"before and after must be shares of the steps that leave some in between; got {self.before} and "
                f"{self.after}."
            )
        require_number(self.beta, "(0, 1)", "beta")
        require_number(self.orthogonality, "[0, inf)", "orthogonality")


@dataclass(frozen=True)
class Ia3(_Adapter):
    """Learned factors of keys, values and inner activations (Liu et al., arXiv 2205.05638).

    feedforward_modules: those of target_modules whose input is scaled and not their output; null where these are null.
    """

    feedforward_modules: Sequence[str] | None
    kind: str = field(default="ia3", init=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.target_modules == ALL_LINEAR:
            raise ValueError("target_modules of IA3 must be names or null; got all-linear, which is LoRA's.")
        if (self.target_modules is None) != (self.feedforward_modules is None):
            raise ValueError("target_modules and feedforward_modules of IA3 must be given both or neither; got one.")
        object.__setattr__(self, "feedforward_modules", _names(self.feedforward_modules, "feedforward_modules"))
        if others := set(self.feedforward_modules or ()) - set(self.target_modules or ()):
            raise ValueError(
                f"feedforward_modules must be among the target_modules; got {', '.join(sorted(others))} beside them."
            )


@dataclass(frozen=True)
class AdapterTuning(_Recipe):
    """An adapter is trained by next-token prediction and the model's own weights are left alone; one document is one
    sequence, nothing is packed and no end-of-text token added.

    max_tokens: documents are cut to so many ids, on the right.
    drop_last: whether each epoch leaves out the documents that do not fill a batch.
    """

    optimization: Optimization
    adapter: Lora | AdaLora | Ia3
    max_tokens: int
    drop_last: bool

    work: ClassVar[str] = "tuning"
    adapts: ClassVar[bool] = True

    def __post_init__(self) -> None:
        _require_optimization(self.optimization)
        require_kind(self.adapter, Lora | AdaLora | Ia3, "adapter", "an adapter (Lora, AdaLora or Ia3)")
        require_count(self.max_tokens, 2, "max_tokens")
        require_flag(self.drop_last, "drop_last")


TrainingRecipe = Pretraining | Distillation | AdapterTuning


def require_distillation(value: object) -> None:
    """What a method's `distillation` must be."""
    require_kind(
        value,
        Distillation,
        "distillation",
        "a distillation",
        hint="Name one: +training@method.distillation=distillation.",
    )


def _require_optimization(value: object) -> None:
    require_kind(value, Optimization, "optimization", "an Optimization", hint="Is its `_target_` missing?")


def _names(value: Any, name: str) -> tuple[str, ...] | None:
    """Names of modules in one order; None for the usual ones."""
    if value is None:
        return None
    if not isinstance(value, list | tuple) or not value or not all(isinstance(item, str) and item for item in value):
        raise ValueError(wrong(name, "a list of names or null", value, "null stands for the usual modules."))
    return tuple(sorted(value))
