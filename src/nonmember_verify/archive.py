"""Reads a bundle's files into memory, and refuses archives that play tricks. Nothing is written to the disk."""

from __future__ import annotations

import stat
import zipfile
from pathlib import Path, PurePosixPath

ENVELOPE = "statement.dsse.json"
MOST_FILES = 20_000
MOST_BYTES = 4 * 2**30  # of all files together


class Refused(ValueError):
    """The archive, or what a file in it says, cannot be what `nonmember bundle` writes."""


def read(path: Path) -> dict[str, bytes]:
    """Name of a file -> its content. Raises Refused with a sentence that names the trick."""
    try:
        with path.open("rb") as stored, zipfile.ZipFile(stored) as archive:
            entries = archive.infolist()
            _check(entries)
            if archive.comment or path.stat().st_size != _expected_size(entries):
                raise Refused("The archive holds bytes beside its files.")
            files, end = {}, 0
            for entry in entries:
                with archive.open(entry) as stream:
                    content = stream.read(entry.file_size + 1)
                if len(content) != entry.file_size:
                    raise Refused(f"{entry.filename} unpacks to another size than the archive says.")
                files[entry.filename] = content
                header = entry.FileHeader()
                stored.seek(end)
                if entry.header_offset != end or stored.read(len(header)) != header:
                    raise Refused(f"{entry.filename} has another header before it than in the directory, or overlaps.")
                end += len(header) + entry.file_size
            return files
    except FileNotFoundError:
        raise Refused(f"There is no file {path}.") from None
    except IsADirectoryError:
        raise Refused(f"{path} is a folder; a bundle is one file.") from None
    except (zipfile.BadZipFile, NotImplementedError, RuntimeError, EOFError, OSError) as error:
        raise Refused(f"The archive cannot be read ({error}): it is not a bundle, or it is damaged.") from error


def _check(entries: list[zipfile.ZipInfo]) -> None:
    if len(entries) > MOST_FILES:
        raise Refused(f"The archive holds {len(entries):,} files; a bundle has at most {MOST_FILES:,}.")
    names = [entry.filename for entry in entries]
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise Refused(f"The archive holds {twice} more than once, so that different readers see different files.")
    if len({name.casefold() for name in names}) < len(names):
        raise Refused("The archive holds names that differ in capitals alone.")
    for entry in entries:
        _check_name(entry)
        if entry.flag_bits & 0x1:
            raise Refused(f"{entry.filename} is encrypted.")
        if entry.compress_type != zipfile.ZIP_STORED or entry.file_size != entry.compress_size:
            raise Refused(
                f"{entry.filename} is compressed ({entry.compress_size:,} bytes to {entry.file_size:,}); files of a "
                "bundle are not, so that it cannot be a zip bomb."
            )
    if (total := sum(entry.file_size for entry in entries)) > MOST_BYTES:
        raise Refused(f"The archive unpacks to {total:,} bytes; a bundle has at most {MOST_BYTES:,}.")


def _expected_size(entries: list[zipfile.ZipInfo]) -> int:
    """Of an archive with these files and nothing else: a header before each, a row of the directory, its end."""
    return 22 + sum(30 + 46 + 2 * len(entry.filename.encode()) + entry.file_size for entry in entries)


def _check_name(entry: zipfile.ZipInfo) -> None:
    name = entry.filename
    path = PurePosixPath(name)
    if path.is_absolute() or ".." in path.parts or "\\" in name or ":" in name or "\0" in name:
        raise Refused(f"The archive holds {name!r}, a path that leaves the bundle.")
    if name.endswith("/") or str(path) != name or not name:
        raise Refused(f"The archive holds {name!r}, which is not a plain file.")
    kind = stat.S_IFMT(entry.external_attr >> 16)
    if kind not in (0, stat.S_IFREG):
        what = "a symbolic link" if kind == stat.S_IFLNK else "not a plain file"
        raise Refused(f"The archive holds {name}, which is {what}.")
