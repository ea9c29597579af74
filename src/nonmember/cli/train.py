"""`nonmember train`: train a model from its spec."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from omegaconf import DictConfig

from nonmember.config.roots import plain, require_complete, run_with_hydra
from nonmember.runtime.processes import process_rank
from nonmember.runtime.quiet import quieten


def main() -> None:
    """Print the model's folder as the last line."""

    def run(config: DictConfig, folder: Path) -> None:
        sys.stdout.write(f"{train_model(config, folder)}\n")

    run_with_hydra("train", run)


def train_model(config: DictConfig, folder: Path) -> Path:
    """The folder of the model: the store's, or `export`, where a copy of it is put."""
    if "path" in config.model.keys():  # noqa: SIM118 (`???` counts)
        raise ValueError(
            "model must be a training recipe; got a finished model. Use model=tuned for your own documents, or a "
            "recipe of a world, as in world=micro model=micro_target_high."
        )
    require_complete(config)
    from nonmember.config.build import build, check_places, check_settings
    from nonmember.training import Trained

    check_settings(config)
    spec = build(config.model)
    if not isinstance(spec, Trained):
        raise ValueError("model must be a training recipe. Choose one of `nonmember list models`.")
    check_places(spec)
    if config.merge and (config.export is None or not spec.adapts):
        what = "a model with an adapter" if config.export is not None else "export=FOLDER"
        raise ValueError(f"merge=true writes an adapter and its base as one model; it needs {what}.")
    export = None if config.export is None else Path(config.export).resolve()
    if export is not None and export.exists():
        raise ValueError(f"{export} already exists; name a new folder in export=...")
    from nonmember.artifacts import Builder
    from nonmember.artifacts.store import SIDECAR, Store
    from nonmember.models.loading import save
    from nonmember.records.curves import CURVES
    from nonmember.tracking.trackers import Loggings, NoLogging, RunInfo

    quieten()
    compute = build(config.trainer)
    info = RunInfo(folder.name, "train", "train", [spec.label], plain(config), folder)
    logger = Loggings(build(config.logger)) if process_rank() == 0 else NoLogging()
    with logger.start(info) as tracker:
        builder = Builder(Store(Path(config.store)), compute, tracker)
        path = builder.entry(spec).path
    if export is None or process_rank() > 0:
        return path.resolve()
    partial = export.with_name(f".{export.name}.partial")  # a kill or a full disk leaves no half of a model
    shutil.rmtree(partial, ignore_errors=True)
    if config.merge:
        save(spec.weights(builder), partial)
    else:
        shutil.copytree(path, partial, ignore=shutil.ignore_patterns(SIDECAR, CURVES))
    return partial.rename(export)
