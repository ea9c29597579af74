"""The tables beside a result."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from nonmember.records import FloatArray


def columns_of(path: Path) -> dict[str, Any]:
    """The columns of a Parquet file as lists; none where there is no such file. Raises ValueError where it cannot be
    read."""
    if not path.is_file():
        return {}
    try:
        return dict(pq.ParquetFile(path).read().to_pydict())
    except (pa.ArrowException, OSError) as error:
        raise ValueError(f"{path} is not a table of an audit ({error})") from error


def distribution_of(path: Path) -> FloatArray:
    """The finite resampled statistics; none where there is no such file."""
    values = np.array(columns_of(path).get("statistic", ()), dtype=np.float64)
    return values[np.isfinite(values)]
