"""Words of the command line: how a value is written there, and what is done before Hydra reads them: paths are taken
literally, common mistakes are named."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Mapping, Sequence
from itertools import zip_longest
from pathlib import Path
from typing import Any

from hydra.core.override_parser.types import Quote, QuotedString

from nonmember.config.choices import options
from nonmember.config.hydra_compat import Value, names_of_options
from nonmember.runtime.naming import FILE_SUFFIXES, path_of

CHOICE = re.compile(r"\+{0,2}(?P<group>model|data|target|reference)(@(?P<package>[\w.]+))?=(?P<value>.+)")

# Other spellings of a key -> the key: W&B's before there were several loggers; the model that a command is about.
OF_WANDB = (re.compile(r"(\+{0,2})logger\.(?=(mode|project|entity|directory|log_text)=)"), r"\1logger.wandb.")
OF_TARGET = [(re.compile(r"(\+{0,2})model="), r"\1model@target="), (re.compile(r"(\+{0,2})model\."), r"\1target.")]
OF_TRAINED = [(re.compile(r"(\+{0,2})model@target="), r"\1model="), (re.compile(r"(\+{0,2})target\."), r"\1model.")]
RENAMED = {"audit": [OF_WANDB, *OF_TARGET], "score": OF_TARGET, "train": [OF_WANDB, *OF_TRAINED]}
VALUE = re.compile(r"(?P<key>\+{0,2}[\w.@/]+)=(?P<value>.+)", re.DOTALL)
OPTION = re.compile(r"--?(?P<name>[A-Za-z][\w.@/-]*)(=(?P<value>.*))?", re.DOTALL)
_PLAIN = re.compile(r"(?!(?:null|true|false|inf|nan)$)[A-Za-z_/.][\w./@-]*", re.IGNORECASE | re.ASCII)
_INTERPOLATION = re.compile(r"(\\*)\$\{")
FOLDERS = ("outputs", "store", "folder", "export")
MEANT = {  # what people call a setting -> its key; of the target see `_meant`
    "reference": "reference.path",
    "data": "data.path",
    "dataset": "data.path",
    "documents": "data.path",
    "heldout": "data.heldout.path",
    "output": "outputs",
}


def with_literal_paths(arguments: Sequence[str]) -> list[str]:
    """In quotes what stands behind the first "=" and is there: Hydra's grammar gives many characters a meaning."""
    return [_quoted(argument) for argument in arguments]


def renamed(command: str, arguments: Sequence[str]) -> list[str]:
    """As the command calls its settings: logger.mode=online is logger.wandb.mode=online, and where there is a target
    model=NAME is model@target=NAME."""
    return [_renamed(command, _from_home(word)) for word in arguments]


def _from_home(word: str) -> str:
    """outputs=~/large is meant as it is elsewhere in a shell, which leaves that ~ as it is."""
    key, _, value = word.partition("=")
    value = word.value if isinstance(word, Value) else value
    return override(key, os.path.expanduser(value)) if key in FOLDERS and str(value).startswith("~") else word


def _renamed(command: str, word: str) -> str:
    for spelling, key in RENAMED.get(command, ()):
        if spelling.match(word):
            found = spelling.sub(key, word, count=1)
            if not isinstance(word, Value):
                return found
            value = Value(found)
            value.key, value.value = found.partition("=")[0], word.value
            return value
    return word


def _quoted(argument: str) -> str:
    found = VALUE.fullmatch(argument)
    if found is None or (_is_number(found["value"]) and not found["key"].endswith("path")):
        return argument
    try:
        is_there = path_of(found["value"]).exists()
    except (OSError, ValueError):  # no name of a file
        return argument
    return str(override(found["key"], found["value"])) if is_there else argument


def _is_number(value: str) -> bool:
    try:
        float(value)
    except ValueError:
        return value.lower() in ("null", "true", "false")
    return True


