"""Errors in one sentence: what was expected, what was given, what to do; no traceback."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from hydra.errors import (
    ConfigCompositionException,
    HydraException,
    InstantiationException,
    MissingConfigException,
    OverrideParseException,
)
from omegaconf import DictConfig
from omegaconf.errors import (
    ConfigAttributeError,
    ConfigKeyError,
    InterpolationKeyError,
    InterpolationResolutionError,
    InterpolationToMissingValueError,
    MissingMandatoryValue,
    OmegaConfBaseException,
    ValidationError,
)

from nonmember.checks import hidden, nearest
from nonmember.config.choices import descriptions, groups, options
from nonmember.config.words import for_shell, override
from nonmember.runtime.processes import of_a_group

ALONE = ("DistNetworkError", "DistStoreError")  # of torch, which need not be imported: other processes did not come
MAX_LISTED = 30
FREE = (".extra_body", ".extra_query", ".extra_headers", ".request_settings", "method.given")  # take any key
A_PATH = {
    "model": " A folder or a name on the hub is given as target.path=... (in train: model.path=...).",
    "data": " Files and folders are given as data.path=...",
}
OPTUNA = " Install Optuna's sweeper: pip install hydra-optuna-sweeper."
_NOT_IN_THE_WORLD = re.compile(r"Interpolation key 'world\.([\w.]+)' not found")
_REFUSED = re.compile(r"ValueError raised while resolving interpolation: (.*)")  # by a resolver of ours
_SEVERAL_VALUES = re.compile(r"Ambiguous value for argument '(.*)'\n")
_LACKS = re.compile(r"Missing mandatory value: (\S+)")
_NO_NAME = re.compile(r"^Config group override must be a string or a list. Got (\w+)$")
_UNKNOWN_GROUP = re.compile(r"config group '(.+)' does not exist")
# Hydra adds hints that lead elsewhere: how to append a new key, where it looked, a page of its manual.
_NOT_FOR_US = (
    "To append to your",
    "Config search path:",
    "provider=",
    "See https://",
    "Set the environment variable",
    "full_key: ",
    "object_type=",
)


def is_for_the_user(error: BaseException) -> bool:
    """Whether a sentence serves better than a traceback: bad input, a bad config, a disk that says no."""
    is_known = isinstance(error, ValueError | OSError | HydraException | OmegaConfBaseException)
    return is_known or type(error).__name__ in ALONE


def explain(error: BaseException) -> str:
    """The error in words, without secrets; of Hydra's chains the innermost, where the reason stands."""
    return hidden(_explained(error))


