"""The table of completions: a row that was damaged on the disk is no answer."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from nonmember.endpoints.table import FILE, CompletionRow

ROW = CompletionRow("key", "{}", '{"choices": []}', "answered", "Emma", "stop", "lab", "", "2026-01-01", 12, 3, None)


def change(folder: Path, statement: str, *values: object) -> None:
    with sqlite3.connect(folder / FILE) as connection:
        connection.execute(statement, values)
    connection.close()
