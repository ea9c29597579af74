"""What a training run is, as far as it determines the weights. Plain data: importing it loads nothing heavy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Optimization:
    """AdamW with linear warm-up; gradients are those of the mean over all tokens of a step.

    batch_size: sequences per optimizer step, however they are divided over micro-batches and devices.
    warmup: share of the steps.   final_fraction: learning rate at the end as a fraction of the peak.
    gradient_clip: bound on the global norm, or null.
    """

    learning_rate: float
    batch_size: int
    epochs: int
    warmup: float
    schedule: Literal["linear", "cosine", "constant"]
    final_fraction: float
    betas: tuple[float, float]
    epsilon: float
    weight_decay: float
    gradient_clip: float | None

    def __post_init__(self) -> None:
        object.__setattr__(self, "betas", tuple(self.betas))
        if self.schedule not in ("linear", "cosine", "constant"):
            raise ValueError(f"schedule must be linear, cosine or constant, not {self.schedule!r}.")
        if not 0 <= self.warmup < 1:
            raise ValueError(f"warmup is a share of the steps in [0, 1), not {self.warmup}.")
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


TrainingRecipe = Pretraining | Distillation
