"""`data.path` may be anything: the same documents in every form, columns that are found or asked for, hostile files."""

from __future__ import annotations

import bz2
import contextlib
import csv
import gzip
import io
import json
import lzma
import os
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet as pq
import pytest

from nonmember.corpora import Cleaning, Documents, Prepared
from nonmember.corpora.sources.hub import Hub
from nonmember.corpora.transforms.cleaning import with_blank
from nonmember.corpora.transforms.splits import Select
from tiny import jsonl, text_files

ROWS = [
    {"name": "a", "body": "one,\n\n  two \t", "book": "Emma", "number": 7},
    {"name": "b", "body": '"three"\r\nfour', "book": "Emma", "number": 8},
    {"name": "c", "body": "", "book": "New", "number": 9},
]
TEXTS = [row["body"] for row in ROWS]
TABLE = pa.Table.from_pylist(ROWS)


def csv_of(delimiter):
    text = io.StringIO()
    table = csv.DictWriter(text, ROWS[0], delimiter=delimiter, quoting=csv.QUOTE_ALL, lineterminator="\n")
    table.writeheader()
    table.writerows(ROWS)
    return text.getvalue().encode()


def zst(content):
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, "zstd") as stream:
        stream.write(content)
    return sink.getvalue().to_pybytes()


def written(write, table=TABLE):
    sink = pa.BufferOutputStream()
    write(table, sink)
    return sink.getvalue().to_pybytes()


def streamed(table, sink):
    """As data sets that were saved to a disk have it."""
    with pa.ipc.new_stream(sink, table.schema) as stream:
        stream.write_table(table)


def parquet_of(table):
    return written(pq.write_table, table)


JSONL = "".join(json.dumps(row) + "\n" for row in ROWS).encode()
PARQUET = parquet_of(TABLE)
STREAM = written(streamed)

FORMS = {
    "d.jsonl": JSONL,
    "d.ndjson.zst": zst(JSONL),
    "d.jsonl.xz": lzma.compress(JSONL),
    "d.jsonl.bz2": bz2.compress(JSONL),
    "d.json": json.dumps(ROWS, indent=2).encode(),
    "d.csv": csv_of(","),
    "semicolons.csv": csv_of(";"),
    "d.tsv.gz": gzip.compress(csv_of("\t")),
    "d.parquet": PARQUET,
    "d.parquet.gz": gzip.compress(PARQUET),
    "d.feather": written(pyarrow.feather.write_feather),
    "stream.arrow": STREAM,
}


@pytest.fixture
def put(tmp_path):
    """put("name", content): the path of a file."""

    def write(name, content):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return str(path)

    return write


@pytest.mark.parametrize("name", FORMS)
def test_each_form_gives_the_same_texts_untouched(build, put, name):
    path = put(name, FORMS[name])
    corpus = build(Documents(path, cluster_field="book"))
    assert [item.text for item in corpus.documents] == TEXTS
    assert [item.cluster_id for item in corpus.documents] == ["Emma", "Emma", "New"]
    first = 2 if "csv" in name or "tsv" in name else 1
    assert corpus.doc_ids == tuple(f"{name.partition('.')[0]}:{number}" for number in range(first, first + 3))
    assert build(Documents(path, text_field="{name}: {number}")).documents[1].text == "b: 8"


def test_as_jsonl_and_text_files_name_and_read_them(build, put, tmp_path):
    path = put("d.jsonl", '{"text": "a"}\n\n{"text": "b"}\n')
    assert build(Documents(path)).documents == build(jsonl(path, None, "text")).documents
    for name in ("x.txt", "sub/y.txt"):
        put(f"folder/{name}", "lines\r\n\n of " + name)
    folder = str(tmp_path / "folder")
    as_files = build(text_files(folder, "**/*.txt"))
    assert build(Documents(folder)).documents == as_files.documents
    assert build(Documents(f"{folder}/x.txt", split="file")).doc_ids == ("x.txt",)


