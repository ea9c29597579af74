"""Restricts what a config may instantiate: YAML is untrusted, so only allowed classes are built from it.

`instantiate` takes the place of Hydra's, whose list of forbidden targets leaves `pandas.read_pickle`, `torch.load` and
many more. Here a `_target_` is a settings class (a dataclass) of this package, one of the few names of FURTHER, a class
of torch.optim, or lies in a module that the user names in the environment variable NONMEMBER_ALLOW_TARGETS.
docs/safety.md says more.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any, cast

from hydra.errors import InstantiationException
from hydra.experimental.callback import Callback
from hydra.plugins.plugin import Plugin
from omegaconf import MISSING, Container, DictConfig, ListConfig, OmegaConf
from omegaconf.errors import (
    InterpolationKeyError,
    InterpolationResolutionError,
    InterpolationToMissingValueError,
    MissingMandatoryValue,
    OmegaConfBaseException,
)
from omegaconf.resolvers import oc

from nonmember.checks import looks_like_secret, refuse_secrets, require_count, require_flag, require_kind
from nonmember.config.hydra_compat import composed_configs_checked, interpolations
from nonmember.config.untrusted import check_params, leaves, untrusted_files_checked

ALLOW_VARIABLE = "NONMEMBER_ALLOW_TARGETS"  # module prefixes, separated by commas
OWN = ("nonmember", "nonmember_papers")
# Callbacks of Lightning that watch a training and change nothing in it.
PASSIVE = ("LearningRateMonitor", "ModelCheckpoint", "DeviceStatsMonitor", "RichModelSummary", "ModelSummary")
FURTHER = (
    "nonmember.training.planting.planted",
    "nonmember.models.named",
    "nonmember.methods.dose.controls.unread_controls",
    "nonmember.runtime.compute.lightning_trainer",
    "lightning.Trainer",  # in a user's own YAML
    "lightning.pytorch.strategies.ModelParallelStrategy",
    *(f"lightning.pytorch.loggers.{name}" for name in ("TensorBoardLogger", "MLFlowLogger", "CSVLogger")),
    *(f"lightning.pytorch.callbacks.{name}" for name in PASSIVE),
)
OPTIMIZERS = "torch.optim"  # its classes: optimizers and schedules
FOR_HYDRA = ("hydra._internal.core_plugins", "hydra_plugins")  # where its launchers and sweepers are
# What Optuna's sweeper draws by: those that its own configs name.
OF_OPTUNA = tuple(f"optuna.samplers.{name}Sampler" for name in ("TPE", "Random", "CmaEs", "Grid", "NSGAII", "MOTPE"))
SETTINGS = ("_target_", "_partial_", "_args_", "_convert_")  # of a node itself; all else is given to the target
READABLE = re.compile(r"NONMEMBER_\w+|WANDB_MODE")  # environment variables, by ${oc.env:NAME}
LOGGING_CLASSES = (
    *(f"logging.{name}" for name in ("StreamHandler", "FileHandler", "NullHandler", "Formatter", "Filter")),
    *(f"logging.handlers.{name}" for name in ("RotatingFileHandler", "TimedRotatingFileHandler")),
    "colorlog.ColoredFormatter",
    "nonmember.runtime.terminal.LogFormatter",
    "nonmember.runtime.terminal.LogHandler",
)
STREAMS = ("ext://sys.stdout", "ext://sys.stderr")
# A line of a job's script may end at one; other signs of the shell are quoted by the launchers.
CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")
SECRET_IN_ADDRESS = re.compile(r"://[^/\s]*@|(^|[.+ ])url=\S*[?#]")  # of `https://user:password@host`, and in a query
# Of sweeper and launcher -> the least that makes sense. Their types are Hydra's to check.
COUNTS = {
    "max_batch_size": 1,
    "n_jobs": -1024,  # joblib's way to leave cores free
    "timeout_min": 1,
    "cpus_per_task": 1,
    "gpus_per_node": 0,
    "tasks_per_node": 1,
    "mem_gb": 0,
    "nodes": 1,
    "array_parallelism": 1,
    "max_num_timeout": 0,
    "signal_delay_s": 0,
}
MOST_COUNT = 10**6
# What joblib's launcher would do with a list of cells, and the defaults: its processes are handed ours one by one.
LEFT_OUT = {
    "backend": None,
    "prefer": "processes",
    "require": None,
    "timeout": None,
    "pre_dispatch": "2*n_jobs",
    "batch_size": "auto",
    "temp_folder": None,
    "max_nbytes": None,
    "mmap_mode": "r",
}
GRID = ("hydra.sweeper.params", "${grid}")  # what conf/sweep.yaml makes of the grid of a sweep
ONLY_HYDRAS_VALUES = re.compile(r"([^$]|\$\{hydra[.:][\w.]+\})*")
OF_THE_WORLD = re.compile(r"\$\{world\.[\w.]+\}")


def instantiate(node: Any) -> Any:
    """The object that a config describes; nested nodes first. Mappings and lists without a target become plain ones.

    node: of a composed config, a plain mapping or list, or None, which stays None. `_partial_: true` gives a callable
    that waits for further arguments; `_args_`, for code that the user allows, are arguments
    without a name.

    All targets are checked before the first is called, on the values as they are built: interpolations are followed
    once. Raises ValueError for a target that is not allowed, and Hydra's InstantiationException, with the error as its
    cause, where a target does not take its arguments.
    """
    if node is None or (isinstance(node, Container) and node._is_none()):
        return None
    key = (node._get_full_key(None) if isinstance(node, Container) else "") or "config"
    config = node if isinstance(node, Container) else OmegaConf.create(node) if isinstance(node, dict | list) else None
    if config is None:
        raise ValueError(f"{key} must be a mapping with a `_target_`; got {node!r}. Choose one of the group's options.")
    interpolations.renew()
    values = OmegaConf.to_container(cast(DictConfig | ListConfig, config), resolve=True, throw_on_missing=True)
    targets = {name: _resolved(target, where) for where, name, target in _targets(values, key)}
    return _built(values, key, targets)


def _targets(value: Any, key: str) -> Iterator[tuple[str, str, Any]]:
    """(key, key of the node, target) of every node in it."""
    if isinstance(value, Mapping):
        if "_target_" in value:
            yield f"{key}._target_", key, value["_target_"]
        for name, inner in value.items():
            yield from _targets(inner, f"{key}.{name}")
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from _targets(inner, f"{key}[{index}]")


def _built(value: Any, key: str, targets: Mapping[str, Callable[..., Any]]) -> Any:
    if isinstance(value, list):
        return [_built(inner, f"{key}[{index}]", targets) for index, inner in enumerate(value)]
    if not isinstance(value, Mapping):
        return value
    inner = {name: _built(item, f"{key}.{name}", targets) for name, item in value.items()}
    if "_target_" not in value:
        return inner
    target, arguments = targets[key], {name: item for name, item in inner.items() if name not in SETTINGS}
    unnamed = inner.get("_args_") or ()
    if unnamed and not _below(value["_target_"], _allowed_by_user()):  # what a file may set is told by its name
        raise ValueError(f"{key}._args_ must be left out; got {unnamed!r}. Give each argument by its name.")
    for item in fields(target) if is_dataclass(target) else ():
        if item.type in (bool, "bool") and item.name in arguments:  # of log_text=no is the text that Python calls true
            require_flag(arguments[item.name], f"{key}.{item.name}")
    try:
        if inner.get("_partial_"):
            return functools.partial(target, *unnamed, **arguments)
        return target(*unnamed, **arguments)
    except Exception as error:
        raise InstantiationException(
            f"Error in call to target '{value['_target_']}':\n{error!r}\nfull_key: {key}"
        ) from error


def _resolved(target: Any, key: str) -> Callable[..., Any]:
    """The class or function itself. Nothing is imported that is not allowed."""
    _check_name(target, key)
    found = _found(target, key)
    if target in FURTHER:
        return found
    # What a module has merely imported is not its own: `nonmember.artifacts.store.os.system`, say.
    home = getattr(found, "__module__", None)
    is_own = _below(home, OWN) and isinstance(found, type) and is_dataclass(found)
    is_optimizer = _below(target, (OPTIMIZERS,)) and _below(home, (OPTIMIZERS,)) and isinstance(found, type)
    if not (is_own or is_optimizer or _below(home, _allowed_by_user())):
        raise _not_allowed(key, target)
    return found


def _check_name(target: Any, key: str) -> None:
    if not (target in FURTHER or _below(target, (*OWN, OPTIMIZERS, *_allowed_by_user()))):
        raise _not_allowed(key, target)


def _found(target: str, key: str) -> Callable[..., Any]:
    module, names = target, list[str]()
    while True:
        try:
            found: Any = importlib.import_module(module)
            for name in reversed(names):
                found = getattr(found, name)
            break
        except (ImportError, AttributeError) as error:
            module, _, name = module.rpartition(".")
            names.append(name)
            if not module and isinstance(error, ImportError):
                raise ValueError(
                    f"{key} must name a class; of {target!r} no module {names[-1]} can be imported ({error}). Correct "
                    "the name, or put the folder that has it into PYTHONPATH."
                ) from error
            if not module or isinstance(error, AttributeError):
                raise ValueError(f"{key} must name a class; {target!r} does not exist. Correct the name.") from error
    if not callable(found):
        raise ValueError(f"{key} must name a class or a function; got {target!r}, which is neither.")
    return cast(Callable[..., Any], found)


def _allowed_by_user() -> tuple[str, ...]:
    return tuple(filter(None, (name.strip().rstrip(".") for name in os.environ.get(ALLOW_VARIABLE, "").split(","))))


def _below(name: Any, prefixes: tuple[str, ...]) -> bool:
    return isinstance(name, str) and any(name == prefix or name.startswith(f"{prefix}.") for prefix in prefixes)


def _not_allowed(key: str, target: object) -> ValueError:
    return ValueError(
        f"{key} must name a settings class of nonmember; got {target!r}, which is not run. If you wrote or trust that "
        f"code, name its module in the environment variable {ALLOW_VARIABLE}, for example {ALLOW_VARIABLE}=my_package."
    )


def environment(name: str, *default: str | None) -> str | None:
    """In the place of OmegaConf's `oc.env`: a variable of this project, else the default. A config ends in result
    files, logs and W&B, so no other variable is looked at."""
    if not READABLE.fullmatch(name):
        raise ValueError(
            f"${{oc.env:...}} must name NONMEMBER_... or WANDB_MODE; got {name!r}, which no config may read. Give the "
            "value itself as key=value."
        )
    if default and not isinstance(default[0], str | int | float | None):
        raise ValueError(f"${{oc.env:{name},...}} must have a plain value as its default; got {default[0]!r}.")
    if name not in os.environ and not default:
        raise ValueError(f"The environment variable {name} is not set; set it, or give the value itself as key=value.")
    value = os.environ.get(name, default[0] if default else None)
    if value is not None and looks_like_secret(str(value)):
        raise ValueError(f"The environment variable {name} holds what looks like a secret, which no config may read.")
    return os.path.expanduser(value) if isinstance(value, str) else value


def _select(key: str, *default: Any, _parent_: Any) -> Any:
    """In the place of OmegaConf's `oc.select`."""
    if default and isinstance(default[0], dict | list):
        raise ValueError(f"${{oc.select:{key},...}} must have a plain value as its default; got {default[0]!r}.")
    return oc.select(key, *default, _parent_=_parent_)


