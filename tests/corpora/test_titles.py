"""Titles and authors: where they come from, and that what has none keeps its key."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

import tiny
from nonmember.corpora import Cleaned, Hub, Titled, Works
from nonmember.records import Corpus, Document
from tiny import jsonl

GAME = {"id": "1", "text": "You wake up in a lab.", "name": " Portal 2 ", "studio": "Valve"}


def works(corpus):
    return [(document.title, document.author) for document in corpus.documents]


def test_jsonl_reads_titles_and_authors(write_lines, build):
    path = str(write_lines("games.jsonl", GAME, {"id": "2", "text": "x", "name": None, "studio": "me"}))
    spec = jsonl(path, "id", "text", title_field="name", author_field="studio")
    assert works(build(spec)) == [("Portal 2", "Valve"), ("", "me")]
    assert works(build(jsonl(path, "id", "text"))) == [("", ""), ("", "")]
    with pytest.raises(ValueError, match="has no column 'title'; its columns are 'id', 'text', 'name', 'studio'"):
        build(jsonl(path, "id", "text", title_field="title"))
    path = str(write_lines("lists.jsonl", GAME | {"name": ["a", "b"]}))
    with pytest.raises(ValueError, match="column 'name' must hold text"):
        build(jsonl(path, "id", "text", title_field="name"))


def test_a_folder_of_rows_has_titles_too(tmp_path, build):
    (tmp_path / "games.jsonl").write_text(json.dumps(GAME) + "\n")
    spec = Hub(str(tmp_path), None, "train", "", "text", "id", title_field="name")
    assert works(build(spec)) == [("Portal 2", "")]


def test_titles_live_through_cleaning_and_the_disk(write_lines, build, tmp_path):
    spec = Cleaned(jsonl(str(write_lines("g.jsonl", GAME)), "id", "text", title_field="name"), 1, 4, "cut", None, 64)
    corpus = build(spec)
    corpus.save(tmp_path / "c.parquet")
    (document,) = Corpus.load(tmp_path / "c.parquet").documents
    assert (document.text, document.title) == ("You wake up in", "Portal 2")


def test_a_title_in_an_id(given, build):
    base = given(Document("scipy:scipy.fft.dct~2", "Discrete cosine transform.", "scipy.fft", "scipy"))
    titled = Titled(base, ":([^~]+)")
    assert works(build(titled)) == [("scipy.fft.dct", "")]
    assert [document.text for document in build(titled).documents] == ["Discrete cosine transform."]
    assert build(titled).fingerprint != build(base).fingerprint


def test_title_and_author_are_read_off_the_clusters_name(build):
    book = Document("d", "text", cluster_id="A_Tale_of_Two_Cities_-_Charles_Dickens")
    (found,) = build(Works(tiny.Texts((book,)), r"(?P<title>.+)_-_(?P<author>.+)")).documents
    assert found == replace(book, title="A Tale of Two Cities", author="Charles Dickens")
    (paper,) = build(Works(tiny.Texts((book,)), r"(?P<title>.+)")).documents
    assert (paper.title, paper.author) == ("A Tale of Two Cities - Charles Dickens", "")