def refuse_options(command: str, arguments: Sequence[str]) -> None:
    """--target=FOLDER: raise ValueError that says how settings are written."""
    known = names_of_options()
    for argument, following in zip_longest(arguments, arguments[1:], fillvalue=""):
        found = OPTION.fullmatch(argument)
        if found is None or any(name.startswith(argument.partition("=")[0]) for name in known):
            continue  # of Hydra's, or the beginning of one, of which Hydra's parser tells
        beside = following if following and not re.match(r"-|[\w.@/+]+=", following) else "VALUE"
        value = beside if found["value"] is None else found["value"]
        key = _meant(command, found["name"].replace("-", "_"))
        word = f"{key}={value}" if _is_number(value) else override(key, value)
        raise ValueError(f"There is no option {argument}; settings have no dashes: write {for_shell(word)}.")


def _meant(command: str, name: str) -> str:
    name = name if "." in name else re.sub(r"(_(model|name|file|folder|dir|path|or))+$", "", name)
    if name in ("model", "target"):
        return "model.path" if command == "train" else "target.path"
    if name == "general":
        return "world.general.path" if command == "audit" else "general.path"
    return MEANT.get(name, name)


def refuse_paths_as_choices(command: str, arguments: Sequence[str]) -> None:
    """model@target=/some/folder: raise ValueError that says which key takes a path."""
    for argument in arguments:
        if (found := CHOICE.fullmatch(argument)) is None or not _is_path(found["group"], found["value"]):
            continue
        group, value = found["group"], found["value"]
        option = {"model": "pretrained", "data": "documents"}.get(group)
        key = found["package"] or ("target" if group == "model" and command != "train" else group)
        # What the own world has needs no more than a path; all else is filled first.
        chosen = option and (key.count(".") > 1 or _is_other_world(arguments))
        use = f"{group}@{key}={option} {key}.path={value}" if chosen else f"{key}.path={value}"
        raise ValueError(f"{argument} should be one of the names of `nonmember list`; for a path use {use}.")


def _is_path(group: str, value: str) -> bool:
    first = value.strip("'\"").split(",")[0].strip("'\"")
    if first in options(group):
        return False
    is_file = re.search(rf"\.({FILE_SUFFIXES})$", first) is not None
    return first.startswith((".", "~")) or "/" in first or "\\" in first or is_file or Path(first).exists()


def _is_other_world(arguments: Sequence[str]) -> bool:
    return any(argument.startswith("world=") and argument != "world=own" for argument in arguments)


# ---------------------------------------------------------------------------------------------------- values


def override(key: str, value: Any) -> Value:
    """A value of the calling program for a key of the config."""
    value = literal(value)
    word = Value(f"{key}={_written(value)}")
    word.key, word.value = key, value
    return word


def literal(value: Any) -> Any:
    """Plain values, in which OmegaConf finds no interpolation: `${...}` may be part of a file's name."""
    match value:
        case Mapping():
            return {name: literal(item) for name, item in value.items()}
        case list() | tuple():
            return [literal(item) for item in value]
        case str() | os.PathLike():
            return _INTERPOLATION.sub(r"\1\1\\${", os.fspath(value))
    return value.tolist() if callable(getattr(value, "tolist", None)) else value  # of NumPy


def for_shell(word: str) -> str:
    """A word as it is typed: in double quotes around single ones, where a shell finds nothing else in it."""
    return f'"{word}"' if "'" in word and not re.search(r'["$`\\!]', word) else shlex.quote(word)


def _written(value: Any) -> str:
    """As the command line has it, with quotes where they are needed."""
    match value:
        case None:
            return "null"
        case bool():
            return str(value).lower()
        case int() | float():
            return repr(value)
        case Mapping():
            return "{" + ",".join(f"{name}:{_written(item)}" for name, item in value.items()) + "}"
        case list():
            return "[" + ",".join(map(_written, value)) + "]"
    text = str(value)
    return text if _PLAIN.fullmatch(text) else QuotedString(text, Quote.single).with_quotes()
