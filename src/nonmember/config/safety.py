"""Restricts what a config may instantiate, and keeps secrets out of what is written.

`instantiate` takes the place of Hydra's, whose list of forbidden targets leaves `pandas.read_pickle`, `torch.load` and
many more. Here a `_target_` is a settings class (a dataclass) of this package, one of the few names of FURTHER, a class
of torch.optim, or lies in a module that the user names in the environment variable NONMEMBER_ALLOW_TARGETS. All else
that a config says is the user's to read before it is run (docs/safety.md).
"""

from __future__ import annotations

import contextlib
import functools
import os
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from typing import Any, cast

from hydra.errors import HydraException, InstantiationException
from hydra.utils import get_object
from omegaconf import MISSING, Container, DictConfig, ListConfig, OmegaConf

from nonmember.checks import looks_like_secret, refuse_secrets, require_flag
from nonmember.config.hydra_compat import composed_configs_checked

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
SETTINGS = ("_target_", "_partial_", "_convert_")  # of a node itself; all else is given to the target
READABLE = re.compile(r"NONMEMBER_\w+|WANDB_MODE")  # environment variables, by ${oc.env:NAME}
CODE = "trust_remote_code"
SECRET_IN_ADDRESS = re.compile(r"://[^/\s]*@|(^|[.+ ])url=\S*[?#]")  # of `https://user:password@host`, and in a query


def instantiate(node: Any) -> Any:
    """The object that a config describes; nested nodes first. Mappings and lists without a target become plain ones.

    node: of a composed config, a plain mapping or list, or None, which stays None. `_partial_: true` gives a callable
    that waits for further arguments.

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
    for item in fields(target) if is_dataclass(target) else ():
        if item.type in (bool, "bool") and item.name in arguments:  # of log_text=no is the text that Python calls true
            require_flag(arguments[item.name], f"{key}.{item.name}")
    try:
        if inner.get("_partial_"):
            return functools.partial(target, **arguments)
        return target(**arguments)
    except Exception as error:
        raise InstantiationException(
            f"Error in call to target '{value['_target_']}':\n{error!r}\nfull_key: {key}"
        ) from error


def _resolved(target: Any, key: str) -> Callable[..., Any]:
    """The class or function itself. Nothing is imported that is not allowed."""
    if not (target in FURTHER or _below(target, (*OWN, OPTIMIZERS, *_allowed_by_user()))):
        raise _not_allowed(key, target)
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


def _found(target: str, key: str) -> Callable[..., Any]:
    try:
        found = get_object(target)
    except (ImportError, ValueError, HydraException) as error:
        raise ValueError(
            f"{key} must name a class; {target!r} does not exist ({str(error).splitlines()[-1]}). Correct the name, or "
            "put the folder that has it into PYTHONPATH."
        ) from error
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
    if name not in os.environ and not default:
        raise ValueError(f"The environment variable {name} is not set; set it, or give the value itself as key=value.")
    value = os.environ.get(name, default[0] if default else None)
    if value is not None and looks_like_secret(str(value)):
        raise ValueError(f"The environment variable {name} holds what looks like a secret, which no config may read.")
    return os.path.expanduser(value) if isinstance(value, str) else value


def checked_composition() -> contextlib.AbstractContextManager[None]:
    """While it lasts, Hydra acts on no composed config that holds a secret, or runs a model's own code unasked."""

    def check(config: DictConfig) -> None:
        check_secrets(config)
        check_code(config)

    return composed_configs_checked(check)


def check_code(config: DictConfig) -> None:
    """Raises ValueError where a file, and not the command line, says that code which comes with a model is to run."""
    words = [str(word).partition("=")[0] for word in OmegaConf.select(config, "hydra.overrides.task", default=())]
    asked = any(word.endswith(CODE) for word in words)
    for key, value in leaves(OmegaConf.to_container(config, resolve=False)):
        from_grid = key.startswith(("grid.", "hydra.sweeper.")) and CODE in key
        if from_grid or (key.endswith(f".{CODE}") and value not in (False, None) and not asked):
            raise ValueError(f"{key}={value}: say so on the command line, not in a file; a model's own code would run.")


def leaves(value: Any, key: str = "") -> Iterator[tuple[str, Any]]:
    if isinstance(value, Mapping):
        for name, inner in value.items():
            yield from leaves(inner, f"{key}.{name}".lstrip("."))
    elif isinstance(value, list):
        for inner in value:
            yield from leaves(inner, key)
    else:
        yield key, value


def check_secrets(config: DictConfig) -> None:
    """Raises ValueError for a secret, wherever it stands, before Hydra writes the config, and the words it is made of,
    to disk. The message does not repeat it."""
    refuse_secrets([str(word) for word in OmegaConf.select(config, "hydra.overrides.task", default=())])
    written = leaves(OmegaConf.to_container(config, resolve=False))
    for key, value in sorted(written, key=lambda item: item[0].startswith("hydra")):
        if value == MISSING or isinstance(value, bool) or not isinstance(value, str | int | float):
            continue
        value = str(value)
        if SECRET_IN_ADDRESS.search(value) or (key.endswith(".url") and re.search("[@?#]", value)):
            raise ValueError(
                f"{key} must be an address without user, password or query: a secret belongs in the environment "
                "variable that key_variable names, a query into extra_query. Nothing was written."
            )
        refuse_secrets([f"{key}={value}"])