def _refused(*_: object) -> None:
    raise ValueError(
        "${oc.create:...} and ${oc.decode:...} are not followed: a text must not become a part of a "
        "config. Write that part into the file itself."
    )


# By name; in the place of OmegaConf's own. No text becomes a mapping, which nobody could have looked at.
RESOLVERS: Mapping[str, Callable[..., Any]] = {
    "oc.env": environment,
    "oc.select": _select,
    "oc.create": _refused,
    "oc.decode": _refused,
}


# ------------------------------------------------------------------------------------------- Hydra's own part


@contextlib.contextmanager
def checked_composition(own: Sequence[Path]) -> Iterator[None]:
    """While it lasts, Hydra acts on no composed config with a target that is not allowed, in its own part or elsewhere,
    and on no file that says what only the user may. own: folders whose files may say anything."""

    def check(config: DictConfig) -> None:
        check_secrets(config)
        check_names(config)
        check_hydra(config)

    with composed_configs_checked(check), untrusted_files_checked(own):
        yield


def check_names(config: DictConfig) -> None:
    """Raises ValueError for a target that is not allowed, wherever it stands outside the `hydra` node. Cheap, and long
    before the node is built; what interpolations lead to is looked at then."""
    values = cast(dict[str, Any], OmegaConf.to_container(config, resolve=False))
    for name, value in values.items():
        if name != "hydra":
            for key, _, target in _targets(value, str(name)):
                if not (isinstance(target, str) and "${" in target):
                    _check_name(target, key)


