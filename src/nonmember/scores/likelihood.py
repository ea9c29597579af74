"""Loss, the plainest score (Yeom et al., 2018)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nonmember.scores.base import DocumentScores, Score, ScoreInputs, nll, scores_with_reasons


@dataclass(frozen=True)
class Loss(Score):
    """Mean log-probability per token, -NLL. Perplexity exp(NLL) ranks documents the same way, reversed."""

    @property
    def name(self) -> str:
        return "loss"

    def __call__(self, inputs: ScoreInputs) -> DocumentScores:
        return scores_with_reasons(inputs.tokens, -nll(inputs.tokens))


@dataclass(frozen=True)
class Perplexity(Score):
    """-exp(NLL): ranks as the loss does, but a linear model of features sees long tails (LLM-DI)."""

    @property
    def name(self) -> str:
        return "perplexity"

    def __call__(self, inputs: ScoreInputs) -> DocumentScores:
        return scores_with_reasons(inputs.tokens, -np.exp(nll(inputs.tokens)))
