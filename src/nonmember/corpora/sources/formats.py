"""Rows of files of any form: JSON Lines, a JSON array, CSV, TSV, Parquet, Arrow or text, plain or compressed.

A row is a mapping from columns to values. Which form a file has is found by how it begins and by its suffix.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq

from nonmember.checks import first_few
from nonmember.corpora.sources.compressed import SUFFIXES, compression_of, content_of, opened
from nonmember.corpora.sources.csv_table import csv_rows
from nonmember.corpora.sources.rows import (
    Row,
    json_items,
    json_lines,
    json_value,
    kind_of,
    require_few_blank_lines,
    text_of,
)

Form = Literal["JSON Lines", "JSON array", "CSV", "TSV", "Parquet", "Arrow", "text"]
Split = Literal["lines", "paragraphs", "file"]

MAGIC: dict[bytes, Form] = {b"PAR1": "Parquet", b"ARROW1": "Arrow", b"FEA1": "Arrow", b"\xff\xff\xff\xff": "Arrow"}
BY_SUFFIX: dict[str, Form] = {
    ".jsonl": "JSON Lines",
    ".ndjson": "JSON Lines",
    ".json": "JSON Lines",
    ".csv": "CSV",
    ".tsv": "TSV",
    ".tab": "TSV",
    ".parquet": "Parquet",
    ".pq": "Parquet",
    ".arrow": "Arrow",
    ".feather": "Arrow",
    ".ipc": "Arrow",
    ".txt": "text",
    ".text": "text",
    ".md": "text",
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
    """number: of the line, row or item, from 1; in CSV the line of names is the first row.   where: for messages."""

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
    path: Path, form: Form, *, split: Split | None, columns: Sequence[str] | None = None
) -> Iterator[NumberedRow]:
    """All rows in their order.

    split: what a document of a text file is; None asks where a file has lines and paragraphs.   columns: the only ones
    needed; others may be left out.
    Raises ValueError, with file and place, for what cannot be read.
    """
    if form == "text":
        return _text_rows(path, split)
    readers: dict[str, Callable[[Path, Sequence[str] | None], Iterator[NumberedRow]]] = {
        "JSON Lines": _json_lines_rows,
        "JSON array": _json_array_rows,
        "CSV": _csv_rows,
        "TSV": _csv_rows,
        "Parquet": _parquet_rows,
        "Arrow": _arrow_rows,
    }
    return readers[form](path, columns)


def _json_lines_rows(path: Path, columns: Sequence[str] | None) -> Iterator[NumberedRow]:
    for number, line in json_lines(path):
        where = f"{path}, line {number}"
        yield NumberedRow(number, where, _row_of(json_value(line, where), where))


def _json_array_rows(path: Path, columns: Sequence[str] | None) -> Iterator[NumberedRow]:
    for number, (where, value) in enumerate(json_items(content_of(path), path), start=1):
        yield NumberedRow(number, where, _row_of(value, where))


def _csv_rows(path: Path, columns: Sequence[str] | None) -> Iterator[NumberedRow]:
    return (NumberedRow(*item) for item in csv_rows(path, columns, BY_SUFFIX.get(plain_suffix(path)) == "TSV"))


def _row_of(value: object, where: str) -> Row:
    """An object with columns; or a string, which is the text itself."""
    if isinstance(value, str):
        return {TEXT: value}
    if not isinstance(value, dict):
        raise ValueError(f"{where} must be a JSON object, or a string that is the text; it is {kind_of(value)}.")
    return value


# ------------------------------------------------------------------------------------------------------- Parquet, Arrow


def _parquet_rows(path: Path, columns: Sequence[str] | None) -> Iterator[NumberedRow]:
    def batches(source: Any) -> Iterator[Any]:
        file = pq.ParquetFile(source)
        yield from file.iter_batches(columns=_chosen(file.schema_arrow.names, columns, path))

    yield from _arrow_table_rows(path, "Parquet", batches)


def _arrow_rows(path: Path, columns: Sequence[str] | None) -> Iterator[NumberedRow]:
    def batches(source: Any) -> Iterator[Any]:
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
        yield from table.select(_chosen(table.column_names, columns, path)).to_batches()

    yield from _arrow_table_rows(path, "Arrow", batches)


def _chosen(names: Sequence[str], columns: Sequence[str] | None, path: Path) -> list[str]:
    if len(set(names)) < len(names):
        twice = dict.fromkeys(repr(name) for name in names if names.count(name) > 1)
        raise ValueError(f"{path} must have columns of different names; {first_few(twice)} occurs twice. Rename one.")
    return [name for name in names if columns is None or name in columns]


def _arrow_table_rows(path: Path, form: str, batches: Callable[[Any], Iterator[Any]]) -> Iterator[NumberedRow]:
    number = 0
    try:
        for batch in batches(_random_access(path)):
            for row in batch.to_pylist():
                number += 1
                yield NumberedRow(number, f"{path}, row {number}", row)
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise
        raise ValueError(
            f"{path} must be a complete {form} file; it cannot be read after row {number} ({_first_line(error)}). "
            "Fetch or write it again."
        ) from error


def _random_access(path: Path) -> Any:
    """A compressed file is read whole: its forms are not read from front to back."""
    return pa.BufferReader(content_of(path)) if compression_of(path) else pa.OSFile(str(path))


def _first_line(error: BaseException) -> str:
    return str(error).strip().partition("\n")[0]


# ------------------------------------------------------------------------------------------------------- text


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


def read_text(path: Path) -> str:
    return text_of(content_of(path), str(path))