def check_secrets(config: DictConfig) -> None:
    """Raises ValueError for a secret, wherever it stands, before Hydra writes the config, and the words it is made of,
    to disk. The message does not repeat it."""
    refuse_secrets([str(word) for word in OmegaConf.select(config, "hydra.overrides.task", default=())])
    texts = _texts(OmegaConf.to_container(config, resolve=False), "")
    for key, value in sorted(texts, key=lambda item: item[0].startswith("hydra")):
        if value == MISSING:
            continue
        if SECRET_IN_ADDRESS.search(value) or (key.endswith(".url") and re.search("[@?#]", value)):
            raise ValueError(
                f"{key} must be an address without user, password or query: a secret belongs in the environment "
                "variable that key_variable names, a query into extra_query. Nothing was written."
            )
        refuse_secrets([f"{key}={value}"])


def _texts(value: Any, key: str) -> Iterator[tuple[str, str]]:
    """(key, text) of every text and number in it."""
    if isinstance(value, Mapping):
        for name, inner in value.items():
            yield from _texts(inner, f"{key}.{name}".lstrip("."))
    elif isinstance(value, list):
        for inner in value:
            yield from _texts(inner, key)
    elif isinstance(value, str | int | float) and not isinstance(value, bool):
        yield key, str(value)


def check_hydra(config: DictConfig) -> None:
    """Raises ValueError where the `hydra` node would run anything but launchers, sweepers, callbacks and log handlers
    that are known. config: as it was composed, before Hydra acts on it."""
    hydra = config.get("hydra")
    if hydra is None:
        return
    require_kind(hydra.get("verbose", False), bool | str | ListConfig, "hydra.verbose", "true, false or loggers' names")
    sweeper, launcher = (_known_values(hydra[name]) for name in ("sweeper", "launcher"))
    for name, node in (("sweeper", sweeper), ("launcher", launcher)):
        require_kind(node, Mapping, f"hydra.{name}", "the settings of one", hint="Leave it out.")
        for key, least in COUNTS.items():
            require_count(node.get(key), least, f"hydra.{name}.{key}", at_most=MOST_COUNT, or_null=True)
    check_params(sweeper.get("params"))
    for key, default in LEFT_OUT.items() if "JoblibLauncher" in str(launcher.get("_target_")) else ():
        if (value := launcher.get(key, default)) != default:
            raise ValueError(
                f"hydra.launcher.{key} must be left out, since joblib's processes are handed one cell after the other; "
                f"got {value!r}. How many there are is n_jobs."
            )
    for keys, value in leaves(launcher):
        if CONTROL.search("".join(keys) + str(value)):
            key = ".".join(("hydra.launcher", *keys))
            raise ValueError(
                f"{key!r} must have no line break or other control character, since it becomes a line of a job's "
                f"script; got {value!r}. Write it in one line."
            )
    for part in ("launcher", "sweeper", "callbacks", "job_logging", "hydra_logging"):
        for key, name, value in _leaves(hydra[part], f"hydra.{part}"):
            if name == "_target_":
                _check_plugin(key, value)
            elif "logging" in part:
                _check_logging(key, name, value)


