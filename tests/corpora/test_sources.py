from __future__ import annotations

import json
import os
import random
import re
from pathlib import Path

import pytest

from nonmember.corpora import Cleaned, Hub, Jsonl, TextFiles
from nonmember.records import Corpus

ROWS = ({"id": "a", "text": "One text.", "book": "B"}, {"id": 7, "text": "Another\n text.", "book": 3})


# ------------------------------------------------------------------------------------------------- JSON lines


@pytest.mark.parametrize("name", ["books.jsonl", "books.jsonl.gz"])
def test_jsonl_reads_plain_and_gzipped(write_lines, build, name):
    corpus = build(Jsonl(str(write_lines(name, *ROWS)), "id", "text", "book"))
    assert corpus.doc_ids == ("a", "7")
    assert [d.text for d in corpus.documents] == ["One text.", "Another\n text."]
    assert [d.cluster_id for d in corpus.documents] == ["B", "3"]
    assert {d.domain for d in corpus.documents} == {"books"}


def test_jsonl_takes_lists_and_patterns_in_order_each_file_once(write_lines, build, tmp_path):
    write_lines("b/two.jsonl", {"text": "2"})
    write_lines("b/one.jsonl", {"text": "1"})
    write_lines("last.jsonl", "", {"text": "3"})
    paths = [f"{tmp_path}/b/*.jsonl", f"{tmp_path}/b/one.jsonl", f"{tmp_path}/last.jsonl"]
    spec = Jsonl(paths, None, "text", domain="numbers")
    assert build(spec).doc_ids == ("one:1", "two:1", "last:2")
    assert {d.domain for d in build(spec).documents} == {"numbers"}
    assert hash(spec) == hash(Jsonl(tuple(paths), None, "text", domain="numbers"))


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ((ROWS[0], '{"id": "b", "text": "cut o'), r"line 2 must be one JSON object.*cannot be read"),
        ((ROWS[0], "[1, 2]"), r"line 2 must be one JSON object, but it is a list"),
        (
            ({"id": "a", "body": "x", "n": 1},),
            r"line 1 has no column 'text'; its columns are 'id', 'body', 'n'",
        ),
        (({"text": "x"},), r"line 1 has no column 'id'; its columns are 'text'"),
        (({"id": "a", "text": 3},), r"line 1: column 'text' must hold text, but it holds a number"),
        (({"id": "a", "text": None},), r"column 'text' must hold text, but it holds null"),
        (({"id": None, "text": "x"},), r"column 'id' must hold a name or a whole number, but it holds None"),
        (({"id": 1.5, "text": "x"},), r"column 'id' must hold a name or a whole number, but it holds 1.5"),
        ((ROWS[0], ROWS[0]), r"ids must be unique, but 'a'"),
        ((), r"has no documents"),
        (("", ""), r"has no documents"),
    ],
)
def test_jsonl_names_what_is_wrong_and_where(write_lines, build, rows, message):
    path = write_lines("bad.jsonl", *rows)
    with pytest.raises(ValueError, match=message):
        build(Jsonl(str(path), "id", "text"))


def test_jsonl_missing_file_pattern_and_folder(tmp_path, build):
    for path, what in (
        ("none.jsonl", "nothing is there"),
        ("*.jsonl", "nothing is there"),
        (".", "a folder"),
    ):
        spec = Jsonl(str(tmp_path / path), "id", "text")
        for use in (build, Jsonl.identity):
            with pytest.raises(ValueError, match=f"Expected a file.*{re.escape(str(tmp_path))}.*{what}"):
                use(spec)


def test_jsonl_gzip_truncated_damaged_or_no_gzip_at_all(write_lines, build):
    noise = random.Random(0)
    rows = [{"id": i, "text": noise.randbytes(200).hex()} for i in range(300)]
    path = write_lines("cut.jsonl.gz", *rows)
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(ValueError, match=r"must be a complete gzip file, but it breaks off .* after line 1\d\d"):
        build(Jsonl(str(path), "id", "text"))
    path.write_bytes(whole[:2000] + b"\xff" * 200 + whole[2200:])
    with pytest.raises(ValueError, match=r"must be a complete gzip file|must be UTF-8|must be one JSON object"):
        build(Jsonl(str(path), "id", "text"))
    path.write_bytes(b'{"id": 1, "text": "plain"}\n')
    with pytest.raises(ValueError, match="must be a complete gzip file"):
        build(Jsonl(str(path), "id", "text"))


def test_jsonl_refuses_other_encodings_but_reads_what_json_may_hold(tmp_path, write_lines, build):
    path = tmp_path / "latin.jsonl"
    path.write_bytes('{"id": 1, "text": "caf\xe9"}\n'.encode("latin-1"))
    with pytest.raises(ValueError, match="line 1 must be UTF-8"):
        build(Jsonl(str(path), "id", "text"))
    path = write_lines("odd.jsonl", '\ufeff{"id": 1, "text": "lone \\ud800 surrogate, \\ud83d\\ude00 pair"}')
    corpus = build(Jsonl(str(path), "id", "text"))
    assert corpus.documents[0].text == "lone ? surrogate, \U0001f600 pair"
    corpus.save(tmp_path / "corpus.parquet")
    assert Corpus.load(tmp_path / "corpus.parquet").fingerprint == corpus.fingerprint


