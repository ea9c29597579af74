"""Rows of files of any form: JSON Lines, a JSON array, CSV, TSV, Parquet, Arrow or text, plain or compressed.

A row is a mapping from columns to values. Which form a file has is found by how it begins and by its suffix.
"""

from __future__ import annotations

import csv
import io
import json
import logging
import re
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq

from nonmember.checks import first_few
from nonmember.corpora.sources.rows import (
    LONGEST_LINE,
    SUFFIXES,
    Row,
    compression_of,
    content_of,
    json_items,
    json_value,
    lines_of,
    opened,
    read_text,
    require_few_blank_lines,
    row_of,
    text_of,
)

log = logging.getLogger(__name__)

Form = Literal["JSON Lines", "JSON array", "CSV", "TSV", "Parquet", "Arrow", "text"]
Split = Literal["lines", "paragraphs", "file"]

MAGIC: dict[bytes, Form] = {b"PAR1": "Parquet", b"ARROW1": "Arrow", b"FEA1": "Arrow", b"\xff\xff\xff\xff": "Arrow"}
BY_SUFFIX: dict[str, Form] = {
    **dict.fromkeys((".jsonl", ".ndjson", ".json"), "JSON Lines"),
    **dict.fromkeys((".csv",), "CSV"),
    **dict.fromkeys((".tsv", ".tab"), "TSV"),
    **dict.fromkeys((".parquet", ".pq"), "Parquet"),
    **dict.fromkeys((".arrow", ".feather", ".ipc"), "Arrow"),
    **dict.fromkeys((".txt", ".text", ".md"), "text"),
}
READABLE = (
    "Expected JSON Lines, a JSON array, CSV, TSV, Parquet, Arrow or UTF-8 text, plain or compressed "
    f"({', '.join(SUFFIXES)})"
)
OTHERS = {  # how files begin that are named, since people have them
    b"PK\x03\x04": "a zip archive or an Excel file",
    b"%PDF": "a PDF file",
    b"PARE": "an encrypted Parquet file",
    b"\xff\xfe\0\0": "text in UTF-32",
    b"\0\0\xfe\xff": "text in UTF-32",
    b"\xff\xfe": "text in UTF-16",
    b"\xfe\xff": "text in UTF-16",
}
END_OF_STREAM = b"\xff\xff\xff\xff\0\0\0\0"  # of Arrow
HEAD_BYTES = 2**16
TEXT = "text"


class NumberedRow(NamedTuple):
    """A row and where it stands.

    Attributes:
        number: Of the line, row or item, from 1; in CSV the line of names is the first row.
        where: File and number, for messages.
    """

    number: int
    where: str
    row: Row


def plain_suffix(path: Path) -> str:
    """.jsonl of documents.jsonl.gz, in small letters."""
    return Path(_uncompressed(path.name)).suffix.lower()


def stem_of(name: str) -> str:
    """documents of documents.jsonl.gz; other suffixes stay."""
    plain = _uncompressed(name)
    return Path(plain).with_suffix("").as_posix() if Path(plain).suffix.lower() in BY_SUFFIX else plain


def _uncompressed(name: str) -> str:
    return name.rpartition(".")[0] if name.lower().endswith(SUFFIXES) else name


def form_of(path: Path) -> Form:
    """By how the file begins, then by its suffix. Raises ValueError for a file that is empty or none of the forms."""
    with opened(path) as file:
        head = file.read(HEAD_BYTES)
    for magic, form in MAGIC.items():
        if head.startswith(magic):
            return form
    for magic, kind in OTHERS.items():
        if head.startswith(magic):
            raise ValueError(f"{path} is {kind}. {READABLE}; unpack or convert it.")
    form = BY_SUFFIX.get(plain_suffix(path), "text")
    if not head.strip() and form != "text":
        what = "begins with nothing but white space" if head else "is empty"
        raise ValueError(f"{path} has no documents: it {what}. {READABLE}; check how it was written.")
    if form in ("Parquet", "Arrow"):
        raise ValueError(f"{path} must be a complete {form} file; it does not begin as one. Fetch or write it again.")
    if b"\0" in head:
        raise ValueError(f"{path} is a binary file of another kind, or text in UTF-16. {READABLE}; convert it.")
    begin = head.removeprefix(b"\xef\xbb\xbf").lstrip()[:1]
    if form == "JSON Lines" and begin == b"[":
        return "JSON array"
    if plain_suffix(path) not in BY_SUFFIX and begin == b"{" and _is_json_object(head):
        return "JSON Lines"
    return form


def _is_json_object(head: bytes) -> bool:
    try:
        return isinstance(json.loads(head.split(b"\n", 1)[0]), dict)
    except (ValueError, RecursionError):
        return False


def rows_of(
    path: Path, form: Form, *, split: Split | None = None, columns: Collection[str] | None = None
) -> Iterator[NumberedRow]:
    """All rows in their order.

    Args:
        path: The file.
        form: What it is (`form_of`).
        split: What a document of a text file is; None asks where a file has lines and paragraphs.
        columns: The only ones needed; others may be left out. None: all.

    Raises:
        ValueError: With file and row, for what cannot be read.
    """
    if form == "text":
        return _text_rows(path, split)
    if form == "JSON Lines":
        return _json_lines_rows(path)
    if form == "JSON array":
        items = enumerate(json_items(content_of(path), path), start=1)
        return (NumberedRow(number, where, row_of(value, where)) for number, (where, value) in items)
    return _csv_rows(path, columns) if form in ("CSV", "TSV") else _arrow_rows(path, form, columns)


def _json_lines_rows(path: Path) -> Iterator[NumberedRow]:
    for number, line in lines_of(path):
        if content := line.strip(b" \t\r\n"):
            where = f"{path}, line {number}"
            yield NumberedRow(number, where, row_of(json_value(content, where), where))


