from __future__ import annotations

import gzip
import json
import random
import re
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from nonmember.corpora import Documents, Hub
from tiny import jsonl, text_files

ROWS = ({"id": "a", "text": "One text.", "book": "B"}, {"id": 7, "text": "Another\n text.", "book": 3})


# ------------------------------------------------------------------------------------------------- JSON lines


NESTED = {"id": "a", "doc": {"body": {"text": "one"}}, "said": [{"by": "two"}, {"by": "three"}], "said.0": "four"}


@pytest.mark.parametrize(
    ("field", "text", "sentence"),
    [
        ("doc.body.text", "one", ""),
        ("said.0", "four", ""),  # a column of that very name comes first
        ("said.1.by", "three", ""),
        ("{doc.body.text} {said.1.by} {said.0} {id}", "one three four a", ""),
        ("doc.body.title", "", "'doc.body.title' leads to nothing: there is no 'title' in column 'doc', but an object"),
        ("said.2", "", "there is no '2' in column 'said', but a list of 2"),
        ("{id.0}", "", "there is no '0' in column 'id', but str"),
        ("doc.body", "", "column 'doc.body' must hold text, but it holds an object"),
    ],
)
@pytest.mark.parametrize("form", ["jsonl", "parquet"])
def test_dotted_names_lead_into_objects_and_lists(build, tmp_path, form, field, text, sentence):
    path = tmp_path / f"a.{form}"
    if form == "jsonl":
        path.write_text(json.dumps(NESTED))
    else:
        pq.write_table(pa.Table.from_pylist([NESTED]), path)
    spec = Documents(str(path), field)
    if text:
        assert build(spec).documents[0].text == text
    else:
        with pytest.raises(ValueError, match=re.escape(sentence)):
            build(spec)


def test_bytes_beside_the_texts_are_not_read(build, tmp_path, monkeypatch):
    """Pictures take a thousand times the memory of texts."""
    rows = [{"image": {"bytes": b"a" * 99, "path": "a"}, "text": f"text {index}"} for index in range(3)]
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "a.parquet")
    asked, iter_batches = [], pq.ParquetFile.iter_batches

    def spied(self, batch_size, columns):
        asked.append((batch_size <= 1024, columns))
        return iter_batches(self, batch_size, columns=columns)

    monkeypatch.setattr(pq.ParquetFile, "iter_batches", spied)
    assert [item.text for item in build(Documents(str(tmp_path / "a.parquet"))).documents] == [
        "text 0",
        "text 1",
        "text 2",
    ]
    assert asked == [(True, ["text"])] * 2


def test_jsonl_takes_lists_and_patterns_in_order_each_file_once(write_lines, build, tmp_path):
    write_lines("b/two.jsonl", {"text": "2"})
    write_lines("b/one.jsonl", {"text": "1"})
    write_lines("last.jsonl", "", {"text": "3"})
    paths = [f"{tmp_path}/b/*.jsonl", f"{tmp_path}/b/one.jsonl", f"{tmp_path}/last.jsonl"]
    spec = jsonl(paths, None, "text", domain="numbers")
    assert build(spec).doc_ids == ("one:1", "two:1", "last:2")
    assert {d.domain for d in build(spec).documents} == {"numbers"}
    assert hash(spec) == hash(jsonl(tuple(paths), None, "text", domain="numbers"))


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ((ROWS[0], '{"id": "b", "text": "cut o'), r"line 2 must be one JSON object.*cannot be read"),
        ((ROWS[0], "[1, 2]"), r"line 2 must be one JSON object, or .*, but it is a list"),
        (({"id": "a", "body": "x", "n": 1},), r"line 1 has no column 'text'; its columns are 'id', 'body', 'n'"),
        (({"text": "x"},), r"line 1 has no column 'id'; its columns are 'text'"),
        (({"id": None, "text": "x"},), r"column 'id' must hold a name or a whole number, but it holds None"),
        (({"id": 1.5, "text": "x"},), r"column 'id' must hold a name or a whole number, but it holds 1.5"),
    ],
)
def test_jsonl_names_what_is_wrong_and_where(write_lines, build, rows, message):
    path = write_lines("bad.jsonl", *rows)
    with pytest.raises(ValueError, match=message):
        build(jsonl(str(path), "id", "text"))


# ------------------------------------------------------------------------------------------------- text files


