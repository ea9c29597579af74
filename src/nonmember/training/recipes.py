"""What a training run is, as far as it determines the weights. Plain data: importing it loads nothing heavy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal


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
        object.__setattr__(self, "betas", tuple(self.betas))
        if self.schedule not in ("linear", "cosine", "constant"):
            raise ValueError(f"schedule must be linear, cosine or constant, not {self.schedule!r}.")
        if self.optimizer not in ("adamw", "sgd"):
            raise ValueError(f"optimizer must be adamw or sgd, not {self.optimizer!r}.")
        if isinstance(self.warmup, bool) or self.warmup < 0 or (isinstance(self.warmup, float) and self.warmup >= 1):
            raise ValueError(
                f"warmup is a share of the steps in [0, 1), or a whole number of steps, not {self.warmup}."
            )
        for name in ("batch_size", "epochs"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1, not {getattr(self, name)}.")


@dataclass(frozen=True)
class Pretraining:
    """Next-token prediction on documents joined by the end-of-text token and cut into equal sequences.

    Serves pretraining from scratch and continued pretraining alike: the base tells which.
    """

    optimization: Optimization
    sequence_length: int


@dataclass(frozen=True)
class Distillation:
    """PRISM's distilled reference: (1 - lambda) CE + lambda tau^2 KL(teacher || student), one document a sequence.

    lambda_: weight of the KL term.   tau: temperature of both sides of the KL; CE is taken at temperature 1.
    max_tokens: documents are cut to so many ids, on the right.
    """

    optimization: Optimization
    lambda_: float
    tau: float
    max_tokens: int

    def __post_init__(self) -> None:
        if not 0 <= self.lambda_ <= 1:
            raise ValueError(f"lambda must lie in [0, 1], not {self.lambda_}.")
        if self.tau <= 0:
            raise ValueError(f"tau must be positive, not {self.tau}.")


@dataclass(frozen=True)
class _Adapter:
    """target_modules: last parts of the names of the modules to adapt; null: those peft knows for the model type."""

    target_modules: Sequence[str] | None

    def __post_init__(self) -> None:
        if isinstance(self.target_modules, str):
            raise ValueError(f"target_modules is a list of names, or null, not {self.target_modules!r}.")
        if self.target_modules is not None:
            object.__setattr__(self, "target_modules", tuple(sorted(self.target_modules)))
            if not self.target_modules:
                raise ValueError("target_modules names no module; name some, or give null for the usual ones.")
        for name in ("initial_rank", "rank", "alpha", "interval"):
            if not getattr(self, name, 1) >= 1:
                raise ValueError(f"{name} of the adapter must be at least 1, not {getattr(self, name)}.")
        if not 0 <= getattr(self, "dropout", 0) < 1:
            raise ValueError(f"dropout of the adapter must lie in [0, 1), not {getattr(self, 'dropout', 0)}.")


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
            raise ValueError(f"initial_rank ({self.initial_rank}) must be larger than rank ({self.rank}).")
        if min(self.before, self.after) < 0 or self.before + self.after >= 1:
            raise ValueError(
                f"before ({self.before}) and after ({self.after}) are shares of the steps that leave some in between."
            )
        if not 0 < self.beta < 1 or self.orthogonality < 0:
            raise ValueError(f"beta ({self.beta}) must lie in (0, 1), orthogonality ({self.orthogonality}) be >= 0.")


@dataclass(frozen=True)
class Ia3(_Adapter):
    """Learned factors of keys, values and inner activations (Liu et al., arXiv 2205.05638).

    feedforward_modules: those of target_modules whose input is scaled and not their output; null where these are null.
    """

    feedforward_modules: Sequence[str] | None
    kind: str = field(default="ia3", init=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        if (self.target_modules is None) != (self.feedforward_modules is None):
            raise ValueError("target_modules and feedforward_modules of IA3 are given both or neither.")
        if self.feedforward_modules is not None:
            object.__setattr__(self, "feedforward_modules", tuple(sorted(self.feedforward_modules)))
            if others := set(self.feedforward_modules) - set(self.target_modules or ()):
                raise ValueError(f"feedforward_modules {', '.join(sorted(others))} are none of the target_modules.")


@dataclass(frozen=True)
class AdapterTuning:
    """An adapter is trained by next-token prediction and the model's own weights are left alone; one document is one
    sequence, nothing is packed and no end-of-text token added.

    max_tokens: documents are cut to so many ids, on the right.
    drop_last: whether each epoch leaves out the documents that do not fill a batch.
    """

    optimization: Optimization
    adapter: Lora | AdaLora | Ia3
    max_tokens: int
    drop_last: bool

    def __post_init__(self) -> None:
        if self.max_tokens < 2:
            raise ValueError(f"max_tokens must be at least 2, not {self.max_tokens}.")


TrainingRecipe = Pretraining | Distillation | AdapterTuning
