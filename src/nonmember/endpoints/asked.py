"""Completions and the measurement of a probe: a model's answers to questions about every document."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from nonmember.artifacts import Builder, Spec
from nonmember.artifacts.store import Entry, key_hash
from nonmember.corpora.specs import CorpusSpec
from nonmember.endpoints.probe import AskedDocuments, Probe, parsed_answers
from nonmember.models.access import Access
from nonmember.models.base import ModelSpec
from nonmember.observations.base import FORMAT, Measured, Measurement
from nonmember.records.answers import Completion, Request
from nonmember.runtime.processes import process_rank

COMPLETIONS = "part-0.parquet"


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
        from nonmember.endpoints.local import complete_locally, save_completions
        from nonmember.models.loading import LoadedModel

        loaded = builder.get(self.model)
        in_use = LoadedModel(builder.model_for_trainer(loaded.model), loaded.tokenizer)
        description = f"asking {self.model.readable}"
        try:
            completions = complete_locally(in_use, self.requests, builder.compute, folder, description)
        except ValueError as error:
            raise ValueError(f"{self.model.readable} cannot be asked. {error}") from error
        if process_rank() == 0:
            save_completions(self.requests, completions, folder / COMPLETIONS)
        builder.counters.tokens_observed += sum(one.prompt_tokens + one.completion_tokens for one in completions)
        return {"num_requests": len(self.requests), "model": self.model.readable}

    def load(self, builder: Builder, entry: Entry) -> list[Completion]:
        from nonmember.endpoints.local import load_completions

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
        if probe.tokenizer is not None:
            from nonmember.models.encoding import token_spans

            probe = probe.counting_by(token_spans(probe.tokenizer.load_tokenizer(builder)))
        questions = probe.ask(documents, {name: builder.get(other) for name, other in probe.corpora.items()})
        completions = complete(builder, self.model, questions.requests)
        return Measured(parsed_answers(probe, documents.doc_ids, questions, completions))

    def failed(self, measured: Measured) -> Mapping[str, int]:
        return measured.values.failed if isinstance(measured.values, AskedDocuments) else {}