def test_text_files(tmp_path, build):
    for name, text in {"b.txt": "B", "a/c.txt": "C\n", "a/x.md": "no"}.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    spec = text_files(str(tmp_path), "**/*.txt", domain="letters")
    assert [(d.doc_id, d.text, d.domain) for d in build(spec).documents] == [
        ("a/c.txt", "C\n", "letters"),
        ("b.txt", "B", "letters"),
    ]
    before = spec.identity()
    (tmp_path / "a/x.md").write_text("not ours")
    assert spec.identity() == before
    (tmp_path / "b.txt").write_text("B!")
    assert spec.identity() != before


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


# ------------------------------------------------------------------------- single files of a hub's repository

SETTINGS = {"name": None, "split": "test", "revision": None, "text_field": "text", "id_field": None}


@pytest.fixture
def repository(write_lines, tmp_path, monkeypatch):
    """A folder as MIMIR and the Common Pile are laid out: bare strings; objects with uneven columns, some gzipped."""
    monkeypatch.setattr("datasets.config.HF_DATASETS_CACHE", tmp_path / "cache")
    write_lines("repo/test/wiki_(en)_0.8.jsonl", *(json.dumps(f"Line {i},\n two\u2028lines.") for i in range(3)), "")
    write_lines(
        "repo/b.json.gz",
        {"id": "b0", "text": "new", "created": "2021-02-03", "metadata": {"license": "CC"}},
        {"id": "b1", "text": "old", "created": "2021-01-31T23:59"},
        {"id": "b2", "text": "undated", "metadata": []},
        {"id": "b3", "text": "null", "created": None},
    )
    write_lines("repo/a.json.gz", {"id": 1, "text": "first", "created": "2022"}, {"id": "a1", "text": None})
    return str(tmp_path / "repo")


@pytest.mark.parametrize("streaming", [True, False])
def test_hub_lines_that_are_strings_are_texts(repository, build, streaming):
    spec = Hub(repository, data_files="test/wiki_(en)_0.8.jsonl", domain="wiki", streaming=streaming, **SETTINGS)
    corpus = build(spec)
    assert corpus.doc_ids == ("wiki:test:0", "wiki:test:1", "wiki:test:2")
    assert corpus.documents[0].text == "Line 0,\n two\u2028lines."
    assert {d.domain for d in corpus.documents} == {"wiki"}


@pytest.mark.parametrize("streaming", [True, False])
def test_hub_patterns_and_gzip_in_order_of_name(repository, build, streaming):
    settings = {**SETTINGS, "id_field": "id"}
    corpus = build(Hub(repository, data_files="*.json.gz", streaming=streaming, **settings))
    assert corpus.doc_ids == ("1", "a1", "b0", "b1", "b2", "b3")
    assert [d.text for d in corpus.documents][:3] == ["first", "", "new"]
    listed = build(Hub(repository, data_files=["b.json.gz", "a.*"], domain="x", num_documents=5, **SETTINGS))
    assert [d.doc_id for d in listed.documents] == [f"x:test:{row}" for row in range(5)]
    assert [d.text for d in listed.documents][3:] == ["null", "first"]


def test_hub_at_least_drops_and_counts_before_the_limit(repository, build):
    spec = Hub(repository, data_files="*.json.gz", at_least={"created": "2021-02"}, num_documents=2, **SETTINGS)
    corpus = build(spec)
    assert [d.text for d in corpus.documents] == ["first", "new"]
    assert corpus.doc_ids == ("test:0", "test:2"), "a filter renames nothing"
    assert dict(corpus.dropped) == {"created_missing": 1}
    assert hash(spec)
    with pytest.raises(
        ValueError, match=r"has 2 rows \(dropped on the way: {'created_below': 1, 'created_missing': 3}"
    ):
        build(Hub(repository, data_files="*.json.gz", at_least={"created": "2021-02"}, num_documents=3, **SETTINGS))


def test_hub_filters_rows_of_any_source(hub_folder, build, tmp_path):
    (tmp_path / "seen.txt").write_text("k0\n\nk3\n")
    settings = {**SETTINGS, "split": "train", "text_field": "body", "id_field": "key"}
    spec = Hub(hub_folder, at_least={"book": "1"}, drop_ids=str(tmp_path / "seen.txt"), **settings)
    assert build(spec).doc_ids == ("k2", "k4")
    assert dict(build(spec).dropped) == {"book_below": 2, "listed": 1}
    before = spec.identity()
    (tmp_path / "seen.txt").write_text("k2\n")
    assert spec.identity() != before


