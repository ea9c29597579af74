"""A number or a vector per document: divergences between two models, embeddings."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow.parquet as pq

from nonmember.artifacts import Builder, Spec
from nonmember.artifacts.store import Entry
from nonmember.models.base import ModelSpec
from nonmember.models.tokenizing import require_shared_vocabulary
from nonmember.observations.base import Measured, Measurement, Observation, parts_of, scored_by_id
from nonmember.records import Embeddings
from nonmember.records.requirements import Access
from nonmember.scores import DocumentScores
from nonmember.scores.base import NO_TOKENS

if TYPE_CHECKING:
    from nonmember.models.loading import LoadedModel


@dataclass(frozen=True)
class Diverged(Observation[DocumentScores], Measurement):
    """KL(other || model) of the next-token distributions in nats per token, mean over each document's tokens; both
    models read the first one's ids."""

    role: str
    other: ModelSpec
    max_tokens: int

    suffix = "divergence"

    @property
    def access(self) -> Access:
        return Access.FULL_LOGITS

    @property
    def cannot(self) -> str:  # type: ignore[override]
        return f"be compared with {self.other.readable}"

    def settings(self, builder: Builder) -> dict[str, Any]:
        return {"divergence_from": self.other.key(builder), "max_tokens": self.max_tokens}

    def parents(self) -> Iterable[Spec[Any]]:
        return (self.model, self.other)

    def observe(self, builder: Builder, loaded: LoadedModel, folder: Path) -> dict[str, int]:
        from nonmember.models.encoding import encode_corpus, read_alike, shared_ids
        from nonmember.observations.passes.documents import observe_divergence

        theirs, documents = builder.get(self.other), builder.get(self.corpus)
        ids = encode_corpus(loaded, documents, self.max_tokens)
        shared = shared_ids(loaded.tokenizer, theirs.tokenizer)
        _, share = read_alike(ids, encode_corpus(theirs, documents, self.max_tokens), shared[0])
        require_shared_vocabulary(share, self.model.readable, self.other.readable, "a comparison needs")
        what = f"comparing {self.model.readable} with {self.other.readable}"
        return observe_divergence(
            builder.model_for_trainer(loaded.model),
            theirs.model,
            dict(zip(documents.doc_ids, ids, strict=True)),
            self.reading(builder, folder, what),
            shared_ids=shared,
            scored=scored_by_id(loaded, documents, self.max_tokens),
        )

    def load(self, builder: Builder, entry: Entry) -> DocumentScores:
        return load_divergences(parts_of(entry), builder.get(self.corpus).doc_ids)

    def measure(self, builder: Builder) -> Measured:
        return Measured(builder.get(self))


def load_divergences(paths: Sequence[Path], doc_ids: Sequence[str]) -> DocumentScores:
    """Read the Parquet parts and put the documents into the order of `doc_ids` (a join, never a zip)."""
    value_of: dict[str, float] = {}
    for path in paths:
        table = pq.ParquetFile(path).read()
        value_of |= dict(zip(table["doc_id"].to_pylist(), table["divergence"].to_pylist(), strict=True))
    values = np.array([value_of.get(doc_id, np.nan) for doc_id in doc_ids], dtype=np.float64)
    reasons = {doc_id: NO_TOKENS for doc_id in doc_ids if doc_id not in value_of}
    return DocumentScores(tuple(doc_ids), values, reasons)


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

    suffix, cannot = "embeddings", "embed"
    table = Embeddings

    @property
    def access(self) -> Access:
        return Access.WEIGHTS

    def settings(self, builder: Builder) -> dict[str, Any]:
        embedding = {"layer": self.layer, "dropout_seed": self.dropout_seed}
        return {"embedding": embedding, "max_tokens": self.max_tokens}

    def observe(self, builder: Builder, loaded: LoadedModel, folder: Path) -> dict[str, int]:
        from nonmember.models.encoding import encode_corpus
        from nonmember.observations.passes.documents import embed

        documents = builder.get(self.corpus)
        return embed(
            builder.model_for_trainer(loaded.model),
            dict(zip(documents.doc_ids, encode_corpus(loaded, documents, self.max_tokens), strict=True)),
            self.reading(builder, folder, f"embedding by {self.model.readable}"),
            layer=self.layer,
            dropout_seed=self.dropout_seed,
        )

    def measure(self, builder: Builder) -> Measured:
        return Measured(builder.get(self))
