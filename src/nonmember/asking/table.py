"""The table of completions of one endpoint: a row for each answer that was received, written when it came.

SQLite with a write-ahead log: a row that was written outlives the process, and readers do not wait for the writer. A
machine whose power fails loses at most the last rows.
"""

from __future__ import annotations

import json
import sqlite3
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

FILE = "completions.sqlite"
KEYS_AT_ONCE = 500

_SCHEMA = """
CREATE TABLE IF NOT EXISTS completions (
    key TEXT PRIMARY KEY,          -- hash of the request: the address and all that was sent
    request TEXT NOT NULL,         -- that, as JSON
    response TEXT NOT NULL,        -- as it came, as JSON
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
CREATE TABLE IF NOT EXISTS refusals (   -- requests that the server did not accept; no answers, and asked again
    key TEXT PRIMARY KEY, reason TEXT NOT NULL, run TEXT NOT NULL, date TEXT NOT NULL
);
CREATE TABLE IF NOT EXISTS findings (   -- what the endpoint was found to offer
    name TEXT PRIMARY KEY, value TEXT NOT NULL, date TEXT NOT NULL
);
"""


@dataclass(frozen=True)
class Row:
    """One answer; the columns of the table."""

    key: str
    request: str
    response: str
    outcome: str
    text: str
    finish_reason: str
    served_model: str
    system_fingerprint: str
    date: str
    prompt_tokens: int
    completion_tokens: int
    cost: float | None


_INSERT = f"INSERT OR IGNORE INTO completions VALUES ({', '.join('?' * len(Row.__dataclass_fields__))})"


class CompletionsTable:
    """Use `opened`. Every call that writes has written when it returns."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def __len__(self) -> int:
        """Number of answers."""
        return int(self._connection.execute("SELECT count(*) FROM completions").fetchone()[0])

    @property
    def identity(self) -> str:
        """A name of this table and of no other."""
        self._connection.execute(
            "INSERT OR IGNORE INTO findings VALUES ('identity', ?, ?)", (json.dumps(uuid.uuid4().hex[:16]), now())
        )
        return str(self.finding("identity"))

    def find(self, keys: Iterable[str]) -> Iterator[tuple[str, str, str]]:
        """(key, response, date) of those that are there."""
        for some in _in_parts(list(keys)):
            places = ", ".join("?" * len(some))
            yield from self._connection.execute(
                f"SELECT key, response, date FROM completions WHERE key IN ({places})", some
            )

    def add(self, row: Row) -> None:
        self._connection.execute(_INSERT, tuple(getattr(row, name) for name in Row.__dataclass_fields__))

    def refuse(self, key: str, reason: str, run: str) -> None:
        """The server did not accept a request in this run."""
        self._connection.execute("INSERT OR REPLACE INTO refusals VALUES (?, ?, ?, ?)", (key, reason, run, now()))

    def refused(self, keys: Iterable[str], run: str) -> dict[str, str]:
        """Key -> reason, of those that were not accepted in this run."""
        found: dict[str, str] = {}
        for some in _in_parts(list(keys)):
            places = ", ".join("?" * len(some))
            found |= self._connection.execute(
                f"SELECT key, reason FROM refusals WHERE run = ? AND key IN ({places})", (run, *some)
            )
        return found

    def finding(self, name: str) -> Any:
        """None where there is none."""
        row = self._connection.execute("SELECT value FROM findings WHERE name = ?", (name,)).fetchone()
        return None if row is None else json.loads(row[0])

    def remember(self, findings: Mapping[str, Any]) -> None:
        for name, value in findings.items():
            self._connection.execute(
                "INSERT OR REPLACE INTO findings VALUES (?, ?, ?)", (name, json.dumps(value), now())
            )

    def forget_findings(self) -> None:
        self._connection.execute("DELETE FROM findings WHERE name != 'identity'")


@contextmanager
def opened(folder: Path) -> Iterator[CompletionsTable]:
    """The table in a folder, made where there is none. Raises ValueError where the file is no such table."""
    path = folder / FILE
    try:
        # Each statement is a transaction of its own. Another thread may use it while this one waits for that.
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


def _in_parts(keys: Sequence[str]) -> Iterator[Sequence[str]]:
    return (keys[start : start + KEYS_AT_ONCE] for start in range(0, len(keys), KEYS_AT_ONCE))
