"""Cells that choose the same config files share what Hydra makes of these.

Hydra follows the defaults lists and merges the files anew for every cell, which is three quarters of composing it; but
most cells of a sweep differ in values alone, and those it puts in last. And OmegaConf parses `${...}` anew wherever it
stands and each time it is followed.
"""

from __future__ import annotations

import contextlib
import copy
import functools
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from hydra._internal import config_loader_impl
from hydra._internal.config_loader_impl import ConfigLoaderImpl
from hydra._internal.defaults_list import DefaultsList, Overrides
from hydra.core.default_element import ResultDefault
from hydra.core.override_parser.types import Override
from omegaconf import DictConfig, base

MOST_KEPT = 64  # merged configs, which take a megabyte or more each


class Files(list[ResultDefault]):
    """The files of a config, and their merged content once it was requested."""

    merged: DictConfig | None = None


@contextlib.contextmanager
def shared_files() -> Iterator[None]:
    """While it lasts, files are merged once for each choice of them."""
    follow, merge = config_loader_impl.create_defaults_list, ConfigLoaderImpl._compose_config_from_defaults_list
    kept: dict[tuple[Any, ...], DefaultsList] = {}

    @functools.wraps(follow)
    def followed_once(repo: Any, config_name: str | None, overrides_list: list[Override], **how: bool) -> DefaultsList:
        values = Overrides(repo=repo, overrides_list=overrides_list).config_overrides
        # Hydra's own values stay among the choices: one of them says where files are looked for.
        of_cell = {id(one) for one in values if not one.is_hydra_override()}
        choices = [one for one in overrides_list if id(one) not in of_cell]
        key = (config_name, *sorted(how.items()), *(one.input_line for one in choices))
        if key not in kept:
            if len(kept) >= MOST_KEPT:
                del kept[next(iter(kept))]
            found = follow(repo=repo, config_name=config_name, overrides_list=choices, **how)
            kept[key] = replace(found, defaults=Files(found.defaults))
        return replace(kept[key], config_overrides=values)

    @functools.wraps(merge)
    def merged_once(self: ConfigLoaderImpl, defaults: list[ResultDefault], repo: Any) -> DictConfig:
        if not isinstance(defaults, Files):
            return merge(self, defaults, repo)
        if defaults.merged is None:
            defaults.merged = merge(self, defaults, repo)
        return copy.deepcopy(defaults.merged)

    parse = base.parse
    base.parse = functools.cache(parse)
    config_loader_impl.create_defaults_list = followed_once  # type: ignore[assignment]
    ConfigLoaderImpl._compose_config_from_defaults_list = merged_once  # type: ignore[method-assign]
    try:
        yield
    finally:
        base.parse = parse
        config_loader_impl.create_defaults_list = follow
        ConfigLoaderImpl._compose_config_from_defaults_list = merge  # type: ignore[method-assign]
