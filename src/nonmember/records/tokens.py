"""Token tables: per scored token its log-probability and the moments of the next-token distribution."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

LOG_PROB_FLOOR = -100.0  # nats; stands for a probability of 0, however a model or a server writes that
TOKEN_SCHEMA = pa.schema(
    [
        ("doc_id", pa.dictionary(pa.int32(), pa.string())),
        ("position", pa.int32()),
        ("token_id", pa.int32()),
        ("log_prob", pa.float32()),
        ("mean", pa.float32()),
        ("std", pa.float32()),
    ]
)


@dataclass(frozen=True)
class TokenTable:
    """What one model said about every scored token of a corpus.

    Rows of a document are contiguous and in order; document i owns rows `offsets[i]:offsets[i + 1]` (none, for a
    text of fewer than two tokens). Natural logarithms.

    Attributes:
        position: Index of the token in its text's ids, so the first scored one is 1.
        token_id: The observed token.
        log_prob: l_t = log p(x_t | x_<t).
        mean: Mean of log p under the model's own next-token distribution.
        std: Standard deviation of the same.
        reasons: Document id -> why it has no rows, where that is not the length of its text.
    """

    doc_ids: tuple[str, ...]
    offsets: npt.NDArray[np.int64]
    position: npt.NDArray[np.int32]
    token_id: npt.NDArray[np.int32]
    log_prob: npt.NDArray[np.float32]
    mean: npt.NDArray[np.float32]
    std: npt.NDArray[np.float32]
    reasons: Mapping[str, str] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.doc_ids)

    @property
    def num_tokens(self) -> npt.NDArray[np.int64]:
        """[documents] number of scored tokens."""
        return np.diff(self.offsets)

    def rows(self, index: int) -> slice:
        return slice(int(self.offsets[index]), int(self.offsets[index + 1]))

    @classmethod
    def load(cls, paths: Path | Sequence[Path], doc_ids: Sequence[str]) -> TokenTable:
        """Read the Parquet parts and put the documents into the order of `doc_ids` (a join, never a zip)."""
        paths = [paths] if isinstance(paths, Path) else list(paths)
        table = pa.concat_tables([pq.ParquetFile(path).read() for path in paths])
        index_of = {doc_id: index for index, doc_id in enumerate(doc_ids)}
        encoded = table["doc_id"].combine_chunks()
        names = encoded.dictionary.to_pylist()
        if unknown := [name for name in names if name not in index_of]:
            raise ValueError(
                f"The observations contain documents that the corpus does not have, first {unknown[0]!r}. "
                "They belong to another corpus; observe this one."
            )
        code = np.array([index_of[name] for name in names], dtype=np.int64)
        document = code[np.from_dlpack(encoded.indices)]  # Arrow's own to_numpy imports pandas
        column: dict[str, Any] = {name: np.from_dlpack(table[name].combine_chunks()) for name in TOKEN_SCHEMA.names[1:]}
        order = np.lexsort((column["position"], document))
        offsets = np.concatenate([[0], np.cumsum(np.bincount(document, minlength=len(doc_ids)))]).astype(np.int64)
        return cls(tuple(doc_ids), offsets, **{name: values[order] for name, values in column.items()})
