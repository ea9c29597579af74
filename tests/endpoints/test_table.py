"""The table of completions: a row that was damaged on the disk is no answer."""

from __future__ import annotations

import sqlite3
from dataclasses import replace
from pathlib import Path

import pytest

from nonmember.endpoints.table import FILE, CompletionRow, opened

ROW = CompletionRow("key", "{}", '{"choices": []}', "answered", "Emma", "stop", "lab", "", "2026-01-01", 12, 3, None)


def change(folder: Path, statement: str, *values: object) -> None:
    with sqlite3.connect(folder / FILE) as connection:
        connection.execute(statement, values)
    connection.close()


@pytest.mark.parametrize("cost", [None, 0, 0.1, True])
def test_what_was_written_is_sound(tmp_path, cost):
    with opened(tmp_path) as table:
        table.add(replace(ROW, cost=cost, text="\N{SNOWMAN}\0", prompt_tokens=True))
        table.remember("echo", [1, None])
        identity = table.identity
    with opened(tmp_path) as table:
        assert list(table.find(["key", "another"])) == [("key", ROW.response, ROW.date)]
        assert table.finding("echo") == [1, None]
        assert (table.identity, table.damaged) == (identity, set())


@pytest.mark.parametrize("column", [name for name in CompletionRow.__dataclass_fields__ if name != "key"])
def test_a_row_changed_on_the_disk_is_no_answer_and_makes_room_for_another(tmp_path, column):
    with opened(tmp_path) as table:
        table.add(ROW)
    change(tmp_path, f"UPDATE completions SET {column} = ?", 4 if "tokens" in column or column == "cost" else "other")
    with opened(tmp_path) as table:
        assert list(table.find(["key"])) == []
        assert table.damaged == {"key"}
        table.add(ROW)
        assert list(table.find(["key"])) == [("key", ROW.response, ROW.date)]
        table.add(replace(ROW, date="later"))  # the first one stays
        assert [date for *_, date in table.find(["key"])] == [ROW.date]


def test_any_flipped_byte_of_an_answer_is_seen(tmp_path):
    with opened(tmp_path) as table:
        table.add(ROW)
    content = (tmp_path / FILE).read_bytes()
    start = content.index(ROW.response.encode())
    for index in range(start, start + len(ROW.response)):
        for bit in (1, 128):  # 128: no UTF-8 any more
            damaged = bytearray(content)
            damaged[index] ^= bit
            (tmp_path / FILE).write_bytes(damaged)
            with opened(tmp_path) as table:
                assert list(table.find(["key"])) == []


def test_damaged_findings_are_looked_for_anew(tmp_path):
    with opened(tmp_path) as table:
        table.remember("alternatives", 5)
        identity = table.identity
    change(tmp_path, "UPDATE findings SET value = '20'")
    with opened(tmp_path) as table:
        assert table.finding("alternatives") is None
        assert table.identity not in (identity, "20")
        table.remember("alternatives", 5)
        assert table.finding("alternatives") == 5


def test_tables_of_earlier_versions_are_read_and_grow(tmp_path):
    old = ", ".join(name for name in CompletionRow.__dataclass_fields__)
    change(tmp_path, f"CREATE TABLE completions ({old}, PRIMARY KEY (key))")
    change(tmp_path, "CREATE TABLE findings (name TEXT PRIMARY KEY, value TEXT NOT NULL, date TEXT NOT NULL)")
    change(tmp_path, f"INSERT INTO completions VALUES ({', '.join('?' * 12)})", *vars(ROW).values())
    change(tmp_path, "INSERT INTO findings VALUES ('identity', '\"abc\"', '')")
    with opened(tmp_path) as table:
        assert [key for key, *_ in table.find(["key"])] == ["key"]
        assert table.identity == "abc"
        table.add(replace(ROW, key="new"))
    with opened(tmp_path) as table:
        assert len(list(table.find(["key", "new"]))) == len(table) == 2
