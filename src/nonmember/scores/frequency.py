"""Divergence from token frequency: DC-PDD (Zhang et al., 2024)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Annotated, ClassVar

import numpy as np
import numpy.typing as npt

from nonmember.checks import Count, Number
from nonmember.scores.base import (
    DocumentScores,
    Score,
    ScoreInputs,
    document_of_rows,
    mean_per_document,
    needed,
    scores_with_reasons,
)


def token_counts(documents: Iterable[Sequence[int]], vocab_size: int) -> npt.NDArray[np.int64]:
    """How often each token id occurs in a general corpus disjoint from all test data, for `dc_pdd`.

    Args:
        documents: The token ids of each.
        vocab_size: V, the number of the target's logits.

    Returns:
        [V] counts.

    Raises:
        ValueError: For an id outside the vocabulary.

    Source: DC-PDD (Zhang et al., 2024), where the corpus is 15 shards of C4, each document cut to 1,024 ids: cut before
    counting. Every occurrence counts; the library mimir counts 1 per document, by an accident of indexing.

    >>> token_counts([[1, 2, 1], [2]], vocab_size=4)
    array([0, 2, 2, 0])
    """
    token_ids = np.fromiter(chain.from_iterable(documents), dtype=np.int64)
    if len(token_ids) and token_ids.max() >= vocab_size:
        raise ValueError(f"Token id {token_ids.max()} is outside the vocabulary of {vocab_size}.")
    return np.bincount(token_ids, minlength=vocab_size)


@dataclass(frozen=True)
class DcPdd(Score):
    """Mean of min(alpha_i, a) over the first occurrence of each token id.

    alpha_i = p(x_i | x_<i) log(1 / q(x_i)), and q is the smoothed frequency, (count + 1) / (total + V). The share of
    tokens with alpha_i > a is in the counters: where it is large, the score is little more than the share of
    tokens that are not improbable.

    Attributes:
        a: Above 0, clips the score of a token; the paper's is 0.01.
        prepend_eos: Score an observation with the end-of-text id in front, in which the first token is scored too, as
            mimir does. Otherwise an id at the very start of a text counts as first at its next occurrence, as in the
            published program.
        max_counted_tokens: So many ids of each document of the general corpus are counted, the paper's 1,024; None:
            all.

    Raises:
        ValueError: For settings out of range.

    Source: Zhang et al., 2024. The published program computes q and then reads the raw counts, and prints the negative
    score.
    """

    a: Annotated[float, Number("(0, inf)", "It clips the score of a token; the paper's is 0.01.")]
    prepend_eos: bool = False
    max_counted_tokens: Annotated[int | None, Count(1)] = None

    needs_counts: ClassVar[bool] = True

    @property
    def name(self) -> str:
        return f"dcpdd({self.a:g})"

    @property
    def views(self) -> tuple[str, ...]:
        return ("prepend_eos",) if self.prepend_eos else ("original",)

    def __call__(self, inputs: ScoreInputs) -> DocumentScores:
        table, counts = inputs.tokens, needed(inputs.counts, "the token counts of a general corpus", self)
        if len(table.token_id) and table.token_id.max() >= len(counts):
            raise ValueError(
                f"Token id {table.token_id.max()} was observed, and the counts end before {len(counts)}. "
                "Count with the target's tokenizer and its number of logits."
            )
        log_q = np.log(counts + 1.0) - np.log(counts.sum() + float(len(counts)))
        alpha = np.exp(table.log_prob.astype(np.float64)) * -log_q[table.token_id]
        first = np.zeros(len(alpha), dtype=bool)
        key = document_of_rows(table) * len(counts) + table.token_id
        first[np.unique(key, return_index=True)[1]] = True
        values = mean_per_document(table, np.minimum(alpha, self.a), keep=first)
        saturated = float((alpha[first] > self.a).mean()) if first.any() else 0.0
        return scores_with_reasons(table, values, counters={"saturated_share": saturated})