def test_ids_are_taken_where_each_row_has_its_own(build, put, caplog, tmp_path):
    path = put("d.jsonl", '{"id": 1, "text": "a"}\n{"id": "x", "text": "b"}\n')
    assert build(Documents(path)).doc_ids == ("1", "x")
    path = put("both.jsonl", '{"id": 1, "doc_id": 2, "text": "a"}\n{"id": 1, "doc_id": 3.0, "text": "b"}\n')
    assert build(Documents(path)).doc_ids == ("2", "3"), "the column that names every row anew"
    frame = pd.DataFrame({"text": list("abcd")}).drop(1)
    frame.to_parquet(tmp_path / "filtered.parquet")
    assert build(Documents(str(tmp_path / "filtered.parquet"))).doc_ids == ("0", "2", "3"), "the frame's labels"
    assert not [record for record in caplog.records if record.levelname == "WARNING"]
    path = put("empty.jsonl", '{"id": 1, "text": "a"}\n{"id": NaN, "text": "b"}\n')
    assert build(Documents(path)).doc_ids == ("1", "empty:2")
    assert "column 'id' holds no name or whole number in 1 of 2 rows. These documents are named" in caplog.text
    with pytest.raises(ValueError, match="line 2: column 'id' must hold a name or a whole number"):
        build(Documents(path, id_field="id"))


@pytest.mark.parametrize("id_field", [None, "id"])
def test_repeated_ids_alone_are_changed_and_by_every_reader_alike(build, put, caplog, id_field):
    ids = ["x", "y", "x", "x~2", "x", 7, "7"]
    rows = [{"id": name, "text": f"text {number}"} for number, name in enumerate(ids)]
    path = put("d.jsonl", "".join(json.dumps(row) + "\n" for row in rows))
    put("folder/d.jsonl", Path(path).read_text())
    readers = [Documents(path, id_field=id_field)]
    if id_field:
        hub = Hub(str(Path(path).parent / "folder"), None, "train", "", "text", id_field)
        readers += [jsonl(path, id_field, "text"), hub]
    for reader in readers:
        caplog.clear()
        corpus = build(reader)
        assert corpus.doc_ids == ("x", "y", "x~3", "x~2", "x~4", "7", "7~2")
        assert [item.text for item in corpus.documents] == [row["text"] for row in rows]
        assert "'x' (3 rows), '7' (2 rows)" in caplog.text
        assert "called 'x~3'" in caplog.text


def test_lines_and_paragraphs(build, put):
    path = put("lines.txt", "one \n\ntwo\r\n\n\nthree")
    assert [(item.doc_id, item.text) for item in build(Documents(path)).documents] == [
        ("lines:1", "one "),
        ("lines:3", "two"),
        ("lines:6", "three"),
    ]
    path = put("prose.txt", "one\ntwo\n\nthree\n")
    with pytest.raises(ValueError, match=r"3 lines in 2 paragraphs.*split=paragraphs"):
        build(Documents(path))
    found = build(Documents(path, split="paragraphs"))
    assert [(item.doc_id, item.text) for item in found.documents] == [("prose:1", "one\ntwo"), ("prose:4", "three")]
    assert len(build(Documents(path, split="lines"))) == 3


@pytest.mark.parametrize(
    ("rows", "answer"),
    [
        ([{"only": "x", "n": 1}], "only"),
        ([{"title": "x", "Text": "y"}], "Text"),
        ([{"kind": "x", "abstract": "long enough to be a text " * 3}], "abstract"),
        ([{"question": "why?", "answer": "so"}], None),
        ([{"text": "x", "body": "y"}], None),
        ([{"n": 1}], None),
    ],
)
def test_the_text_column_is_found_or_asked_for(build, put, rows, answer):
    path = put("d.jsonl", "\n".join(map(json.dumps, rows)))
    if answer is None:
        with pytest.raises(ValueError, match=r"must have one column that is the text; its columns are .*text_field="):
            build(Documents(path))
    else:
        assert build(Documents(path)).documents[0].text == rows[0][answer]


def test_files_of_other_names_in_a_folder_are_told(build, put, tmp_path, caplog):
    for name in ("notes.md", "a.html", "b.html", "README.rst", "c"):
        put(f"set/{name}", name)
    assert build(Documents(str(tmp_path / "set"))).doc_ids == ("notes.md",)
    assert build(Documents(str(tmp_path / "set"), pattern="*.html")).doc_ids == ("a.html", "b.html")
    said = {item.getMessage() for item in caplog.records if "passed over" in item.getMessage()}
    assert [text.partition(": ")[2] for text in said] == [
        "3 files are passed over for their names (a.html, b.html, c). data.pattern chooses files by name."
    ]


def test_a_folder_of_several_forms_asks_which(build, put, tmp_path):
    put("set/README.md", "# not a document")
    put("set/a.jsonl", '{"text": "a"}\n')
    assert build(Documents(str(tmp_path / "set"))).doc_ids == ("a:1",)
    put("set/b.csv", "text\nb\n")
    with pytest.raises(ValueError, match=r"several forms .* Give data.pattern="):
        build(Documents(str(tmp_path / "set")))
    assert build(Documents(str(tmp_path / "set"), pattern="*.csv")).doc_ids == ("b:2",)


