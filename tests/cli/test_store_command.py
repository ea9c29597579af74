"""`nonmember store`: what is needed, unfinished or being made is never lost, and what is wrong is named."""

from __future__ import annotations

import json
import os
import re
import time
from pathlib import Path

import pytest

from nonmember.artifacts.store import Entry, Store, key_hash
from nonmember.cli import store as command
from nonmember.runtime.files import locked

ROOT = Path("outputs/store")
TARGET, OTHER = ({"kind": "model", "seed": seed} for seed in (1, 2))
AN_HOUR, A_WEEK = 3600.0, 7 * 86400.0


def put(root: Path, kind: str, key: dict, label: str, text: str = "data") -> Entry:
    def make(folder: Path) -> dict[str, object]:
        (folder / "data.txt").write_text(text)
        return {}

    return Store(root).get_or_make(kind, label, key, make)


def age(path: Path, seconds: float) -> Path:
    os.utime(path, (time.time() - seconds,) * 2)
    return path


def resume_point(root: Path, digest: str, text: str = "step 7") -> Path:
    folder = root / "models" / f".partial-{digest}"
    folder.mkdir(parents=True)
    (folder / "state").write_text(text)
    return folder


@pytest.fixture
def kept(nonmember) -> dict[str, Path]:
    """In this test's folder: a model that a result needs, one and a text that none does, an endpoint's answers, a
    killed training."""
    paths = {
        "target": put(ROOT, "models", TARGET, "target").path,
        "other": put(ROOT, "models", OTHER, "other").path,
        "read": put(ROOT, "observations", {"model": OTHER, "corpus": "c"}, "read").path,
    }
    for path in paths.values():
        age(path / "sidecar.json", A_WEEK)
    answers = ROOT / "completions" / "a-model-1234"
    answers.mkdir(parents=True)
    (answers / "completions.sqlite").write_text("answers")
    result = Path("outputs/audits/mine/cell/result.json")
    result.parent.mkdir(parents=True)
    result.write_text(json.dumps({"provenance": {"keys": {"target": key_hash(TARGET)}}}))
    return paths | {"answers": answers, "killed": age(resume_point(ROOT, "77"), A_WEEK), "result": result}


def test_a_store_is_not_moved_into_itself_and_a_link_to_one_is(nonmember, kept):
    for inside in (ROOT / "old", ROOT.parent):
        said = nonmember("store", "move", inside)
        assert (said.status, "cannot be inside another" in said.err) == (1, True)
    for words in (["move", "--store", "outputs", "new"], ["merge", "outputs"], ["verify", "--store", "outputs"]):
        said = nonmember("store", *words)
        assert (said.status, "There is no store in outputs." in said.err) == (1, True)
    (ROOT / "notes.txt").write_text("mine")
    said = nonmember("store", "move", "new")
    assert (said.status, "must hold a store and nothing else, since it is removed; got" in said.err) == (1, True)
    assert kept["result"].is_file()
    (ROOT / "notes.txt").unlink()
    assert kept["target"].is_dir()
    Path("elsewhere").mkdir()
    os.replace(ROOT, "elsewhere/store")
    ROOT.symlink_to(Path("elsewhere/store").resolve())
    assert nonmember("store", "move", "new").status == 0
    assert not ROOT.is_symlink()
    assert (Path("new/models") / kept["target"].name / "data.txt").read_text() == "data"


def test_all_that_takes_space_is_listed_and_what_cannot_be_read_is_named(nonmember, kept):
    said = nonmember("store", "list")
    lines = dict(re.match(r"(\S+) +\d+ k?B +(?:7 days)? +(.+)", line).groups() for line in said.out.splitlines()[:-1])
    assert lines["models"] == f"{kept['target'].name}  1 result: cell"
    assert lines["observations"].endswith("  no result needs it")
    assert lines["completions"] == "a-model-1234  (answers; never removed)"
    assert lines["unfinished"] == "models/.partial-77"
    assert re.fullmatch(r"Entries: 3, .+; needed by no result: 2, .+\. Results: 1\.", said.last_line)
    alone = nonmember("store", "list", "--kind", "completions")
    assert len(alone.out.splitlines()) == 2
    assert "a-model-1234" in alone.out
    kept["result"].with_name("result-2.json").write_text("{}")
    assert nonmember("store", "list").last_line.endswith("result-2.json is not a result (KeyError).")


def test_what_was_changed_on_the_disk_is_told_and_neither_removed_nor_spread(nonmember, kept):
    (kept["other"] / "data.txt").write_text("dat.")
    said = nonmember("store", "verify")
    assert (said.status, said.last_line) == (1, "2 of 3 entries are intact.")
    assert str(kept["other"]) in said.out
    assert "1 entries are damaged. Remove their folders" in said.err
    said = nonmember("store", "move", "elsewhere")
    assert (said.status, "1 entries were left where they are" in said.err) == (1, True)
    assert str(kept["other"]) in said.out
    assert kept["other"].is_dir()
    assert kept["killed"].is_dir()


