"""What a method asks about each document, the model's answers, and what the method reads in them."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from nonmember.artifacts import Builder, Spec
from nonmember.artifacts.store import Entry, key_hash
from nonmember.corpora.specs import CorpusSpec
from nonmember.endpoints.reading import answer_rows, without_thoughts
from nonmember.models.base import ModelSpec
from nonmember.observations.base import FORMAT, Measured, Measurement, require_plain
from nonmember.records import Corpus
from nonmember.records.answers import Answer, Answers, Completion, Outcome, ParsedAnswer, Request
from nonmember.records.requirements import Access, Requirements
from nonmember.records.spans import Spans
from nonmember.runtime.processes import process_rank
from nonmember.scores import DocumentScores

COMPLETIONS = "part-0.parquet"


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
    max_new_tokens: int  # of an answer

    @property
    def requirements(self) -> Requirements:
        """What it asks about each document."""
        return Requirements(Access.TEXT, questions=1, answer_tokens=self.max_new_tokens)

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
    """values: `Probe.value` of each document."""

    answers: tuple[Answers, ...] = ()  # of each, those that failed left out
    failed: Mapping[str, int] = field(default_factory=dict)  # how many that were, by reason


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
    reasons: dict[str, str] = {}
    for doc_id in (doc_id for doc_id, value in values.items() if np.isnan(value)):
        outcomes = {answer.completion.outcome for answer in of[doc_id]}
        why = WHY_NOT[outcomes.pop() if len(outcomes) == 1 else "answered"]
        reasons[doc_id] = why if of[doc_id] else questions.reasons.get(doc_id, NO_ANSWER)
    return AskedDocuments(
        tuple(doc_ids),
        np.array([*values.values()], dtype=np.float64),
        reasons,
        answers=tuple(map(tuple, of.values())),
        failed=dict(sorted(failed.items())),
    )


@dataclass(frozen=True)
class Completions(Spec[list[Completion]]):
    """A model's answers to requests, in their order. Those of a model with weights are an observation of it, all
    together; other kinds keep their answers one by one."""

    model: ModelSpec
    requests: tuple[Request, ...]

    kind = "observations"
    resumable: ClassVar[bool] = True
    joint: ClassVar[bool] = True

    @property
    def stored(self) -> bool:
        return self.model.has_weights

    @property
    def readable(self) -> str:
        return f"{self.model.readable}-completions"

    def key(self, builder: Builder) -> dict[str, Any]:
        return {
            "format": FORMAT,
            "model": self.model.key(builder),
            "requests": key_hash([request.key() for request in self.requests]),
            "precision": builder.compute.precision,
        }

    def parents(self) -> Iterable[Spec[Any]]:
        return (self.model,)

    def make(self, builder: Builder, folder: Path) -> dict[str, Any]:
        from nonmember.endpoints.local import complete_locally

        loaded = builder.get(self.model)
        in_use = replace(loaded, model=builder.model_for_trainer(loaded.model))
        description = f"asking {self.model.readable}"
        try:
            completions = complete_locally(in_use, self.requests, builder.compute, folder, description)
        except ValueError as error:
            raise ValueError(f"{self.model.readable} cannot be asked. {error}") from error
        if process_rank() == 0:
            save_completions(self.requests, completions, folder / COMPLETIONS)
        builder.counters.tokens_observed += sum(item.prompt_tokens + item.completion_tokens for item in completions)
        return {"num_requests": len(self.requests), "model": self.model.readable}

    def load(self, builder: Builder, entry: Entry) -> list[Completion]:
        return load_completions(entry.path / COMPLETIONS)

    def build(self, builder: Builder) -> list[Completion]:
        return self.model.complete(builder, self.requests)


def complete(builder: Builder, model: ModelSpec, requests: Sequence[Request]) -> list[Completion]:
    """Found where this model has been asked before, or asked now."""
    return builder.get(Completions(model, tuple(requests)))


@dataclass(frozen=True)
class Asked(Measurement):
    """What a model answers to the questions of a probe about every document: `Probe.value` of each, and the answers."""

    role: str
    model: ModelSpec
    corpus: CorpusSpec
    probe: Probe

    @property
    def access(self) -> Access:
        return Access.TEXT  # what its requests want beside is seen when they are made

    def counted_by(self) -> Iterable[ModelSpec]:
        return () if self.probe.tokenizer in (None, self.model) else (self.probe.tokenizer,)

    def further_corpora(self) -> Mapping[str, CorpusSpec]:
        return self.probe.corpora

    def measure(self, builder: Builder) -> Measured:
        documents, probe = builder.get(self.corpus), self.probe
        require_plain(documents, "Questions are asked about")
        if probe.tokenizer is not None:
            from nonmember.models.encoding import token_spans

            probe = probe.counting_by(token_spans(probe.tokenizer.load_tokenizer(builder)))
        questions = probe.ask(documents, {name: builder.get(other) for name, other in probe.corpora.items()})
        completions = complete(builder, self.model, questions.requests)
        return Measured(parsed_answers(probe, documents.doc_ids, questions, completions))

    def failed(self, measured: Measured) -> Mapping[str, int]:
        return measured.values.failed if isinstance(measured.values, AskedDocuments) else {}


_TEXTS = ("doc_id", "name", "text", "outcome", "finish_reason", "served_model", "date", "top_logprobs")  # the last JSON
_NUMBERS = ("prompt_tokens", "completion_tokens")
_SCHEMA = pa.schema(
    [*((name, pa.string()) for name in _TEXTS), *((name, pa.int64()) for name in _NUMBERS), ("reason", pa.string())]
)


def save_completions(requests: Sequence[Request], completions: Sequence[Completion], path: Path) -> None:
    rows = [
        {"doc_id": request.doc_id, "name": request.name, **vars(item), "top_logprobs": json.dumps(item.top_logprobs)}
        for request, item in zip(requests, completions, strict=True)
    ]
    pq.write_table(pa.Table.from_pylist(rows, schema=_SCHEMA), path)


def load_completions(path: Path) -> list[Completion]:
    """In the order in which they were saved."""
    return [_of_row(row) for row in pq.ParquetFile(path).read().to_pylist()]


def _of_row(row: Mapping[str, Any]) -> Completion:
    """Without thoughts, which are kept."""
    kept = {name: value for name, value in row.items() if name not in ("doc_id", "name")}
    top = tuple(tuple(map(tuple, step)) for step in json.loads(row["top_logprobs"]))
    completion = Completion(**{**kept, "top_logprobs": top})
    text, has_thoughts, missing = without_thoughts(completion.text, completion.finish_reason)
    if not has_thoughts:
        return completion
    tokens = [step[0][0] for step in top]  # the likeliest, which was written
    begin = "".join(tokens).rfind(text)
    return replace(
        completion,
        text=text,
        outcome="answered" if text else "empty",
        reason=missing,
        has_thoughts=True,
        top_logprobs=answer_rows(top, tokens, begin) if text and begin >= 0 else (),
    )
