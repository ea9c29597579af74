"""Rows of a source: lines of a file, JSON, values by column."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from nonmember.checks import first_few
from nonmember.corpora.sources.compressed import DamagedFileError, opened

Row = Mapping[str, object]

NO_VALUE = ("NAType", "NaTType")  # of pandas
LONGEST_LINE = 2**28  # bytes; what is longer is no line of JSON but something endless
MOST_BLANK_LINES = 10**6  # one after the other
WHITE_SPACE = " \t\r\n"  # of JSON


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
    if is_missing(value):
        return ""
    if not isinstance(value, str):
        raise ValueError(
            f"{where}: column {field!r} must hold text, but it holds {kind_of(value)}. Name another column, or none."
        )
    return value.strip()


def is_missing(value: object) -> bool:
    """Whether a row has no value: null, NaN, or what pandas has in its place."""
    return value is None or (isinstance(value, float) and math.isnan(value)) or type(value).__name__ in NO_VALUE


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
    return ((number, content) for number, line in lines_of(path) if (content := line.strip(b" \t\r\n")))


def lines_of(path: Path) -> Iterator[tuple[int, bytes]]:
    """All lines with their ends, and their numbers from 1."""
    number = num_blank = 0
    try:
        with opened(path) as file:
            while line := file.readline(LONGEST_LINE + 1):
                number += 1
                if len(line) > LONGEST_LINE:
                    raise ValueError(
                        f"{path}, line {number} must have at most {LONGEST_LINE:,} bytes; it has more. Write one "
                        "document a line."
                    )
                num_blank = 0 if line.strip(b" \t\r\n") else num_blank + 1
                require_few_blank_lines(num_blank, number, path)
                yield number, line
    except DamagedFileError as error:
        raise DamagedFileError(path, error.compression, error.reason, f" after line {number}") from error


def require_few_blank_lines(num_blank: int, number: int, path: Path) -> None:
    """num_blank: lines one after the other, up to line `number`."""
    if num_blank > MOST_BLANK_LINES:
        raise ValueError(
            f"{path} has more than {MOST_BLANK_LINES:,} blank lines one after the other, up to line {number}. Check "
            "how it was written."
        )


def text_of(content: bytes, where: str) -> str:
    """Raises ValueError for bytes that are not UTF-8. A byte-order mark is no text."""
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        num_lines = content.count(b"\n", 0, error.start)
        byte = f"byte {error.start}{f' (line {num_lines + 1})' if num_lines else ''}"
        raise ValueError(
            f"{where} must be UTF-8, but {byte} is not ({error.reason}). Convert the file or leave it out."
        ) from error


# JSON ----------------------------------------------------------------------------------------------------------------


def json_row(line: bytes, where: str) -> Row:
    row = json_value(line, where)
    if not isinstance(row, dict):
        raise ValueError(f"{where} must be one JSON object, but it is {kind_of(row)}. Write one object a line.")
    return row


def json_value(content: bytes, where: str) -> object:
    """Raises ValueError for what is not one JSON value, names a key twice, or cannot be held. NaN and Infinity, which
    Python writes, are numbers."""
    text = text_of(content, where)
    with _refused_as_json(where):
        return unambiguous_json.decode(text)


def json_items(content: bytes, path: Path) -> Iterator[tuple[str, object]]:
    """(where, value) of each item of a JSON array. Raises as `json_value`."""
    text = text_of(content, str(path)).strip(WHITE_SPACE)
    if not text.startswith("["):
        raise ValueError(
            f"{path} must be a JSON array, or one JSON object a line; it is {kind_of(json_value(content, str(path)))}."
        )
    if text[1:].strip(WHITE_SPACE) == "]":
        return
    number, line, counted, position = 0, 1, 0, _after_space(text, 1)
    while True:
        number += 1
        line, counted = line + text.count("\n", counted, position), position
        where = f"{path}, item {number} (line {line})"
        with _refused_as_json(where):
            value, end = unambiguous_json.raw_decode(text, position)
        yield where, value
        end = _after_space(text, end)
        if text[end : end + 1] == "]" and end + 1 == len(text):
            return
        if text[end : end + 1] != ",":
            raise ValueError(f"{where} must be followed by a comma, or be the last of the array. Is the file cut?")
        position = _after_space(text, end + 1)


def _after_space(text: str, position: int) -> int:
    while position < len(text) and text[position] in WHITE_SPACE:
        position += 1
    return position


@contextmanager
def _refused_as_json(where: str) -> Iterator[None]:
    try:
        yield
    except RecursionError as error:
        raise ValueError(f"{where} must be one JSON object; it is nested too deeply to be read. Flatten it.") from error
    except json.JSONDecodeError as error:
        raise ValueError(
            f"{where} must be one JSON object, but it cannot be read ({error.msg}, column {error.colno}). "
            "Is the line cut, the object printed over several lines, or the file something other than JSON lines?"
        ) from error
    except NotOneValueError as error:
        raise ValueError(f"{where} {error} {error.advice}") from error


class NotOneValueError(ValueError):
    """Well-formed JSON whose value is not certain. The message goes on after a place; advice: to who wrote it."""

    def __init__(self, message: str, advice: str) -> None:
        super().__init__(message)
        self.advice = advice


def _object(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, number in Counter(name for name, _ in pairs).items() if number > 1]
        raise NotOneValueError(f"names {first_few(map(repr, names))} twice in one object.", "Keep one of the two.")
    return found


def _whole_number(digits: str) -> int:
    try:
        return int(digits)
    except ValueError:
        raise NotOneValueError(f"has a number of {len(digits.lstrip('-')):,} digits.", "Write it as text.") from None


unambiguous_json = json.JSONDecoder(object_pairs_hook=_object, parse_int=_whole_number)
