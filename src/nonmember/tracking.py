"""Where the numbers of a run go besides the disk: W&B, a CSV file, or nowhere. One small interface for all three.

Names never change: test/p_value, test/statistic, test/ci_low, test/ci_high, rho/reference_target,
rho/distilled_target, health/..., train/loss, train/ce, train/kl. Curves of models made on the way to the audited ones
are under train_<role>/... No document text is ever sent.
"""

from __future__ import annotations

import contextlib
import csv
import os
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from lightning.pytorch.loggers.logger import Logger


@dataclass(frozen=True)
class RunInfo:
    """What a run is called. `config` is plain JSON; `folder` is the run's own."""

    name: str
    group: str
    job_type: str
    tags: Sequence[str]
    config: Mapping[str, Any]
    folder: Path


class Tracker(ABC):
    """An open run. As a context manager it is always finished, and marked as failed when an exception passes."""

    @abstractmethod
    def log(self, prefix: str, values: Mapping[str, float], step: int) -> None:
        """One point of the curves `<prefix>/<name>`, over the axis `<prefix>/step`."""

    @abstractmethod
    def summarise(self, values: Mapping[str, float | str]) -> None:
        """Final values, one each."""

    def histogram(self, name: str, values: Sequence[float]) -> None:  # noqa: B027
        """A distribution; kept by those who can show one."""

    def scores(self, name: str, columns: Mapping[str, Sequence[Any]]) -> None:  # noqa: B027
        """A table with a row per document: ids and numbers, no text."""

    @abstractmethod
    def finish(self, *, failed: bool) -> None: ...

    @contextlib.contextmanager
    def training(self, role: str) -> Iterator[list[Logger]]:
        """Loggers for a Lightning trainer whose metrics are named train/... (role `distilled`) or train_<role>/..."""
        yield [CurveLogger(self, "train" if role == "distilled" else f"train_{role}")]

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.finish(failed=kind is not None)


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


class NoTracker(Tracker):
    """Nothing but what is on the disk anyway."""

    def log(self, prefix: str, values: Mapping[str, float], step: int) -> None: ...

    def summarise(self, values: Mapping[str, float | str]) -> None: ...

    def finish(self, *, failed: bool) -> None: ...


class CsvTracker(Tracker):
    """`metrics.csv` in the run's folder: name, step, value; a line at a time, so a killed run keeps its lines."""

    def __init__(self, info: RunInfo):
        info.folder.mkdir(parents=True, exist_ok=True)
        self._stream = (info.folder / "metrics.csv").open("w", newline="", encoding="utf-8", buffering=1)
        self._writer = csv.writer(self._stream)
        self._writer.writerow(["name", "step", "value"])

    def log(self, prefix: str, values: Mapping[str, float], step: int) -> None:
        self._writer.writerows([f"{prefix}/{name}", step, value] for name, value in values.items())

    def summarise(self, values: Mapping[str, float | str]) -> None:
        self._writer.writerows([name, "", value] for name, value in values.items())

    def finish(self, *, failed: bool) -> None:
        if not self._stream.closed:
            self._writer.writerow(["status", "", "failed" if failed else "finished"])
            self._stream.close()


class WandbTracker(Tracker):
    """One W&B run. Everything W&B writes stays under `directory`, so no writable home is needed."""

    def __init__(self, info: RunInfo, *, project: str, mode: str, directory: Path):
        directory = directory.resolve()
        directory.mkdir(parents=True, exist_ok=True)
        for name in ("CACHE", "CONFIG", "DATA"):
            os.environ.setdefault(f"WANDB_{name}_DIR", str(directory / f".{name.lower()}"))
        import wandb

        self._wandb = wandb
        try:
            self._run = wandb.init(
                project=project, mode=mode, dir=str(directory), name=info.name, group=info.group,  # type: ignore[arg-type]
                job_type=info.job_type, tags=list(info.tags), config=dict(info.config), reinit="create_new",
                settings=wandb.Settings(silent=True, console="off", x_disable_stats=True, x_disable_meta=True),
            )  # fmt: skip
        except wandb.Error as error:
            raise ValueError(
                f"W&B could not start in mode {mode!r}: {error} Use logger.mode=offline, or set WANDB_API_KEY."
            ) from error
        self._axes: set[str] = set()

    def log(self, prefix: str, values: Mapping[str, float], step: int) -> None:
        if prefix not in self._axes:
            self._axes.add(prefix)
            self._run.define_metric(f"{prefix}/step")
            self._run.define_metric(f"{prefix}/*", step_metric=f"{prefix}/step")
        self._run.log({f"{prefix}/{name}": value for name, value in values.items()} | {f"{prefix}/step": step})

    def summarise(self, values: Mapping[str, float | str]) -> None:
        self._run.summary.update(dict(values))

    def histogram(self, name: str, values: Sequence[float]) -> None:
        self._run.log({name: self._wandb.Histogram(list(values), num_bins=64)})

    def scores(self, name: str, columns: Mapping[str, Sequence[Any]]) -> None:
        rows: list[Any] = [list(row) for row in zip(*columns.values(), strict=True)]
        self._run.log({name: self._wandb.Table(columns=list(columns), data=rows)})

    def finish(self, *, failed: bool) -> None:
        self._run.summary["status"] = "failed" if failed else "finished"
        self._run.finish(exit_code=int(failed))


# What the `logger=` configs build: settings first, a run when its folder and name are known.


@dataclass(frozen=True)
class NoLogging:
    def start(self, info: RunInfo) -> Tracker:
        return NoTracker()


@dataclass(frozen=True)
class CsvLogging:
    def start(self, info: RunInfo) -> Tracker:
        return CsvTracker(info)


@dataclass(frozen=True)
class WandbLogging:
    """mode: offline, online or disabled."""

    project: str
    mode: str
    directory: str

    def start(self, info: RunInfo) -> Tracker:
        return WandbTracker(info, project=self.project, mode=self.mode, directory=Path(self.directory))


Logging = NoLogging | CsvLogging | WandbLogging
