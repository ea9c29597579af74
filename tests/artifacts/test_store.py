"""An artifact is made once, found by what determines it, and never found half made, changed or lost."""

from __future__ import annotations

import errno
import json
import os
import re
import subprocess
import sys
import textwrap
import time
from dataclasses import replace
from pathlib import Path

import pytest

from nonmember.artifacts import store
from nonmember.artifacts.store import Entry, Store, canonical_json, key_hash
from nonmember.runtime import processes
from nonmember.runtime.processes import process_rank, run_id

KEY = {"what": "a thing", "number": 3}


def writes(text: str):
    """A `make` that counts its calls and leaves data.txt."""

    def make(folder: Path) -> dict[str, object]:
        make.calls += 1
        make.found = sorted(path.name for path in folder.iterdir())
        (folder / "data.txt").write_text(text)
        return {"length": len(text)}

    make.calls, make.found = 0, []
    return make


def make_thing(root: Path, make=None, *, key=KEY, name: str = "thing", **options) -> Entry:
    return Store(root).get_or_make("things", name, key, make or writes("data"), **options)


def run_python(code: str, *arguments: object, **environment: str) -> subprocess.Popen[str]:
    """A process of its own; `code` sees `Store`, `root` and the further arguments."""
    head = "import os, signal, sys, time\nfrom pathlib import Path\nfrom nonmember.artifacts.store import Store\n"
    head += "root = Path(sys.argv[1])\n"
    return subprocess.Popen(
        [sys.executable, "-c", head + textwrap.dedent(code), *map(str, arguments)],
        env=os.environ | environment,
        stdout=subprocess.PIPE,
        text=True,
    )


def wait_for(path: Path, seconds: float = 20) -> None:
    end = time.monotonic() + seconds
    while not path.exists():
        assert time.monotonic() < end, f"{path} did not appear"
        time.sleep(0.01)


# Found ------------------------------------------------------------------------------------------------------


def test_made_once_and_found_by_its_key_alone(tmp_path):
    make = writes("data")
    item = Store(tmp_path)
    first = item.get_or_make("things", "a name", KEY, make)
    assert first.made_now
    for again in (item, Store(tmp_path)):
        entry = again.get_or_make("things", "another name", dict(reversed(KEY.items())), make)
        assert (entry.path, entry.facts, entry.made_now) == (first.path, {"length": 4}, False)
    assert make.calls == 1
    assert (first.path / "data.txt").read_text() == "data"
    assert item.find("things", "", KEY) is not None
    assert item.find("other things", "", KEY) is None
    assert item.find("things", "", KEY | {"number": 4}) is None


def test_the_sidecar_says_in_json_what_it_is(tmp_path):
    entry = make_thing(tmp_path)
    sidecar = json.loads((entry.path / "sidecar.json").read_text())
    assert sidecar["key"] == KEY
    assert sidecar["facts"] == {"length": 4}
    assert list(sidecar["files"]) == ["data.txt"]


@pytest.mark.parametrize("name", ["x/y", "..", ".hidden", "a b" * 100, "", "über-größe"])
def test_any_name_makes_a_folder_that_is_found(tmp_path, name):
    entry = make_thing(tmp_path, name=name)
    assert entry.path.parent == tmp_path / "things"
    assert make_thing(tmp_path).made_now is False


def test_one_text_for_one_meaning():
    assert canonical_json({"b": (1, 2), "a": None}) == canonical_json({"a": None, "b": [1, 2]})
    assert key_hash({"x": 1}) != key_hash({"x": 1.5})
    assert key_hash({"x": "1"}) != key_hash({"x": 1})
    with pytest.raises(ValueError, match="not JSON compliant"):
        key_hash({"x": float("nan")})


def test_working_files_are_gone_when_it_is_complete(tmp_path):
    def make(folder):
        (folder / ".resume").write_text("a point to resume from")
        (folder / ".more").mkdir()
        (folder / ".more" / "file").write_text("x")
        (folder / "part").mkdir()
        (folder / "part" / "data").write_text("x")

    entry = make_thing(tmp_path, make, resumable=True)
    assert sorted(p.name for p in entry.path.iterdir()) == ["part", "sidecar.json"]
    assert list(json.loads((entry.path / "sidecar.json").read_text())["files"]) == ["part/data"]


