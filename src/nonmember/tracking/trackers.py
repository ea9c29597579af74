"""Trackers: W&B, a CSV file, loggers of Lightning's, several of them or none, behind one small interface.

Names never change.
  summary   test/p_value, test/statistic and the same under its own name (test/Delta ...), test/ci_low, test/ci_high,
            rho/reference_target, rho/distilled_target, rho/..., score/auroc, score/tpr_at_..., health/...,
            capability/<role>/..., detail/..., verdict, status, num_documents, num_excluded, num_tokens, num_warnings,
            warnings, seconds; of a failed audit error, error_kind
  curves    train/loss, train/ce, train/kl; of models made on the way to the audited ones train_<role>/...
  media     test/distribution (histogram), scores (table), figure/distribution, figure/ranks
  config    the resolved config; under `cell` what an audit is grouped by, flat (nonmember.results.mirror.facts_of);
            under `provenance` keys, fingerprints of the data, versions, commits, and what the models began from
  artifact  audit-<key of the audit>: result.json and scores.parquet

No document text is sent unless it is asked for (log_text). A W&B run has an id of its own that the audit determines,
so logging an audit twice updates the same run.
"""

from __future__ import annotations

import contextlib
import csv
import hashlib
import io
import json
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from nonmember.checks import require_choice
from nonmember.records.curves import read_curves
from nonmember.runtime.files import write_text_atomically
from nonmember.runtime.naming import short_hash

if TYPE_CHECKING:
    from lightning.pytorch.loggers.logger import Logger

LOGGED = "logged.json"  # beside the result: where it was logged to, and under which id
RUN_ID_LENGTH = 16
INIT_SECONDS = 30  # W&B itself tries for 100 seconds
METRICS = "metrics.csv"
LONGEST_TAG = 64  # W&B refuses a run with a longer one
NAME = re.compile(r"(?!(null|true|false|nan|inf)$)[A-Za-z].*")  # a value that says by itself what it is
SHORT = {"k": "K", "learning_rate": "rate"}
SWEPT = {"lambda": ("distillation", "lambda_"), "tau": ("distillation", "tau"), "k": ("score", "k")}  # in `method`


def run_id_of(sweep: str, cell: str, audit_key: str) -> str:
    """The W&B id of an audit's run. audit_key: hash of the question; empty for one that failed before it had one."""
    return hashlib.sha256(f"{sweep}|{cell}|{audit_key}".encode()).hexdigest()[:RUN_ID_LENGTH]


def logged_to(folder: Path) -> list[str]:
    """Where the audit of this folder was logged to, each with the id of the run."""
    try:
        return [str(mark) for mark in json.loads((folder / LOGGED).read_text(encoding="utf-8"))]
    except (OSError, ValueError, TypeError):
        return []


def is_kept_offline(folder: Path) -> bool:
    """Whether the audit of this folder has a W&B run that was written to the disk alone."""
    return any(mark.startswith("wandb ") and " offline " in mark for mark in logged_to(folder))


def name_in_words(folder: str, config: Mapping[str, Any]) -> str:
    """What differs in a cell, as people say it: scipy-a · lambda .3 · K .4 of the name of its folder,
    data.domain=scipy,data.half=a,method.distillation.lambda_=0.3,method.score.k=0.4. To other names, which end with a
    hash, the method's lambda, tau and K are added."""
    parts: list[str] = []
    for index, part in enumerate(folder.split(",")):
        key, mark, value = part.partition("=")
        if not mark and index == 0:
            return " · ".join([folder, *_swept_settings(config)])
        setting = re.split(r"[.@]", key)[-1].rstrip("_")
        if not mark:  # of a list
            parts[-1] += f",{part}"
        elif setting == "half" and parts:
            parts[-1] += f"-{value}"
        elif NAME.fullmatch(value):
            parts.append(value)
        else:
            parts.append(_setting_in_words(setting, value))
    return " · ".join(parts)


