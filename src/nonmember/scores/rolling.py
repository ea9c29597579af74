"""Likelihood of whole texts, as evaluation harnesses report it: summed, per word and per byte."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from nonmember.records.requirements import Access
from nonmember.scores.base import DocumentScores, Score, ScoreInputs, needed, nll, scores_with_reasons

RollingQuantity = Literal["loglikelihood_rolling", "word_perplexity", "byte_perplexity", "bits_per_byte"]

_TOO_LARGE = "the perplexity is too large for a number"


@dataclass(frozen=True)
class Rolling(Score):
    """Log-likelihood of the whole text behind a prefix token, read in windows of the model's length.

    It is lm-eval's `loglikelihood_rolling`. The perplexities and bits per byte are minus lm-eval's, so that higher
    stays the likelier.

    Attributes:
        quantity: "loglikelihood_rolling" is the sum of log p, nats; "word_perplexity" and "byte_perplexity" are
            -exp(-sum / number), with words as `re.split(r"\\s+", text)` counts them and bytes of UTF-8;
            "bits_per_byte" is sum / bytes / log 2.

    Raises:
        ValueError: For others.

    Source: lm-evaluation-harness 0.4.13 (Gao et al., 2024), whose numbers they are, of each document by itself.
    """

    quantity: RollingQuantity

    needs_texts: ClassVar[bool] = True
    reads_whole: ClassVar[bool] = True

    @property
    def name(self) -> str:
        return self.quantity

    @property
    def views(self) -> tuple[str, ...]:
        return ("whole",)

    @property
    def _access(self) -> Access:
        return Access.WEIGHTS  # its tokenizer, for windows

    def __call__(self, inputs: ScoreInputs) -> DocumentScores:
        tokens, texts = inputs.tokens, needed(inputs.texts, "the texts", self)
        log_likelihood = -nll(tokens) * tokens.num_tokens
        num_words = np.array([len(re.split(r"\s+", text)) for text in texts])
        num_bytes = np.array([max(1, len(text.encode("utf-8", "surrogatepass"))) for text in texts])
        with np.errstate(over="ignore"):
            match self.quantity:
                case "loglikelihood_rolling":
                    values = log_likelihood
                case "word_perplexity":
                    values = -np.exp(-log_likelihood / num_words)
                case "byte_perplexity":
                    values = -np.exp(-log_likelihood / num_bytes)
                case "bits_per_byte":
                    values = log_likelihood / num_bytes / np.log(2)
        too_large = np.isinf(values)
        return scores_with_reasons(tokens, np.where(too_large, np.nan, values), {_TOO_LARGE: too_large})
