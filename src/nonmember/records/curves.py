"""The curves of a training: a file beside the weights."""

from __future__ import annotations

import csv
from pathlib import Path

CURVES = "curves.csv"
CURVE_COLUMNS = ("name", "step", "value")


def read_curves(path: Path) -> list[tuple[str, int, float]]:
    """Name, step and value of each point of the curves that lie beside a model."""
    with path.open(newline="", encoding="utf-8") as stream:
        try:
            return [(row["name"], int(row["step"]), float(row["value"])) for row in csv.DictReader(stream)]
        except (KeyError, TypeError, ValueError) as error:
            raise ValueError(f"{path} must have the columns {', '.join(CURVE_COLUMNS)}; it cannot be read.") from error