def test_a_name_that_is_nothing_here_says_how_the_hub_is_read():
    with pytest.raises(ValueError, match=r"nothing is there.* data=hub data.path=NAME data.revision=COMMIT"):
        Documents("owner/set").identity()


@pytest.mark.parametrize(
    ("name", "content", "sentence"),
    [
        ("cut.parquet", PARQUET[:-9], "must be a complete Parquet file"),
        ("magic.parquet", b"PAR1", "must be a complete Parquet file"),
        ("same.csv", "a,a\n1,2\n", "columns of different names"),
        ("never_closed.csv", 'id,text\n1,"one\n2,two\n', "unexpected end of data"),
        ("closed_elsewhere.csv", 'id,text\n1,"one\n2,"two"\n', "cannot be read"),
        ("no_names.csv", "a document of more than eight words as a whole\nb\n", "first line reads like a document"),
        ("no_mark.csv", "text\na\n".encode("utf-16-le"), "it has a NUL byte"),
        ("same.parquet", parquet_of(pa.table([["a"], ["b"]], ["text", "text"])), "'text' occurs twice"),
        ("cut.arrow", STREAM[:-8], "the mark at the end of a stream is missing"),
        ("commas.jsonl", '{"text": "a"},\n', "line 1 .*Extra data"),
        ("comment.jsonl", '// a\n{"text": "a"}\n', "line 1 must be one JSON object"),
        ("two.jsonl", '{"text": "a"}{"text": "b"}\n', "line 1 .*Extra data"),
        ("returns.jsonl", '{"text": "a"}\r{"text": "b"}\r', "line 1 .*Extra data"),
        ("printed.jsonl", json.dumps(ROWS[0], indent=1), "printed over several lines"),
        ("cut.jsonl", '{"text": "a"}\n{"text": "b', "line 2 .*Is the line cut"),
        ("mixed.json", b'[{"text": "a"}, 7]', "item 2 must be one JSON object, or .*, but it is a number"),
        ("latin.csv", b"text\xff\na\n", "line 1 must be UTF-8"),
        ("other.arrow", b"another and no more", "must be a complete Arrow file"),
        ("blank.jsonl", b"\n\n", "has no documents"),
        ("names_alone.csv", b"text,id\n", "has no documents"),
        ("no_rows.parquet", parquet_of(TABLE.slice(0, 0)), "has no documents"),
        ("empty.csv", "", "has no documents: it is empty"),
        ("lines_without_a_suffix", '{"text": "a"}\n{"text": "b"}\n', "holds JSON Lines under the name of a text"),
        ("number.jsonl", '{"text": "a"}\n{"text": 5}\n', "line 2: column 'text' must hold text, but it holds a number"),
    ],
)
def test_hostile_files_get_a_sentence(build, put, name, content, sentence):
    with pytest.raises(ValueError, match=sentence):
        build(Documents(put(name, content)))


@pytest.mark.parametrize(
    ("name", "content", "texts"),
    [
        ("texts.json", '["a", "b"]', ["a", "b"]),
        ("only_begins_like_json", "{a brace}\nand more\n", ["{a brace}", "and more"]),
        ("returns.csv", b'id,text\r1,a\r2,"b\r\nc"\r', ["a", "b\r\nc"]),
        ("ends.csv", b"text\r\na\r\nb\n", ["a", "b"]),
        ("blank_lines.csv", "id,text\n\n1,a\n\n", ["a"]),
        ("mark.csv", "\ufefftext\na\n", ["a"]),
        ("long.csv", "text\n" + "a" * 200_000, ["a" * 200_000]),
        ("verses.csv", 'id,text\n1,"one, two\nthree, four\nfive, six"\n', ["one, two\nthree, four\nfive, six"]),
        ("separators.csv", "text\na\u2028b\x0cc\x85d\n", ["a\u2028b\x0cc\x85d"]),
        ("separators.jsonl", '{"text": "a\u2028b\x85c"}\n', ["a\u2028b\x85c"]),
        ("separators.txt", "a\u2028b\x0cc\nd\n", ["a\u2028b\x0cc", "d"]),
        ("one_column.tsv", "text\nno, not, commas\n", ["no, not, commas"]),
        ("quotes.tsv", 'text\tid\nshe said "so"\t1\n', ['she said "so"']),
        ("nan.jsonl", '{"text": NaN, "n": Infinity}\n{"text": "a", "n": 1e999}\n', ["", "a"]),
        ("members.jsonl.gz", gzip.compress(b'"a"\n', mtime=0) + gzip.compress(b'"b"\n', mtime=0), ["a", "b"]),
        ("streams.jsonl.bz2", bz2.compress(b'"a"\n') + bz2.compress(b'"b"\n'), ["a", "b"]),
        ("streams.jsonl.xz", lzma.compress(b'"a"\n') + lzma.compress(b'"b"\n'), ["a", "b"]),
        ("words.parquet", parquet_of(pa.table({"text": pa.array(["a", None]).dictionary_encode()})), ["a", ""]),
        ("large.parquet", parquet_of(pa.table({"text": pa.array(["a"], pa.large_string())})), ["a"]),
    ],
)
def test_every_row_is_read(build, put, name, content, texts):
    assert [item.text for item in build(Documents(put(name, content))).documents] == texts


