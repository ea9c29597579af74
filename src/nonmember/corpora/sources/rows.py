"""Rows of a source: the files they stand in, JSON Lines read line by line, values by column."""

from __future__ import annotations

import glob
import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from nonmember.corpora.sources.compressed import DamagedFileError, opened

Row = Mapping[str, object]

LONGEST_LINE = 2**28  # bytes; what is longer is no line of JSON but something endless
MOST_BLANK_LINES = 10**6  # one after the other


def name_of(row: Row, field: str, where: str) -> str:
    """An id or a cluster: text, or a whole number written as text."""
    value = column_of(row, field, where)
    if isinstance(value, bool) or not isinstance(value, str | int) or value == "":
        raise ValueError(
            f"{where}: column {field!r} must hold a name or a whole number, but it holds {value!r}. "
            "Name another column, or fill it."
        )
    return str(value)


def optional_text_of(row: Row, field: str | None, where: str) -> str:
    """A title or an author: text, or nothing where the column is empty or none is named."""
    value = None if field is None else column_of(row, field, where)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise ValueError(
            f"{where}: column {field!r} must hold text, but it holds {kind_of(value)}. Name another column, or none."
        )
    return value.strip()


def work_fields(title_field: str | None, author_field: str | None) -> dict[str, str]:
    """Of an identity, only where they are used: corpora stored before there were such columns keep their names."""
    named = {"title_field": title_field, "author_field": author_field}
    return {name: field for name, field in named.items() if field is not None}


def column_of(row: Row, field: str, where: str) -> object:
    if field not in row:
        raise ValueError(
            f"{where} has no column {field!r}; its columns are {', '.join(map(repr, row)) or 'none'}. "
            "Name one of them, or leave such lines out."
        )
    return row[field]


def item_of(row: Row, field: str, where: str) -> object:
    """Of a column, or of the list in it: "paraphrases.0"."""
    name, dot, place = field.rpartition(".")
    if field in row or not (dot and place.isdecimal()):
        return column_of(row, field, where)
    items = column_of(row, name, where)
    if not isinstance(items, list) or int(place) >= len(items):
        raise ValueError(
            f"{where}: column {name!r} must hold a list of more than {place} texts, but it holds "
            f"{f'{len(items)} of them' if isinstance(items, list) else 'none'}. Name another, or leave such lines out."
        )
    return items[int(place)]


def files_at(patterns: Iterable[str]) -> list[Path]:
    paths: list[Path] = []
    for pattern in patterns:
        expanded = str(Path(pattern).expanduser())
        found = [Path(expanded)] if Path(expanded).is_file() else []
        found = found or sorted(filter(Path.is_file, map(Path, glob.glob(expanded, recursive=True))))
        if not found:
            what = "a folder is there" if Path(expanded).is_dir() else "nothing is there"
            raise ValueError(
                f"Expected a file, or a pattern that matches files, at {pattern}, but {what}; "
                f"correct the path (relative ones start at {Path.cwd()})."
            )
        paths += found
    return list(dict.fromkeys(paths))


def stem(path: Path) -> str:
    return path.name.removesuffix(".gz").removesuffix(".jsonl").removesuffix(".json")


def kind_of(value: object) -> str:
    kinds = {dict: "an object", list: "a list", bool: "true or false", int: "a number", float: "a number"}
    return "null" if value is None else kinds.get(type(value), type(value).__name__)


def json_rows(path: Path) -> Iterator[tuple[int, Row]]:
    for number, line in json_lines(path):
        yield number, json_row(line, f"{path}, line {number}")


def json_lines(path: Path) -> Iterator[tuple[int, bytes]]:
    """The lines that are not blank, with their numbers from 1."""
    number = num_blank = 0
    try:
        with opened(path) as file:
            while line := file.readline(LONGEST_LINE + 1):
                number += 1
                if len(line) > LONGEST_LINE:
                    raise ValueError(
                        f"{path}, line {number} must have at most {LONGEST_LINE:,} bytes; it has more. Write one JSON "
                        "object a line."
                    )
                num_blank = 0 if (content := line.strip(b" \t\r\n")) else num_blank + 1
                require_few_blank_lines(num_blank, number, path)
                if content:
                    yield number, content
    except DamagedFileError as error:
        raise DamagedFileError(path, error.compression, error.reason, f" after line {number}") from error


def require_few_blank_lines(num_blank: int, number: int, path: Path) -> None:
    """num_blank: lines one after the other, up to line `number`."""
    if num_blank > MOST_BLANK_LINES:
        raise ValueError(
            f"{path} has more than {MOST_BLANK_LINES:,} blank lines one after the other, up to line {number}. Check "
            "how it was written."
        )


def json_row(line: bytes, where: str) -> Row:
    row = json_value(line, where)
    if not isinstance(row, dict):
        raise ValueError(f"{where} must be one JSON object, but it is {kind_of(row)}. Write one object a line.")
    return row


def json_value(line: bytes, where: str) -> object:
    try:
        return json.loads(line.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise ValueError(f"{where} must be UTF-8, but it is not ({error.reason}). Convert the file.") from error
    except RecursionError as error:
        raise ValueError(f"{where} must be one JSON object; it is nested too deeply to be read. Flatten it.") from error
    except json.JSONDecodeError as error:
        raise ValueError(
            f"{where} must be one JSON object, but it cannot be read ({error.msg}, column {error.colno}). "
            "Is the line cut, or the file something other than JSON lines?"
        ) from error


def read_text(path: Path) -> str:
    try:
        return path.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ValueError(
            f"{path} must be UTF-8, but byte {error.start} is not ({error.reason}). Convert the file or leave it out."
        ) from error


def visible_files(folder: Path) -> Iterator[tuple[str, Path]]:
    for path in folder.rglob("*"):
        inner = path.relative_to(folder)
        if path.is_file() and not any(part.startswith(".") for part in inner.parts):
            yield inner.as_posix(), path
