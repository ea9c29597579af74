"""Scores of streamed documents: those of the same documents in memory, whole after any kill, refused where they are
others."""

from __future__ import annotations

import errno
import os
import signal

import numpy as np
import pyarrow.parquet as pq
import pytest

import nonmember as nm
from command_line import only, write_rows
from nonmember.records import streams
from nonmember.scoring import engines, part_files, parts, table
from tiny import random_texts

NUMBER = 36


@pytest.fixture(autouse=True)
def small_parts(monkeypatch):
    """Of five or so documents."""
    monkeypatch.setattr(streams, "CHUNK_BYTES", 100)
    monkeypatch.setattr(streams, "SHARD_BYTES", 700)
    monkeypatch.setattr(parts, "CHUNK_BYTES", 100)
    monkeypatch.setattr(parts, "MIB", 300)


@pytest.fixture
def shards(tmp_path):
    """36 documents in three files, one without text and one of a single token among them."""
    folder = tmp_path / "shards"
    folder.mkdir()
    texts = [*random_texts(NUMBER - 2, seed=3), "", "a"]
    rows = [{"name": f"d{number}", "text": text} for number, text in enumerate(texts)]
    for number in range(3):
        write_rows(folder / f"{number}.jsonl.gz", rows[number::3])
    return folder


@pytest.fixture
def score(nonmember, make_model, shards):
    """score("k=1", data="streamed"): what the command said."""

    def run(*more, data="streamed"):
        settings = ("parts.mib=1",) if data == "streamed" else ()
        return nonmember(
            "score",
            f"target.path={make_model(0)}",
            f"data={data}",
            f"data.path={shards}",
            "data.id_field=name",
            *settings,
            *more,
        )

    return run


def hashes(folder):
    return {path.name: part_files.file_hash(path) for path in sorted(folder.glob("scores/*"))}


@pytest.mark.slow
def test_they_are_the_scores_of_the_same_documents_in_memory(score, make_model, tmp_path):
    general = write_rows(tmp_path / "general.jsonl", [{"text": text} for text in random_texts(9, seed=4)])
    more = (
        "k=[0.2,1]",
        "max_tokens=20",
        "perturbations=[butter_fingers]",
        f"reference.path={make_model(1)}",
        f"general.path={general}",
        f"prefix.path={general}",
        "scores=[one_pass,lowercase]",
    )
    held, streamed = score(*more, data="documents"), score(*more, "outputs=elsewhere")
    assert (held.status, streamed.status, streamed.err) == (0, 0, "")
    ours, theirs = nm.load_scores(streamed.last_line), pq.read_table(held.last_line)
    assert len(ours.files) > 4
    assert ours.schema.names == theirs.schema.names
    ours = ours.to_table()
    assert ours["doc_id"].to_pylist() == theirs["doc_id"].to_pylist()
    for name in theirs.column_names:
        if name.startswith(("num", "is", "doc", "reason")):
            assert ours[name].to_pylist() == theirs[name].to_pylist()
        else:
            np.testing.assert_allclose(ours[name].to_numpy(), theirs[name].to_numpy(), atol=2e-5, err_msg=name)
    became = [item.out[item.out.index(f"Documents: {NUMBER} read") :].splitlines() for item in (held, streamed)]
    became = [lines[: next(i for i, line in enumerate(lines) if f" of {NUMBER} documents" in line)] for lines in became]
    assert became[0] == became[1]
    without = [line for line in became[0] if line.startswith("1 document has no log_likelihood")]
    assert ["the text is blank" in line or "fewer than two tokens (d35)" in line for line in without] == [True, True], (
        became[0]
    )
    assert not (tmp_path / "elsewhere/store/observations").exists(), "the store stays for what is small"


def killed(score, monkeypatch, at):
    """SIGKILL to a process of its own while the table of part `at` is written."""
    if child := os.fork():
        assert os.waitpid(child, 0)[1] == signal.SIGKILL
        return
    write = table.pq.write_table

    def struck(table, path, **settings):
        if f"part-{at:05d}" in str(path):
            os.kill(os.getpid(), signal.SIGKILL)
        write(table, path, **settings)

    monkeypatch.setattr(table.pq, "write_table", struck)
    try:
        score()
    finally:
        os._exit(1)


