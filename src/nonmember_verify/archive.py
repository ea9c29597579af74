"""Reads a bundle's files into memory, and refuses archives that play tricks. Nothing is written to the disk."""

from __future__ import annotations

import zipfile
from pathlib import Path

ENVELOPE = "statement.dsse.json"


class Refused(ValueError):
    """The archive, or what a file in it says, cannot be what `nonmember bundle` writes."""


def read(path: Path) -> dict[str, bytes]:
    """Name of a file -> its content. Raises Refused where readers could see different files in it."""
    try:
        with zipfile.ZipFile(path) as archive:
            entries = archive.infolist()
            names = [entry.filename for entry in entries]
            if len({name.casefold() for name in names}) < len(names):
                raise Refused("The archive holds a name more than once, so that different readers see different files.")
            if strange := [entry for entry in entries if entry.compress_type != zipfile.ZIP_STORED or entry.is_dir()]:
                raise Refused(f"{strange[0].filename} is compressed, or a folder; a bundle holds plain files.")
            return {name: archive.read(name) for name in names}
    except FileNotFoundError:
        raise Refused(f"There is no file {path}.") from None
    except (zipfile.BadZipFile, NotImplementedError, RuntimeError, EOFError, OSError) as error:
        raise Refused(f"The archive cannot be read ({error}): it is not a bundle, or it is damaged.") from error
