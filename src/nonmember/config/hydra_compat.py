"""All that reaches into inner parts of Hydra, which has no hooks of its own there; pyproject.toml pins its version."""

from __future__ import annotations

import contextlib
import copy
import functools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from hydra._internal import config_loader_impl, utils
from hydra._internal.config_loader_impl import ConfigLoaderImpl
from hydra._internal.core_plugins.basic_sweeper import BasicSweeper
from hydra._internal.defaults_list import DefaultsList, Overrides
from hydra.core.default_element import ResultDefault
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Override
from hydra.errors import ConfigCompositionException
from hydra.types import RunMode
from omegaconf import DictConfig

MOST_KEPT = 64  # merged configs, which take a megabyte or more each


@contextlib.contextmanager
def replaced(owner: Any, name: str, wrap: Callable[[Callable[..., Any]], Callable[..., Any]]) -> Iterator[None]:
    """While it lasts, an attribute of a class or module is what `wrap` makes of it."""
    original = getattr(owner, name)
    setattr(owner, name, functools.wraps(original)(wrap(original)))
    try:
        yield
    finally:
        setattr(owner, name, original)


def cells_of_grid(overrides: Sequence[str]) -> list[list[str]]:
    """The cells of a sweep over overrides such as `seed=1,2`, each the overrides given for it."""
    (cells,) = BasicSweeper.split_arguments(OverridesParser.create().parse_overrides(list(overrides)), None)
    return [list(cell) for cell in cells]


def options_first(arguments: Sequence[str]) -> list[str]:
    """A command's words in Hydra's order, which fails at `seed=1 -m name=a,b`. Raises ValueError for no option."""

    def refuse(message: str) -> None:
        raise ValueError(f"{message}. Settings have no dashes: write key=value; --hydra-help lists the options.")

    parser = utils.get_args_parser()
    parser.error = refuse  # type: ignore[method-assign,assignment]
    overrides = parser.parse_intermixed_args(list(arguments)).overrides
    return [*(item for item in arguments if item not in overrides), *overrides]


def command_of(arguments: Sequence[str]) -> tuple[str, list[str]]:
    """The name of the primary config that a command names, and its overrides."""
    parsed = utils.get_args_parser().parse_args(list(arguments))
    folder = [f"hydra.searchpath=[file://{Path(parsed.config_dir).absolute()}]"] if parsed.config_dir else []
    return parsed.config_name or "audit", [*folder, *parsed.overrides]


class Value(str):
    """key=value for records, messages and shells. In a config the value itself is taken, by no grammar."""

    key: str
    value: Any  # as a config has it: what looks like an interpolation is none


class _Loader(ConfigLoaderImpl):
    """Takes words, as on the command line, and `Value`s, of which Hydra's grammar reads the key alone."""

    def _parse_overrides_and_create_caching_repo(self, config_name: str | None, overrides: list[str]) -> Any:
        values = [item if isinstance(item, Value) and not item.key.startswith("hydra.") else None for item in overrides]
        texts = [word if value is None else f"{value.key}=value" for word, value in zip(overrides, values, strict=True)]
        parsed, repository = super()._parse_overrides_and_create_caching_repo(config_name, texts)
        pairs = zip(parsed, values, strict=True)
        made = [a if b is None else replace(a, _value=b.value, input_line=str(b)) for a, b in pairs]
        return made, repository


def load_configuration(folder: Path, name: str, overrides: Sequence[str]) -> DictConfig:
    """A primary config of a folder, with Hydra's own part."""
    loader = _Loader(utils.create_config_search_path(str(folder)))
    return loader.load_configuration(name, list(overrides), RunMode.RUN, from_shell=False)


def composed_configs_checked(check: Callable[[DictConfig], None]) -> contextlib.AbstractContextManager[None]:
    """While it lasts, no composed config is acted on before a look at it. Hydra's own callbacks come too late."""

    def wrap(compose: Callable[..., DictConfig]) -> Callable[..., DictConfig]:
        def checked(*args: Any, **settings: Any) -> DictConfig:
            config = compose(*args, **settings)
            check(config)
            return config

        return checked

    return replaced(ConfigLoaderImpl, "load_configuration", wrap)


class _Files(list[ResultDefault]):
    """The files of a config, and their merged content once it was requested."""

    merged: DictConfig | None = None


@contextlib.contextmanager
def shared_files(kept: dict[tuple[Any, ...], DefaultsList] | None = None) -> Iterator[None]:
    """While it lasts, files are merged once for each choice of them, which halves the time of a sweep's cells: most
    differ in values alone, and those Hydra puts in last.

    kept: what was merged before, and gets what is merged now; it holds while the files stay as they are.
    """
    kept = {} if kept is None else kept

    def wrap_follow(follow: Callable[..., DefaultsList]) -> Callable[..., DefaultsList]:
        def followed(repo: Any, config_name: str | None, overrides_list: list[Override], **how: bool) -> DefaultsList:
            values = Overrides(repo=repo, overrides_list=overrides_list).config_overrides
            # Where files are looked for is a value too, and stays among the choices.
            of_cell = {id(item) for item in values if item.key_or_group != "hydra.searchpath"}
            choices = [item for item in overrides_list if id(item) not in of_cell]
            how, given = how | {"skip_missing": False}, how
            key = (config_name, *sorted(how.items()), *(item.input_line for item in choices))
            if key not in kept:
                if len(kept) >= MOST_KEPT:
                    del kept[next(iter(kept))]
                try:
                    found = follow(repo=repo, config_name=config_name, overrides_list=choices, **how)
                except ConfigCompositionException:  # a wrong choice, or one that is left to the cells of a sweep
                    return follow(repo=repo, config_name=config_name, overrides_list=overrides_list, **given)
                kept[key] = replace(found, defaults=_Files(found.defaults))
            return replace(kept[key], config_overrides=values)

        return followed

    def wrap_merge(merge: Callable[..., DictConfig]) -> Callable[..., DictConfig]:
        def merged(self: ConfigLoaderImpl, defaults: list[ResultDefault], repo: Any) -> DictConfig:
            if not isinstance(defaults, _Files):
                return merge(self, defaults, repo)
            if defaults.merged is None:
                defaults.merged = merge(self, defaults, repo)
            return copy.deepcopy(defaults.merged)

        return merged

    with (
        replaced(config_loader_impl, "create_defaults_list", wrap_follow),
        replaced(ConfigLoaderImpl, "_compose_config_from_defaults_list", wrap_merge),
    ):
        yield
