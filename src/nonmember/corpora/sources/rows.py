"""Lines and JSON values of files, plain or compressed, read strictly: what is cut, endless or ambiguous is refused."""

from __future__ import annotations

import gzip
import io
import json
import lzma
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, NamedTuple

import pyarrow as pa

from nonmember.checks import first_few

Row = Mapping[str, object]

LONGEST_LINE = 2**28  # bytes; what is longer is no line of JSON but something endless
MOST_BLANK_LINES = 10**6  # one after the other
WHITE_SPACE = " \t\r\n"  # of JSON
# A compressed file is held in memory up to this size, or so many times its own: text shrinks to a tenth, not to this.
MOST_BYTES, MOST_TIMES_LARGER = 2**28, 200


# Compressed files ----------------------------------------------------------------------------------------------------


class Compression(NamedTuple):
    name: str
    magic: bytes
    suffix: str
    open: Callable[[Path], Any]


def _by_pyarrow(name: str) -> Callable[[Path], IO[bytes]]:
    def opened(path: Path) -> IO[bytes]:
        stream: Any = pa.CompressedInputStream(pa.OSFile(str(path), "rb"), name)
        return io.BufferedReader(stream)

    return opened


def _xz(path: Path) -> Any:
    """`lzma.open` passes over what is no stream behind the last one; here it is an error, as in the other forms."""
    file: Any = lzma.open(path)  # noqa: SIM115 (`opened` closes it)
    file._buffer.raw._trailing_error = ()
    return file


COMPRESSIONS = (
    Compression("gzip", b"\x1f\x8b", ".gz", gzip.open),
    Compression("bzip2", b"BZh", ".bz2", _by_pyarrow("bz2")),  # `bz2.open` passes over what stands behind, as lzma's
    Compression("xz", b"\xfd7zXZ\x00", ".xz", _xz),
    Compression("Zstandard", b"\x28\xb5\x2f\xfd", ".zst", _by_pyarrow("zstd")),
    Compression("LZ4", b"\x04\x22\x4d\x18", ".lz4", _by_pyarrow("lz4")),
)
SUFFIXES = tuple(item.suffix for item in COMPRESSIONS)


def compression_of(path: Path) -> Compression | None:
    """By the file's first bytes or else its suffix; None for a plain file."""
    with path.open("rb") as file:
        head = file.read(8)
    by_suffix = (item for item in COMPRESSIONS if item.suffix == path.suffix.lower())
    return next((item for item in COMPRESSIONS if head.startswith(item.magic)), next(by_suffix, None))


class DamagedFileError(ValueError):
    """A compressed file that is cut or damaged: its path, its compression, what is wrong, and perhaps the last line
    that could be read."""

    def __str__(self) -> str:
        path, compression, reason, *line = self.args
        after = f" after line {line[0]}" if line else ""
        return (
            f"{path} must be a complete {compression} file; it is truncated or damaged{after} ({reason}). Fetch or "
            "write it again."
        )


@contextmanager
def opened(path: Path) -> Iterator[IO[bytes]]:
    """The decompressed bytes. Raises `DamagedFileError`, also while they are read."""
    compression = compression_of(path)
    if compression is None:
        with path.open("rb") as file:
            yield file
        return
    try:
        with compression.open(path) as file:
            yield file
    except (EOFError, zlib.error, lzma.LZMAError, pa.ArrowException, OSError) as error:
        if isinstance(error, OSError) and error.errno is not None:  # the system's, not the content's
            raise
        raise DamagedFileError(path, compression.name, error) from error


def content_of(path: Path) -> bytes:
    """All decompressed bytes. Raises as `opened` does, and ValueError for a file that unpacks without end."""
    most = max(MOST_BYTES, MOST_TIMES_LARGER * path.stat().st_size)
    with opened(path) as file:
        content = file.read(most + 1)
    if len(content) > most:
        raise ValueError(
            f"{path} unpacks to more than {MOST_TIMES_LARGER} times its size and {MOST_BYTES:,} bytes, which no text "
            "does. Unpack it yourself if it is meant."
        )
    return content


# Lines and text ------------------------------------------------------------------------------------------------------


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
        error.args += (number,)
        raise


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


def read_text(path: Path) -> str:
    return text_of(content_of(path), str(path))


# JSON ----------------------------------------------------------------------------------------------------------------


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
        value = json_value(content, str(path))
        raise ValueError(f"{path} must be a JSON array, or one JSON object a line; it is {kind_of(value)}.")
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


def row_of(value: object, where: str) -> Row:
    """A JSON object with columns; or a string, which is the column "text". Raises ValueError for any other value."""
    if isinstance(value, str):
        return {"text": value}
    if not isinstance(value, dict):
        raise ValueError(
            f"{where} must be one JSON object, or a string that is the text, but it is {kind_of(value)}. Write one "
            "object a line, or name another file."
        )
    return value


def kind_of(value: object) -> str:
    kinds = {dict: "an object", list: "a list", bool: "true or false", int: "a number", float: "a number"}
    return "null" if value is None else kinds.get(type(value), type(value).__name__)


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
