"""Rows of files of any form: JSON Lines, a JSON array, CSV, TSV, Parquet, Arrow or text, plain or compressed.

A row is a mapping from columns to values. Which form a file has is told by its suffix.
"""

from __future__ import annotations

import csv
import io
import json
import lzma
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import IO, Any, Literal, NamedTuple

import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq

from nonmember.checks import first_few

Row = Mapping[str, object]
Form = Literal["JSON Lines", "CSV", "TSV", "Parquet", "Arrow", "text"]
Split = Literal["lines", "paragraphs", "file"]

BY_SUFFIX: dict[str, Form] = {
    **dict.fromkeys((".jsonl", ".ndjson", ".json"), "JSON Lines"),
    **dict.fromkeys((".csv",), "CSV"),
    **dict.fromkeys((".tsv", ".tab"), "TSV"),
    **dict.fromkeys((".parquet", ".pq"), "Parquet"),
    **dict.fromkeys((".arrow", ".feather", ".ipc"), "Arrow"),
    **dict.fromkeys((".txt", ".text", ".md"), "text"),
}
SUFFIXES = (".gz", ".bz2", ".xz", ".zst", ".lz4")  # of compressed files
TEXT = "text"
ROWS_AT_ONCE = 1024  # of Parquet
MORE = "\0"  # key of what stands behind the last column
END_OF_STREAM = b"\xff\xff\xff\xff\0\0\0\0"


class NumberedRow(NamedTuple):
    """number: of the line, row or item, from 1; in CSV the line of names is the first row.   where: file and number."""

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


def is_compressed(path: Path) -> bool:
    return path.suffix.lower() in SUFFIXES


def form_of(path: Path) -> Form:
    """By the suffix. Raises ValueError for an empty file of rows."""
    form = BY_SUFFIX.get(plain_suffix(path), "text")
    if form != "text" and not path.stat().st_size:
        raise ValueError(f"{path} has no documents: it is empty. Check how it was written.")
    return form


@contextmanager
def opened(path: Path) -> Iterator[IO[bytes]]:
    """The decompressed bytes. Raises ValueError for a damaged file, also while it is read."""
    try:
        open_ = lzma.open if path.suffix.lower() == ".xz" else pa.input_stream
        with io.BufferedReader(open_(str(path))) as file:
            yield file
    except (EOFError, lzma.LZMAError, pa.ArrowException, OSError) as error:
        if isinstance(error, OSError) and error.errno is not None:  # the system's, not the content's
            raise
        raise ValueError(f"{path} is truncated or damaged ({error}). Fetch or write it again.") from error


def lines_of(path: Path) -> Iterator[tuple[int, bytes]]:
    """All lines with their ends, and their numbers from 1."""
    with opened(path) as file:
        yield from enumerate(file, start=1)


def text_of(content: bytes, where: str) -> str:
    """Raises ValueError for bytes that are not UTF-8, or a NUL byte as of UTF-16. A byte-order mark is no text."""
    if b"\0" in content:
        raise ValueError(f"{where} must be UTF-8 text, but it has a NUL byte. Convert the file or leave it out.")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ValueError(f"{where} must be UTF-8 text ({error.reason}). Convert the file or leave it out.") from error


def read_text(path: Path) -> str:
    with opened(path) as file:
        return text_of(file.read(), str(path))


def json_value(content: bytes, where: str) -> object:
    text = text_of(content, where)
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ValueError(
            f"{where} must be one JSON object, but it cannot be read ({error}). Is the line cut, the object printed "
            "over several lines, or the file something other than JSON lines?"
        ) from error


def row_of(value: object, where: str) -> Row:
    """A JSON object with columns; or a string, which is the column "text"."""
    if isinstance(value, str):
        return {TEXT: value}
    if not isinstance(value, dict):
        raise ValueError(f"{where} must be one JSON object, or a string that is the text, but it is {kind_of(value)}.")
    return value


def kind_of(value: object) -> str:
    kinds = {dict: "an object", list: "a list", bool: "true or false", int: "a number", float: "a number"}
    return "null" if value is None else kinds.get(type(value), type(value).__name__)


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
    match form:
        case "text":
            yield from _text_rows(path, split)
        case "JSON Lines":
            yield from _json_rows(path)
        case "CSV" | "TSV":
            yield from _csv_rows(path, form)
        case _:
            for number, row in enumerate(_arrow_rows(path, form, columns), start=1):
                yield NumberedRow(number, f"{path}, row {number}", row)


def _json_rows(path: Path) -> Iterator[NumberedRow]:
    """A file that begins with [ is one array."""
    for number, line in lines_of(path):
        where = f"{path}, line {number}"
        if number == 1 and line.removeprefix(b"\xef\xbb\xbf").lstrip().startswith(b"["):
            items: Any = json_value(read_text(path).encode(), str(path))
            for index, value in enumerate(items, start=1):
                yield NumberedRow(index, f"{path}, item {index}", row_of(value, f"{path}, item {index}"))
            return
        if content := line.strip(b" \t\r\n"):
            yield NumberedRow(number, where, row_of(json_value(content, where), where))


