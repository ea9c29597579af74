"""Files are whole or not there; one process at a time works in a folder."""

from __future__ import annotations

import errno
import logging
import re
import threading
from pathlib import Path

import pytest

from nonmember.runtime import files
from nonmember.runtime.files import alone_in, is_locked, locked, replacing, write_text_atomically


def write_half(path: Path, error: OSError) -> None:
    with replacing(path) as temporary:
        temporary.write_text("half of the n")
        raise error


def test_a_write_that_fails_leaves_what_was_there_and_says_on_which_disk(tmp_path):
    path = tmp_path / "result.json"
    write_text_atomically(path, "old")
    for given, told in (
        (OSError(errno.ENOSPC, "No space left on device"), str(path)),
        (OSError("no number"), "no number"),
    ):
        with pytest.raises(OSError, match=re.escape(told)):
            write_half(path, given)
        assert (path.read_text(), [item.name for item in tmp_path.iterdir()]) == ("old", ["result.json"])


def test_a_folder_is_worked_in_by_one_process_which_clears_what_a_killed_one_left(tmp_path, monkeypatch):
    folder = tmp_path / "cell"
    folder.mkdir()
    for name in (".result.json.0123.tmp", "notes.tmp", ".hidden"):
        (folder / name).touch()
    assert not is_locked(folder / ".lock")
    with alone_in(folder):
        assert is_locked(folder / ".lock")
        assert {path.name for path in folder.iterdir()} == {".lock", "notes.tmp", ".hidden"}
        monkeypatch.setattr(files, "process_rank", lambda: 1)
        (folder / ".result.json.4567.tmp").touch()
        with alone_in(folder):  # a further process of the same run, which must not wait for its first
            assert (folder / ".result.json.4567.tmp").exists(), "the first one is writing it"
    assert not is_locked(folder / ".lock")


def test_who_waits_for_another_process_says_for_what(tmp_path, caplog):
    done = threading.Event()
    caplog.set_level(logging.INFO)

    def wait() -> None:
        with locked(tmp_path / ".lock", "making a model"):
            done.set()

    with locked(tmp_path / ".lock", "making a model"):
        waiting = threading.Thread(target=wait)
        waiting.start()
        waiting.join(0.05)
        assert not done.is_set()
    waiting.join(10)
    assert done.is_set()
    assert caplog.messages == ["Another process is making a model; waiting for it."]
