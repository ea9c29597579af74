"""What the cells of one process have in common."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, cast

from hydra.core.hydra_config import HydraConfig
from omegaconf import DictConfig, OmegaConf

from nonmember.config.compose import composed
from nonmember.config.words import about_another_method

if TYPE_CHECKING:
    from nonmember.artifacts import Builder, Memory
    from nonmember.artifacts.store import Store


def composed_again() -> Callable[[str, Sequence[str]], AbstractContextManager[tuple[DictConfig, Path]]]:
    """This run's words with another method, composed."""
    ran = HydraConfig.get()
    overrides = cast(list[str], OmegaConf.to_container(ran.overrides.task, resolve=False))
    name = str(ran.job.config_name)
    folders = [f"file://{item.path}" for item in ran.runtime.config_sources if item.provider == "command-line"]
    searched = [f"hydra.searchpath=[{','.join(folders)}]"] if folders else []
    return lambda method, more: composed(name, [*searched, *about_another_method(overrides, method, more)])


def builder_of(config: DictConfig) -> Builder:
    from nonmember.config import runs

    return runs.builder_of(config, *shared(Path(config.store).absolute()))


@functools.lru_cache(maxsize=1)
def shared(store: Path) -> tuple[Store, Memory]:
    """What the cells that one process runs have in common: files verified once, corpora and models read once."""
    from nonmember.artifacts import Memory
    from nonmember.artifacts.store import Store

    return Store(store), Memory()