def _known_values(node: Any) -> Any:
    """As plain containers, with interpolations followed. Raises ValueError, or OmegaConf's error, for what cannot be
    followed yet: later it could be anything."""
    if isinstance(node, DictConfig) and not node._is_none():
        return {str(name): _known_values(_known(node, name)) for name in node}
    if isinstance(node, ListConfig) and not node._is_none():
        return [_known_values(_known(node, index)) for index in range(len(node))]
    return None if isinstance(node, Container) else node


def _known(node: Any, name: Any) -> Any:
    try:
        return node[name]
    except (MissingMandatoryValue, InterpolationToMissingValueError):
        return MISSING
    except InterpolationResolutionError as error:
        if "HydraConfig" not in str(error):
            raise
        key, raw = node._get_full_key(name), node._get_node(name)._value()
        raise ValueError(f"{key} must be a value itself; got {raw!r}. Write out what it stands for.") from error


def _leaves(node: Any, key: str) -> Iterator[tuple[str, str, Any]]:
    """(key, its last part, value) as written. But for the grid, which is followed, an interpolation must not stand for
    a mapping or a list, in which anything could hide."""
    if not isinstance(node, Container) or node._is_none():
        return
    names = list(node.keys()) if isinstance(node, DictConfig) else list(range(len(cast(ListConfig, node))))
    for name in names:
        inner, where = cast(Any, node)._get_node(name), f"{key}.{name!s}"
        if inner._is_interpolation() and (where, inner._value()) == GRID:
            yield from _leaves(inner._dereference_node(), where)
        elif inner._is_interpolation():
            if not _is_plain(inner):
                raise ValueError(
                    f"{where} must be a value itself; got {inner._value()!r}. Write out what it stands for."
                )
            yield where, str(name), inner._value()
        elif isinstance(inner, Container):
            yield from _leaves(inner, where)
        else:
            yield where, str(name), inner._value()


