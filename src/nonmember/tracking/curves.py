"""Training curves, from Lightning to a tracker and to a file beside the model. Trackers need no Lightning."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from lightning.pytorch.loggers.logger import Logger

from nonmember.records.curves import CURVE_COLUMNS, read_curves

if TYPE_CHECKING:
    from nonmember.tracking.trackers import Tracker


class CurveLogger(Logger):
    """Hands a trainer's metrics to a tracker under a prefix of ours."""

    version = ""

    def __init__(self, tracker: Tracker, prefix: str):
        super().__init__()
        self._tracker, self._prefix = tracker, prefix

    @property
    def name(self) -> str:
        return self._prefix

    def log_hyperparams(self, *_: Any, **__: Any) -> None:
        """The run's config says it already."""

    def log_metrics(self, metrics: Mapping[str, float], step: int | None = None) -> None:
        self._tracker.log(self._prefix, _values(metrics), step or 0)


class KeptCurves(Logger):
    """Writes the metrics to a CSV file (name, step, value), a line at a time; of a run that goes on from a resume point
    the lines up to that point stay."""

    name, version = "curves", ""

    def __init__(self, path: Path):
        super().__init__()
        self._path = path
        self._stream: IO[str] | None = None

    def log_hyperparams(self, *_: Any, **__: Any) -> None:
        """The recipe lies beside it."""

    def log_metrics(self, metrics: Mapping[str, float], step: int | None = None) -> None:
        stream = self._stream or self._opened(before=step or 0)
        csv.writer(stream).writerows([name, step or 0, value] for name, value in _values(metrics).items())

    def finalize(self, status: str) -> None:
        if self._stream is not None:
            self._stream.close()
            self._stream = None

    def _opened(self, before: int) -> IO[str]:
        kept = [row for row in read_curves(self._path) if row[1] < before] if self._path.exists() else []
        self._stream = self._path.open("w", newline="", encoding="utf-8", buffering=1)
        csv.writer(self._stream).writerows([CURVE_COLUMNS, *kept])
        return self._stream


def _values(metrics: Mapping[str, float]) -> dict[str, float]:
    return {name.split("/", 1)[-1]: float(value) for name, value in metrics.items() if name != "epoch"}
