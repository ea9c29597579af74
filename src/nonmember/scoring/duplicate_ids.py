"""Finds documents of a stream with the id of an earlier one, in constant memory: SQLite sorts the ids on disk."""

from __future__ import annotations

import errno
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from nonmember.runtime.files import replacing

SCHEMA = pa.schema([("doc_id", pa.string()), ("place", pa.int64()), ("first_place", pa.int64())])
ROWS_AT_ONCE = 2**16
EARLIER = """
    SELECT id, place, first FROM (SELECT id, place, MIN(place) OVER (PARTITION BY id) AS first FROM ids)
    WHERE place > first ORDER BY place
"""


def write_duplicates(ids: Iterable[Sequence[str]], path: Path) -> int:
    """Write a row for each document with the id of an earlier one, and return their number; 0 leaves no file.

    ids: of all documents in their order, some at a time.   place, first_place: number of the document, and of the first
    with its id, from 0. SQLite keeps its files where SQLITE_TMPDIR says, else in /var/tmp; they go with the process.
    """
    try:
        with closing(sqlite3.connect("")) as database:  # without a name: on disk, and gone when it is closed
            database.execute("CREATE TABLE ids (id TEXT, place INTEGER)")
            database.executemany("INSERT INTO ids VALUES (?, ?)", _numbered(ids))
            return _write(database.execute(EARLIER), path)
    except sqlite3.OperationalError as error:
        if "full" not in str(error):
            raise
        raise OSError(errno.ENOSPC, "No room to compare the ids", "SQLITE_TMPDIR, or /var/tmp") from error


def places_between(path: Path, first: int, end: int) -> list[int]:
    """Those of the documents from `first` on, before `end`, that have an earlier one's id."""
    if not path.is_file():
        return []
    table = pq.read_table(path, columns=["place"], filters=[("place", ">=", first), ("place", "<", end)])
    return [int(place) for place in table["place"].to_pylist()]


def _numbered(ids: Iterable[Sequence[str]]) -> Iterator[tuple[str, int]]:
    place = 0
    for some in ids:
        for one in some:
            yield one, place
            place += 1


def _write(rows: sqlite3.Cursor, path: Path) -> int:
    number = 0
    if not (some := rows.fetchmany(ROWS_AT_ONCE)):
        path.unlink(missing_ok=True)
        return number
    with replacing(path) as temporary, pq.ParquetWriter(temporary, SCHEMA) as writer:
        while some:
            writer.write_table(pa.table([list(column) for column in zip(*some, strict=True)], schema=SCHEMA))
            number += len(some)
            some = rows.fetchmany(ROWS_AT_ONCE)
    return number
