"""What is asked and what is answered, the same for every kind of model; and what a method makes of it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, ClassVar, Literal

import numpy as np

from nonmember.asking.tokens import Spans
from nonmember.corpora import CorpusSpec
from nonmember.models import ModelSpec
from nonmember.records import Corpus
from nonmember.scores import DocumentScores

# answered: there is text.   empty: there is none.   refused: the server says that it or the model declined.
# failed: the server did not accept this very request (too long, say); nothing is known of the model's answer.
Outcome = Literal["answered", "empty", "refused", "failed"]


@dataclass(frozen=True)
class Request:
    """One question about one document.

    doc_id, name: which question it is; unique together within one probe, and how a recorded answer is found again.
    instruction: the system's turn; empty: none.   question: the user's turn.
    plain: what a model without a chat form goes on with; empty: instruction, blank line, question.
    max_new_tokens, temperature, seed: of the decoding; temperature 0 takes the likeliest token.
    top_logprobs: how many alternatives to every written token are wanted with their log-probabilities; 0: none.
    expected: what the right answer is, where there is one.   options: what there is to choose among, as the question
    shows it. Neither is ever sent by itself, nor part of a request's key.
    """

    doc_id: str
    name: str
    question: str
    max_new_tokens: int
    temperature: float
    seed: int
    instruction: str = ""
    plain: str = ""
    top_logprobs: int = 0
    expected: str = ""
    options: tuple[str, ...] = ()

    def key(self) -> dict[str, Any]:
        """What determines the answer."""
        settings = asdict(self)
        del settings["expected"], settings["options"]
        return settings

    @property
    def as_text(self) -> str:
        """For a model without a chat form."""
        return self.plain or "\n\n".join(part for part in (self.instruction, self.question) if part)


@dataclass(frozen=True)
class Completion:
    """What came back.

    text: without the prompt.   finish_reason: as the server says, such as stop or length.   served_model, date: who
    answered and when (UTC, ISO 8601), as far as is known.   top_logprobs: per written token, pairs of a token's text
    and its log-probability, the likeliest first; empty where none were asked for or none came.
    prompt_tokens, completion_tokens: as the server counts, 0 where it does not.   reason: of what is not answered.
    """

    text: str
    outcome: Outcome
    finish_reason: str = ""
    served_model: str = ""
    date: str = ""
    top_logprobs: tuple[tuple[tuple[str, float], ...], ...] = ()
    prompt_tokens: int = 0
    completion_tokens: int = 0
    reason: str = ""


@dataclass(frozen=True)
class Judged:
    """What a probe reads in a completion. valid: it can be read as an answer to the question at all; what cannot is
    counted and never right.   correct: it is the expected one.   read: the answer as it was understood."""

    valid: bool
    correct: bool
    read: str = ""


@dataclass(frozen=True)
class Answer:
    """A question, its completion and what was read in it."""

    request: Request
    completion: Completion
    judged: Judged


Answers = tuple[Answer, ...]  # about one document, in the order of the requests


@dataclass(frozen=True)
class Questions:
    """What a probe asks about a corpus.   reasons: documents about which nothing can be asked -> why."""

    requests: tuple[Request, ...]
    reasons: Mapping[str, str] = field(default_factory=dict)


class Probe(ABC):
    """What a method asks about each document, and how it reads what comes back. To a model that answers with text it is
    what a `Score` is to one whose probabilities are at hand. A frozen dataclass; its fields are what the questions
    depend on."""

    name: ClassVar[str]

    @property
    def corpora(self) -> Mapping[str, CorpusSpec]:
        """Further corpora that the questions are made with (paraphrases, say), by name."""
        return {}

    @property
    def tokenizer(self) -> ModelSpec | None:
        """The model in whose tokens it counts; None: it counts none, or needs no model for it."""
        return None

    def counting_by(self, spans: Spans) -> Probe:
        """The probe with the tokens of its `tokenizer` at hand."""
        raise NotImplementedError

    @abstractmethod
    def ask(self, corpus: Corpus, others: Mapping[str, Corpus]) -> Questions:
        """The questions about every document of a corpus. others: those of `corpora`, by name."""

    @abstractmethod
    def judge(self, request: Request, completion: Completion) -> Judged:
        """Read a completion whose outcome is `answered`."""

    def value(self, answers: Sequence[Answer]) -> float:
        """Of one document, from its answers that did not fail (at least one): the share of right ones. NaN where they
        allow none; the document is then excluded."""
        return sum(answer.judged.correct for answer in answers) / len(answers)


@dataclass(frozen=True)
class AskedDocuments(DocumentScores):
    """values: `Probe.value` of each document.   answers: of each, those that failed left out.   failed: how many that
    were, by reason."""

    answers: tuple[Answers, ...] = ()
    failed: Mapping[str, int] = field(default_factory=dict)


NO_ANSWER = "no question about it was accepted"
WHY_NOT: Mapping[Outcome, str] = {
    "answered": "no answer about it can be read",
    "empty": "the answer about it is empty",
    "refused": "an answer about it was refused",
}


def judged_answers(
    probe: Probe, doc_ids: Sequence[str], questions: Questions, completions: Sequence[Completion]
) -> AskedDocuments:
    """What the probe reads in the completions, which are in the order of the requests."""
    of: dict[str, list[Answer]] = {doc_id: [] for doc_id in doc_ids}
    failed: Counter[str] = Counter()
    for request, completion in zip(questions.requests, completions, strict=True):
        if completion.outcome == "failed":
            failed[completion.reason] += 1
            continue
        answered = completion.outcome == "answered"
        judged = probe.judge(request, completion) if answered else Judged(valid=False, correct=False)
        of[request.doc_id].append(Answer(request, completion, judged))
    values = {doc_id: probe.value(answers) if answers else np.nan for doc_id, answers in of.items()}
    reasons = {
        doc_id: why_not(of[doc_id]) if of[doc_id] else questions.reasons.get(doc_id, NO_ANSWER)
        for doc_id, value in values.items()
        if np.isnan(value)
    }
    return AskedDocuments(
        tuple(doc_ids), np.array([*values.values()], dtype=np.float64), reasons,
        answers=tuple(map(tuple, of.values())), failed=dict(sorted(failed.items())),
    )  # fmt: skip


def why_not(answers: Sequence[Answer]) -> str:
    """Why no value can be had of a document's answers."""
    outcomes = {answer.completion.outcome for answer in answers}
    return WHY_NOT[outcomes.pop()] if len(outcomes) == 1 else WHY_NOT["answered"]
