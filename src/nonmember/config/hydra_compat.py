"""All that reaches into the inner parts of Hydra and of its launcher for Slurm, which have no hooks of their own there.

`NEEDED` says what that is; it is compared with what is installed before anything is composed.
"""

from __future__ import annotations

import contextlib
import copy
import functools
import inspect
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import yaml
from hydra._internal import config_loader_impl, defaults_list, utils
from hydra._internal.config_loader_impl import ConfigLoaderImpl
from hydra._internal.config_repository import ConfigRepository
from hydra._internal.core_plugins.basic_sweeper import BasicSweeper
from hydra._internal.defaults_list import DefaultsList, Overrides
from hydra.core.config_store import ConfigNode, ConfigStore
from hydra.core.default_element import ResultDefault
from hydra.core.object_type import ObjectType
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Override
from hydra.plugins.config_source import ConfigResult, ConfigSource
from hydra.plugins.sweeper import Sweeper
from hydra.types import RunMode
from omegaconf import Container, DictConfig, Node, OmegaConf, _utils, base
from omegaconf.errors import OmegaConfBaseException

from nonmember.runtime.yaml_files import checked_text, unreadable

# Where, what, its parameters (of an attribute None): what is called or replaced here.
Needed = Sequence[tuple[Any, str, str | None]]
NEEDED: Needed = (
    (ConfigRepository, "load_config", "self config_path"),  # reads every file
    (ConfigRepository, "get_sources", "self"),  # the folders in which they are looked for
    (ConfigRepository, "_find_object_source", "self config_path object_type"),  # says where it is from
    (ConfigSource, "_normalize_file_name", "filename"),  # adds .yaml
    (ConfigLoaderImpl, "load_configuration", "self config_name overrides run_mode from_shell validate_sweep_overrides"),
    (ConfigLoaderImpl, "_parse_overrides_and_create_caching_repo", "self config_name overrides"),
    (ConfigLoaderImpl, "_load_single_config", "self default repo"),  # puts a file's content below its package
    (ConfigLoaderImpl, "_compose_config_from_defaults_list", "self defaults repo"),  # merges the files
    (defaults_list, "create_defaults_list", "repo config_name overrides_list prepend_hydra skip_missing"),
    (BasicSweeper, "split_arguments", "overrides max_batch_size"),  # into cells
    (Container, "resolve_parse_tree", "self parse_tree node memo key"),  # follows every ${...}
    (Sweeper, "validate_batch_is_legal", "self batch"),  # composes all cells before the first is launched
    (base, "parse", "value parser_rule lexer_mode"),  # reads every ${...}
    (ConfigStore, "load", "self config_path"),  # copies an option, and gives the copy another node
    (ConfigStore, "repo", None),  # holds the options
    (Overrides, "config_overrides", None),  # those that are no choices
    (Override, "_value", None),  # as it was parsed
    (utils, "create_config_search_path", "search_path_dir"),
    (utils, "get_args_parser", ""),
    (_utils, "get_yaml_loader", ""),  # reads every file's YAML
)
TESTED = {"hydra-core": "1.3.8", "submitit": "1.5.4"}
MOST_KEPT = 64  # merged configs, which take a megabyte or more each


def require_known(needed: Needed = NEEDED, *packages: str) -> None:
    """Raises ImportError where the installed version of the packages (by default Hydra's) is built otherwise."""
    packages = packages or ("hydra-core", "omegaconf")
    for owner, name, parameters in needed:
        found = getattr(owner, name, None)
        if parameters is None:
            is_there = found is not None or name in getattr(owner, "__annotations__", {})
        else:
            is_there = found is not None and " ".join(inspect.signature(found).parameters) == parameters
        if not is_there:
            from importlib.metadata import version  # which takes its time

            installed = " with ".join(f"{item} {version(item)}" for item in packages)
            signature = "" if parameters is None else f"({parameters.replace(' ', ', ')})"
            raise ImportError(
                f"{installed} is not what this was written for: {owner.__name__}.{name}{signature} is needed. Install "
                f"{packages[0]} {TESTED[packages[0]]}."
            )


