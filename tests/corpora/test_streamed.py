"""Corpora in files: what is left out, too little text, going on after a kill."""

from __future__ import annotations

import json
import logging
from dataclasses import replace
from pathlib import Path

import pytest

import tiny
from nonmember.corpora import Cleaning, Component, Hub, Mixture, Select, Streamed
from nonmember.corpora.transforms import streamed
from nonmember.records import Corpus, Document, streams

PAPER = Cleaning("normalised", 3, 8, "cut", "keep", None, 64)
DATES = ("2020-05-01", "2021-02-01T08:00:00", None, "2022", "2021-01-31", "2023-03-04")


@pytest.fixture(autouse=True)
def small_files(monkeypatch):
    monkeypatch.setattr(streams, "CHUNK_BYTES", 100)
    monkeypatch.setattr(streams, "SHARD_BYTES", 300)


def source(folder: Path, number: int = 60, **settings) -> Hub:
    """Rows over two files; of every six three are dated late enough, and the third has no date."""
    folder.mkdir(exist_ok=True)
    rows = [
        json.dumps({"text": f"number  {index}\nhas these words and others", "created": DATES[index % len(DATES)]})
        for index in range(number)
    ]
    for name, part in (("a", rows[: number // 3]), ("b", rows[number // 3 :])):
        (folder / f"{name}.jsonl").write_text("\n".join(part) + "\n")
    return Hub(str(folder), None, "train", "", "text", None, data_files="*.jsonl", domain="lines", **settings)


def ids(corpus) -> list[str]:
    return [document.doc_id for document in corpus.documents]


def test_it_is_the_corpus_in_memory_cleaned_alike(tmp_path):
    builder, lines = tiny.builder(tmp_path / "store"), source(tmp_path / "lines")
    stream = builder.get(Streamed(lines, cleaning=PAPER))
    held = builder.get(lines)
    assert ids(stream) == ids(held)
    texts = [" ".join(document.text.split()[:8]) for document in held.documents]
    assert [document.text for document in stream.documents] == texts
    assert len(stream) == len(held) == 60
    assert len(stream.shards) > 3
    assert stream.fingerprint not in (held.fingerprint, Corpus(tuple(stream.documents)).fingerprint)
    again = tiny.builder(tmp_path / "another").get(Streamed(lines, cleaning=PAPER))
    assert again.fingerprint == stream.fingerprint
    shorter = builder.get(Streamed(lines, cleaning=replace(PAPER, max_words=4)))
    assert shorter.fingerprint != stream.fingerprint


def test_dated_sources_are_filtered_by_date(tmp_path):
    lines = source(tmp_path / "lines", at_least={"created": "2021-02"})
    stream = tiny.builder(tmp_path / "store").get(Streamed(lines, cleaning=PAPER))
    assert ids(stream) == [f"lines:train:{index}" for index in range(60) if index % 6 in (1, 3, 5)]
    assert stream.dropped == {"created_below": 20, "created_missing": 10}


def test_a_source_with_too_little_text_says_so_and_goes_on(tmp_path, caplog):
    lines, none = source(tmp_path / "lines", 6), source(tmp_path / "none", at_least={"created": "2030"})
    builder = tiny.builder(tmp_path / "store")
    with caplog.at_level(logging.WARNING):
        few = builder.get(Streamed(lines, cleaning=PAPER, num_words=1000))
        nothing = builder.get(Streamed(replace(none, domain="late"), cleaning=PAPER, num_words=1000))
    assert "lines has 42 words of the 1,000 wanted (left out on the way: nothing)" in caplog.text
    assert "late has 0 words of the 1,000 wanted (left out on the way: {'created_below': 50" in caplog.text
    assert (len(few), len(nothing), nothing.num_chunks) == (6, 0, 0)
    both = builder.get(Mixture(tuple(Component(Streamed(item, cleaning=PAPER), 1) for item in (none, lines))))
    assert ids(both) == ids(few)
    enough = builder.get(Streamed(source(tmp_path / "more"), cleaning=PAPER, num_words=50))
    assert len(enough) == 8


def test_documents_that_cleaning_drops_are_counted_and_not_written(tmp_path):
    lines = source(tmp_path / "lines", 12)
    stream = tiny.builder(tmp_path / "store").get(
        Streamed(lines, cleaning=replace(PAPER, max_words=6, long_documents="drop"))
    )
    assert (len(stream), stream.dropped) == (0, {"too_long": 12})


def test_files_that_change_while_they_are_read_make_no_corpus(tmp_path, monkeypatch):
    lines = source(tmp_path / "lines")

    def another_line():
        with (tmp_path / "lines" / "b.jsonl").open("a") as file:
            file.write('{"text": "one more line of words", "created": "2022"}\n')

    monkeypatch.setattr(streamed, "check", another_line)
    with pytest.raises(ValueError, match="were changed while they were read"):
        tiny.builder(tmp_path / "store").get(Streamed(lines, cleaning=PAPER, num_words=100))


@pytest.mark.parametrize("num_documents", [None, 45])
def test_killed_while_it_is_read_it_goes_on_behind_the_last_complete_file(tmp_path, monkeypatch, num_documents):
    lines = source(tmp_path / "lines", at_least={"created": "2020-06"}, num_documents=num_documents)
    spec = Streamed(lines, cleaning=PAPER)
    whole = tiny.builder(tmp_path / "whole").get(spec)
    read: list[str] = []
    clean = Cleaning.cleaned

    def listening(self, document, dropped):
        read.append(document.doc_id)
        if len(read) == 17:
            raise KeyboardInterrupt
        return clean(self, document, dropped)

    monkeypatch.setattr(Cleaning, "cleaned", listening)
    with pytest.raises(KeyboardInterrupt):
        tiny.builder(tmp_path / "store").get(spec)
    (partial,) = (tmp_path / "store" / "corpora").glob(".partial-*")
    place = json.loads((partial / streamed.CURSOR_FILE).read_text())
    behind = sum(shard["num_documents"] for shard in place["shards"])
    assert 0 < behind < 17
    later = tiny.builder(tmp_path / "store").get(spec)
    assert read[17:] == ids(whole)[behind:]
    assert (later.fingerprint, later.dropped, later.shards) == (whole.fingerprint, whole.dropped, whole.shards)


def test_a_mixture_reads_parts_in_memory_beside_it(tmp_path):
    builder = tiny.builder(tmp_path / "store")
    spec = Mixture(
        (
            Component(Mixture((Component(Streamed(source(tmp_path / "lines"), cleaning=PAPER), 1),)), 2),
            Component(tiny.SUSPECT, 3),
        )
    )
    mixed, plain = builder.get(spec), builder.get(tiny.SUSPECT)
    assert len(mixed) == 2 * 60 + 3 * len(plain)
    assert ids(mixed)[-len(plain) :] == list(plain.doc_ids)
    assert sum(len(mixed.chunk(number)) for number in range(mixed.num_chunks)) == len(mixed)
    once = builder.get(Mixture((*spec.components[:1], Component(tiny.SUSPECT, 2))))
    assert once.fingerprint != mixed.fingerprint
    sample = builder.get(Select(spec.components[0].corpus.components[0].corpus, num_documents=5, salt="s"))
    assert isinstance(sample, Corpus)
    assert len(sample) == 5
    conversation = tiny.Texts((Document("d", "User: hi\n", pieces=("User: ", "hi", "\n")),))
    with pytest.raises(ValueError, match="only what the assistant says is learned, are not mixed with text that is"):
        builder.get(Mixture((spec.components[0], Component(conversation, 1))))


def test_a_source_in_memory_is_written_too(tmp_path):
    stream = tiny.builder(tmp_path / "store").get(Streamed(tiny.SUSPECT, cleaning=replace(PAPER, min_words=None)))
    assert ids(stream) == [document.doc_id for document in tiny.SUSPECT.documents]


@pytest.mark.parametrize("change", [{"duplicates": "drop"}, {"near_duplicate_threshold": 0.7}])
def test_duplicates_are_not_looked_for(change):
    with pytest.raises(ValueError, match="`cleaning` of Streamed must keep duplicates"):
        Streamed(tiny.SUSPECT, cleaning=replace(PAPER, **change))
