"""Likelihood behind unread text against that of the text alone: ReCaLL (Xie et al., 2024)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nonmember.checks import require_count
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
class Recall(Score):
    """NLL(text | prefix) / NLL(text), the prefix being other texts that the model has certainly not read.

    What a model has read loses more by unread text in front of it.

    Attributes:
        num_shots: Texts in the prefix, or as many of these as the model can read before the longest document.

    Raises:
        ValueError: For fewer than 1.

    Source: Xie et al., 2024, eq. 2.
    """

    num_shots: int

    def __post_init__(self) -> None:
        require_count(self.num_shots, 1, "num_shots", hint="The paper tries 1 to 12.")

    @property
    def name(self) -> str:
        return f"recall({self.num_shots})"

    @property
    def shots(self) -> int:
        return self.num_shots

    def __call__(self, inputs: ScoreInputs) -> DocumentScores:
        tokens, behind = inputs.tokens, needed(inputs.behind_prefix, "the texts observed behind a prefix", self)
        nll_behind, nll_alone = in_order_of(tokens.doc_ids, behind, nll(behind)), nll(tokens)
        undefined = {f"behind the prefix: {NO_TOKENS}": np.isnan(nll_behind), SMALL_NLL: nll_alone <= SMALLEST_NLL}
        return scores_with_reasons(tokens, ratio(nll_behind, nll_alone), undefined)
