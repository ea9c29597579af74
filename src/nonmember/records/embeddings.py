"""Embeddings of documents, and divergences between two models."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from nonmember.records.arrays import VectorArray

DIVERGENCE_SCHEMA = pa.schema([("doc_id", pa.string()), ("divergence", pa.float32())])

NO_EMBEDDING = "no embedding: the text has fewer than two tokens"
ZERO_EMBEDDING = "the embedding is zero and has no direction"


def embedding_schema(width: int) -> pa.Schema:
    return pa.schema([("doc_id", pa.string()), ("vector", pa.list_(pa.float32(), width))])


@dataclass(frozen=True)
class Embeddings:
    """One vector per document of a corpus, of length 1.

    Attributes:
        values: [documents, width] float32.
        reasons: Why a document has no vector, or one without a direction: its row is zero.
    """

    doc_ids: tuple[str, ...]
    values: VectorArray
    reasons: Mapping[str, str]

    @classmethod
    def load(cls, paths: Sequence[Path], doc_ids: Sequence[str]) -> Embeddings:
        """Read the Parquet parts and put the documents into the order of `doc_ids` (a join, never a zip)."""
        place = {doc_id: index for index, doc_id in enumerate(doc_ids)}
        width = pq.read_schema(paths[0]).field("vector").type.list_size
        values_ND = np.zeros((len(doc_ids), width), np.float32)
        found = np.zeros(len(doc_ids), bool)
        for batch in (batch for path in paths for batch in pq.ParquetFile(path).iter_batches()):
            names = batch["doc_id"].to_pylist()
            if unknown := [name for name in names if name not in place]:
                raise ValueError(
                    f"The embeddings contain documents that the corpus does not have, first {unknown[0]!r}. "
                    "They belong to another corpus; embed this one."
                )
            rows = [place[name] for name in names]
            values_ND[rows] = batch["vector"].flatten().to_numpy().reshape(-1, width)
            found[rows] = True
        reasons = {doc_ids[index]: NO_EMBEDDING for index in np.flatnonzero(~found).tolist()}
        zero = found & ~values_ND.any(axis=1)
        reasons |= {doc_ids[index]: ZERO_EMBEDDING for index in np.flatnonzero(zero).tolist()}
        return cls(tuple(doc_ids), values_ND, reasons)
