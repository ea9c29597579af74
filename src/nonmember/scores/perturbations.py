"""Likelihood against that of a perturbed text (LLM-DI's perturbation features)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from nonmember.checks import require_choice
from nonmember.scores.base import (
    NO_TOKENS,
    DocumentScores,
    Score,
    ScoreInputs,
    in_order_of,
    needed,
    nll,
    scores_with_reasons,
)

Perturbation = Literal[
    "butter_fingers", "random_deletion", "change_char_case", "whitespace_perturbation", "underscore_trick"
]
Quantity = Literal["ppl_ratio", "ppl_difference", "loss_ratio", "loss_difference"]


@dataclass(frozen=True)
class Perturbed(Score):
    """Text against its perturbed version, in four ways; high where the text itself is the more likely one.

    Attributes:
        perturbation: "butter_fingers", "random_deletion", "change_char_case", "whitespace_perturbation" or
            "underscore_trick".
        quantity: With x the text and x' its perturbed version, "ppl_ratio" is -ppl(x)/ppl(x'), "ppl_difference"
            -(ppl(x) - ppl(x')), "loss_ratio" loss(x')/loss(x), "loss_difference" loss(x') - loss(x).

    Raises:
        ValueError: For others.

    Source: LLM-DI (Maini et al., 2024). The first two quantities are minus its features, which makes no difference to a
    linear model.
    """

    perturbation: Perturbation
    quantity: Quantity

    def __post_init__(self) -> None:
        require_choice(self.perturbation, get_args(Perturbation), "perturbation")
        require_choice(self.quantity, get_args(Quantity), "quantity")

    @property
    def name(self) -> str:
        return f"{self.perturbation}_{self.quantity}"

    @property
    def views(self) -> tuple[str, ...]:
        return ("original", self.perturbation)

    def __call__(self, inputs: ScoreInputs) -> DocumentScores:
        tokens, other = inputs.tokens, needed(inputs.other_view, "the perturbed texts observed", self)
        loss, loss_perturbed = nll(tokens), in_order_of(tokens.doc_ids, other, nll(other))
        match self.quantity:
            case "ppl_ratio":
                values = -np.exp(loss - loss_perturbed)
            case "ppl_difference":
                values = np.exp(loss_perturbed) - np.exp(loss)
            case "loss_ratio":
                values = np.divide(loss_perturbed, loss, out=np.full(len(loss), np.nan), where=loss > 0)
            case "loss_difference":
                values = loss_perturbed - loss
        undefined = {f"perturbed: {NO_TOKENS}": np.isnan(loss_perturbed), "a loss of 0 to divide by": loss == 0}
        return scores_with_reasons(tokens, values, undefined)