# Not complete -----------------------------------------------------------------------------------------------


def test_a_make_that_fails_leaves_nothing_to_find(tmp_path):
    def fails(folder):
        (folder / "data.txt").write_text("half")
        raise RuntimeError("no luck")

    with pytest.raises(RuntimeError, match="no luck"):
        make_thing(tmp_path, fails)
    assert Store(tmp_path).find("things", "thing", KEY) is None
    make = writes("data")
    assert make_thing(tmp_path, make).made_now
    assert make.found == []


@pytest.mark.parametrize("resumable", [False, True])
def test_a_killed_process_leaves_nothing_to_find(tmp_path, resumable):
    code = """
        def make(folder):
            (folder / "data.txt").write_text("half")
            (folder / ".resume").write_text("up to here")
            os.kill(os.getpid(), signal.SIGKILL)
        Store(root).get_or_make("things", "thing", {"what": "a thing", "number": 3}, make, resumable=True)
    """
    process = run_python(code, tmp_path)
    process.communicate()
    assert process.returncode == -9
    assert Store(tmp_path).find("things", "thing", KEY) is None
    make = writes("whole")
    entry = make_thing(tmp_path, make, resumable=resumable)
    assert make.found == ([".resume", "data.txt"] if resumable else [])
    assert (entry.path / "data.txt").read_text() == "whole"


def test_killed_between_sidecar_and_rename(tmp_path, monkeypatch):
    replace = os.replace

    def killed(source, goal):
        if Path(source).name.startswith(".partial"):
            raise KeyboardInterrupt
        replace(source, goal)

    monkeypatch.setattr(store.os, "replace", killed)
    with pytest.raises(KeyboardInterrupt):
        make_thing(tmp_path, resumable=True)
    monkeypatch.undo()
    assert list(tmp_path.rglob("sidecar.json"))  # else nothing is tested
    assert Store(tmp_path).find("things", "thing", KEY) is None
    assert make_thing(tmp_path, resumable=True).made_now
    assert not make_thing(tmp_path).made_now


def test_a_folder_without_sidecar_is_made_anew(tmp_path):
    entry = make_thing(tmp_path)
    (entry.path / "sidecar.json").unlink()
    (entry.path / "stray").write_text("x")
    assert make_thing(tmp_path).made_now
    assert not (entry.path / "stray").exists()


@pytest.mark.parametrize("where", ["data", "sidecar"])
def test_a_full_disk_is_an_oserror_and_loses_nothing(tmp_path, monkeypatch, where):
    earlier = make_thing(tmp_path, key={"earlier": 1})

    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    def make(folder):
        (folder / ".resume").write_text("up to here")
        if where == "data":
            full()
        monkeypatch.setattr(store.os, "fsync", full)

    with pytest.raises(OSError, match="No space left"):
        make_thing(tmp_path, make, resumable=True)
    monkeypatch.undo()
    assert Store(tmp_path).find("things", "thing", {"earlier": 1}) == replace(earlier, made_now=False)
    assert Store(tmp_path).find("things", "thing", KEY) is None
    again = writes("data")
    make_thing(tmp_path, again, resumable=True)
    assert again.found == [".resume"]
    assert not make_thing(tmp_path).made_now


# Damaged ----------------------------------------------------------------------------------------------------


def flip_bit(path: Path, after: bytes) -> None:
    content = bytearray(path.read_bytes())
    assert content.count(after) == 1
    content[content.index(after) + len(after)] ^= 1
    path.write_bytes(content)


def forge(path: Path, files: dict[str, str]) -> None:
    """Other files in a sidecar, and the hash of them."""
    sidecar = json.loads((path / "sidecar.json").read_text())
    (path / "sidecar.json").write_text(json.dumps({**sidecar, "files": files, "files_hash": key_hash(files)}))


