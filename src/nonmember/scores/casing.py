"""Likelihood against that of the lowercased text (Carlini et al., 2021)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nonmember.scores.base import (
    NO_TOKENS,
    SMALL_NLL,
    SMALLEST_NLL,
    DocumentScores,
    Score,
    ScoreInputs,
    in_order_of,
    needed,
    nll,
    ratio,
    scores_with_reasons,
)


@dataclass(frozen=True)
class Lowercase(Score):
    """NLL(lowercased text) / NLL(text): a memorised text suffers from a change of case.

    The Min-K% program takes minus the inverse, which ranks the same while both are positive.

    Source: Carlini et al., 2021.
    """

    @property
    def name(self) -> str:
        return "lowercase"

    @property
    def views(self) -> tuple[str, ...]:
        return ("original", "lowercase")

    def __call__(self, inputs: ScoreInputs) -> DocumentScores:
        tokens, lowercase = inputs.tokens, needed(inputs.other_view, "the lowercased texts observed", self)
        nll_target = nll(tokens)
        nll_lowercase = in_order_of(tokens.doc_ids, lowercase, nll(lowercase))
        undefined = {f"lowercased: {NO_TOKENS}": np.isnan(nll_lowercase), SMALL_NLL: nll_target <= SMALLEST_NLL}
        return scores_with_reasons(tokens, ratio(nll_lowercase, nll_target), undefined)
