"""What models say of each document, or each shard of an ordered file: embeddings, divergences, likelihoods."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

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
        index_of = {doc_id: index for index, doc_id in enumerate(doc_ids)}
        width = pq.read_schema(paths[0]).field("vector").type.list_size
        values_ND = np.zeros((len(doc_ids), width), np.float32)
        found = np.zeros(len(doc_ids), bool)
        for batch in (batch for path in paths for batch in pq.ParquetFile(path).iter_batches()):
            names = batch["doc_id"].to_pylist()
            if unknown := [name for name in names if name not in index_of]:
                raise ValueError(
                    f"The embeddings contain documents that the corpus does not have, first {unknown[0]!r}. "
                    "They belong to another corpus; embed this one."
                )
            rows = [index_of[name] for name in names]
            values_ND[rows] = batch["vector"].flatten().to_numpy().reshape(-1, width)
            found[rows] = True
        reasons = {doc_ids[index]: NO_EMBEDDING for index in np.flatnonzero(~found).tolist()}
        zero = found & ~values_ND.any(axis=1)
        reasons |= {doc_ids[index]: ZERO_EMBEDDING for index in np.flatnonzero(zero).tolist()}
        return cls(tuple(doc_ids), values_ND, reasons)


ORDER_SCHEMA = pa.schema(
    [
        ("doc_id", pa.dictionary(pa.int32(), pa.string())),
        ("order", pa.int32()),
        ("draws", pa.int32()),
        ("start", pa.int32()),
        ("num_read", pa.int32()),
        ("num_tokens", pa.int32()),
        ("log_prob", pa.float64()),
    ]
)


@dataclass(frozen=True)
class OrderTable:
    """How likely a model found each shard of an ordered file; all of them [shards]. Natural logarithms, summed.

    On disk there is a row per window of each order: `order` 0 is the own one, and `draws` how many of the random orders
    were this one.

    Attributes:
        canonical: Log-likelihood in the shard's own order.
        mean_shuffled: Its mean over random orders.
        num_tokens: Scored ones of one order.
        num_read: Tokens that were read for all orders, some of them twice.
    """

    doc_ids: tuple[str, ...]
    canonical: FloatArray
    mean_shuffled: FloatArray
    num_tokens: FloatArray
    num_read: FloatArray

    @classmethod
    def load(cls, paths: Sequence[Path], doc_ids: Sequence[str]) -> OrderTable:
        """Add up the windows in the Parquet parts (by a join, never a zip), shards in the order of `doc_ids`."""
        table = pa.concat_tables([pq.read_table(path, schema=ORDER_SCHEMA) for path in paths])
        index_of = {doc_id: index for index, doc_id in enumerate(doc_ids)}
        shard = np.array([index_of[name] for name in table["doc_id"].to_pylist()], np.int64)
        column = {name: table[name].to_numpy() for name in ORDER_SCHEMA.names if name != "doc_id"}
        # In one order, whichever process wrote a row: sums of the same numbers are then the same.
        rows = np.lexsort((column["start"], column["order"], shard))
        shard, column = shard[rows], {name: values[rows] for name, values in column.items()}

        def per_shard(values: npt.NDArray[Any]) -> FloatArray:
            return np.bincount(shard, values, minlength=len(doc_ids)).astype(np.float64)

        own, first, draws, log_prob = column["order"] == 0, column["start"] == 0, column["draws"], column["log_prob"]
        return cls(
            tuple(doc_ids),
            canonical=per_shard(own * log_prob),
            mean_shuffled=per_shard(draws * log_prob) / per_shard(first * draws),
            num_tokens=per_shard(own * column["num_tokens"]),
            num_read=per_shard(column["num_read"]),
        )


FloatArray = npt.NDArray[np.float64]
VectorArray = npt.NDArray[np.float32]  # [documents, width]