def _is_plain(interpolation: Any) -> bool:
    try:
        return not isinstance(interpolation._dereference_node(), Container)
    except OmegaConfBaseException as error:  # known only when the job runs
        if isinstance(error, InterpolationKeyError) and OF_THE_WORLD.fullmatch(str(interpolation._value())):
            raise  # the sweep is of another world, which the message will name
        return ONLY_HYDRAS_VALUES.fullmatch(str(interpolation._value())) is not None


def _check_plugin(key: str, target: Any) -> None:
    if key.startswith("hydra.sweeper.sampler.") and target in OF_OPTUNA:
        return
    if not _below(target, (*OWN, *FOR_HYDRA, *_allowed_by_user())):
        raise _not_allowed(key, target)
    found = _found(target, key)
    if not (isinstance(found, type) and issubclass(found, Plugin | Callback)):
        raise _not_allowed(key, target)


def _check_logging(key: str, name: str, value: Any) -> None:
    """Python's log configs call whatever stands under `()` and import what follows ext://."""
    if name in ("()", "class") and value not in LOGGING_CLASSES:
        raise ValueError(f"{key} must be one of {', '.join(LOGGING_CLASSES)}; got {value!r}, which is not run.")
    if isinstance(value, str) and value.startswith(("ext://", "cfg://")) and value not in STREAMS:
        raise ValueError(f"{key} must be one of {', '.join(STREAMS)}; got {value!r}.")
