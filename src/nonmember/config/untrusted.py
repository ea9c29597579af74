"""What a config file may say that is not our own: it may describe an audit, and nothing around it.

Our own are those of conf/ and sweeps/, of Hydra and of its installed plugins. What a user may do and a file may not,
the user says on the command line, from where no stranger speaks.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import ChoiceSweep, RangeSweep
from hydra.errors import HydraException
from omegaconf import Container, OmegaConf

from nonmember.checks import ENVIRONMENT
from nonmember.config.hydra_compat import checked_files

CODE = "trust_remote_code"
# Keys that run code, reach the network, or write text or files beside the run's folder, with the values that do none
# of it. At any depth; an interpolation is none of these values.
BY_WORD_ALONE: Mapping[str, tuple[object, ...]] = {
    CODE: (False, None),
    "url": (None, "???"),  # of an endpoint, to which documents and a secret are sent
    "key_variable": (),  # names that secret
    "address": (None, "???"),  # of a Ray cluster
    "mode": ("offline", "disabled"),  # of W&B
    "log_text": (False,),
    "page_text": (False,),
    "truth": (None, "member", "non_member", "index"),  # infinigram: text of the documents is sent to a service
    "directory": (),  # of W&B's files
    "default_root_dir": (None,),  # of Lightning's
    "make_logger": (),  # of its loggers, which write where name, version and address lead
    "callbacks": (None,),  # of its trainer, likewise
    "profiler": (None,),
    "plugins": (None,),
}
SENT = ("extra_headers", "extra_query")  # where env:NAME sends the value of an environment variable
BY_WORD_ALONE_AT_TOP = ("outputs", "store", "export", "folder")
MAX_CELLS = 100_000  # Hydra makes a list of them all
# Of Hydra's own part: everything else belongs to the user.
LAUNCHER = (
    "n_jobs",
    "timeout_min",
    "cpus_per_task",
    "gpus_per_node",
    "tasks_per_node",
    "mem_gb",
    "nodes",
    "name",
    "partition",
    "qos",
    "comment",
    "constraint",
    "exclude",
    "gres",
    "cpus_per_gpu",
    "gpus_per_task",
    "mem_per_gpu",
    "mem_per_cpu",
    "account",
    "signal_delay_s",
    "max_num_timeout",
    "array_parallelism",
)
OF_HYDRA = re.compile(rf"hydra\.(mode|sweeper\.params\..+|callbacks\..+|launcher\.({'|'.join(LAUNCHER)}))")


@contextlib.contextmanager
def untrusted_files_checked(own: Sequence[Path]) -> Iterator[None]:
    """While it lasts, Hydra takes from a file only what this module allows, and reads none that is not sound.

    Args:
        own: folders whose files may say anything.
    """
    folders = [folder.resolve() for folder in own]
    with checked_files(lambda path: any(folder in path.parents for folder in folders), check_file):
        yield


def check_file(content: Container | Mapping[str, Any], file: Path) -> None:
    """Raises ValueError where a file says what only the command line may.

    Args:
        content: below the package that Hydra puts it in.
        file: where it is from, for the message.
    """
    values = OmegaConf.to_container(content, resolve=False) if isinstance(content, Container) else content
    for key, value in leaves(values):
        if key[0].partition(".")[0] == "hydra":
            allowed = OF_HYDRA.fullmatch(".".join(key)) is not None
        else:
            allowed = key[0] not in BY_WORD_ALONE_AT_TOP and not _is_for_user(key, value)
        if not allowed:
            raise _only_by_word(key, str(file))


def check_code(content: Mapping[str, Any], file: Path, hint: str) -> None:
    """Raises ValueError where a kept config would have a model's own code run. hint: what to do about it."""
    for key, value in leaves(content):
        if _needs_word(key, value, (CODE,)):
            raise ValueError(f"{file} has {'.'.join(key)}={value}: code that comes with a model would run. {hint}")


def check_params(params: Mapping[str, Any] | None) -> None:
    """Raises ValueError where the grid of a sweep, whose words Hydra takes for the user's, says what only the user may.

    Args:
        params: of Hydra's sweeper, resolved.
    """
    num_cells = 1.0
    for name, values in (params or {}).items():
        if str(name).lstrip("+~").startswith("hydra"):
            raise ValueError(
                f"hydra.sweeper.params may not change Hydra itself; got {name!r}. Give it on the command line."
            )
        try:
            (override,) = OverridesParser.create().parse_overrides([f"{name}={values}"])
        except HydraException:
            continue  # Hydra will say what is wrong with it
        num_cells *= _num_values(override._value)
        if num_cells > MAX_CELLS:
            raise ValueError(f"The grid of a sweep must have at most {MAX_CELLS:,} cells; got more. Divide it.")
        key = override.key_or_group.partition("@")[0]
        for inner, value in leaves(_given(override._value)):
            whole = (*key.split("."), *inner)
            if whole[0] in BY_WORD_ALONE_AT_TOP or _is_for_user(whole, value):
                raise _only_by_word(whole, "the grid of a sweep")


def _is_for_user(key: Sequence[str], value: object) -> bool:
    text = str(value)
    refers = re.search(rf"(?<!oc\.){ENVIRONMENT}", text)
    return bool(refers) or ("${" in text and _has(key, SENT)) or _needs_word(key, value, tuple(BY_WORD_ALONE))


def _needs_word(key: Sequence[str], value: object, names: Sequence[str]) -> bool:
    return any(value not in BY_WORD_ALONE[name] for name in names if _has(key, (name,)))


def _has(key: Sequence[str], names: Sequence[str]) -> bool:
    return not {part for item in key for part in item.split(".")}.isdisjoint(names)


def _only_by_word(key: Sequence[str], where: str) -> ValueError:
    name = ".".join(key)
    return ValueError(
        f"{where} sets {name}, which only the command line may: it can run code, reach the network, or write elsewhere "
        f"than into the run's folder. Remove it there; if you want it, add {name}=... to the command."
    )


def leaves(
    value: Any, key: tuple[str, ...] = (), *, whole_lists: bool = False
) -> Iterator[tuple[tuple[str, ...], Any]]:
    """(names of the keys on the way, value) of all that is no mapping and no list, and of empty lists; of every list
    where these are left whole."""
    if isinstance(value, Mapping):
        for name, inner in value.items():
            yield from leaves(inner, (*key, str(name)), whole_lists=whole_lists)
    elif isinstance(value, list) and value and not whole_lists:
        for inner in value:
            yield from leaves(inner, key)
    else:
        yield key, value


def _num_values(value: Any) -> float:
    match value:
        case RangeSweep(start=int() | float() as start, stop=int() | float() as stop, step=step) if step:
            return max(1.0, abs((stop - start) / step))
        case ChoiceSweep(list=values):
            return max(1, len(values))
    return 1


def _given(value: Any) -> Any:
    """What an override's value is, in any of the ways to write several."""
    if isinstance(value, ChoiceSweep):
        return list(map(_given, value.list))
    if isinstance(value, dict):
        return {str(name): _given(inner) for name, inner in value.items()}
    return list(map(_given, value)) if isinstance(value, list) else value
