"""A command's config composed within a program: the same configs as on the command line, and nothing left behind."""

from __future__ import annotations

import contextlib
import copy
import functools
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from hydra.core.hydra_config import HydraConfig
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.plugins import Plugins
from hydra.core.singleton import Singleton
from hydra.core.utils import JobRuntime, setup_globals
from hydra.errors import HydraException
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from nonmember.config.choices import config_directory
from nonmember.config.explain import explain
from nonmember.config.hydra_compat import cells_of_grid, load_configuration, shared_files
from nonmember.config.roots import register
from nonmember.config.safety import checked_composition
from nonmember.config.words import about_another_method, from_home
from nonmember.runtime.progress import tracked

if TYPE_CHECKING:
    from nonmember.artifacts import Memory
    from nonmember.artifacts.store import Store

_composing = threading.RLock()  # Hydra's singletons and OmegaConf's resolvers are the process's


@functools.lru_cache(maxsize=1)
def _merged(changed: int) -> dict[tuple[Any, ...], Any]:
    """The project's configs as they were merged in this process, until one of their files changes."""
    return {}


@contextlib.contextmanager
def composed(
    command: str, overrides: Sequence[str], replaced: Mapping[str, Any] | None = None
) -> Iterator[tuple[DictConfig, Path]]:
    """The config of a command and the folder of its run, which is not made.

    overrides: as on the command line.   replaced: dotted key -> node that takes the place of what was composed, before
    the run is named by its config.

    The config is to be read inside this block: its resolvers are OmegaConf's only for so long. Hydra and OmegaConf are
    afterwards as they were. One thread at a time; the others wait.
    """
    with _composing:
        plugins = copy.deepcopy(Plugins.instance())  # first, as what it finds is written down elsewhere in the state
        before = Singleton.get_state()
        before["instances"][Plugins] = plugins  # else Hydra looks for all of them anew
        try:
            register()
            setup_globals()
            JobRuntime.instance().set("name", command)
            given = from_home(overrides)
            own = not any(word.lstrip("+~").startswith("hydra") for word in given)  # else files may be from elsewhere
            changed = max(path.stat().st_mtime_ns for path in config_directory().rglob("*.yaml"))
            with shared_files(_merged(changed) if own else None), checked_composition():
                config = load_configuration(config_directory(), command, given)
            for key, node in (replaced or {}).items():
                OmegaConf.update(config, key, node, merge=False)
            HydraConfig.instance().set_config(config)
            folder = Path(OmegaConf.select(config, "hydra.run.dir")).absolute()
            OmegaConf.set_struct(config, False)
            del config["hydra"]
            OmegaConf.set_struct(config, True)
            yield config, folder
        finally:
            Singleton.set_state(before)


def cells_of(name: str, overrides: Sequence[str]) -> Iterator[tuple[DictConfig, Path]]:
    """The config of each cell and its folder, to be read before the next one is requested. As in a multirun, what is
    given replaces the sweep's own axis, and several values between commas are one.

    Args:
        name: Of the primary config: a sweep, or `audit`.
        overrides: As on the command line.
    """
    given = OverridesParser.create().parse_overrides(list(overrides))
    alike = {item.get_key_element(): str(item.input_line) for item in given if not item.is_sweep_override()}
    with composed(name, list(alike.values())) as (config, _):
        grid: Any = OmegaConf.to_container(config.grid, resolve=True) if config.get("grid") else {}
    axes = [f"{key}={value}" for key, value in grid.items() if key not in alike]
    axes += [str(item.input_line) for item in given if item.is_sweep_override()]
    for cell in tracked(cells_of_grid(axes), "reading configs", "audits"):
        with composed(name, [*alike.values(), *cell]) as (config, folder):
            yield config, folder


def composed_again() -> Callable[[str, Sequence[str]], AbstractContextManager[tuple[DictConfig, Path]]]:
    """This run's words with another method, composed."""
    ran = HydraConfig.get()
    overrides = cast(list[str], OmegaConf.to_container(ran.overrides.task, resolve=False))
    name = str(ran.job.config_name)
    folders = [f"file://{item.path}" for item in ran.runtime.config_sources if item.provider.endswith("command-line")]
    searched = [f"hydra.searchpath=[{','.join(folders)}]"] if folders else []
    return lambda method, more: composed(name, [*searched, *about_another_method(overrides, method, more)])


@functools.lru_cache(maxsize=1)
def shared(store: Path) -> tuple[Store, Memory]:
    """What the cells that one process runs have in common: files verified once, corpora and models read once."""
    from nonmember.artifacts import Memory
    from nonmember.artifacts.store import Store

    return Store(store), Memory()


@contextlib.contextmanager
def explained() -> Iterator[None]:
    """Hydra's errors as ValueError, and those of the disk, with the sentence that the command line would print."""
    try:
        yield
    except (HydraException, OmegaConfBaseException) as error:
        raise ValueError(explain(error)) from error
    except OSError as error:
        if error.errno is None:  # of a library, with a text of its own
            raise
        raise OSError(error.errno, explain(error)) from error