def _explained(error: BaseException) -> str:
    if isinstance(error, InstantiationException) and error.__cause__ is not None:
        node = re.search(r"full_key: (\S+)", str(error))
        return (f"{node[1]}: " if node else "") + _explained(error.__cause__)
    while error.__cause__ is not None and isinstance(error, HydraException):
        if isinstance(error, OverrideParseException):  # what looks like a call
            return f"{error.override!r} cannot be read ({_flat(str(error.__cause__))}). {_as_text(error.override)}"
        error = error.__cause__
    match error:
        case MissingConfigException(missing_cfg_file=str(wanted), options=found) if found or "/" in wanted:
            of_path = wanted.partition("/") if wanted.startswith(tuple(A_PATH)) else wanted.rpartition("/")
            group, _, option = of_path
            known = found or options(group)  # of one in a list Hydra does not say what there is
            more = OPTUNA if wanted == "hydra/sweeper/optuna" else A_PATH.get(group, "")
            return f"There is no {group}={option}{_meant(option, known)} {group} can be {_listed(known)}.{more}"
        case MissingConfigException(missing_cfg_file=str(wanted)) if str(wanted):
            known = [name for rows in descriptions("sweep").values() for name in rows]
            return f"There is no sweep {wanted}{_meant(wanted, known)} `nonmember list sweeps` lists all."
        case ConfigKeyError() | ConfigAttributeError() if error.parent_node is not None:
            known = [str(key) for key in error.parent_node if key != "hydra"]
            above = str(error.full_key).rpartition(".")[0]
            start = f"{above} has" if above else "The keys are"
            empty = f"is empty; add to it with +{error.full_key}=..." if above.endswith(FREE) else "has no keys."
            has = f"{start} {_listed(known)}." if known else f"{above} {empty}"
            elsewhere = _with_ending(error.parent_node._get_root(), f".{error.full_key}")
            meant = f"; did you mean {' or '.join(elsewhere[:3])}?" if elsewhere else _meant(str(error.key), known)
            return f"There is no key {error.full_key}{meant} {has}"
        case InterpolationKeyError() if unknown := _NOT_IN_THE_WORLD.search(str(error)):
            return (
                f"This needs world.{unknown[1]}, which the chosen world does not have: add another world=NAME to the "
                "command (nonmember list worlds), or set that key in the file of the world."
            )
        case InterpolationResolutionError() if refused := _REFUSED.match(str(error)):
            return refused[1]
        case InterpolationKeyError():
            where = f"{error.full_key}: " if error.full_key else ""
            return f"{where}{_flat(str(error))}. Where `${{...}}` is part of a text, write a backslash before it."
        case HydraException() if ambiguous := _SEVERAL_VALUES.match(str(error)):
            word = ambiguous[1]
            wanted = "To sweep over it, add --multirun. To have it as a list, put it in [ ]."
            return f"{word!r} has several values, between commas. {wanted} {_as_text(word)}"
        case MissingMandatoryValue() | InterpolationToMissingValueError() if error.full_key:
            key = next(iter(_LACKS.findall(str(error))), error.full_key)
            return f"{key} is not given, and there is no usual one. Add {key}=VALUE."
        case ValidationError() if error.full_key:
            reason = str(error).splitlines()[0].rstrip(".")
            reason = f"expected a list; write {error.full_key}=[...]" if "is not a ListConfig" in reason else reason
            return f"{error.full_key} cannot be that: {reason}."
        case OverrideParseException():
            return _of_a_word(error.override)
        case ConfigCompositionException() if unknown := _UNKNOWN_GROUP.search(str(error)):
            return f"There is no group {unknown[1]}{_meant(unknown[1], groups())} The groups are {_listed(groups())}."
        case OSError(errno=int()):
            where = f" ({error.filename})" if error.filename else ""
            advice = "outputs=FOLDER names another place to write to. Everything finished before is kept."
            return f"{error.strerror}{where}: {advice}"
    if type(error).__name__ in ALONE:
        return f"The processes of this run did not find one another ({_flat(str(error)).rstrip('.')}): {of_a_group()}."
    return (_flat(str(error)) or type(error).__name__) + (
        OPTUNA if "module 'optuna' is installed" in str(error) else ""
    )


def _of_a_word(word: str) -> str:
    """What Hydra's grammar cannot read, and how to write it."""
    key, _, value = word.partition("=")
    odd = re.search(r"[^\w/\-\\+.$%*@?|:, '\"]|(?<=.)['\"]", value, re.ASCII)
    if odd is None:
        return f"{word!r} cannot be read: write key=value, with quotes around blanks or commas."
    reason = f"{odd[0]!r}, which a value may only have in quotation marks"
    return f"{word!r} cannot be read because of {reason}. Write {for_shell(override(key, value))}."


def _as_text(word: str) -> str:
    key, _, value = word.partition("=")
    return f"As a text, write {for_shell(override(key, value))}."


def _meant(word: str, known: Iterable[str]) -> str:
    near = nearest(word, known)
    return f"; did you mean {near}?" if near else "."


def _with_ending(node: Any, ending: str, above: str = "") -> list[str]:
    """The keys of a config that end so, as general.path does of world.general.path; the outermost first."""
    found: list[str] = []
    if not isinstance(node, DictConfig) or node._is_none() or node._is_missing() or node._is_interpolation():
        return found
    for key in node:
        name = ".".join([above, str(key)] if above else [str(key)])
        found += [name] if name.endswith(ending) else []
        found += _with_ending(node._get_node(key), ending, name)
    return sorted(found, key=lambda name: name.count("."))


def _listed(names: Iterable[str]) -> str:
    names = list(names)
    return ", ".join(names[:MAX_LISTED]) + (" ..." if len(names) > MAX_LISTED else "")


def _flat(text: str) -> str:
    text = re.sub(r"^\w+Error raised while resolving interpolation: ", "", text)
    text = _NO_NAME.sub(
        r"The choice of a group must be a name, as in method=prism; got \1. See `nonmember list`.", text
    )
    lines = (line.strip() for line in text.splitlines())
    return " ".join(line for line in lines if line and not line.startswith(_NOT_FOR_US))