require_known()  # now, since what is replaced later looks otherwise


@contextlib.contextmanager
def replaced(owner: Any, name: str, wrap: Callable[[Callable[..., Any]], Callable[..., Any]]) -> Iterator[None]:
    """While it lasts, an attribute of a class or module is what `wrap` makes of it."""
    original = getattr(owner, name)
    setattr(owner, name, functools.wraps(original)(wrap(original)))
    try:
        yield
    finally:
        setattr(owner, name, original)


def is_a(plugin: object, name: str) -> bool:
    """Whether a launcher or sweeper is of the class of that name, or builds on it. Hydra imports its plugins
    anew for each run, so that `isinstance` would not know them."""
    return any(kind.__name__ == name for kind in type(plugin).__mro__)


# --------------------------------------------------------------------------------------------------- overrides


def cells_of_grid(overrides: Sequence[str]) -> list[list[str]]:
    """The cells of a sweep over overrides such as `seed=1,2`, each the overrides given for it."""
    (cells,) = BasicSweeper.split_arguments(OverridesParser.create().parse_overrides(list(overrides)), None)
    return [list(cell) for cell in cells]


def names_of_options() -> set[str]:
    """Hydra's options: -m, --config-name ..."""
    return {name for action in utils.get_args_parser()._actions for name in action.option_strings}


def checked_options(arguments: Sequence[str]) -> list[str]:
    """The words of a command, options first: Hydra does not understand `seed=1 -m name=a,b`.

    Raises:
        ValueError: There is no such option, or it is the beginning of one, which argparse would complete, or it reads
            a pickle.
    """
    parser = utils.get_args_parser()
    parser.allow_abbrev = False

    def refuse(message: str) -> None:
        raise ValueError(f"{message[:1].upper()}{message[1:]}. --hydra-help lists the options; none can be shortened.")

    parser.error = refuse  # type: ignore[method-assign,assignment]
    parsed = parser.parse_intermixed_args(list(arguments))
    if parsed.experimental_rerun is not None:
        raise ValueError("--experimental-rerun reads a pickle, which can run code. Give the run's own arguments again.")
    return [*(item for item in arguments if item not in parsed.overrides), *parsed.overrides]


# ------------------------------------------------------------------------------------------------- composition


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
        return [_with_value(*pair) for pair in zip(parsed, values, strict=True)], repository


def _with_value(parsed: Override, value: Value | None) -> Override:
    return parsed if value is None else replace(parsed, _value=value.value, input_line=str(value))


def load_configuration(folder: Path, name: str, overrides: Sequence[str]) -> DictConfig:
    """A primary config of a folder, with Hydra's own part."""
    loader = _Loader(utils.create_config_search_path(str(folder)))
    return loader.load_configuration(name, list(overrides), RunMode.RUN, from_shell=False)


def composed_configs_checked(check: Callable[[DictConfig], None]) -> contextlib.AbstractContextManager[None]:
    """While it lasts, Hydra acts on no composed config before a look at it. Its own callbacks come too late: they are
    part of the config."""

    def wrap(compose: Callable[..., DictConfig]) -> Callable[..., DictConfig]:
        def checked(*args: Any, **settings: Any) -> DictConfig:
            interpolations.renew()
            config = compose(*args, **settings)
            check(config)
            return config

        return checked

    return replaced(ConfigLoaderImpl, "load_configuration", wrap)


# ------------------------------------------------------------------------------------------------------- files


def read_yaml_by_libyaml() -> None:
    """OmegaConf's rules (duplicate keys, 1e-4 as a number) by the parser in C, where PyYAML has it."""
    if not yaml.__with_libyaml__ or hasattr(_utils.get_yaml_loader, "__wrapped__"):
        return
    rules = _utils.get_yaml_loader()

    class Loader(yaml.cyaml.CParser, rules):  # type: ignore[misc, valid-type]
        def __init__(self, stream: Any) -> None:
            yaml.cyaml.CParser.__init__(self, stream)
            yaml.constructor.SafeConstructor.__init__(self)
            yaml.resolver.Resolver.__init__(self)

    _utils.get_yaml_loader = functools.wraps(_utils.get_yaml_loader)(lambda: Loader)


