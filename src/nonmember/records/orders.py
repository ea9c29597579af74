"""Log-likelihoods of an ordered file's shards, in their own order and in random ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from nonmember.records.arrays import FloatArray

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
        place = {doc_id: index for index, doc_id in enumerate(doc_ids)}
        shard = np.array([place[name] for name in table["doc_id"].to_pylist()], np.int64)
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