# CSV, TSV: read strictly, so that no row vanishes into the value of another -------------------------------------------

EXCELS_FIRST_LINE = re.compile(r"sep=(.)[\r\n]*")
SWALLOWED = 2  # lines within a value that make it rows


def _csv_rows(path: Path, columns: Collection[str] | None) -> Iterator[NumberedRow]:
    """The line of names is the first, and blank lines are none. Values are text. A quotation mark that is never closed
    would make the rest of the file a value: it is refused."""
    csv.field_size_limit(max(csv.field_size_limit(), LONGEST_LINE))
    lines = _Lines(path)
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
            if columns is not None:
                row = {name: row[name] for name in names if name in columns}
            yield NumberedRow(number, where, row)
    except csv.Error as error:
        raise ValueError(
            f"{path} must be a CSV table in which every quotation mark that opens a value is closed, and one within is "
            f"written twice; the row that begins on line {num_lines + 1} cannot be read ({error}). Correct it, or "
            "write the file as JSON Lines or Parquet."
        ) from error
    if longest > 1:
        log.info("%s: %s rows on %s lines; the longest has %s.", path, f"{number:,}", f"{num_lines:,}", longest)


class _Lines:
    """The lines of a CSV file as text, each ending in "\\n", "\\r\\n" or "\\r".

    Attributes:
        begin_as_excels: Whether the first line is Excel's, which names the delimiter.
        delimiter: A tab in TSV, else what Excel's line names, else the first of , ; tab that the line of names has.
    """

    def __init__(self, path: Path) -> None:
        self._path, self._end, self._ends = path, "", set[str]()
        self._lines = self._read()
        first = next(self._lines, "")
        by_excel = EXCELS_FIRST_LINE.fullmatch(first)
        self.begin_as_excels = by_excel is not None
        found = by_excel[1] if by_excel is not None else next((mark for mark in ",;\t" if mark in first), ",")
        self.delimiter = "\t" if BY_SUFFIX.get(plain_suffix(path)) == "TSV" else found
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


# Parquet, Arrow ------------------------------------------------------------------------------------------------------


def _arrow_rows(path: Path, form: Form, columns: Collection[str] | None) -> Iterator[NumberedRow]:
    number = 0
    try:
        # A compressed file is read whole: these forms are not read from front to back.
        source: Any = pa.BufferReader(content_of(path)) if compression_of(path) else pa.OSFile(str(path))
        for batch in _parquet(source, columns, path) if form == "Parquet" else _arrow(source, columns, path):
            for row in batch.to_pylist():
                number += 1
                yield NumberedRow(number, f"{path}, row {number}", row)
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise
        reason = str(error).strip().partition("\n")[0]
        raise ValueError(
            f"{path} must be a complete {form} file; it cannot be read after row {number} ({reason}). Fetch or write "
            "it again."
        ) from error


def _parquet(source: Any, columns: Collection[str] | None, path: Path) -> Iterator[Any]:
    file = pq.ParquetFile(source)
    return file.iter_batches(columns=_chosen(file.schema_arrow.names, columns, path))


def _arrow(source: Any, columns: Collection[str] | None, path: Path) -> list[Any]:
    head = source.read(8)
    source.seek(0)
    if head.startswith(b"FEA1"):
        table = pyarrow.feather.read_table(source)
    elif head.startswith(b"ARROW1"):
        table = pa.ipc.open_file(source).read_all()
    else:
        table = pa.ipc.open_stream(source).read_all()
        source.seek(source.size() - len(END_OF_STREAM))
        if source.read() != END_OF_STREAM:  # what was cut between two batches is otherwise read in silence
            raise pa.ArrowInvalid("the end-of-stream marker is missing")
    return table.select(_chosen(table.column_names, columns, path)).to_batches()


def _chosen(names: Sequence[str], columns: Collection[str] | None, path: Path) -> list[str]:
    if len(set(names)) < len(names):
        twice = dict.fromkeys(repr(name) for name in names if names.count(name) > 1)
        raise ValueError(f"{path} must have columns of different names; {first_few(twice)} occurs twice. Rename one.")
    return [name for name in names if columns is None or name in columns]


# Text ----------------------------------------------------------------------------------------------------------------


def _text_rows(path: Path, split: Split | None) -> Iterator[NumberedRow]:
    text = read_text(path)
    if split == "file":
        yield NumberedRow(1, str(path), {TEXT: text})
        return
    paragraphs = list(_paragraphs(text, path))
    lines = [(number + index, line) for number, lines in paragraphs for index, line in enumerate(lines)]
    if split is None and len(lines) > len(paragraphs) > 1:
        raise ValueError(
            f"{path} has {len(lines)} lines in {len(paragraphs)} paragraphs; what a document is, is ambiguous. "
            "Give data.split=lines, data.split=paragraphs or data.split=file."
        )
    joined = ((number, "\n".join(lines)) for number, lines in paragraphs)
    for number, content in joined if split == "paragraphs" else lines:
        yield NumberedRow(number, f"{path}, line {number}", {TEXT: content.removesuffix("\r")})


def _paragraphs(text: str, path: Path) -> Iterator[tuple[int, list[str]]]:
    """Lines that follow one another without a blank one, and the number of the first."""
    lines: list[str] = []
    number = num_blank = 0
    end = "\n" if "\n" in text else "\r"  # alone, as old files for the Macintosh have it
    for number, line in enumerate(text.split(end), start=1):
        num_blank = 0 if line.strip() else num_blank + 1
        require_few_blank_lines(num_blank, number, path)
        if not num_blank:
            lines.append(line)
        elif lines:
            yield number - len(lines), lines
            lines = []
    if lines:
        yield number - len(lines) + 1, lines