def plain_yaml(path: Path) -> Any:
    """The content of a file by the rules of OmegaConf, as plain containers."""
    return yaml.load(path.read_text(encoding="utf-8"), Loader=_utils.get_yaml_loader())


class _Row(ConfigNode):
    """An option of the store whose containers are made when it is chosen: few of hundreds are."""

    def __init__(self, name: str, group: str, package: str | None, config: Mapping[str, Any]) -> None:
        self.name, self.group, self.package, self.provider = f"{name}.yaml", group, package, None
        self._made: DictConfig | Mapping[str, Any] = config

    @property
    def node(self) -> DictConfig:
        if not isinstance(self._made, DictConfig):
            self._made = OmegaConf.create(dict(self._made))
        return self._made

    @node.setter
    def node(self, made: DictConfig) -> None:
        self._made = made


def store_rows(group: str, rows: Mapping[str, Mapping[str, Any]], package: str | None = None) -> None:
    """Make configs options of a group, by their names."""
    options = ConfigStore.instance().repo
    for part in group.split("/"):
        options = options.setdefault(part, {})
    options.update({f"{name}.yaml": _Row(name, group, package, config) for name, config in rows.items()})


def keep_store_in_place() -> None:
    """For every look-up Hydra copies all that is stored, which it only reads: seconds, with many rows in it."""
    ConfigStore.__deepcopy__ = lambda self, _: self  # type: ignore[attr-defined]


@contextlib.contextmanager
def checked_files(is_own: Callable[[Path], bool], check: Callable[[Container, Path], None]) -> Iterator[None]:
    """While it lasts, Hydra takes no file that is not our own without a look at it. And an option that is named after a
    world and does not exist (kds of a world `mini`: mini_kds) is the one of the world that this is like.

    Args:
        is_own: whether a file is not looked at.
        check: is given what a file says: its part for Hydra as soon as it is read, since Hydra acts on a search path
            there before it composes anything, and all of it below the package that it is put in.
    """

    def wrap_read(read: Callable[..., Any]) -> Callable[..., Any]:
        def checked_read(repository: ConfigRepository, config_path: str) -> Any:
            _refuse_tables(repository, is_own)
            source = repository._find_object_source(config_path=config_path, object_type=ObjectType.CONFIG)
            if source is None:
                return _of_a_world_like_it(repository, config_path)
            path = _file(source.path, config_path) if source.scheme() == "file" else None
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

        return checked_read

    def wrap_embed(embed: Callable[..., ConfigResult]) -> Callable[..., ConfigResult]:
        def checked_embed(loader: ConfigLoaderImpl, default: Any, repo: Any) -> ConfigResult:
            result = embed(loader, default, repo)
            if result.path.startswith("file://"):
                path = _file(result.path.removeprefix("file://"), default.config_path)
                if not is_own(path):
                    check(result.config, path)
            return result

        return checked_embed

    with (
        replaced(ConfigRepository, "load_config", wrap_read),
        replaced(ConfigLoaderImpl, "_load_single_config", wrap_embed),
    ):
        yield


def _refuse_tables(repository: ConfigRepository, is_own: Callable[[Path], bool]) -> None:
    """Rows of presets would be options that no look was taken at."""
    for source in repository.get_sources():
        folder = Path(source.path) / "presets"
        if source.scheme() == "file" and folder.is_dir() and not is_own(folder):
            raise ValueError(
                f"{folder} is not read: tables of presets are read from the project's own conf/ alone. Write each row "
                f"as a file, GROUP/NAME.yaml in {source.path} (the row mine of model is model/mine.yaml), and remove "
                "the folder."
            )


def _of_a_world_like_it(repository: ConfigRepository, config_path: str) -> ConfigResult | None:
    group, _, name = config_path.removesuffix(".yaml").rpartition("/")
    parts = name.split("_")
    for cut in range(len(parts) - 1, 0, -1):
        world = repository.load_config(f"world/{'_'.join(parts[:cut])}") if group not in ("", "world") else None
        like = OmegaConf.select(world.config, "like") if world is not None else None
        if like is not None and like != "_".join(parts[:cut]):
            return repository.load_config(f"{group}/{like}_{'_'.join(parts[cut:])}")
    return None