DAMAGE = {
    "data": (lambda path: flip_bit(path / "data.txt", b"da"), "data.txt was changed"),
    "facts": (lambda path: flip_bit(path / "sidecar.json", b'"length": '), "was changed"),
    "key": (lambda path: flip_bit(path / "sidecar.json", b'"number": '), "was changed"),
    "hash": (lambda path: flip_bit(path / "sidecar.json", b'"data.txt": "'), "sidecar.json was changed"),
    "hash, and the hash of it": (lambda path: forge(path, {"data.txt": "0" * 64}), "data.txt was changed"),
    "a file elsewhere": (lambda path: forge(path, {"/etc/passwd": "0" * 64}), "'/etc/passwd', which is outside it"),
    "a file above": (lambda path: forge(path, {"../x": "0" * 64}), "'../x', which is outside it"),
    "missing": (lambda path: (path / "data.txt").unlink(), "data.txt is missing"),
    "cut": (lambda path: (path / "sidecar.json").write_text('{"key": '), "cannot be read"),
    "other": (lambda path: (path / "sidecar.json").write_text("[1, 2]"), "cannot be read"),
    "binary": (lambda path: (path / "sidecar.json").write_bytes(b"\xff\xfe\x00"), "cannot be read"),
}


@pytest.mark.parametrize("what", DAMAGE)
def test_damage_is_found_and_named(tmp_path, what):
    damage, message = DAMAGE[what]
    entry = make_thing(tmp_path)
    damage(entry.path)
    with pytest.raises(ValueError, match=f"(?s){entry.path.name} is damaged.*({message}).*Remove that folder"):
        make_thing(tmp_path)
    for path in entry.path.iterdir():
        path.unlink()
    entry.path.rmdir()
    assert make_thing(tmp_path).made_now


@pytest.mark.parametrize("name", ["part-0 (copy).parquet", "data.txt~", "below/data.txt"])
def test_what_the_sidecar_does_not_list_is_refused_and_never_read(tmp_path, name):
    entry = make_thing(tmp_path, lambda folder: (folder / "part-0.parquet").write_text("x") and None)
    store = Store(tmp_path)
    store.get_or_make("things", "thing", KEY, writes("data"))
    (entry.path / name).parent.mkdir(exist_ok=True)
    (entry.path / name).write_text("x")
    (entry.path / ".DS_Store").write_text("nobody reads it")
    with pytest.raises(ValueError, match=rf"{entry.path}.*no other; got '{re.escape(name)}'.*Remove that file"):
        make_thing(tmp_path)
    # Put there after the entry was checked: readers take the names from the entry.
    assert [path.name for path in store.find("things", "thing", KEY).paths("part-*")] == ["part-0.parquet"]
    (entry.path / name).unlink()
    assert not make_thing(tmp_path).made_now


def test_colleagues_can_read_what_libraries_wrote_for_their_user_alone(tmp_path):
    def make(folder):
        (folder / "below").mkdir()
        for path in (folder / "model.safetensors", folder / "below" / "data"):
            path.write_text("x")
            path.chmod(0o600)

    entry = make_thing(tmp_path, make)
    (tmp_path / "plain").write_text("x")
    modes = {path.stat().st_mode for path in entry.path.rglob("*") if path.is_file()}
    assert modes == {(tmp_path / "plain").stat().st_mode}


# Several processes ------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_two_processes_at_once_make_it_once(tmp_path):
    code = """
        def make(folder):
            with open(root / "calls", "a") as calls:
                calls.write("made\\n")
            time.sleep(0.5)
            (folder / "data").write_text("x")
        (root / f"ready-{sys.argv[2]}").touch()
        while not (root / "go").exists():
            time.sleep(0.005)
        entry = Store(root).get_or_make("things", "thing", {"one": 1}, make)
        print(entry.path, int(entry.made_now))
    """
    both = [run_python(code, tmp_path, number) for number in (0, 1)]
    for number in (0, 1):
        wait_for(tmp_path / f"ready-{number}")
    (tmp_path / "go").touch()
    answers = sorted(process.communicate(timeout=30)[0].split() for process in both)
    assert (tmp_path / "calls").read_text() == "made\n"
    assert answers[0][0] == answers[1][0]
    assert sorted(answer[1] for answer in answers) == ["0", "1"]


