"""Likelihood against that of a reference model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from nonmember.records import FloatArray, TokenTable
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


def _nll_reference(tokens: TokenTable, reference: TokenTable) -> tuple[FloatArray, dict[str, npt.NDArray[np.bool_]]]:
    """NLL under the reference in the order of `tokens`, and where its tokenizer leaves no scored token."""
    values = in_order_of(tokens.doc_ids, reference, nll(reference))
    return values, {f"reference: {NO_TOKENS}": np.isnan(values)}


@dataclass(frozen=True)
class ReferenceDifference(Score):
    """mean log p(target) - mean log p(reference): "calibration" by a smaller model.

    Source: difficulty calibration, Watson et al., 2022.
    """

    needs_reference: ClassVar[bool] = True

    @property
    def name(self) -> str:
        return "ref_diff"

    def __call__(self, inputs: ScoreInputs) -> DocumentScores:
        tokens, reference = inputs.tokens, needed(inputs.reference, "a reference model's observations", self)
        nll_reference, undefined = _nll_reference(tokens, reference)
        return scores_with_reasons(tokens, nll_reference - nll(tokens), undefined)


@dataclass(frozen=True)
class ReferenceRatio(Score):
    """NLL(reference) / NLL(target).

    Source: Carlini et al., 2021; "Small Ref" of MC-PDD, table VII. The program of DC-PDD inverts it.
    """

    needs_reference: ClassVar[bool] = True

    @property
    def name(self) -> str:
        return "ref_ratio"

    def __call__(self, inputs: ScoreInputs) -> DocumentScores:
        tokens, reference = inputs.tokens, needed(inputs.reference, "a reference model's observations", self)
        nll_target = nll(tokens)
        nll_reference, undefined = _nll_reference(tokens, reference)
        undefined[SMALL_NLL] = nll_target <= SMALLEST_NLL
        return scores_with_reasons(tokens, ratio(nll_reference, nll_target), undefined)
