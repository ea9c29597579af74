"""Runs the measurements of an audit on every group of documents and joins them by document id."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from nonmember.artifacts import Builder
from nonmember.checks import returned
from nonmember.endpoints import Answer, AskedDocuments
from nonmember.methods import DocumentGroup, ScoredDocuments
from nonmember.methods.asked import kind_of
from nonmember.methods.base import Exclusion
from nonmember.models import ModelSpec
from nonmember.observations import Measurement, Scored
from nonmember.observations.base import Measured
from nonmember.records import Corpus, Embeddings
from nonmember.results.answers import PROBABILITY, Row
from nonmember.scores import AnswerProbability, DocumentScores

NO_COUNTERPART = "no text of this document to compare with"


@dataclass(frozen=True)
class MeasuredGroup:
    """A group's documents with their scores; which could not be scored and why; what the models make of the text."""

    documents: ScoredDocuments
    # Role -> negative log-likelihood (nats per token) and number of parameters, as far as known.
    capability: Mapping[str, Mapping[str, float]]
    num_tokens: int | None  # scored tokens under the first model, None where no text was scored
    # Name of a measurement that asks -> reason -> questions that were not answered at all.
    failed: Mapping[str, Mapping[str, int]]
    # Name of a measurement -> what its score guarded against -> number or share.
    counters: Mapping[str, Mapping[str, int | float]]
    values: Mapping[str, DocumentScores | Embeddings]  # name of a measurement -> its values of all documents


def measure(group: DocumentGroup, builder: Builder) -> MeasuredGroup:
    results: dict[str, Measured] = {}
    capability: dict[str, dict[str, float]] = {}
    for measurement in reversed(list(group.measured.values())):  # a model of several roles is trained in its first
        builder.set_role(measurement.model, measurement.role)
    models = [measurement.model for measurement in group.measured.values()]
    builder.ensure_all(item for item in models if not any(parent in models for parent in item.parents()))
    for name, measurement in group.measured.items():
        builder.ensure(measurement.model)
        results[name] = returned(measurement.measure(builder), measurement, "Measured")
        if measurement.role not in capability:
            capability[measurement.role] = _capability(results[name], measurement.model, builder)
    failed = {name: group.measured[name].failed(item) for name, item in results.items()}
    values = {name: item.values for name, item in results.items()}
    documents = join(builder.get(group.corpus), values)
    return MeasuredGroup(
        documents,
        capability,
        next((item.num_tokens for item in results.values() if item.num_tokens), None),
        {name: reasons for name, reasons in failed.items() if reasons},
        {name: item.counters for name, item in values.items() if isinstance(item, DocumentScores) and item.counters},
        values,
    )


def _capability(measured: Measured, model: ModelSpec, builder: Builder) -> dict[str, float]:
    likelihood = {} if measured.nll is None else {"nll": measured.nll}
    num_parameters = model.num_parameters(builder)
    return likelihood | ({} if num_parameters is None else {"num_parameters": num_parameters})


def join(corpus: Corpus, values_of: Mapping[str, DocumentScores | Embeddings]) -> ScoredDocuments:
    """The documents every measurement could score, in the corpus's order; the others with the first reason found."""
    excluded: dict[str, Exclusion] = {}
    for name, scores in values_of.items():
        measured = set(scores.doc_ids)
        excluded |= {
            doc_id: Exclusion(name, NO_COUNTERPART)
            for doc_id in corpus.doc_ids
            if doc_id not in measured and doc_id not in excluded
        }
        for doc_id, reason in scores.reasons.items():
            excluded.setdefault(doc_id, Exclusion(name, reason))
    kept = [document for document in corpus.documents if document.doc_id not in excluded]
    values, embeddings, answers = {}, {}, {}
    for name, scores in values_of.items():
        index_of = {doc_id: index for index, doc_id in enumerate(scores.doc_ids)}
        rows = [index_of[document.doc_id] for document in kept]
        if isinstance(scores, Embeddings):
            embeddings[name] = scores.values[rows]
        else:
            values[name] = scores.values[rows]
        if isinstance(scores, AskedDocuments):
            answers[name] = tuple(scores.answers[row] for row in rows)
    return ScoredDocuments(
        doc_ids=tuple(document.doc_id for document in kept),
        values=values,
        cluster_ids=tuple(document.cluster_id for document in kept),
        texts=tuple(document.text for document in kept),
        domains=tuple(document.domain for document in kept),
        embeddings=embeddings,
        answers=answers,
        excluded=excluded,
    )


def rows_of_answers(
    group: str, name: str, measurement: Measurement, values: DocumentScores | Embeddings, builder: Builder
) -> Iterator[Row]:
    """A row per answer to a measurement that asks; none for any other."""
    if isinstance(values, AskedDocuments):
        yield from _of_texts(group, name, values)
    elif isinstance(measurement, Scored) and isinstance(measurement.score, AnswerProbability):
        assert isinstance(values, DocumentScores)
        yield from _of_probabilities(group, name, builder.get(measurement.corpus), measurement.score, values)


def _of_texts(group: str, measurement: str, asked: AskedDocuments) -> Iterator[Row]:
    """A row per answer in text. kind: right, wrong, unreadable, empty or refused.   read: the answer as it was
    understood.   prompt: what was asked, before any chat template.   has_thoughts: of the model, which are left out."""
    for answer in itertools.chain.from_iterable(asked.answers):
        yield {
            "group": group,
            "measurement": measurement,
            "doc_id": answer.request.doc_id,
            "question": answer.request.name,
            "prompt": answer.request.as_text,
            "expected": answer.request.expected,
            "answer": answer.completion.text,
            "kind": _kind(answer),
            "correct": answer.parsed.correct,
            "read": answer.parsed.read,
            "reason": answer.completion.reason,
            "has_thoughts": answer.completion.has_thoughts,
            "finish_reason": answer.completion.finish_reason,
            "model": answer.completion.served_model,
            "date": answer.completion.date,
        }


def _kind(answer: Answer) -> str:
    kind = kind_of(answer)
    return kind if kind != "answered" else "right" if answer.parsed.correct else "wrong"


def _of_probabilities(
    group: str, measurement: str, corpus: Corpus, asked: AnswerProbability, scores: DocumentScores
) -> Iterator[Row]:
    """A row per document of which the probability of one answer was measured; none is right or wrong."""
    instruction = asked.question.instruction
    text_of = {document.doc_id: document.text for document in corpus.documents}
    for doc_id, value in zip(scores.doc_ids, scores.values, strict=True):
        if math.isfinite(value):
            yield {
                "group": group,
                "measurement": measurement,
                "doc_id": doc_id,
                "question": measurement,
                "prompt": "\n\n".join(filter(None, (instruction, asked.question.request(text_of[doc_id])))),
                "answer": asked.answer,
                "kind": PROBABILITY,
                "probability": float(value),
                "correct": None,
            }
