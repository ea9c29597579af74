"""Embeddings: hidden state at the last token of every document."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nonmember.artifacts import Builder
from nonmember.artifacts.store import Entry
from nonmember.observations.base import Measured, Measurement, Observation, parts_of
from nonmember.records import Embeddings
from nonmember.records.requirements import Access

if TYPE_CHECKING:
    from nonmember.models.loading import LoadedModel


@dataclass(frozen=True)
class Embedded(Observation[Embeddings], Measurement):
    """The hidden state at each document's last token, of length 1.

    layer: which entry of the tuple of hidden states; -1: the last, which the output matrix reads.
    dropout_seed: None, or the seed of the adapter's dropout, which is then as active as in training.
    """

    role: str
    layer: int
    max_tokens: int
    dropout_seed: int | None = None

    suffix = "embeddings"

    @property
    def access(self) -> Access:
        return Access.WEIGHTS

    @property
    def failure(self) -> str:
        return f"{self.model.readable} cannot embed."

    def settings(self, builder: Builder) -> dict[str, Any]:
        embedding = {"layer": self.layer, "dropout_seed": self.dropout_seed}
        return {"embedding": embedding, "max_tokens": self.max_tokens}

    def observe(self, builder: Builder, loaded: LoadedModel, folder: Path) -> Any:
        from nonmember.models.encoding import encode_corpus
        from nonmember.observations.passes.embedding import embed

        documents = builder.get(self.corpus)
        return embed(
            builder.model_for_trainer(loaded.model),
            dict(zip(documents.doc_ids, encode_corpus(loaded, documents, self.max_tokens), strict=True)),
            folder,
            builder.compute.trainer,
            layer=self.layer,
            dropout_seed=self.dropout_seed,
            max_batch_tokens=builder.compute.max_batch_tokens,
            description=f"embedding by {self.model.readable}",
        )

    def load(self, builder: Builder, entry: Entry) -> Embeddings:
        return Embeddings.load(parts_of(entry), builder.get(self.corpus).doc_ids)

    def measure(self, builder: Builder) -> Measured:
        return Measured(builder.get(self))