@pytest.mark.parametrize("num_documents", [None, 2])
def test_hub_keeps_rows_without_a_date_where_told_to_and_says_so(write_lines, tmp_path, build, caplog, num_documents):
    dates = ("2020-12", None, "2021-03", "", "2019")
    write_lines("dated/a.jsonl", *({"text": f"text {index}", "created": date} for index, date in enumerate(dates)))
    settings = {"text_field": "text", "id_field": None, "at_least": {"created": "2021-01"}, "data_files": "a.jsonl"}
    spec = Hub(str(tmp_path / "dated"), None, "train", "", undated="keep", num_documents=num_documents, **settings)
    corpus = build(spec)
    assert [document.text for document in corpus.documents] == ["text 1", "text 2", "text 3"][:num_documents]
    number = 1 if num_documents else 2
    assert f"{number} documents have no created and are kept" in caplog.text
    assert corpus.dropped["created_below"] == (1 if num_documents else 2)
    dropping = Hub(str(tmp_path / "dated"), None, "train", "", **settings)
    assert len(build(dropping)) == 1
    assert spec.identity() | {"undated": "drop", "num_documents": None} == dropping.identity()


@pytest.mark.parametrize("streaming", [True, False])
def test_hub_where_chooses_rows_by_value_before_the_limit(hub_folder, build, streaming):
    settings = {**SETTINGS, "split": "train", "text_field": "body", "id_field": "key", "streaming": streaming}
    spec = Hub(hub_folder, where={"book": 1}, **settings)
    assert build(spec).doc_ids == ("k2", "k3")
    assert dict(build(spec).dropped) == {"book_other": 3}
    assert build(Hub(hub_folder, where={"book": "2"}, num_documents=1, **settings)).doc_ids == ("k4",)
    assert build(Hub(hub_folder, where={"book": 1, "key": "k3"}, **settings)).doc_ids == ("k3",)
    assert spec == Hub(hub_folder, where={"book": "1"}, **settings)
    assert hash(spec)


def test_hub_reads_the_column_that_another_names(write_lines, tmp_path, build):
    rows = [
        {"Example_A": "a0", "Example_B": "b0", "Answer": "B"},
        {"Example_A": "a1", "Example_B": "b1", "Answer": "A"},
    ]
    write_lines("set/train.jsonl", *rows)
    settings = {**SETTINGS, "split": "train"}
    spec = Hub(str(tmp_path / "set"), **{**settings, "text_field": "Example_{Answer}"})
    assert [document.text for document in build(spec).documents] == ["b0", "a1"]
    for text_field, told in {"{Answers}": "no column 'Answers'", "Sample_{Answer}": "no column 'Sample_B'"}.items():
        with pytest.raises(ValueError, match=f"Row 0 of split 'train' of .* has {told}; its columns are 'Example_A'"):
            build(Hub(str(tmp_path / "set"), **{**settings, "text_field": text_field}))


def test_hub_takes_texts_that_begin_alike_for_one_cluster(write_lines, tmp_path, build):
    """A cut takes away a comma or a quote; other articles begin otherwise; a text without words stands alone."""
    texts = ["The cup, held", "The Cup held in", "the «cup held» in May", "The cup was held", "...", None]
    write_lines("set/train.jsonl", *({"text": text} for text in texts))
    corpus = build(Hub(str(tmp_path / "set"), cluster_words=3, **{**SETTINGS, "split": "train"}))
    clusters = [document.cluster_id for document in corpus.documents]
    assert clusters[0] == clusters[1] == clusters[2] != clusters[3]
    assert clusters[4:] == ["", ""]
    assert all(re.fullmatch("[0-9a-f]{16}", cluster) for cluster in clusters[:4])


def test_hub_identity_is_of_the_files_that_are_read(repository):
    item = Hub(repository, data_files="a.json.gz", at_least={"created": "2021"}, **SETTINGS)
    before = item.identity()
    Path(repository, "b.json.gz").write_bytes(gzip.compress(b'{"text": "other"}\n'))
    assert item.identity() == before, "only the files that are read"
    assert json.dumps(before)
    assert Hub("owner/set", **{**SETTINGS, "revision": "v1"}, domain="x").identity()["ids"] == "domain:split:row"