def _setting_in_words(setting: str, value: str) -> str:
    number = re.sub(r"^(-?)0(?=\.)", r"\1", value)
    return f"{SHORT.get(setting, setting.replace('_', ' '))} {number}"


def _swept_settings(config: Mapping[str, Any]) -> Iterator[str]:
    for name, (part, key) in SWEPT.items():
        above = (config.get("method") or {}).get(part)
        value = above.get(key) if isinstance(above, Mapping) else None
        if isinstance(value, int | float):
            yield _setting_in_words(name, f"{value:g}")


@dataclass(frozen=True)
class RunInfo:
    """What a run is called. `config` is plain JSON; `folder` is the run's own."""

    name: str
    group: str
    job_type: str
    tags: Sequence[str]
    config: Mapping[str, Any]
    folder: Path
    run_id: str | None = None  # of an audit (`run_id_of`); None: W&B takes a fresh one, and nothing is noted

    def has_run_in(self, where: str) -> bool:
        return f"{where} {self.run_id}" in logged_to(self.folder)

    def note_run_in(self, where: str) -> None:
        """Leave beside the result that it need not be logged there again."""
        if self.run_id is not None and self.folder.is_dir():
            marks = sorted({*logged_to(self.folder), f"{where} {self.run_id}"})
            write_text_atomically(self.folder / LOGGED, json.dumps(marks) + "\n")


class Tracker:
    """An open run, of which each kind keeps what it can. As a context it is finished, as failed where that raises."""

    takes_media: bool = False  # whether tables, histograms and figures are worth making
    log_text: bool = False  # whether texts may be sent

    def log(self, prefix: str, values: Mapping[str, float], step: int) -> None:
        """One point of the curves `<prefix>/<name>`, over the axis `<prefix>/step`."""

    def summarise(self, values: Mapping[str, float | str]) -> None:
        """Final values, one each."""

    def describe(self, name: str, facts: Mapping[str, Any]) -> None:
        """Plain values that say what the run was, beside its config under `name`."""

    def histogram(self, name: str, values: Sequence[float]) -> None:
        """A distribution."""

    def scores(self, name: str, columns: Mapping[str, Sequence[Any]]) -> None:
        """A table with a row per document: ids and numbers, text only with `log_text`."""

    def figure(self, name: str, png: bytes) -> None:
        """A picture."""

    def files(self, name: str, files: Mapping[str, bytes | Path]) -> None:
        """Files under their names, as one artifact."""

    def finish(self, *, failed: bool) -> None:
        """Nothing more is told."""

    @contextlib.contextmanager
    def training(self, role: str) -> Iterator[list[Logger]]:
        """Loggers for a Lightning trainer whose metrics are named train/... (role `distilled`) or train_<role>/..."""
        from nonmember.tracking.curves import CurveLogger

        yield [CurveLogger(self, _prefix_of(role))]

    def training_again(self, role: str, curves: Path) -> None:
        """The curves of a training that is not seen now, from the file that was kept with the model."""
        steps: dict[int, dict[str, float]] = {}
        for name, step, value in read_curves(curves):
            steps.setdefault(step, {})[name] = value
        for step, values in steps.items():
            self.log(_prefix_of(role), values, step)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self.finish(failed=kind is not None)


class NoTracker(Tracker):
    """Nothing but what is on the disk anyway."""

    def training_again(self, role: str, curves: Path) -> None: ...


class CsvTracker(Tracker):
    """`metrics.csv` in the run's folder: name, step, value; a line at a time, so a killed run keeps its lines."""

    def __init__(self, info: RunInfo):
        self._info = info
        info.folder.mkdir(parents=True, exist_ok=True)
        self._stream = (info.folder / METRICS).open("w", newline="", encoding="utf-8", buffering=1)
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
            if not failed:
                self._info.note_run_in(METRICS)


def _prefix_of(role: str) -> str:
    return "train" if role == "distilled" else f"train_{role}"


