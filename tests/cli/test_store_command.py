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


def test_all_that_takes_space_is_listed_and_what_cannot_be_read_is_named(nonmember, kept):
    said = nonmember("store", "list")
    lines = dict(re.match(r"(\S+) +\d+ k?B +(?:7 days)? +(.+)", line).groups() for line in said.out.splitlines()[:-1])
    assert lines["models"] == f"{kept['target'].name}  1 result: cell"
    assert lines["observations"].endswith("  no result needs it")
    assert lines["completions"] == "a-model-1234  (answers; never removed)"
    assert lines["unfinished"] == "models/.partial-77"
    assert re.fullmatch(r"Entries: 3, .+; needed by no result: 2, .+\. Results: 1\.", said.last_line)
    kept["result"].with_name("result-2.json").write_text("{}")
    assert nonmember("store", "list").last_line.endswith("result-2.json is not a result (KeyError).")


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


def test_nobody_reads_on(nonmember, kept, monkeypatch):
    """As in `nonmember store list | head`."""

    def closed(text: str) -> None:
        raise BrokenPipeError

    monkeypatch.setattr(command, "_say", closed)
    said = nonmember("store", "list")
    assert (said.status, said.err) == (141, "")