@pytest.mark.parametrize(
    ("files", "change", "message"),
    [
        ("none*.jsonl", {}, "Expected a file, or a pattern that matches files, at .*none"),
        ("bad.jsonl", {}, r"Row 1 of split 'test' of .* must be one JSON object, but it cannot be read"),
        ("list.jsonl", {}, r"Row 0 .* must be one JSON object, or a string that is the text, but it is a list"),
        ("test/*.jsonl", {"id_field": "id"}, "has no column 'id'; its columns are 'text'"),
        ("a.json.gz", {"text_field": "body"}, "has no column 'body'; its columns are 'id', 'text', 'created'"),
        ("cut.json.gz", {}, "Cannot read .* that its files are complete"),
        ("latin.jsonl", {}, "Cannot read .* that its files are complete"),
        ("odd.jsonl", {"at_least": {"created": "2"}}, "'created' must hold text, a whole number or a date .*list"),
        ("a.json.gz", {"at_least": {"created": 2021}}, "`at_least` of Hub must give columns their smallest values"),
        ("a.json.gz", {"at_least": {}}, "`at_least` of Hub must give columns their smallest values"),
        (
            "a.json.gz",
            {"where": {"label": 1}},
            "Row 0 .* has no column 'label'; its columns are 'id', 'text', 'created'",
        ),
        ("a.json.gz", {"where": {"id": "z"}}, "has 0 rows .dropped on the way: {'id_other': 2}.*correct `where`"),
        ("a.json.gz", {"where": {}}, "`where` of Hub must give columns the value that their rows are to have"),
        ("a.json.gz", {"where": {"label": None}}, "`where` of Hub must give columns the value"),
        ("a.json.gz", {"where": "label=1"}, "`where` of Hub must give columns the value"),
        ("a.json.gz", {"cluster_words": 0}, "`cluster_words` of Hub must be a whole number of at least 1"),
        ("a.json.gz", {"cluster_words": 9, "cluster_field": "id"}, "Hub finds clusters either in a column"),
        ("a.json.gz", {"drop_ids": "seen.txt"}, "`drop_ids` of Hub names documents by the column `id_field`"),
        ("a.json.gz", {"name": "en"}, r"either a configuration \(`name`\) or single files"),
        ([], {}, "`data_files` of Hub must be a name or a list of names"),
    ],
)
def test_hub_files_say_what_is_wrong(repository, write_lines, build, files, change, message):
    write_lines("repo/bad.jsonl", '"fine"', '"cut o')
    write_lines("repo/list.jsonl", ["a", "b"])
    write_lines("repo/odd.jsonl", {"text": "x", "created": [2021]})
    noise = random.Random(0)
    path = write_lines("repo/cut.json.gz", *({"text": noise.randbytes(200).hex()} for _ in range(300)))
    path.write_bytes(path.read_bytes()[:20000])
    Path(repository, "latin.jsonl").write_bytes('"caf\xe9"\n'.encode("latin-1"))
    with pytest.raises(ValueError, match=message):
        build(Hub(repository, data_files=files, **{**SETTINGS, **change}))


def test_hub_files_are_asked_for_at_the_pinned_revision(build, monkeypatch):
    asked = []
    monkeypatch.setattr("datasets.load_dataset", lambda *path, **more: asked.append((path, more)) or [{"text": '"A"'}])
    spec = Hub("owner/set", data_files=["a/*.jsonl", "b.jsonl"], **{**SETTINGS, "revision": "refs/pr/1"})
    assert build(spec).documents[0].text == "A"
    files = [f"hf://datasets/owner/set@refs%2Fpr%2F1/{name}" for name in ("a/*.jsonl", "b.jsonl")]
    assert asked == [(("text",), {"data_files": {"test": files}, "split": "test", "streaming": True})]


@pytest.mark.parametrize("data_files", [None, "x.jsonl"])
def test_hub_out_of_reach_is_one_sentence(build, monkeypatch, data_files):
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    monkeypatch.setattr("datasets.config.HF_HUB_OFFLINE", True)
    with pytest.raises(ValueError, match="Cannot read 'nobody/nothing' at revision"):
        build(Hub("nobody/nothing", data_files=data_files, **{**SETTINGS, "revision": "0" * 40}))