FOLLOWER = """
    def make(folder):
        (folder / "rank-1").write_text("mine")
    joint = sys.argv[2] == "joint"
    (root / "ready").touch()
    entry = Store(root).get_or_make("things", "thing", {"what": "a thing", "number": 3}, make, joint=joint)
    print(entry.path, int(entry.made_now))
"""


@pytest.mark.slow
@pytest.mark.parametrize("joint", [False, True])
def test_a_further_process_of_a_run_waits_and_joins_where_invited(tmp_path, monkeypatch, joint):
    monkeypatch.setenv("NONMEMBER_RUN", "this run")
    follower = run_python(FOLLOWER, tmp_path, "joint" if joint else "alone", RANK="1")

    def make(folder):
        wait_for(folder / "rank-1" if joint else tmp_path / "ready")
        time.sleep(0.1)
        (folder / "rank-0").write_text("mine")

    entry = make_thing(tmp_path, make, joint=joint)
    path, made_now = follower.communicate(timeout=30)[0].split()
    assert (Path(path), made_now) == (entry.path, "0")
    names = sorted(p.name for p in entry.path.iterdir())
    assert names == (["rank-0", "rank-1", "sidecar.json"] if joint else ["rank-0", "sidecar.json"])


def test_an_invitation_of_another_run_is_not_accepted(tmp_path, monkeypatch):
    def fails(folder):
        raise RuntimeError

    monkeypatch.setenv("NONMEMBER_RUN", "an earlier run")
    with pytest.raises(RuntimeError):
        make_thing(tmp_path, fails, resumable=True, joint=True)
    monkeypatch.setenv("NONMEMBER_RUN", "this run")
    monkeypatch.setenv("RANK", "1")
    parents = iter([5] * 4)
    monkeypatch.setattr(processes.os, "getppid", lambda: next(parents, 6))
    make = writes("data")
    with pytest.raises(SystemExit, match="first process has ended"):
        make_thing(tmp_path, make, resumable=True, joint=True)
    assert make.calls == 0


def test_a_process_that_waits_says_for_what(tmp_path, monkeypatch, caplog):
    monkeypatch.setattr(processes, "SILENT_SECONDS", -1)
    monkeypatch.setenv("RANK", "1")
    parents = iter([5] * 4)
    monkeypatch.setattr(processes.os, "getppid", lambda: next(parents, 6))
    with pytest.raises(SystemExit, match="first process has ended"):
        make_thing(tmp_path, writes("data"))
    assert caplog.text.count("Waiting for ") == 1
    assert "RANK=1" in caplog.text


def test_a_process_waits_no_longer_than_somebody_is_at_it(monkeypatch):
    monkeypatch.setattr(processes, "SILENT_SECONDS", -1)
    monkeypatch.setenv("RANK", "1")
    monkeypatch.setenv("NONMEMBER_WAIT_MINUTES", "1e-9")
    moments = iter([True, True, False])
    waiting = processes.Waiting("models x", lambda: next(moments))
    waiting.a_moment()
    waiting.a_moment()
    with pytest.raises(ValueError, match=r"no process has been making models x: the environment says RANK=1"):
        waiting.a_moment()


def test_ranks_and_runs(monkeypatch):
    for name in (*processes._RANKS, *processes._RUNS):
        monkeypatch.delenv(name, raising=False)
    assert process_rank() == 0
    monkeypatch.setenv("LOCAL_RANK", "1")
    assert process_rank() == 1
    monkeypatch.setenv("RANK", "5")
    assert process_rank() == 5
    monkeypatch.setenv("RANK", "")
    assert process_rank() == 1
    first = run_id()
    assert run_id() == first
    assert os.environ["NONMEMBER_RUN"] == first  # so that processes started later inherit it
    monkeypatch.delenv("NONMEMBER_RUN")
    assert run_id() != first
    monkeypatch.setenv("SLURM_JOB_ID", "7")
    first = run_id()
    monkeypatch.setenv("SLURM_RESTART_COUNT", "1")
    assert run_id() != first, "what a job left that was queued again invites nobody"