@pytest.mark.slow
def test_killed_it_goes_on_with_the_parts_that_are_complete(score, monkeypatch, shards, tmp_path):
    whole = score("outputs=whole")
    assert whole.status == 0, whole.err
    expected = only(tmp_path / "whole", "scores/*")
    killed(score, monkeypatch, 3)
    folder = only(tmp_path / "outputs", "scores/*")
    assert len(list(folder.glob(".part-*/*"))) > 0, "its observations lie there still"
    with pytest.raises(ValueError, match="3 parts are there, but not all"):
        nm.load_scores(folder)
    before = {path: path.stat().st_mtime_ns for path in folder.glob("scores/part-*")}
    damaged = folder / "scores/part-00001.parquet"
    damaged.write_bytes(damaged.read_bytes()[:-1])
    again = score()
    assert again.status == 0, again.err
    assert f"{damaged} was changed or lost since it was written; it is made again." in again.out
    stayed = [path for path, written in before.items() if path.stat().st_mtime_ns == written]
    assert sorted(path.name for path in stayed) == ["part-00000.parquet", "part-00002.parquet"]
    assert hashes(folder) == hashes(expected)
    assert (folder / "manifest.json").read_bytes() == (expected / "manifest.json").read_bytes()
    assert not list(folder.glob(".part-*"))
    assert not list(folder.glob("*/.*"))

    damaged.write_bytes(b"")
    with pytest.raises(ValueError, match=r"part-00001\.parquet was changed after it was written"):
        nm.load_scores(folder)
    other = score("perturbations=[butter_fingers]", f"hydra.run.dir={folder}")  # else it has a folder of its own
    assert other.status == 1
    assert "it holds parts of others: views, scores differ. Choose another folder" in other.err
    write_rows(shards / "1.jsonl.gz", [{"name": "new", "text": "moss fern"}])
    changed = score()
    assert changed.status == 1
    assert "corpus differ (the documents have changed)" in changed.err


@pytest.mark.slow
def test_documents_of_one_id_are_listed_and_refused_or_left_out(score, shards, tmp_path):
    row = {"name": "d5", "text": "moss fern reed"}
    write_rows(shards / "3.jsonl.gz", [{"name": "e0", "text": "lark wren"}, row, row])
    refused = score()
    folder = only(tmp_path, "outputs/scores/*")
    assert refused.status == 1
    assert f"2 of {NUMBER + 3} documents have one that an earlier document has" in refused.err
    assert f"the first of them the {NUMBER + 2}th" in refused.err
    first = score("parts.duplicate_ids=first")
    assert first.status == 0, first.err
    assert f"{NUMBER + 3} read, {NUMBER + 1} kept, 2 dropped (duplicate_id 2)" in first.out
    ids = nm.load_scores(folder).to_table(columns=["doc_id"])["doc_id"].to_pylist()
    assert ids.count("d5") == 1
    assert ids[-1] == "e0"


@pytest.mark.slow
def test_a_full_disk_leaves_complete_parts_alone(score, monkeypatch, tmp_path):
    write = table.pq.write_table

    def full(table, path, **settings):
        if "part-00002" in str(path):
            path.write_bytes(b"half")
            raise OSError(errno.ENOSPC, "No space left on device")
        write(table, path, **settings)

    monkeypatch.setattr(table.pq, "write_table", full)
    said = score()
    folder = only(tmp_path, "outputs/scores/*")
    assert said.status == 1
    assert f"No space left on device ({folder / 'scores/part-00002.parquet'}): " in said.err
    assert [path.name for path in sorted(folder.glob("scores/*"))] == ["part-00000.parquet", "part-00001.parquet"]


@pytest.mark.slow
def test_workers_load_the_models_again_and_make_the_same_scores(score, tmp_path):
    """A scorer that is sent to them takes no model along."""
    pytest.importorskip("ray", reason="ray is not installed (pip install 'nonmember[ray]')")
    few = write_rows(tmp_path / "few.jsonl", [{"name": text, "text": text} for text in random_texts(12, seed=5)])
    said = [score(f"data.path={few}", *more) for more in (["outputs=here"], ["outputs=there", "engine=ray"])]
    assert [item.status for item in said] == [0, 0], said[1].err
    here, there = (only(tmp_path / name, "scores/*") for name in ("here", "there"))
    assert hashes(here) == hashes(there)
    assert len(hashes(here)) == 2


@pytest.mark.parametrize(
    ("more", "sentence"),
    [
        (["cleaning.min_words=99"], "There are no documents to score. Name others, or loosen"),
        (
            ["trainer.make_trainer.devices=2"],
            "by one device per process; got tiny0 and trainer.make_trainer of several",
        ),
    ],
)
def test_what_cannot_be_scored_part_by_part_is_refused(more, sentence, score):
    said = score(*more)
    assert said.status == 1
    assert sentence in said.err


def test_without_ray_it_says_how_to_install_it(score, monkeypatch):
    monkeypatch.setattr(engines, "find_spec", lambda name: None)
    said = score("engine=ray")
    assert said.status == 1
    assert "pip install 'nonmember[ray]'" in said.err