# ------------------------------------------------------------------------------------ folders, links and splits


@pytest.mark.parametrize(
    ("splits", "state", "split", "answer"),
    [
        ([""], ["data-0.arrow"], None, 1),
        (["train", "test"], ["data-0.arrow"], "test", 1),
        (["train", "test"], ["data-0.arrow"], "dev", "got 'dev', and its splits are test, train"),
        (["train"], ["data-0.arrow"], "train", 1),
        (["train"], ["data-0.arrow"], "lines", 1),
    ],
)
def test_what_datasets_saved_is_read_as_it_says(build, put, tmp_path, splits, state, split, answer):
    for index, name in enumerate(splits):
        put(f"set/{name}/data-0.arrow", written(streamed, TABLE.slice(index, 1)))
        put(f"set/{name}/cache-0123.arrow", STREAM)
        put(f"set/{name}/dataset_info.json", "{}")
        files = [{"filename": name} for name in state] if isinstance(state, list) else state
        put(f"set/{name}/state.json", json.dumps({"_data_files": files}))
    if splits != [""]:
        put("set/dataset_dict.json", json.dumps({"splits": splits}))
    spec = Documents(str(tmp_path / "set"), split=split)
    if isinstance(answer, str):
        with pytest.raises(ValueError, match=answer):
            spec.identity()
    else:
        assert len(build(spec)) == answer


def link(to):
    return lambda path: path.symlink_to(to)


@pytest.mark.parametrize(
    ("name", "make", "answer"),
    [
        ("b.txt", link("/nowhere/at/all"), "b.txt leads nowhere"),
        ("b.txt", link("b.txt"), "b.txt leads nowhere"),
        ("b.txt", link("a.txt"), 2),
        ("b", link("."), 1),
    ],
)
def test_a_link_that_leads_nowhere_is_no_document_left_out(build, put, tmp_path, name, make, answer):
    """As git-annex has one in the place of each file that was not fetched."""
    path = tmp_path / "set" / name
    put("set/a.txt", "a")
    make(path)
    specs = [Documents(str(tmp_path / "set")), Documents(str(tmp_path / "set" / "*"), split="file")]
    specs += [Documents(str(tmp_path / "set"), pattern="*"), text_files(str(tmp_path / "set"), "*")]
    for spec in specs if isinstance(answer, str) else specs[:1]:
        with pytest.raises(ValueError, match=answer) if isinstance(answer, str) else contextlib.nullcontext():
            assert len(build(spec)) == answer


def test_a_folder_that_cannot_be_opened_is_no_part_left_out(build, put, tmp_path, monkeypatch):
    """Its documents would be missed in silence."""
    put("set/open/a.txt", "a")
    put("set/closed/b.txt", "b")
    allowed = os.access  # for root everything is
    monkeypatch.setattr(os, "access", lambda path, mode: not str(path).endswith("closed") and allowed(path, mode))
    with pytest.raises(ValueError, match="closed cannot be opened"):
        build(Documents(str(tmp_path / "set")))


# ---------------------------------------------------------------------------------------------- cleaning

AS_IS = Cleaning("as_is", None, None, "cut", "keep", None, 64)


def test_texts_as_they_are_are_the_source_itself(build, given):
    source = given("a\n b", "a\n b")
    assert build(Prepared(source, AS_IS)).documents == build(source).documents
    assert Prepared(source, AS_IS, blank="keep").identity() == source.identity()


