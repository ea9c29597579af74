"""Norm of the gradient of the loss (Wang et al., 2024; the library mimir)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from nonmember.scores.base import DocumentScores, Score, ScoreInputs, needed, scores_with_reasons

Norm = Literal["l1", "l2", "max"]


@dataclass(frozen=True)
class GradNorm(Score):
    """Minus the mean over the model's parameter tensors of the norm of the gradient of the text's loss.

    What a model was trained on pulls its weights less. Every tensor counts the same, whatever its size, as in mimir; a
    matrix that is tied to another counts once.

    Attributes:
        norm: "l1", "l2" or "max" (mimir's default).

    Raises:
        ValueError: For another norm.

    Source: Wang et al., 2024; mimir has the opposite sign.
    """

    norm: Norm = "max"

    needs_gradients: ClassVar[bool] = True

    @property
    def name(self) -> str:
        return f"grad_norm({self.norm})"

    def __call__(self, inputs: ScoreInputs) -> DocumentScores:
        norms = needed(inputs.gradients, "the gradients of the loss observed", self)
        return scores_with_reasons(inputs.tokens, -norms.in_order_of(inputs.tokens.doc_ids, self.norm))
