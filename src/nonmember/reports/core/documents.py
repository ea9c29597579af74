"""Scores of single documents, read only for what results do not hold."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from nonmember.records import FloatArray
from nonmember.results.load import Run
from nonmember.results.result import SCORES

KEYS = ("doc_id", "group")  # columns that are no scores


@dataclass(frozen=True)
class DocumentValues:
    # Group of documents -> column -> a value per document, NaN where it is undefined.
    columns: Mapping[str, Mapping[str, FloatArray]]
    ids: Mapping[str, tuple[str, ...]]  # group -> those of its documents, in the same order
    # path, sha256: of the file, as of a result's
    path: str
    sha256: str

    def num_documents(self, group: str) -> int:
        return len(next(iter(self.columns[group].values()))) if group in self.columns else 0


def read_values(run: Run, columns: Sequence[str] | None = None) -> DocumentValues:
    """These columns of scores.parquet, or all scores. Raises ValueError with the reason where they cannot be had."""
    path = run.folder / SCORES if run.folder is not None else None
    if path is None or not path.is_file():
        raise ValueError(f"there is no {SCORES} beside the result")
    try:
        content = path.read_bytes()
        table = pq.ParquetFile(pa.BufferReader(content)).read()
        groups = np.array(table["group"].to_pylist())
        ids = np.array(table["doc_id"].to_pylist(), dtype=object)
        wanted = [item for item in table.column_names if item not in KEYS] if columns is None else columns
        values = {name: table[name].cast(pa.float64()).to_numpy() for name in wanted}
    except (OSError, KeyError, ValueError, pa.ArrowException) as error:
        raise ValueError(f"{SCORES} cannot be read ({str(error).splitlines()[0]})") from error
    name = run.path.rpartition("/")[0] + f"/{SCORES}"
    by_group = {
        str(group): {name: column[groups == group] for name, column in values.items()} for group in np.unique(groups)
    }
    ids_of = {group: tuple(map(str, ids[groups == group])) for group in by_group}
    return DocumentValues(by_group, ids_of, name, hashlib.sha256(content).hexdigest())