def _file(folder: str, config_path: str) -> Path:
    """As Hydra finds it: through links, and through `..` in the name."""
    return Path(os.path.realpath(os.path.join(folder, ConfigSource._normalize_file_name(config_path))))


def parsed_once() -> contextlib.AbstractContextManager[None]:
    """While it lasts, a text with `${...}` is parsed once, and not wherever it stands and each time it is followed."""
    return replaced(base, "parse", functools.cache)


@contextlib.contextmanager
def shared_files(kept: dict[tuple[Any, ...], DefaultsList] | None = None) -> Iterator[None]:
    """While it lasts, files are merged once for each choice of them.

    kept: what was merged before, and gets what is merged now; it holds while the files stay as they are.

    Hydra follows the defaults lists and merges the files anew for every cell, which is three quarters of composing it;
    but most cells of a sweep differ in values alone, and those it puts in last.
    """
    kept = {} if kept is None else kept

    def wrap_follow(follow: Callable[..., DefaultsList]) -> Callable[..., DefaultsList]:
        def followed_once(
            repo: Any, config_name: str | None, overrides_list: list[Override], **how: bool
        ) -> DefaultsList:
            values = Overrides(repo=repo, overrides_list=overrides_list).config_overrides
            # Hydra's own values stay among the choices: one of them says where files are looked for.
            of_cell = {id(item) for item in values if not item.is_hydra_override()}
            choices = [item for item in overrides_list if id(item) not in of_cell]
            key = (config_name, *sorted(how.items()), *(item.input_line for item in choices))
            if key not in kept:
                if len(kept) >= MOST_KEPT:
                    del kept[next(iter(kept))]
                found = follow(repo=repo, config_name=config_name, overrides_list=choices, **how)
                kept[key] = replace(found, defaults=_Files(found.defaults))
            return replace(kept[key], config_overrides=values)

        return followed_once

    def wrap_merge(merge: Callable[..., DictConfig]) -> Callable[..., DictConfig]:
        def merged_once(self: ConfigLoaderImpl, defaults: list[ResultDefault], repo: Any) -> DictConfig:
            if not isinstance(defaults, _Files):
                return merge(self, defaults, repo)
            if defaults.merged is None:
                defaults.merged = merge(self, defaults, repo)
            return copy.deepcopy(defaults.merged)

        return merged_once

    with (
        parsed_once(),
        replaced(config_loader_impl, "create_defaults_list", wrap_follow),
        replaced(ConfigLoaderImpl, "_compose_config_from_defaults_list", wrap_merge),
    ):
        yield


class _Files(list[ResultDefault]):
    """The files of a config, and their merged content once it was requested."""

    merged: DictConfig | None = None


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


# -------------------------------------------------------------------------------------------- jobs of a scheduler


def launcher_of_jobs() -> Any:
    """The class on which Hydra's launchers of jobs build; None where that extra of the package is not installed."""
    try:
        from hydra_plugins.hydra_submitit_launcher.submitit_launcher import BaseSubmititLauncher
    except ImportError:
        return None
    return BaseSubmititLauncher


def submitit_parts() -> tuple[Any, Any]:
    """submitit's classes of executors and of jobs, of which methods are replaced."""
    from submitit import AutoExecutor
    from submitit.core.core import Job

    require_known(
        (
            (launcher_of_jobs(), "launch", "self job_overrides initial_job_idx"),
            (AutoExecutor, "map_array", "self fn iterable"),  # submits what a launcher runs
            (AutoExecutor, "update_parameters", "self kwargs"),
            (Job, "results", "self"),  # waits, and raises for the first job that is lost
            (Job, "done", "self force_check"),
            (Job, "_cancel_command", None),
        ),
        "submitit",
        "hydra-submitit-launcher",
    )
    return AutoExecutor, Job