def test_jsonl_identity_moves_with_content_not_with_the_place(write_lines, build):
    def both(path: Path) -> tuple[str, str]:
        spec = Jsonl(str(path), "id", "text", domain="x")
        return json.dumps(spec.identity()), build(spec).fingerprint

    here, there = write_lines("a/here.jsonl", *ROWS), write_lines("b/there.jsonl", *ROWS)
    before = both(here)
    assert both(there) == before
    write_lines("a/here.jsonl", ROWS[0], {**ROWS[1], "text": "Something else."})
    os.utime(here, (1, 1))
    assert all(new != old for new, old in zip(both(here), before, strict=True))
    by_line = [Jsonl(str(path), None, "text", domain="x").identity() for path in (there, here)]
    assert by_line[0] != by_line[1], "ids made of the file's name are content"


@pytest.mark.skipif("NONMEMBER_PILE_DIR" not in os.environ, reason="NONMEMBER_PILE_DIR names no folder")
def test_real_documents_of_the_pile(build):
    path = f"{os.environ['NONMEMBER_PILE_DIR']}/*.jsonl.gz"
    corpus = build(Cleaned(Jsonl(path, "id", "text"), 100, 200, "cut", 0.5, 128))
    assert len({d.domain for d in corpus.documents}) >= 5
    assert all(100 <= len(d.text.split(" ")) <= 200 for d in corpus.documents)


# ------------------------------------------------------------------------------------------------- text files


def test_text_files(tmp_path, build):
    for name, text in {"b.txt": "B", "a/c.txt": "C\n", "a/x.md": "no"}.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    spec = TextFiles(str(tmp_path), "**/*.txt", domain="letters")
    assert [(d.doc_id, d.text, d.domain) for d in build(spec).documents] == [
        ("a/c.txt", "C\n", "letters"),
        ("b.txt", "B", "letters"),
    ]
    before = spec.identity()
    (tmp_path / "a/x.md").write_text("not ours")
    assert spec.identity() == before
    (tmp_path / "b.txt").write_text("B!")
    assert spec.identity() != before


def test_text_files_say_what_is_wrong(tmp_path, build):
    with pytest.raises(ValueError, match="Expected a folder of text files"):
        build(TextFiles(str(tmp_path / "none"), "*.txt"))
    with pytest.raises(ValueError, match=r"No file below .* matches '\*.txt'"):
        build(TextFiles(str(tmp_path), "*.txt"))
    (tmp_path / "bad.txt").write_bytes(b"caf\xe9")
    with pytest.raises(ValueError, match=r"bad.txt must be UTF-8, but byte 3 is not"):
        build(TextFiles(str(tmp_path), "*.txt"))


# ------------------------------------------------------------------------------------------- Hugging Face hub


@pytest.fixture
def hub_folder(write_lines, tmp_path, monkeypatch):
    monkeypatch.setattr("datasets.config.HF_DATASETS_CACHE", tmp_path / "cache")
    rows = [{"key": f"k{i}", "body": f"text {i}" if i != 1 else None, "book": i // 2} for i in range(5)]
    write_lines("letters/train.jsonl", *rows)
    return str(tmp_path / "letters")


@pytest.mark.parametrize("streaming", [True, False])
def test_hub_reads_a_local_folder(hub_folder, build, streaming):
    spec = Hub(hub_folder, None, "train", None, "body", "key", "book", num_documents=3, streaming=streaming)
    corpus = build(spec)
    assert corpus.doc_ids == ("k0", "k1", "k2")
    assert [d.text for d in corpus.documents] == ["text 0", "", "text 2"]
    assert [d.cluster_id for d in corpus.documents] == ["0", "0", "1"]
    assert {d.domain for d in corpus.documents} == {"letters"}


def test_hub_ids_by_row_and_identity_by_content(hub_folder, build):
    spec = Hub(hub_folder, None, "train", None, "body", None)
    assert build(spec).doc_ids[-1] == "train:4"
    assert spec.identity() == Hub(hub_folder, None, "train", "any", "body", None, streaming=False).identity()
    before = spec.identity()
    Path(hub_folder, "train.jsonl").write_text('{"body": "other"}\n')
    assert spec.identity() != before
    assert json.dumps(before)


@pytest.mark.parametrize("revision", [None, "", "main"])
def test_hub_wants_a_pinned_revision(revision):
    with pytest.raises(ValueError, match="needs a pinned `revision`"):
        Hub("someone/something", None, "train", revision, "text", "id")


def test_hub_says_what_is_wrong(hub_folder, build):
    cases = {
        "no column 'txt'; its columns are 'key', 'body', 'book'": {"text_field": "txt"},
        "must hold text, but it holds a number": {"text_field": "book"},
        "has 5 rows, but 6 are needed": {"num_documents": 6},
        "(?i)split": {"split": "validation"},
    }
    for message, change in cases.items():
        settings = {"split": "train", "text_field": "body", **change}
        with pytest.raises(ValueError, match=message):
            build(Hub(path=hub_folder, name=None, revision=None, id_field="key", **settings))


def test_hub_out_of_reach_is_one_sentence(build, monkeypatch):
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    monkeypatch.setattr("datasets.config.HF_HUB_OFFLINE", True)
    with pytest.raises(ValueError, match="Cannot read 'nobody/nothing' from the Hugging Face hub"):
        build(Hub("nobody/nothing", None, "train", "0" * 40, "text", "id"))
