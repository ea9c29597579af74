"""Runs the measurements of an audit on every group of documents and joins them by document id."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from nonmember.artifacts import Builder
from nonmember.endpoints import AskedDocuments
from nonmember.methods import DocumentGroup, ScoredDocuments
from nonmember.methods.base import Exclusion
from nonmember.models import ModelSpec
from nonmember.observations.base import Measured
from nonmember.records import Corpus, Embeddings
from nonmember.scores import DocumentScores

NO_COUNTERPART = "no text of this document to compare with"


@dataclass(frozen=True)
class MeasuredGroup:
    """A group's documents with their scores; which could not be scored and why; what the models make of the text.

    capability: role -> negative log-likelihood (nats per token) and number of parameters, as far as known.
    num_tokens: scored tokens under the first model, None where no text was scored.   failed: name of a measurement that
    asks -> reason -> questions that were not answered at all.   counters: name of a measurement -> what its score
    guarded against -> number or share.   values: name of a measurement -> its values of all documents.
    """

    documents: ScoredDocuments
    capability: Mapping[str, Mapping[str, float]]
    num_tokens: int | None
    failed: Mapping[str, Mapping[str, int]]
    counters: Mapping[str, Mapping[str, int | float]]
    values: Mapping[str, DocumentScores | Embeddings]


def measure(group: DocumentGroup, builder: Builder) -> MeasuredGroup:
    results: dict[str, Measured] = {}
    capability: dict[str, dict[str, float]] = {}
    for measurement in reversed(list(group.measured.values())):  # a model of several roles is trained in its first
        builder.call(measurement.model, measurement.role)
    models = [measurement.model for measurement in group.measured.values()]
    builder.ensure_all(item for item in models if not any(parent in models for parent in item.parents()))
    for name, measurement in group.measured.items():
        builder.ensure(measurement.model)
        results[name] = measurement.measure(builder)
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
        embeddings=embeddings,
        answers=answers,
        excluded=excluded,
    )