def test_two_contents_of_one_key_are_left_to_the_user(nonmember, kept):
    mine = put(Path("mine"), "models", TARGET, "target", "trained on another machine").path
    new = put(Path("mine"), "models", {"seed": 3}, "new").path
    said = nonmember("store", "merge", "mine")
    assert (said.status, "remove the one that you trust less" in said.err) == (1, True)
    assert "1 entries were copied into outputs/store, 0 were there already." in said.out
    assert f"{mine} and {kept['target']} have the same key and other content." in said.out
    assert (ROOT / "models" / new.name / "data.txt").read_text() == "data"
    assert [(path / "data.txt").read_text() for path in (mine, kept["target"])] == [
        "trained on another machine",
        "data",
    ]


def test_where_results_are_out_of_sight_nothing_is_removed(nonmember, kept):
    """As behind a folder's misspelt name, or a link to another disk."""
    Path("disk/empty").mkdir(parents=True)
    Path("outputs/audits/more").symlink_to(Path("disk").resolve())
    for folders, why in {
        ("disk/empty",): "no results below disk/empty, so all would be removed",
        ("outputs/audits", "nowhere"): "There is no folder nowhere",
        ("outputs/audits",): "outputs/audits/more is a link",
    }.items():
        said = nonmember("store", "remove", "--yes", "--keep-days", 0, "--results", *folders)
        assert (said.status, why in said.err) == (1, True), said.err
    assert nonmember("store", "remove", "--results", "outputs/audits", "disk").status == 0
    for days in ("nan", "-1"):  # by which nothing would be young
        said = nonmember("store", "remove", "--yes", "--results", "outputs/audits", "disk", f"--keep-days={days}")
        assert (said.status, "--keep-days must be a number of at least 0" in said.err) == (1, True), said.err
    assert all(path.exists() for path in kept.values())


def test_resume_points_are_removed_where_that_is_asked_for_and_they_are_old(nonmember, kept):
    young = age(resume_point(ROOT, "88"), AN_HOUR)
    assert "2 entries" in nonmember("store", "remove").last_line
    said = nonmember("store", "remove", "--unfinished")
    assert said.last_line.startswith("3 entries, ")
    assert "models/.partial-77" in said.out
    assert kept["killed"].is_dir(), "only told so far"
    assert nonmember("store", "remove", "--unfinished", "--yes").last_line.endswith("were removed.")
    there = {name for name, path in kept.items() if path.exists()}
    assert there == {"target", "answers", "result"}
    assert young.is_dir()


def test_a_moved_store_takes_along_from_where_trainings_go_on_and_waits_for_those_that_run(nonmember, kept):
    busy, goal = resume_point(ROOT, "88", "step 9"), Path("elsewhere")
    for path, lock in {busy: busy.with_name(".lock-88"), kept["answers"]: kept["answers"] / ".lock"}.items():
        with locked(lock, "training, or asking"):
            said = nonmember("store", "move", goal)
            assert (said.status, f"{path} is being written; move the store when" in said.err) == (1, True), said.err
            assert not goal.exists()
    resume_point(goal, "88", "step 12")
    (ROOT / "revisions.json").write_text('{"pile@main": "new", "wiki@main": "c0ffee"}')
    (goal / "revisions.json").write_text('{"pile@main": "old"}')
    said = nonmember("store", "move", goal)
    assert said.status == 0, said.err
    assert said.last_line == "outputs/store no longer exists; use store=elsewhere from now on."
    assert not ROOT.exists()
    states = {digest: (goal / "models" / f".partial-{digest}" / "state").read_text() for digest in ("77", "88")}
    assert states == {"77": "step 7", "88": "step 12"}, "of two the one that was there stays"
    assert (goal / "completions" / "a-model-1234" / "completions.sqlite").read_text() == "answers"
    assert json.loads((goal / "revisions.json").read_text()) == {"pile@main": "old", "wiki@main": "c0ffee"}
    assert nonmember("store", "verify", "--store", goal).last_line == "3 of 3 entries are intact."


def test_a_model_is_exported_by_a_name_that_only_one_has(nonmember, kept):
    put(ROOT, "models", {"seed": 3}, "other")
    said = nonmember("store", "export", "other", "card")
    assert "other is the label of several models; name one as `nonmember store list` prints it: other-" in said.err
    assert said.status == 1
    said = nonmember("store", "export", "nothing", "card")
    assert (said.status, "nothing is not a model in this store; name one" in said.err) == (1, True)
    assert not Path("card").exists()
    listed = nonmember("store", "list", "--kind", "models").out.split()
    for name in (next(word for word in listed if word.startswith("target-")), str(kept["target"])):
        assert nonmember("store", "export", name, f"{len(name)}").status == 0
        assert Path(f"{len(name)}/README.md").is_file()


def test_nobody_reads_on(nonmember, kept, monkeypatch):
    """As in `nonmember store list | head`."""

    def closed(text: str) -> None:
        raise BrokenPipeError

    monkeypatch.setattr(command, "_say", closed)
    said = nonmember("store", "list")
    assert (said.status, said.err) == (141, "")
