"""The Hydra entry of `nonmember train`: make a model by its recipe."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from omegaconf import DictConfig

from nonmember.config import plain, require_complete, run_with_hydra
from nonmember.config_safety import instantiate
from nonmember.processes import process_rank


def main() -> None:
    """Print the model's folder as the last line."""

    def run(config: DictConfig, folder: Path) -> None:
        sys.stdout.write(f"{train_model(config, folder)}\n")

    run_with_hydra("train", run)


def train_model(config: DictConfig, folder: Path) -> Path:
    """The folder of the model: the store's, or `export`, where a copy of it is put."""
    require_complete(config)
    from nonmember.artifacts import Builder
    from nonmember.models.loading import save
    from nonmember.quiet import quieten
    from nonmember.store import Store
    from nonmember.tracking import NoLogging, RunInfo
    from nonmember.training import Trained

    quieten()
    spec = instantiate(config.model)
    if not isinstance(spec, Trained):
        raise ValueError(f"{config.model.get('path')} is a finished model; there is nothing to train. Choose a recipe.")
    if config.merge and (config.export is None or not spec.adapts):
        what = "a model with an adapter" if config.export is not None else "export=FOLDER"
        raise ValueError(f"merge=true writes an adapter and its base as one model; it needs {what}.")
    export = None if config.export is None else Path(config.export).resolve()
    if export is not None and export.exists():
        raise ValueError(f"{export} exists already; name a new folder in export=...")
    compute = instantiate(config.trainer)
    info = RunInfo(folder.name, "train", "train", [spec.label], plain(config), folder)
    logger = instantiate(config.logger) if process_rank() == 0 else NoLogging()
    with logger.start(info) as tracker:
        builder = Builder(Store(Path(config.store)), compute, tracker)
        path = builder.entry(spec).path
    if export is None or process_rank() > 0:
        return path.resolve()
    if config.merge:
        save(spec.weights(builder), export)
    else:
        shutil.copytree(path, export, ignore=shutil.ignore_patterns("sidecar.json"))
    return export
