"""Gradients of each document's loss, as norms."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nonmember.artifacts import Builder
from nonmember.artifacts.store import Entry
from nonmember.observations.base import Observation, parts_of
from nonmember.records import GradientNorms

if TYPE_CHECKING:
    from nonmember.models.loading import LoadedModel


@dataclass(frozen=True)
class Gradients(Observation[GradientNorms]):
    """Norms of the gradient of the mean loss over each document's first `max_tokens` tokens."""

    max_tokens: int

    suffix = "gradients"

    def settings(self, builder: Builder) -> dict[str, Any]:
        return {"gradients": True, "max_tokens": self.max_tokens}

    def observe(self, builder: Builder, loaded: LoadedModel, folder: Path) -> Any:
        from nonmember.models.encoding import encode_corpus
        from nonmember.observations.passes.gradients import observe_gradients

        documents = builder.get(self.corpus)
        return observe_gradients(
            builder.model_for_trainer(loaded.model),
            dict(zip(documents.doc_ids, encode_corpus(loaded, documents, self.max_tokens), strict=True)),
            folder, builder.compute.trainer, description=f"gradients of {self.model.readable}",
        )  # fmt: skip

    def load(self, builder: Builder, entry: Entry) -> GradientNorms:
        return GradientNorms.load(parts_of(entry), builder.get(self.corpus).doc_ids)
