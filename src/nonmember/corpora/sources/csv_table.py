"""CSV and TSV, read strictly: no row vanishes into the value of another."""

from __future__ import annotations

import csv
import io
import logging
import re
from collections.abc import Collection, Iterator
from pathlib import Path

from nonmember.corpora.sources.rows import LONGEST_LINE, Row, lines_of, text_of

log = logging.getLogger(__name__)

EXCELS_FIRST_LINE = re.compile(r"sep=(.)[\r\n]*")
SWALLOWED = 2  # lines within a value that make it rows


def csv_rows(path: Path, columns: Collection[str] | None, tabbed: bool) -> Iterator[tuple[int, str, Row]]:
    """(number, where, row) of each row; the line of names is the first, and blank lines are none. Values are text.

    columns: the only ones needed; None: all.   tabbed: whether tabs separate values; else it is found.

    Quotation marks are read strictly: one that is never closed would make the rest of the file a value. Raises
    ValueError, with row and line, for what cannot be read.
    """
    csv.field_size_limit(max(csv.field_size_limit(), LONGEST_LINE))
    lines = _Lines(path, tabbed)
    reader = csv.reader(lines, delimiter=lines.delimiter, strict=True)
    number, longest, num_lines = 1, 1, 0
    try:
        if lines.begin_as_excels:
            next(reader)
        names = _column_names(next(reader, []), path)
        num_lines = reader.line_num
        for values in reader:
            first, num_lines = num_lines + 1, reader.line_num
            lines.require_one_end()
            if not values:
                continue
            number += 1
            where = f"{path}, row {number}"
            if len(values) != len(names):
                raise ValueError(
                    f"{where} (line {first}) has {len(values)} values, but there are {len(names)} columns. Is a value "
                    "with a separator or a line break not in quotation marks?"
                )
            if num_lines > first:
                longest = max(longest, num_lines - first + 1)
                _require_no_rows(values, lines.delimiter, f"{where} (lines {first} to {num_lines})")
            row = dict(zip(names, values, strict=True))
            yield number, where, row if columns is None else {name: row[name] for name in names if name in columns}
    except csv.Error as error:
        raise ValueError(
            f"{path} must be a CSV table in which every quotation mark that opens a value is closed, and one within is "
            f"written twice; the row that begins on line {num_lines + 1} cannot be read ({error}). Correct it, or "
            "write the file as JSON Lines or Parquet."
        ) from error
    if longest > 1:
        log.info("%s: %s rows on %s lines; the longest has %s.", path, f"{number:,}", f"{num_lines:,}", longest)


class _Lines:
    """The lines of a CSV file as text, each ending in "\\n", "\\r\\n" or "\\r".   delimiter: a tab in TSV, else what
    Excel's first line names (begin_as_excels), else the first of , ; tab that the line of names has."""

    def __init__(self, path: Path, tabbed: bool) -> None:
        self._path, self._end, self._ends = path, "", set[str]()
        self._lines = self._read()
        first = next(self._lines, "")
        by_excel = EXCELS_FIRST_LINE.fullmatch(first)
        self.begin_as_excels = by_excel is not None
        found = by_excel[1] if by_excel is not None else next((mark for mark in ",;\t" if mark in first), ",")
        self.delimiter = "\t" if tabbed else found
        self._first: str | None = first

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        line, self._first = next(self._lines) if self._first is None else self._first, None
        self._end = line[len(line.rstrip("\r\n")) :][-2:]
        return line

    def _read(self) -> Iterator[str]:
        for number, content in lines_of(self._path):
            text = text_of(content, f"{self._path}, line {number}")
            if "\0" in text:
                raise ValueError(
                    f"{self._path}, line {number} has a NUL byte, which no CSV file has. Is it binary, or cut?"
                )
            yield from io.StringIO(text, newline="")

    def require_one_end(self) -> None:
        """After each row. A lone "\\r" ends a row where all rows end so; beside others it is somebody's value."""
        self._ends.add(self._end)
        if "\r" in self._ends and self._ends - {"\r", ""}:
            raise ValueError(
                f"{self._path} has rows that end in a carriage return alone and others that end in a line feed: where "
                "a row ends is ambiguous. Put values with line breaks into quotation marks, or convert the line ends."
            )


def _column_names(names: list[str], path: Path) -> list[str]:
    if not names or len(set(names)) < len(names) or not all(names):
        raise ValueError(
            f"{path} must begin with a line of different column names, none of them empty; got "
            f"{', '.join(map(repr, names)) or 'nothing'}. Add or correct that line (pandas: index=False)."
        )
    return names


def _require_no_rows(values: list[str], delimiter: str, where: str) -> None:
    """Raises ValueError for a row whose value of several lines goes on in lines that look like rows: as many values,
    those beside the text made of the same kinds of characters. Then two stray quotation marks have made one of many."""
    for column, value in enumerate(values):
        further = re.split(r"\r\n|\r|\n", value)[1:]
        if len(further) < SWALLOWED or len(values) == 1:
            continue
        kinds = [_characters(item) for item in values]
        rows = [line.split(delimiter) for line in further]
        whole = all(len(row) == len(values) for row in rows[:-1]) and len(rows[-1]) == column + 1
        if whole and all(
            _characters(item) == kinds[index] for row in rows for index, item in enumerate(row) if index != column
        ):
            raise ValueError(
                f"{where} has a value of {len(further) + 1} lines that look like rows of their own. Is a quotation "
                "mark not closed? If they are meant to be one text, write the file as JSON Lines or Parquet."
            )


def _characters(value: str) -> tuple[bool, ...]:
    """Whether there are letters, digits, white space and others in it."""
    return tuple(re.search(kind, value) is not None for kind in (r"[^\W\d_]", r"\d", r"\s", r"[^\w\s]"))
