"""YAML that somebody else may have written: read within bounds, or refused in a sentence with file and line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml
from yaml.reader import Reader

MAX_BYTES = 2**18
MAX_NODES = 4_000  # with what aliases stand for
MAX_DEPTH = 40
TAGS = (None, "!", *(f"tag:yaml.org,2002:{name}" for name in ("bool", "float", "int", "map", "null", "seq", "str")))
PARSER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def read_yaml(path: Path) -> Any:
    """The content of a YAML file, or a ValueError that says what is wrong with it and where."""
    text = checked_text(path)
    try:
        return yaml.load(text, PARSER)
    except (yaml.YAMLError, ValueError, TypeError, RecursionError) as error:
        raise unreadable(path, error) from None


def value_of(name: str, text: str) -> Any:
    """What a setting of a command holds. Raises ValueError where it is no YAML."""
    try:
        return yaml.safe_load(text)
    except (yaml.YAMLError, ValueError, RecursionError):
        raise ValueError(f"{name} must be a number, a word or a [list]; got {text!r}.") from None


def checked_text(path: Path) -> str:
    """The text of a YAML file that can be loaded safely: neither its size nor that of what its aliases stand for,
    its depth nor its tags ask for more than a config needs. Raises ValueError otherwise."""
    if path.exists() and not path.is_file():  # a FIFO or a device would be read for ever
        raise ValueError(f"{path} must be a YAML file; it is {'a folder' if path.is_dir() else 'no regular file'}.")
    with path.open("rb") as file:
        content = file.read(MAX_BYTES + 1)
    if len(content) > MAX_BYTES:
        raise ValueError(f"{path} must be a YAML file of at most {MAX_BYTES // 1024} KiB; it is larger.")
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise _refused(path, content[: error.start].count(b"\n"), "it is not text in UTF-8") from None
    if match := Reader.NON_PRINTABLE.search(text):
        raise _refused(path, text[: match.start()].count("\n"), f"it holds the control character {match[0]!r}")
    try:
        _check_events(text)
    except yaml.YAMLError as error:
        raise unreadable(path, error) from None
    return text


def unreadable(path: Path, error: Exception) -> ValueError:
    """The error of a parser as a sentence."""
    mark = getattr(error, "problem_mark", None)
    reason = getattr(error, "problem", None) or str(error) or type(error).__name__
    return _refused(path, None if mark is None else mark.line, " ".join(str(reason).split()))


def _refused(path: Path, line: int | None, reason: str) -> ValueError:
    where = f"{path}" if line is None else f"{path}, line {line + 1}"
    return ValueError(f"{where} cannot be read as YAML: {reason}. Correct the file.")


def _check_events(text: str) -> None:
    """Counts what loading would make, without making it."""
    sizes: dict[str, int] = {}  # of what an anchor names
    open_nodes: list[tuple[str | None, int]] = []  # (anchor, nodes counted before it)
    count = 0
    for event in yaml.parse(text, PARSER):
        if isinstance(event, yaml.AliasEvent):
            if event.anchor not in sizes:
                raise _problem(event, f"*{event.anchor} stands for nothing that is complete before it")
            count += sizes[event.anchor]
        elif isinstance(event, yaml.NodeEvent):
            if event.tag not in TAGS:
                raise _problem(event, f"the tag {event.tag!r} is not allowed")
            count += 1
            if isinstance(event, yaml.CollectionStartEvent):
                open_nodes.append((event.anchor, count - 1))
            elif event.anchor:
                sizes[event.anchor] = 1
        elif isinstance(event, yaml.CollectionEndEvent):
            anchor, before = open_nodes.pop()
            if anchor:
                sizes[anchor] = count - before
        if count > MAX_NODES:
            raise _problem(event, f"there are more than {MAX_NODES:,} values, aliases followed")
        if len(open_nodes) > MAX_DEPTH:
            raise _problem(event, f"values are nested more than {MAX_DEPTH} deep")


def _problem(event: yaml.Event, problem: str) -> yaml.MarkedYAMLError:
    return yaml.MarkedYAMLError(problem=problem, problem_mark=event.start_mark)
