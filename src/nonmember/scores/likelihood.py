"""Loss, the plainest score (Yeom et al., 2018), and the probability of a text and of an answer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np

from nonmember.checks import Count, require_choice
from nonmember.records import Question
from nonmember.records.requirements import Access
from nonmember.scores.base import DocumentScores, Score, ScoreInputs, mean_per_document, nll, scores_with_reasons


@dataclass(frozen=True)
class Loss(Score):
    """Mean log-probability per token, -NLL. Perplexity exp(NLL) ranks documents the same way, reversed.

    Source: Yeom et al., 2018.
    """

    name = "loss"

    def __call__(self, inputs: ScoreInputs) -> DocumentScores:
        return scores_with_reasons(inputs.tokens, -nll(inputs.tokens))


@dataclass(frozen=True)
class LogProbability(Score):
    """Sum of log-probabilities of the scored tokens, in nats: of the whole text, into however many tokens it is cut.

    Source: Rossi et al., 2026; docs/methods/identifiers.md.
    """

    name = "log_probability"

    def __call__(self, inputs: ScoreInputs) -> DocumentScores:
        return scores_with_reasons(inputs.tokens, -nll(inputs.tokens) * inputs.tokens.num_tokens)


@dataclass(frozen=True)
class Perplexity(Score):
    """-exp(NLL): ranks as the loss does, but a linear model of features sees long tails.

    Source: a feature of LLM-DI (Maini et al., 2024).
    """

    name = "perplexity"

    def __call__(self, inputs: ScoreInputs) -> DocumentScores:
        return scores_with_reasons(inputs.tokens, -np.exp(nll(inputs.tokens)))


@dataclass(frozen=True)
class TopLoss(Score):
    """Mean of max(l_t, -log(number + 1)): the loss as far as the largest log-probabilities of each place fix it.

    A token that is not among them has at most 1 / (number + 1), and one of so much or more is always among them, so
    that the value is the same whether the whole distribution or these are seen.

    Attributes:
        number: Of log-probabilities that are seen of each place.

    Raises:
        ValueError: For fewer than 1.

    Source: Ours; docs/methods/scores.md.
    """

    number: Annotated[int, Count(1)]

    @property
    def name(self) -> str:
        return f"top_loss({self.number})"

    @property
    def _access(self) -> Access:
        return Access.TOP_LOGPROBS

    def __call__(self, inputs: ScoreInputs) -> DocumentScores:
        seen = np.maximum(inputs.tokens.log_prob.astype(np.float64), -np.log(self.number + 1))
        return scores_with_reasons(inputs.tokens, mean_per_document(inputs.tokens, seen))


@dataclass(frozen=True)
class Extraction(Score):
    """log p_z of the likeliest run of k tokens, nats: that a sample at temperature 1 goes on with exactly these.

    Runs follow each other behind the first k tokens, a beginning-of-text token counted; a rest of fewer is left out.
    The first has exactly k tokens before it, as the papers have it; later ones more, so that one pass gives all.

    Attributes:
        k: Tokens of a run, and the fewest before it.

    Raises:
        ValueError: For fewer than 1.

    Source: Hayes et al., 2410.19482; Cooper et al., 2505.12546 (k = 50); docs/methods/extraction.md.
    """

    k: Annotated[int, Count(1)]

    @property
    def name(self) -> str:
        return f"extraction({self.k})"

    def __call__(self, inputs: ScoreInputs) -> DocumentScores:
        table = inputs.tokens
        log_prob = table.log_prob.astype(np.float64)
        num_runs = (table.num_tokens + 1) // self.k - 1  # its first token is not scored
        values = np.full(len(table), np.nan)
        for index in np.flatnonzero(num_runs > 0):
            start = table.offsets[index] + self.k - 1
            runs = log_prob[start : start + num_runs[index] * self.k].reshape(-1, self.k)
            values[index] = runs.sum(axis=1).max()
        return scores_with_reasons(table, values, {f"fewer than {2 * self.k} tokens": num_runs < 1})


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
