"""Words of the command line: how a value is written there, and paths, which are taken literally."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Mapping, Sequence
from typing import Any

from hydra.core.override_parser.types import Quote, QuotedString

from nonmember.config.hydra_compat import Value
from nonmember.runtime.naming import path_of

VALUE = re.compile(r"(?P<key>\+{0,2}[\w.@/]+)=(?P<value>.+)", re.DOTALL)
_PLAIN = re.compile(r"(?!(?:null|true|false|inf|nan)$)[A-Za-z_/.][\w./@-]*", re.IGNORECASE | re.ASCII)
_INTERPOLATION = re.compile(r"(\\*)\$\{")
FOLDERS = ("outputs", "store", "folder", "export")


def with_literal_paths(arguments: Sequence[str]) -> list[str]:
    """In quotes what stands behind the first "=" and is there: Hydra's grammar gives many characters a meaning."""
    return [_quoted(argument) for argument in arguments]


def from_home(words: Sequence[str]) -> list[str]:
    """outputs=~/large is meant as it is elsewhere in a shell, which leaves that ~ as it is."""

    def meant(word: str) -> str:
        key, _, value = word.partition("=")
        value = word.value if isinstance(word, Value) else value
        return override(key, os.path.expanduser(value)) if key in FOLDERS and str(value).startswith("~") else word

    return list(map(meant, words))


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


def about_another_method(overrides: Sequence[str], method: str, more: Sequence[str]) -> list[str]:
    """A command's words with another method, and without what was said of its own."""
    keys = [word.lstrip("+~").partition("=")[0] for word in overrides]
    kept = [
        word
        for word, key in zip(overrides, keys, strict=True)
        if not (key == "method" or key.startswith("method.") or "@method." in key)
    ]
    return [*kept, f"method={method}", *more]


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
