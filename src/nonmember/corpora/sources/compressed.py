"""Transparent decompression: plain, gzip, bzip2, xz, Zstandard or LZ4, detected by magic bytes."""

from __future__ import annotations

import gzip
import io
import lzma
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import pyarrow as pa

COMPRESSIONS = {
    b"\x1f\x8b": "gzip",
    b"BZh": "bzip2",
    b"\xfd7zXZ\x00": "xz",
    b"\x28\xb5\x2f\xfd": "Zstandard",
    b"\x04\x22\x4d\x18": "LZ4",
}
BY_SUFFIX = {".gz": "gzip", ".bz2": "bzip2", ".xz": "xz", ".zst": "Zstandard", ".lz4": "LZ4"}
SUFFIXES = tuple(BY_SUFFIX)


# A compressed file is held in memory up to this size, or so many times its own: text shrinks to a tenth, not to this.
MOST_BYTES, MOST_TIMES_LARGER = 2**28, 200


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


OPENERS: dict[str, Callable[[Path], Any]] = {
    "": lambda path: path.open("rb"),
    "gzip": gzip.open,
    "bzip2": _by_pyarrow("bz2"),  # `bz2.open` passes over what is no stream behind the last one
    "xz": _xz,
    "Zstandard": _by_pyarrow("zstd"),
    "LZ4": _by_pyarrow("lz4"),
}


def compression_of(path: Path) -> str:
    """The name of the compression, by the file's first bytes or else its suffix; empty for a plain file."""
    with path.open("rb") as file:
        head = file.read(8)
    by_suffix = BY_SUFFIX.get(path.suffix.lower(), "")
    return next((name for magic, name in COMPRESSIONS.items() if head.startswith(magic)), by_suffix)


class DamagedFileError(ValueError):
    """A compressed file that is cut or damaged.   after: where reading stopped, as " after line 3"."""

    def __init__(self, path: Path, compression: str, reason: BaseException, after: str = "") -> None:
        super().__init__(
            f"{path} must be a complete {compression} file; it breaks off or is damaged{after} ({reason}). "
            "Fetch or write it again."
        )
        self.path, self.compression, self.reason = path, compression, reason


@contextmanager
def opened(path: Path) -> Iterator[IO[bytes]]:
    """The decompressed bytes. Raises `DamagedFileError`, also while they are read."""
    name = compression_of(path)
    try:
        with OPENERS[name](path) as file:
            yield file
    except (EOFError, zlib.error, lzma.LZMAError, pa.ArrowInvalid, OSError) as error:
        told_by_the_system = isinstance(error, OSError) and error.errno is not None
        if not name or told_by_the_system:
            raise
        raise DamagedFileError(path, name, error) from error


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