@pytest.mark.parametrize(
    "text", ["", " \n\t", "\u200b\ufeff\u2060", "\u00a0\u3000", "\x00\x07", "\u2800", "\ufe0f\U000e0020"]
)
def test_blank_documents_are_left_out_and_named(build, given, caplog, text):
    source = given("a", text, "b")
    prepared = build(Prepared(source))
    assert ([item.text for item in prepared.documents], prepared.dropped) == (["a", "b"], {"blank": 1})
    assert f"Blank documents are left out (1 of 3): {build(source).doc_ids[1]}." in caplog.text
    assert build(with_blank(Select(Prepared(source)))).documents == build(source).documents
    assert Prepared(source).identity() != source.identity(), "equal identities mean equal corpora"
    with pytest.raises(ValueError, match=r"left none of 1 documents \(blank 1\)"):
        build(Prepared(given(text)))


@pytest.mark.parametrize("text", [".", "\u0301", "\ufffd", "\ue000", "\u4e2d"])
def test_what_can_be_seen_is_not_blank(build, given, text):
    assert len(build(Prepared(given(text)))) == 1


def test_limits_and_duplicates_without_touching_layout(build, given):
    source = given("one\n\n two\tthree", "one", "one\n\n two\tfour", " one  two ")
    cleaning = replace(AS_IS, min_words=2, max_words=2, duplicates="drop")
    corpus = build(Prepared(source, cleaning))
    assert [item.text for item in corpus.documents] == ["one\n\n two", " one  two "]
    assert corpus.dropped == {"exact_duplicate": 1, "too_short": 1}
    short = build(Prepared(source, replace(cleaning, long_documents="drop")))
    assert [item.text for item in short.documents] == [" one  two "]
    assert short.dropped == {"too_long": 2, "too_short": 1}
    with pytest.raises(ValueError, match=r"left none of 4 documents \(too_short 4\)"):
        build(Prepared(source, replace(cleaning, min_words=9, max_words=None)))
    with pytest.raises(ValueError, match=r"near_duplicate_threshold must be a number in \[0.1, 1\] or null; got 80"):
        replace(cleaning, near_duplicate_threshold=80)


HALF = "a\\ud800b"  # as JSON writes it


@pytest.mark.parametrize(
    "spec",
    [
        lambda put: Documents(put("d.jsonl", f'{{"text": "{HALF}"}}\n'.encode())),
        lambda put: Documents(put("d.json", f'["fine", "{HALF}"]'.encode())),
        lambda put: Documents(put("d.jsonl", f'{{"id": "{HALF}", "text": "fine"}}\n'.encode())),
        lambda put: Documents(put("d.jsonl", f'{{"name": "{HALF}", "text": "x"}}\n'.encode()), title_field="name"),
        lambda put: jsonl(put("d.jsonl", f'{{"id": "1", "text": "x", "w": "{HALF}"}}'.encode()), "id", "text", "w"),
    ],
)
def test_half_characters_are_refused_wherever_they_stand(build, put, spec):
    with pytest.raises(ValueError, match=r"The document '.*' must be valid Unicode; its \w+ holds half a character"):
        build(spec(put))


def test_splits_and_shards_are_told_by_names(build, put, tmp_path):
    for name in ("train-00000-of-00002", "test-00000-of-00001"):
        put(f"set/{name}.jsonl", json.dumps({"text": name}))
    folder = str(tmp_path / "set")
    with pytest.raises(ValueError, match=r"several splits.* its splits are test, train"):
        build(Documents(folder))
    assert build(Documents(folder, split="test")).doc_ids == ("test-00000-of-00001:1",)
    with pytest.raises(ValueError, match=r"1 of 2 files of train; train-00001-of-00002.jsonl is missing"):
        build(Documents(folder, split="train"))
    assert len(build(Documents(folder, pattern="*.jsonl"))) == 2, "a pattern is a choice"
    assert len(build(Documents(folder, pattern="*.jsonl", split="test"))) == 1, "and a split another"
    put("set/notes.jsonl", '"a"')
    (tmp_path / "set" / "train-00000-of-00002.jsonl").rename(tmp_path / "set" / "train.jsonl")
    assert len(build(Documents(folder))) == 3, "not all are named so"
    with pytest.raises(ValueError, match=r"pattern chooses files of one folder; got '\*'"):
        build(Documents(f"{folder}/notes.jsonl", pattern="*"))
    with pytest.raises(ValueError, match="Only folders have other splits"):
        build(Documents(f"{folder}/notes.jsonl", split="train"))
