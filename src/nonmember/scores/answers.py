"""The probability of an answer about a text."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nonmember.checks import require_choice
from nonmember.records import Question
from nonmember.scores.base import DocumentScores, Score, ScoreInputs

NO_PROBABILITIES = "the model gave no probabilities of its answer"


@dataclass(frozen=True)
class AnswerProbability(Score):
    """Probability over the full vocabulary that the model's next token begins this one of the question's answers.

    `ScoreInputs.tokens` holds the answers: one row per answer and document, in the order of the question; none for a
    document about which nothing was said.

    Attributes:
        question: Asked about each text.
        answer: One of its answers.

    Raises:
        ValueError: For an answer that is not among the question's.

    Source: PaCoST (Zhang et al., 2024); docs/methods/pacost.md.
    """

    question: Question
    answer: str

    def __post_init__(self) -> None:
        super().__post_init__()
        require_choice(self.answer, self.question.answers, "answer")

    @property
    def name(self) -> str:
        return f"p({self.answer})"

    @property
    def asks(self) -> Question:
        return self.question

    def __call__(self, inputs: ScoreInputs) -> DocumentScores:
        answers = inputs.tokens
        given = answers.num_tokens > 0
        assert (answers.num_tokens[given] == len(self.question.answers)).all(), "one row per answer and document"
        rows = answers.offsets[:-1][given] + self.question.answers.index(self.answer)
        values = np.full(len(answers), np.nan)
        values[given] = np.exp(answers.log_prob[rows].astype(np.float64))
        reasons = {answers.doc_ids[index]: NO_PROBABILITIES for index in np.flatnonzero(~given)}
        return DocumentScores(answers.doc_ids, values, reasons)
