"""What is replaced in Hydra while it composes: it has no hooks of its own for these places.

tests/config/test_hydra_compat.py names what each needs of Hydra.
"""

from __future__ import annotations

import contextlib
import functools
import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import yaml
from hydra._internal.config_loader_impl import ConfigLoaderImpl
from hydra._internal.config_repository import ConfigRepository
from hydra._internal.utils import get_args_parser
from hydra.core.object_type import ObjectType
from hydra.plugins.config_source import ConfigSource
from omegaconf import Container, DictConfig, Node, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from nonmember.runtime.yaml_files import checked_text, unreadable


@contextlib.contextmanager
def checked_files(is_own: Callable[[Path], bool], check: Callable[[Container, Path], None]) -> Iterator[None]:
    """While it lasts, Hydra takes no file that is not our own without a look at it.

    Args:
        is_own: whether a file is not looked at.
        check: is given what a file says: its part for Hydra as soon as it is read, since Hydra acts on a search path
            there before it composes anything, and all of it below the package that it is put in.
    """
    read, embed = ConfigRepository.load_config, ConfigLoaderImpl._load_single_config

    @functools.wraps(read)
    def checked_read(repository: ConfigRepository, config_path: str) -> Any:
        source = repository._find_object_source(config_path=config_path, object_type=ObjectType.CONFIG)
        path = _file(source.path, config_path) if source is not None and source.scheme() == "file" else None
        if path is None or is_own(path):
            return read(repository, config_path)
        checked_text(path)
        try:
            result = read(repository, config_path)
        except (yaml.YAMLError, ValueError, TypeError, OmegaConfBaseException) as error:
            raise unreadable(path, error) from None
        if result is None or not isinstance(result.config, DictConfig):
            raise ValueError(f"{path} must hold keys with values, as in `name: mine`. Correct the file.")
        check(OmegaConf.masked_copy(result.config, "hydra"), path)
        return result

    @functools.wraps(embed)
    def checked_embed(loader: ConfigLoaderImpl, default: Any, repo: Any) -> Any:
        result = embed(loader, default, repo)
        if result.path.startswith("file://"):
            path = _file(result.path.removeprefix("file://"), default.config_path)
            if not is_own(path):
                check(result.config, path)
        return result

    ConfigRepository.load_config = checked_read  # type: ignore[method-assign,assignment]
    ConfigLoaderImpl._load_single_config = checked_embed  # type: ignore[method-assign,assignment]
    try:
        yield
    finally:
        ConfigRepository.load_config = read  # type: ignore[method-assign]
        ConfigLoaderImpl._load_single_config = embed  # type: ignore[method-assign]


class Interpolations:
    """Bounds what following `${...}` may cost, which can double from one value to the next."""

    MOST = 10_000  # tenths of a millisecond, about; the largest of our own configs needs a third

    def __init__(self) -> None:
        self._left = self.MOST

    def renew(self) -> None:
        """Before a config is composed or an object built from it."""
        self._left = self.MOST

    def install(self) -> None:
        """Once in a process."""
        resolve = Container.resolve_parse_tree
        if hasattr(resolve, "__wrapped__"):
            return

        @functools.wraps(resolve)
        def bounded(container: Container, parse_tree: Any, node: Node, *args: Any, **settings: Any) -> Any:
            value = resolve(container, parse_tree, node, *args, **settings)
            self._left -= 1 + len(str(node._value())) // 20 + (len(value) // 100 if isinstance(value, str) else 0)
            if self._left < 0:
                raise ValueError("The ${...} of this config stand for too much. Write out what is needed of it.")
            return value

        Container.resolve_parse_tree = bounded  # type: ignore[method-assign,assignment]


interpolations = Interpolations()


def _file(folder: str, config_path: str) -> Path:
    """As Hydra finds it: through links, and through `..` in the name."""
    return Path(os.path.realpath(os.path.join(folder, ConfigSource._normalize_file_name(config_path))))


def checked_options(arguments: Sequence[str]) -> list[str]:
    """The words of a command, options first: Hydra does not understand `seed=1 -m name=a,b`.

    Raises:
        ValueError: There is no such option, or it is the beginning of one, which argparse would complete, or it reads
            a pickle.
    """
    parser = get_args_parser()
    parser.allow_abbrev = False

    def refuse(message: str) -> None:
        raise ValueError(f"{message[:1].upper()}{message[1:]}. --hydra-help lists the options; none can be shortened.")

    parser.error = refuse  # type: ignore[method-assign,assignment]
    said = parser.parse_intermixed_args(list(arguments))
    if said.experimental_rerun is not None:
        raise ValueError("--experimental-rerun reads a pickle, which can run code. Give the run's own words again.")
    return [*(one for one in arguments if one not in said.overrides), *said.overrides]
