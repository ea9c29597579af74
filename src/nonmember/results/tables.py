"""The tables beside a result, which may come from anybody: plain files of a size that an audit writes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from nonmember.records import FloatArray

MOST_CELLS = 100_000_000  # rows times columns


def columns_of(path: Path) -> dict[str, Any]:
    """The columns of a Parquet file as lists; none where there is no such file.

    Raises:
        ValueError: where it cannot be read, or holds more than any audit writes.
    """
    if not path.is_file():
        return {}
    try:
        return dict(table_of(path.read_bytes()).to_pydict())
    except (pa.ArrowException, ValueError, OSError) as error:
        raise ValueError(f"{path} is not a table of an audit ({error})") from error


def table_of(content: bytes) -> pa.Table:
    """Of a Parquet file's bytes. Raises ValueError where it holds more than any audit writes."""
    file = pq.ParquetFile(pa.BufferReader(content))
    if (cells := file.metadata.num_rows * file.metadata.num_columns) > MOST_CELLS:
        raise ValueError(f"it holds {cells:,} values; a table of an audit has at most {MOST_CELLS:,}")
    return file.read()


def distribution_of(path: Path) -> FloatArray:
    """The finite resampled statistics; none where there is no such file."""
    values = np.array(columns_of(path).get("statistic", ()), dtype=np.float64)
    return values[np.isfinite(values)]
