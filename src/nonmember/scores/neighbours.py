"""Likelihood against that of slightly changed versions of the text: the neighbourhood comparison (Mattern et al.,
2023)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nonmember.checks import require_count, require_number, require_text
from nonmember.records.neighbours import Neighbours, text_of_neighbour
from nonmember.scores.base import NO_TOKENS, DocumentScores, Score, ScoreInputs, needed, nll, scores_with_reasons


@dataclass(frozen=True)
class Neighbourhood(Score):
    """Mean NLL of the neighbours minus the NLL of the text.

    Attributes:
        number: Neighbours of each text, 1 to 1,000. The paper's 100 and mimir's 25 cost as many forward passes.
        filler: Folder or hub name of a masked language model; it proposes single words as the paper does. None: random
            words of the corpus, as the library mimir does where it has no such model.
        revision: Its revision on the hub.
        share: Without a filler, the part of the words that is masked, in (0, 1].
        span: Without a filler, so many words are masked in one span.
        buffer: Without a filler, so many words lie between spans.

    Raises:
        ValueError: For settings out of range.

    Source: Mattern et al., 2023, eq. 2 and 3, with the sign turned.
    """

    number: int
    filler: str | None = None
    revision: str | None = None
    share: float = 0.3
    span: int = 2
    buffer: int = 1

    def __post_init__(self) -> None:
        require_count(self.number, 1, "number", at_most=1000)
        require_text(self.filler, "filler", or_null=True)
        require_text(self.revision, "revision", or_null=True)
        require_number(self.share, "(0, 1]", "share", hint="The share of the words to mask; mimir's is 0.3.")
        require_count(self.span, 1, "span")
        require_count(self.buffer, 0, "buffer")

    @property
    def name(self) -> str:
        return f"neighbourhood({self.number})"

    @property
    def neighbours(self) -> Neighbours:
        return Neighbours(self.number, self.filler, self.revision, self.share, self.span, self.buffer)

    def __call__(self, inputs: ScoreInputs) -> DocumentScores:
        table = needed(inputs.neighbours, "the neighbours of the texts observed", self)
        place = {doc_id: index for index, doc_id in enumerate(inputs.tokens.doc_ids)}
        owner = np.array([place[text_of_neighbour(name)] for name in table.doc_ids], dtype=np.int64)
        losses = nll(table)
        defined = ~np.isnan(losses)
        total = np.bincount(owner[defined], losses[defined], minlength=len(place))
        number = np.bincount(owner[defined], minlength=len(place))
        mean = np.divide(total, number, out=np.full(len(place), np.nan), where=number > 0)
        undefined = {f"neighbours: {NO_TOKENS}": number == 0}
        return scores_with_reasons(inputs.tokens, mean - nll(inputs.tokens), undefined)
