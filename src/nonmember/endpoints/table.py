"""The table of completions of one endpoint: a row per answer, written on receipt.

SQLite with a write-ahead log: a row that was written outlives the process, and readers do not wait for the writer. A
machine whose power fails loses at most the last rows. Each row has a checksum, without which a change on the disk would
be read as an answer: a damaged row is none. Rows of before there were checksums have an empty one.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
import uuid
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
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
    response TEXT NOT NULL,        -- raw, as JSON
    outcome TEXT NOT NULL,         -- answered, empty or refused
    text TEXT NOT NULL,
    finish_reason TEXT NOT NULL,
    served_model TEXT NOT NULL,    -- who answered, as the server says
    system_fingerprint TEXT NOT NULL,
    date TEXT NOT NULL,            -- UTC
    prompt_tokens INTEGER NOT NULL,
    completion_tokens INTEGER NOT NULL,
    cost REAL,                     -- NULL where prices were unknown
    checksum TEXT NOT NULL DEFAULT ''
);
CREATE TABLE IF NOT EXISTS refusals (   -- requests that the server did not accept; no answers, and asked again
    key TEXT PRIMARY KEY, reason TEXT NOT NULL, run TEXT NOT NULL, date TEXT NOT NULL
);
CREATE TABLE IF NOT EXISTS findings (   -- what the endpoint was found to offer
    name TEXT PRIMARY KEY, value TEXT NOT NULL, date TEXT NOT NULL, checksum TEXT NOT NULL DEFAULT ''
);
"""
_WITH_CHECKSUMS = ("completions", "findings")


@dataclass(frozen=True)
class CompletionRow:
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


_COLUMNS = ", ".join([*CompletionRow.__dataclass_fields__, "checksum"])


class CompletionsTable:
    """Use `opened`. Every call that writes has written when it returns.

    damaged: keys of rows that were looked for and do not match their checksums.
    """

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self.damaged: set[str] = set()

    def __len__(self) -> int:
        """Number of answers."""
        return int(self._connection.execute("SELECT count(*) FROM completions").fetchone()[0])

    @property
    def identity(self) -> str:
        """A name of this table and of no other."""
        if self.finding("identity") is None:  # none yet, or a damaged one
            self._connection.execute("DELETE FROM findings WHERE name = 'identity' AND checksum != ''")
            self.remember("identity", uuid.uuid4().hex[:16], "IGNORE")  # another process may have been faster
        return str(self.finding("identity"))

    def find(self, keys: Iterable[str]) -> Iterator[tuple[str, str, str]]:
        """(key, response, date) of those that are there and sound."""
        for some in _in_parts(list(keys)):
            marks = ", ".join("?" * len(some))
            rows = self._connection.execute(f"SELECT {_COLUMNS} FROM completions WHERE key IN ({marks})", some)
            for *values, checksum in rows:
                row = CompletionRow(*values)
                if checksum in ("", _checksum(values)):
                    yield row.key, row.response, row.date
                else:
                    self.damaged.add(row.key)

    def add(self, row: CompletionRow) -> None:
        """An answer that is there already stays, unless it was found to be damaged."""
        values = [getattr(row, name) for name in CompletionRow.__dataclass_fields__]
        otherwise = "REPLACE" if row.key in self.damaged else "IGNORE"
        marks = ", ".join("?" * (len(values) + 1))
        self._connection.execute(
            f"INSERT OR {otherwise} INTO completions ({_COLUMNS}) VALUES ({marks})", (*values, _checksum(values))
        )
        self.damaged.discard(row.key)

    def refuse(self, key: str, reason: str, run: str) -> None:
        """The server did not accept a request in this run."""
        self._connection.execute("INSERT OR REPLACE INTO refusals VALUES (?, ?, ?, ?)", (key, reason, run, now()))

    def refused(self, keys: Iterable[str], run: str) -> dict[str, str]:
        """Key -> reason, of those that were not accepted in this run."""
        reasons: dict[str, str] = {}
        for some in _in_parts(list(keys)):
            marks = ", ".join("?" * len(some))
            reasons |= self._connection.execute(
                f"SELECT key, reason FROM refusals WHERE run = ? AND key IN ({marks})", (run, *some)
            )
        return reasons

    def finding(self, name: str) -> Any:
        """None where there is none, or a damaged one."""
        row = self._connection.execute(
            "SELECT name, value, date, checksum FROM findings WHERE name = ?", (name,)
        ).fetchone()
        if row is None or row[3] not in ("", _checksum(row[:3])):
            return None
        return json.loads(row[1])

    def remember(self, name: str, value: Any, otherwise: str = "REPLACE") -> None:
        """A finding. otherwise: what becomes of one that is there already."""
        values = (name, json.dumps(value), now())
        self._connection.execute(
            f"INSERT OR {otherwise} INTO findings (name, value, date, checksum) VALUES (?, ?, ?, ?)",
            (*values, _checksum(values)),
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
            # Bytes that are no text any more fail the checksum of their row, not the whole table.
            connection.text_factory = lambda content: content.decode("utf-8", "replace")
            connection.executescript(_SCHEMA)
            _add_checksums(connection)
            yield CompletionsTable(connection)
    except sqlite3.Error as error:
        raise ValueError(
            f"The table of completions {path} cannot be used ({error}). Make room if the disk is full; if the file is "
            "damaged, move it away, and what it held will be asked again."
        ) from error


def _add_checksums(connection: sqlite3.Connection) -> None:
    """To tables of earlier versions."""
    for table in _WITH_CHECKSUMS:
        if all(column[1] != "checksum" for column in connection.execute(f"PRAGMA table_info({table})")):
            with suppress(sqlite3.OperationalError):  # another process was faster
                connection.execute(f"ALTER TABLE {table} ADD COLUMN checksum TEXT NOT NULL DEFAULT ''")


def _checksum(values: Iterable[str | float | None]) -> str:
    """As SQLite gives the values back: a number is a float wherever its column may hold one."""
    plain = [float(value) if isinstance(value, int | float) else value for value in values]
    return hashlib.sha256(json.dumps(plain).encode()).hexdigest()


def now() -> str:
    """UTC, to the second."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def _in_parts(keys: Sequence[str]) -> Iterator[Sequence[str]]:
    return (keys[start : start + KEYS_AT_ONCE] for start in range(0, len(keys), KEYS_AT_ONCE))
