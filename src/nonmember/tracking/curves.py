"""Training curves, from Lightning to a tracker. A module of its own, so that trackers need no Lightning."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lightning.pytorch.loggers.logger import Logger

from nonmember.tracking.trackers import Tracker


class CurveLogger(Logger):
    """Hands a trainer's metrics to a tracker under a prefix of ours."""

    def __init__(self, tracker: Tracker, prefix: str):
        super().__init__()
        self._tracker, self._prefix = tracker, prefix

    @property
    def name(self) -> str:
        return self._prefix

    @property
    def version(self) -> str:
        return ""

    def log_hyperparams(self, *_: Any, **__: Any) -> None:
        """The run's config says it already."""

    def log_metrics(self, metrics: Mapping[str, float], step: int | None = None) -> None:
        values = {name.split("/", 1)[-1]: value for name, value in metrics.items() if name != "epoch"}
        self._tracker.log(self._prefix, values, step or 0)
