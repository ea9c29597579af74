"""Norms of the gradient of each document's loss."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from nonmember.records.arrays import FloatArray

NORMS = ("l1", "l2", "max")
GRADIENT_SCHEMA = pa.schema([("doc_id", pa.string()), *((name, pa.float64()) for name in NORMS)])


@dataclass(frozen=True)
class GradientNorms:
    """Of the gradient of the mean loss per token with respect to each parameter tensor, its mean over the tensors.

    Attributes:
        values: norm -> [documents], NaN for a text of fewer than two tokens.
    """

    doc_ids: tuple[str, ...]
    values: Mapping[str, FloatArray]

    def in_order_of(self, doc_ids: Sequence[str], norm: str) -> FloatArray:
        of = dict(zip(self.doc_ids, self.values[norm], strict=True))
        return np.array([of[doc_id] for doc_id in doc_ids])

    @classmethod
    def load(cls, paths: Sequence[Path], doc_ids: Sequence[str]) -> GradientNorms:
        """Read the Parquet parts and put the documents into the order of `doc_ids` (a join, never a zip)."""
        table = pa.concat_tables([pq.read_table(path, schema=GRADIENT_SCHEMA) for path in paths])
        place = {doc_id: index for index, doc_id in enumerate(table["doc_id"].to_pylist())}
        values = {name: np.append(table[name].to_numpy(), np.nan) for name in NORMS}
        order = [place.get(doc_id, -1) for doc_id in doc_ids]
        return cls(tuple(doc_ids), {name: column[order] for name, column in values.items()})