def prepare_wandb(directory: Path) -> Any:
    """The wandb module, which writes nothing outside `directory`."""
    directory.mkdir(parents=True, exist_ok=True)
    for name in ("CACHE", "CONFIG", "DATA"):
        os.environ.setdefault(f"WANDB_{name}_DIR", str(directory.resolve() / f".{name.lower()}"))
    os.environ.setdefault("WANDB_SILENT", "true")  # it talks of logins and artifacts even where a run is silent
    import wandb

    return wandb


class WandbTracker(Tracker):
    """One W&B run. Everything W&B writes stays in its directory, so no writable home is needed."""

    takes_media = True

    def __init__(self, info: RunInfo, settings: WandbLogging):
        self.log_text = settings.log_text
        self._info, self._where = info, settings.where
        directory = Path(settings.directory)
        self._wandb = wandb = prepare_wandb(directory)
        try:
            self._run = wandb.init(
                project=settings.project,
                entity=settings.entity,
                mode=settings.mode,
                dir=str(directory.resolve()),
                name=name_in_words(info.name, info.config),
                group=info.group,
                job_type=info.job_type,
                tags=[tag[:LONGEST_TAG] for tag in info.tags],
                config=dict(info.config),
                id=info.run_id,
                resume="allow" if settings.mode == "online" else None,
                reinit="create_new",
                settings=wandb.Settings(
                    silent=True, console="off", x_disable_stats=True, x_disable_meta=True, init_timeout=INIT_SECONDS
                ),
            )
        except wandb.Error as error:
            raise ValueError(
                f"W&B could not start in mode {settings.mode!r}: {error} Use logger.wandb.mode=offline, or set "
                "WANDB_API_KEY."
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

    def describe(self, name: str, facts: Mapping[str, Any]) -> None:
        self._run.config.update({name: dict(facts)}, allow_val_change=True)

    def histogram(self, name: str, values: Sequence[float]) -> None:
        self._run.log({name: self._wandb.Histogram(list(values), num_bins=64)})

    def scores(self, name: str, columns: Mapping[str, Sequence[Any]]) -> None:
        rows: list[Any] = [list(row) for row in zip(*columns.values(), strict=True)]
        self._run.log({name: self._wandb.Table(columns=list(columns), data=rows)})

    def figure(self, name: str, png: bytes) -> None:
        import PIL.Image

        with PIL.Image.open(io.BytesIO(png)) as image:
            self._run.log({name: self._wandb.Image(image)})

    def files(self, name: str, files: Mapping[str, bytes | Path]) -> None:
        artifact = self._wandb.Artifact(name, type="audit")
        for file, content in files.items():
            with artifact.new_file(file, mode="wb") as stream:
                stream.write(content.read_bytes() if isinstance(content, Path) else content)
        self._run.log_artifact(artifact)

    def finish(self, *, failed: bool) -> None:
        self._run.summary["status"] = "failed" if failed else "finished"
        self._run.finish(exit_code=int(failed))
        if not failed:
            self._info.note_run_in(self._where)


class LightningTracker(Tracker):
    """A run in a logger of Lightning's own, which takes numbers and settings."""

    def __init__(self, logger: Logger, info: RunInfo, where: str):
        self._logger, self._info, self._where = logger, info, where
        logger.log_hyperparams(dict(info.config))

    def log(self, prefix: str, values: Mapping[str, float], step: int) -> None:
        self._logger.log_metrics({f"{prefix}/{name}": float(value) for name, value in values.items()}, step)

    def summarise(self, values: Mapping[str, float | str]) -> None:
        numbers = {name: float(value) for name, value in values.items() if not isinstance(value, str)}
        self._logger.log_metrics(numbers, 0)

    def finish(self, *, failed: bool) -> None:
        self._logger.save()
        self._logger.finalize("failed" if failed else "success")
        if not failed:
            self._info.note_run_in(self._where)


def _by_each(name: str) -> Any:
    """The method of this name of a `Trackers`: that of each of them."""

    def told(self: Trackers, *given: Any, **named: Any) -> None:
        for item in self.trackers:
            getattr(item, name)(*given, **named)

    return told


class Trackers(Tracker):
    """Several at once. Each is finished, whatever the others do."""

    log, summarise, describe = map(_by_each, ("log", "summarise", "describe"))
    histogram, figure, files = map(_by_each, ("histogram", "figure", "files"))

    def __init__(self, trackers: Sequence[Tracker]):
        self.trackers = trackers
        self.takes_media = any(item.takes_media for item in trackers)
        self.log_text = any(item.log_text for item in trackers)

    def scores(self, name: str, columns: Mapping[str, Sequence[Any]]) -> None:
        without_text = {column: values for column, values in columns.items() if column != "text"}
        for item in self.trackers:
            item.scores(name, columns if item.log_text else without_text)

    def finish(self, *, failed: bool) -> None:
        with contextlib.ExitStack() as stack:
            for item in self.trackers:
                stack.callback(item.finish, failed=failed)


# What the `logger=` configs build: settings first, a run when its folder and name are known (`start`). `has`: whether
# there is nothing left to log of a result that lies in the folder.


@dataclass(frozen=True)
class NoLogging:
    def has(self, info: RunInfo) -> bool:
        return True

    def start(self, info: RunInfo) -> Tracker:
        return NoTracker()


@dataclass(frozen=True)
class CsvLogging:
    def has(self, info: RunInfo) -> bool:
        return info.has_run_in(METRICS)

    def start(self, info: RunInfo) -> Tracker:
        return CsvTracker(info)


@dataclass(frozen=True)
class WandbLogging:
    project: str
    mode: str  # offline, online or disabled
    directory: str
    entity: str | None = None  # a team, None for one's own
    log_text: bool = False  # whether texts are sent

    @property
    def where(self) -> str:
        return f"wandb {self.entity or 'default'}/{self.project} {self.mode}"

    def has(self, info: RunInfo) -> bool:
        return self.mode == "disabled" or info.has_run_in(self.where)

    def start(self, info: RunInfo) -> Tracker:
        return WandbTracker(info, self)


@dataclass(frozen=True)
class LightningLogging:
    """A logger of Lightning's own: TensorBoard, MLflow, Comet, one's own."""

    make_logger: Callable[..., Logger]  # its class, with its settings (`_partial_: true`)
    named: Mapping[str, str]  # its argument -> what of the run it is given: `name`, `group` or `folder`

    def __post_init__(self) -> None:
        for argument, what in self.named.items():
            require_choice(what, ("name", "group", "folder"), f"named.{argument}")

    def has(self, info: RunInfo) -> bool:
        return info.has_run_in(self._where)

    def start(self, info: RunInfo) -> Tracker:
        logger = self.make_logger(**{name: str(getattr(info, what)) for name, what in self.named.items()})
        return LightningTracker(logger, info, self._where)

    @property
    def _where(self) -> str:
        maker: Any = getattr(self.make_logger, "func", self.make_logger)
        settings = sorted(getattr(self.make_logger, "keywords", {}).items())
        return f"{maker.__name__} {short_hash(str(settings))}"


@dataclass(frozen=True)
class Loggings:
    """All of the `logger` group, by their names."""

    loggers: Mapping[str, Any]

    def has(self, info: RunInfo) -> bool:
        return all(logger.has(info) for logger in self.loggers.values())

    def start(self, info: RunInfo) -> Tracker:
        """The run in those that lack it; in all, where it is not found but made."""
        with contextlib.ExitStack() as stack:
            trackers = [stack.enter_context(logger.start(info)) for logger in self.loggers.values()]
            stack.pop_all()
        return trackers[0] if len(trackers) == 1 else Trackers(trackers)
