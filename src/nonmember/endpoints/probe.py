"""Probes: the requests about each document, and how a method parses the answers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from nonmember.corpora import CorpusSpec
from nonmember.models import ModelSpec
from nonmember.records import Corpus
from nonmember.records.answers import Answer, Answers, Completion, Outcome, ParsedAnswer, Request
from nonmember.records.spans import Spans
from nonmember.scores import DocumentScores


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
    def parse(self, request: Request, completion: Completion) -> ParsedAnswer:
        """Read a completion whose outcome is `answered`."""

    def value(self, answers: Sequence[Answer]) -> float:
        """Of one document, from its answers that did not fail (at least one): the share of right ones. NaN where they
        allow none; the document is then excluded."""
        return sum(answer.parsed.correct for answer in answers) / len(answers)


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


def parsed_answers(
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
        judged = probe.parse(request, completion) if answered else ParsedAnswer(valid=False, correct=False)
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
    """Why a document's answers have no value."""
    outcomes = {answer.completion.outcome for answer in answers}
    return WHY_NOT[outcomes.pop()] if len(outcomes) == 1 else WHY_NOT["answered"]
