"""The table of completions of one endpoint: a row per answer, written on receipt.

SQLite with a write-ahead log: a row that was written outlives the process, and readers do not wait for the writer.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

FILE = "completions.sqlite"
_SCHEMA = """
CREATE TABLE IF NOT EXISTS completions (
    key TEXT PRIMARY KEY,          -- hash of the request: the address and all that was sent
    request TEXT NOT NULL,         -- that, as JSON
    response TEXT NOT NULL,        -- raw, as JSON
    outcome TEXT NOT NULL,         -- answered, empty or refused
    text TEXT NOT NULL,
    finish_reason TEXT NOT NULL,
    served_model TEXT NOT NULL,    -- who answered, as the server says
    system_fingerprint TEXT NOT NULL,
    date TEXT NOT NULL,            -- UTC
    prompt_tokens INTEGER NOT NULL,
    completion_tokens INTEGER NOT NULL,
    cost REAL                      -- NULL where prices were unknown
);
CREATE TABLE IF NOT EXISTS findings (   -- what the endpoint was found to offer
    name TEXT PRIMARY KEY, value TEXT NOT NULL, date TEXT NOT NULL
);
"""


class CompletionsTable:
    """Use `opened`. Every call that writes has written when it returns."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def __len__(self) -> int:
        """Number of answers."""
        return int(self._connection.execute("SELECT count(*) FROM completions").fetchone()[0])

    def find(self, keys: Iterable[str]) -> Iterator[tuple[str, str, str]]:
        """(key, response, date) of those that are there."""
        for key in keys:
            yield from self._connection.execute("SELECT key, response, date FROM completions WHERE key = ?", (key,))

    def add(self, row: Mapping[str, Any]) -> None:
        """Column -> value. An answer that is there already stays."""
        values = ", ".join(f":{name}" for name in row)
        self._connection.execute(f"INSERT OR IGNORE INTO completions ({', '.join(row)}) VALUES ({values})", row)

    def finding(self, name: str) -> Any:
        """None where there is none."""
        row = self._connection.execute("SELECT value FROM findings WHERE name = ?", (name,)).fetchone()
        return None if row is None else json.loads(row[0])

    def remember(self, name: str, value: Any) -> None:
        values = (name, json.dumps(value), now())
        self._connection.execute("INSERT OR REPLACE INTO findings (name, value, date) VALUES (?, ?, ?)", values)

    def forget_findings(self) -> None:
        self._connection.execute("DELETE FROM findings")


@contextmanager
def opened(folder: Path) -> Iterator[CompletionsTable]:
    """The table in a folder, made where there is none. Raises ValueError where the file is no such table."""
    path = folder / FILE
    try:
        with closing(sqlite3.connect(path, timeout=60, isolation_level=None, check_same_thread=False)) as connection:
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = NORMAL")
            connection.executescript(_SCHEMA)
            yield CompletionsTable(connection)
    except sqlite3.Error as error:
        raise ValueError(
            f"The table of completions {path} cannot be used ({error}). Make room if the disk is full; if the file is "
            "damaged, move it away, and what it held will be asked again."
        ) from error


def now() -> str:
    """UTC, to the second."""
    return datetime.now(UTC).isoformat(timespec="seconds")
