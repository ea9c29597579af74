"""What is known of models, services and data sets on the hub without asking it: small files in `hub/`."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import Any, Literal

import yaml

HUB = Path(__file__).parent / "hub"
Terms = Literal["none", "accept"]


@dataclass(frozen=True)
class HubModel:
    """A causal language model on the hub."""

    path: str
    revision: str | None  # the commit that the facts are of; None where it is not known
    model_type: str
    architecture: Mapping[str, Any]  # settings of its transformers configuration
    num_parameters: int  # as published
    special_ids: Mapping[str, Any]  # bos, eos and pad
    prepends: Sequence[int]  # ids that its tokenizer puts before texts
    chat_template: bool
    remote_code: bool
    licence: str
    terms: Terms  # accept, where an account must have accepted them on the model's page
    source: str  # where the facts are from
    # Of a layer, (name, inputs, outputs) each, where the code comes with the weights.
    modules: Sequence[tuple[str, int, int]] = ()
    packages: Sequence[str] = ()  # that its own code imports and that are no dependencies of ours
    infinigram: str = ""  # the index of that service which holds what it was trained on, or a version of it


@dataclass(frozen=True)
class HubDataset:
    terms: Terms
    # Most rows of a configuration, file or split, by a part of its name; "": of any other. None: not known.
    documents: Mapping[str, int | None]
    source: str
    words: Mapping[str, int] = field(default_factory=dict)  # most words of a document, likewise

    def most_documents(self, *names: str | None) -> int | None:
        """Of the configuration, split or file that has one of these names."""
        return _of_name(self.documents, names)

    def most_words(self, *names: str | None) -> int | None:
        """Of a document there."""
        return _of_name(self.words, names)


def _of_name(numbers: Mapping[str, Any], names: Sequence[str | None]) -> int | None:
    """That of the longest part that the names have."""
    wanted = " ".join(filter(None, names))
    longest = max((part for part in numbers if part in wanted), key=len, default=None)
    return None if longest is None else numbers[longest]


@dataclass(frozen=True)
class ServiceDescription:
    """A model behind a service."""

    provider: str | None
    # since, until: when the service has it
    since: date
    until: date | None  # None where no end is announced
    top_logprobs: int | None  # most alternatives to a token that it lists, None where that is not known
    source: str
    instead: str | None = None  # the preset that takes its place

    def is_retired(self, today: date) -> bool:
        return self.until is not None and self.until <= today


@functools.cache
def hub_models() -> Mapping[str, HubModel]:
    """By path on the hub."""
    contents = [_read(path) for path in sorted((HUB / "models").glob("*.yaml"))]
    models = (HubModel(**item | {"modules": tuple(map(tuple, item.get("modules", ())))}) for item in contents)
    return {model.path: model for model in models}


@functools.cache
def hub_datasets() -> Mapping[str, HubDataset]:
    """By path on the hub."""
    return {path: HubDataset(**item) for path, item in _read(HUB / "datasets.yaml").items()}


@functools.cache
def services() -> Mapping[str, ServiceDescription]:
    """By the name of the model."""
    return {name: ServiceDescription(**item) for name, item in _read(HUB / "services.yaml").items()}


def file_of(path: str) -> str:
    """Where the description of a model of the hub belongs."""
    return f"src/nonmember/feasibility/hub/models/{path.replace('/', '--')}.yaml"


def _read(path: Path) -> dict[str, Any]:
    content: dict[str, Any] = yaml.safe_load(path.read_text(encoding="utf-8"))
    return content
