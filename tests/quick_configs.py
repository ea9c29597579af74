"""Hydra composes a config in half of the time: what it does again and again, the tests let it do once.

The project's own files stand still while tests run; others, as those that a test writes, are read each time.
"""

from __future__ import annotations

import contextlib
import copy
import functools
import pickle
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from hydra._internal import config_repository, defaults_list
from hydra._internal.config_loader_impl import ConfigLoaderImpl
from hydra._internal.config_repository import ConfigRepository
from hydra._internal.hydra import Hydra
from hydra.core.object_type import ObjectType
from omegaconf import base
from omegaconf.base import Box

from nonmember.config.choices import config_directory, sweeps_directory

COMMANDS = ("audit", "score", "train", "report")
OWN = tuple(str(folder) for folder in (config_directory(), sweeps_directory(), "hydra"))


@contextlib.contextmanager
def quick_configs() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        _files_are_read_and_merged_once(patch)
        _names_in_defaults_are_looked_up_where_there_are_some(patch)
        _each_command_is_composed_once(patch)
        # OmegaConf parses `${...}` anew wherever it stands, and each time it is followed.
        patch.setattr(base, "parse", functools.cache(base.parse))
        patch.setattr(config_repository, "copy", SimpleNamespace(deepcopy=copy.copy))  # which looks for files anew
        yield


def _files_are_read_and_merged_once(patch: pytest.MonkeyPatch) -> None:
    """Some thirty files for each config. Of what is made of them each caller gets a copy of its own."""
    read, embed = ConfigRepository.load_config, ConfigLoaderImpl._load_single_config
    merge = ConfigLoaderImpl._compose_config_from_defaults_list
    kept: dict[Any, bytes] = {}
    seen: set[Any] = set()
    files: dict[Any, Any] = {}

    def copy_of(key: Any, make: Callable[[], Any]) -> Any:
        if key in kept:
            return pickle.loads(kept[key])  # noqa: S301 - much faster than a deep copy
        made = make()
        if key not in seen:  # as most are once
            seen.add(key)
            return made
        try:
            kept[key] = pickle.dumps(made)
        except pickle.PicklingError:  # a class of a plugin that Hydra has imported anew since
            return made
        return made

    def load_config(repository: Any, config_path: str) -> Any:
        """Whoever chooses among files only looks at one; `embed` alone writes into it."""
        source = repository._find_object_source(config_path=config_path, object_type=ObjectType.CONFIG)
        if source is None or not _stands_still(source):
            return read(repository, config_path)
        key = (_place(source), config_path)
        if source.scheme() == "structured":  # its class, which Hydra imports anew for each command
            return copy_of(key, lambda: read(repository, config_path))
        if key not in files:
            files[key] = read(repository, config_path)
        return files[key]

    def load_single(loader: Any, default: Any, repo: Any) -> Any:
        if (places := _places(repo)) is None:
            return embed(loader, default, _Copies(repo))
        return copy_of((places, _file(default)), lambda: embed(loader, default, _Copies(repo)))

    def merged(loader: Any, defaults: list[Any], repo: Any) -> Any:
        """Parents of the nodes are set once, after all files are merged, rather than after each."""
        with pytest.MonkeyPatch.context() as quick:
            quick.setattr(Box, "_re_parent", lambda box: None)
            config = merge(loader, defaults, repo)
        config._re_parent()
        return config

    def merge_all(loader: Any, defaults: list[Any], repo: Any) -> Any:
        if (places := _places(repo)) is None:
            return merged(loader, defaults, repo)
        return copy_of((places, *map(_file, defaults)), lambda: merged(loader, defaults, repo))

    patch.setattr(ConfigRepository, "load_config", load_config)
    patch.setattr(ConfigLoaderImpl, "_load_single_config", load_single)
    patch.setattr(ConfigLoaderImpl, "_compose_config_from_defaults_list", merge_all)


class _Copies:
    """A repository whose files may be written into."""

    def __init__(self, repo: Any) -> None:
        self.repo, self.get_schema_source = repo, repo.get_schema_source

    def load_config(self, config_path: str) -> Any:
        return copy.deepcopy(self.repo.load_config(config_path=config_path))


def _names_in_defaults_are_looked_up_where_there_are_some(patch: pytest.MonkeyPatch) -> None:
    """Hydra makes a config of all choices for each file that has a defaults list, for interpolations in it."""
    make = defaults_list._create_interpolation_map

    def make_if_needed(overrides: Any, found: Any, self_added: bool) -> Any:
        return make(overrides, found, self_added) if any(item.is_interpolation() for item in found) else None

    patch.setattr(defaults_list, "_create_interpolation_map", make_if_needed)


def _each_command_is_composed_once(patch: pytest.MonkeyPatch) -> None:
    """Hydra composes a config once more beforehand, only to learn whether it sets hydra.mode, as sweeps alone do."""
    mode_of = Hydra.get_mode

    def get_mode(hydra: Hydra, config_name: str | None, overrides: list[str]) -> Any:
        if config_name in COMMANDS and not any("hydra.mode" in override for override in overrides):
            return None
        return mode_of(hydra, config_name, overrides)

    patch.setattr(Hydra, "get_mode", get_mode)


def _stands_still(source: Any) -> bool:
    return source.scheme() == "structured" or str(source.path).startswith(OWN)


def _place(source: Any) -> tuple[str, str]:
    return source.scheme(), str(source.path)


def _places(repo: Any) -> tuple[tuple[str, str], ...] | None:
    """Where files are looked for; None where one of the places is not the project's."""
    sources = repo.get_sources()
    return tuple(map(_place, sources)) if all(map(_stands_still, sources)) else None


def _file(default: Any) -> tuple[Any, ...]:
    return default.config_path, default.package, default.primary
