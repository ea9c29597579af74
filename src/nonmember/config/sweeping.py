"""The cells of a sweep before they are launched: shown while they are composed, and looked at as a whole."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Protocol

from hydra.core.hydra_config import HydraConfig
from hydra.plugins.launcher import Launcher
from hydra.plugins.sweeper import Sweeper
from omegaconf import DictConfig, OmegaConf, open_dict

from nonmember.config.hydra_compat import is_a, replaced
from nonmember.runtime.progress import Stage

MOST_KEPT = 64  # composed configs, which take a megabyte or more each


class Watcher(Protocol):
    """Sees all cells of a grid, and may launch them in its own way."""

    def begin(self, launcher: Launcher | None) -> None:
        """Before the first cell: what would launch them."""

    def see(self, index: int, config: DictConfig, folder: Path) -> None:
        """A cell as it will be run, and its folder, which is not made yet."""

    def hands_out(self, launcher: Launcher) -> bool:
        """Whether this process hands each cell to a worker with the config that was composed here."""

    def launcher(self, launcher: Launcher) -> Launcher:
        """What launches them, now that all were seen."""


@contextlib.contextmanager
def shown_composition(watcher: Watcher | None = None) -> Iterator[None]:
    """While it lasts, a sweep of hundreds of cells says how far it is with composing them, which Hydra does for all
    before it launches the first."""

    def wrap(compose: Callable[..., None]) -> Callable[..., None]:
        return lambda sweeper, batch: _shown(sweeper, batch, compose, watcher)

    with replaced(Sweeper, "validate_batch_is_legal", wrap):
        yield


def _shown(sweeper: Any, batch: Sequence[Sequence[str]], compose: Callable[..., None], watcher: Watcher | None) -> None:
    # Other sweepers choose cells by the results of those before.
    is_grid = is_a(sweeper, "BasicSweeper") and getattr(sweeper, "max_batch_size", None) is None
    watching = watcher if is_grid else None
    kept: dict[tuple[str, ...], DictConfig] = {}
    if watching is not None:
        watching.begin(sweeper.launcher)
    with Stage("composing", len(batch), "cells") as stage:
        for index, overrides in enumerate(batch):
            if watching is None:
                compose(sweeper, [overrides])
            else:
                config = _composed(sweeper, overrides)
                with _as_run(config, index) as (task_config, folder):
                    watching.see(index, task_config, folder)
                if len(kept) < MOST_KEPT:
                    kept[tuple(overrides)] = config
            stage.advance()
    if watching is not None and sweeper.launcher is not None:
        if is_a(sweeper.launcher, "BasicLauncher") or watching.hands_out(sweeper.launcher):
            _compose_once(sweeper, kept)
        sweeper.launcher = watching.launcher(sweeper.launcher)


def _composed(sweeper: Any, overrides: Sequence[str]) -> DictConfig:
    config: DictConfig = sweeper.hydra_context.config_loader.load_sweep_config(sweeper.config, list(overrides))
    return config


def _compose_once(sweeper: Any, kept: dict[tuple[str, ...], DictConfig]) -> None:
    """In this process no cell is composed a second time; each config is given away once."""
    loader = sweeper.hydra_context.config_loader
    compose = loader.load_sweep_config

    def load_sweep_config(master_config: DictConfig, sweep_overrides: list[str]) -> DictConfig:
        config = kept.pop(tuple(sweep_overrides), None)
        if config is None:
            composed: DictConfig = compose(master_config, sweep_overrides)
            return composed
        OmegaConf.set_readonly(config.hydra, None)  # as it was before it was looked at
        return config

    loader.load_sweep_config = load_sweep_config


@contextlib.contextmanager
def _as_run(config: DictConfig, index: int) -> Iterator[tuple[DictConfig, Path]]:
    """The config without Hydra's own part, as a task gets it, and its folder."""
    before = HydraConfig.instance().cfg
    with open_dict(config):
        config.hydra.job.id = config.hydra.job.num = index
    HydraConfig.instance().set_config(config)
    try:
        folder = Path(OmegaConf.select(config, "hydra.sweep.dir")) / OmegaConf.select(config, "hydra.sweep.subdir")
        yield OmegaConf.masked_copy(config, [str(key) for key in config if key != "hydra"]), folder.absolute()
    finally:
        HydraConfig.instance().cfg = before