def _csv_rows(path: Path, form: Form) -> Iterator[NumberedRow]:
    """The line of names is the first, and blank lines are none. CSV may have tabs or semicolons between values, which
    are text."""
    csv.field_size_limit(2**28)
    _, first = next(lines_of(path))
    names = text_of(first, f"{path}, line 1")
    delimiter = "\t" if form == "TSV" else next((mark for mark in "\t,;" if mark in names), ",")
    with opened(path) as file:
        text = io.TextIOWrapper(file, "utf-8-sig", newline="")
        reader = csv.DictReader(text, delimiter=delimiter, strict=True, restkey=MORE)
        try:
            require_different(reader.fieldnames or (), path)
            for number, row in enumerate(reader, start=2):
                where = f"{path}, row {number} (line {reader.line_num})"
                if MORE in row or None in row.values():
                    raise ValueError(
                        f"{where} must have a value for each of the {len(reader.fieldnames or ())} columns. Is a value "
                        "with a separator or a line break not in quotation marks?"
                    )
                yield NumberedRow(number, where, row)
        except (csv.Error, UnicodeDecodeError) as error:
            raise ValueError(f"{path} cannot be read behind line {reader.line_num} ({error}).") from error


def require_different(names: Sequence[str], path: Path) -> None:
    """Else the last of the columns would be taken for all of that name."""
    if twice := dict.fromkeys(repr(name) for name in names if names.count(name) > 1):
        raise ValueError(f"{path} must have columns of different names; {first_few(twice)} occurs twice.")


def columns_to_look_at(path: Path, form: Form) -> list[str] | None:
    """Those of Parquet that hold no bytes: pictures beside the texts take a thousand times their memory. None: all."""
    if form != "Parquet" or is_compressed(path):
        return None
    try:
        return [field.name for field in pq.read_schema(path) if "binary" not in str(field.type)]
    except (pa.ArrowException, OSError):  # of which reading tells
        return None


def _arrow_rows(path: Path, form: Form, columns: Collection[str] | None) -> Iterator[Row]:
    try:
        source: Any = pa.OSFile(str(path))
        if is_compressed(path):  # these forms are not read from front to back
            with opened(path) as file:
                source = pa.BufferReader(file.read())
        if form == "Parquet":
            table: Any = pq.ParquetFile(source)
            names: list[str] = table.schema_arrow.names
            batches: Any = partial(table.iter_batches, batch_size=ROWS_AT_ONCE)
        else:
            is_file = source.read(4) in (b"ARRO", b"FEA1")  # else a stream, as `datasets` writes
            source.seek(max(0, source.size() - len(END_OF_STREAM)))
            if not is_file and source.read() != END_OF_STREAM:  # whose last batches would be missed in silence
                raise ValueError(f"{path} must be a complete Arrow file (the mark at the end of a stream is missing).")
            source.seek(0)
            table = pyarrow.feather.read_table(source) if is_file else pa.ipc.open_stream(source).read_all()
            names, batches = table.column_names, lambda columns: table.select(columns).to_batches()
        require_different(names, path)
        for batch in batches(columns=[name for name in names if columns is None or name in columns]):
            yield from batch.to_pylist()
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        raise ValueError(f"{path} must be a complete {form} file ({str(error).splitlines()[0]}).") from error


def _text_rows(path: Path, split: Split | None) -> Iterator[NumberedRow]:
    text = read_text(path)
    if split == "file":
        yield NumberedRow(1, str(path), {TEXT: text})
        return
    numbered = [(number, line.rstrip("\r")) for number, line in enumerate(text.split("\n"), start=1)]
    lines = [(number, line) for number, line in numbered if line.strip()]
    paragraphs: list[tuple[int, list[str]]] = []
    for number, line in lines:
        if paragraphs and number == paragraphs[-1][0] + len(paragraphs[-1][1]):
            paragraphs[-1][1].append(line)
        else:
            paragraphs.append((number, [line]))
    if split is None and len(lines) > len(paragraphs) > 1:
        raise ValueError(
            f"{path} has {len(lines)} lines in {len(paragraphs)} paragraphs; what a document is, is ambiguous. "
            "Give data.split=lines, data.split=paragraphs or data.split=file."
        )
    if lines and all(_is_object(line) for _, line in lines[:2]):
        raise ValueError(f"{path} holds JSON Lines under the name of a text. Give it a name that ends in .jsonl.")
    joined = [(number, "\n".join(items)) for number, items in paragraphs]
    for number, content in joined if split == "paragraphs" else lines:
        yield NumberedRow(number, f"{path}, line {number}", {TEXT: content})


def _is_object(line: str) -> bool:
    try:
        return line.startswith("{") and isinstance(json.loads(line), dict)
    except ValueError:
        return False
