"""Likelihood against compressibility (Carlini et al., 2021)."""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from nonmember.scores.base import DocumentScores, Score, ScoreInputs, needed, nll, scores_with_reasons


def zlib_bytes(text: str) -> int:
    """Length of the whole zlib stream of the UTF-8 text at the default level."""
    return len(zlib.compress(text.encode("utf-8", "surrogatepass")))


@dataclass(frozen=True)
class Zlib(Score):
    """-NLL / compressed bytes.

    The papers write perplexity over zlib; all their code divides log-perplexity, and so does this. NLL is a
    mean while the bytes grow with the text, so the score moves with length: compare texts of equal length.

    Source: Carlini et al., 2021.
    """

    needs_texts: ClassVar[bool] = True

    @property
    def name(self) -> str:
        return "zlib"

    def __call__(self, inputs: ScoreInputs) -> DocumentScores:
        texts = needed(inputs.texts, "the texts", self)
        if len(texts) != len(inputs.tokens):
            raise ValueError(
                f"The score zlib needs one text per document, and got {len(texts)} for {len(inputs.tokens)}. "
                "Pass the texts of the observed corpus, in the order of its ids."
            )
        num_bytes = np.array([zlib_bytes(text) for text in texts], dtype=np.float64)
        return scores_with_reasons(inputs.tokens, -nll(inputs.tokens) / num_bytes)
