"""`data.path` may be anything: the same documents in every form, columns that are found or asked for, hostile files."""

from __future__ import annotations

import bz2
import gzip
import json
import lzma
from dataclasses import replace
from types import SimpleNamespace

import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet as pq
import pytest

from nonmember.corpora import Cleaning, Documents, Jsonl, Prepared, TextFiles
from nonmember.corpora.sources import formats, rows
from nonmember.corpora.sources.hub import Hub

ROWS = [
    {"name": "a", "body": "one,\n\n  two \t", "book": "Emma", "number": 7},
    {"name": "b", "body": '"three"\r\nfour', "book": "Emma", "number": 8},
    {"name": "c", "body": "", "book": "New", "number": 9},
]
TEXTS = [row["body"] for row in ROWS]
TABLE = pa.Table.from_pylist(ROWS)


def csv_of(delimiter):
    quoted = [[json.dumps(str(value)) if not isinstance(value, str) else f'"{value.replace(chr(34), chr(34) * 2)}"'
               for value in row.values()] for row in ROWS]  # fmt: skip
    return "\n".join([delimiter.join(ROWS[0]), *(delimiter.join(row) for row in quoted), ""]).encode()


def zst(content):
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, "zstd") as stream:
        stream.write(content)
    return sink.getvalue().to_pybytes()


def written(write):
    sink = pa.BufferOutputStream()
    write(TABLE, sink)
    return sink.getvalue().to_pybytes()


def streamed(table, sink):
    """As data sets that were saved to a disk have it."""
    with pa.ipc.new_stream(sink, table.schema) as stream:
        stream.write_table(table)


JSONL = "".join(json.dumps(row) + "\n" for row in ROWS).encode()
PARQUET = written(pq.write_table)
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
    "stream.arrow": written(streamed),
    "without_a_suffix": PARQUET,
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
    assert [one.text for one in corpus.documents] == TEXTS
    assert [one.cluster_id for one in corpus.documents] == ["Emma", "Emma", "New"]
    first = 2 if "csv" in name or "tsv" in name else 1
    assert corpus.doc_ids == tuple(f"{name.partition('.')[0]}:{number}" for number in range(first, first + 3))
    assert build(Documents(path, text_field="{name}: {number}")).documents[1].text == "b: 8"


def test_as_jsonl_and_text_files_name_and_read_them(build, put, tmp_path):
    path = put("d.jsonl", '{"text": "a"}\n\n{"text": "b"}\n')
    assert build(Documents(path)).documents == build(Jsonl(path, None, "text")).documents
    for name in ("x.txt", "sub/y.txt"):
        put(f"folder/{name}", "lines\r\n\n of " + name)
    folder = str(tmp_path / "folder")
    as_files = build(TextFiles(folder, "**/*.txt"))
    assert build(Documents(folder)).documents == as_files.documents
    assert build(Documents(f"{folder}/x.txt", split="file")).doc_ids == ("x.txt",)


def test_ids_are_taken_where_each_row_has_its_own(build, put, caplog):
    path = put("d.jsonl", '{"id": 1, "text": "a"}\n{"id": "x", "text": "b"}\n')
    assert build(Documents(path)).doc_ids == ("1", "x")
    path = put("twice.jsonl", '{"id": 1, "text": "a"}\n{"id": NaN, "text": "b"}\n')
    assert build(Documents(path)).doc_ids == ("twice:1", "twice:2")
    assert "'id' is empty in places or names rows twice" in caplog.text
    with pytest.raises(ValueError, match="line 2: column 'id' must hold a name or a whole number"):
        build(Documents(path, id_field="id"))


def test_lines_and_paragraphs(build, put):
    path = put("lines.txt", "one \n\ntwo\r\n\n\nthree")
    assert [(one.doc_id, one.text) for one in build(Documents(path)).documents] == [
        ("lines:1", "one "), ("lines:3", "two"), ("lines:6", "three"),
    ]  # fmt: skip
    path = put("prose.txt", "one\ntwo\n\nthree\n")
    with pytest.raises(ValueError, match=r"3 lines in 2 paragraphs.*split=paragraphs"):
        build(Documents(path))
    found = build(Documents(path, split="paragraphs"))
    assert [(one.doc_id, one.text) for one in found.documents] == [("prose:1", "one\ntwo"), ("prose:4", "three")]
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


def test_a_folder_of_several_forms_asks_which(build, put, tmp_path):
    put("set/README.md", "# not a document")
    put("set/a.jsonl", '{"text": "a"}\n')
    assert build(Documents(str(tmp_path / "set"))).doc_ids == ("a:1",)
    put("set/b.csv", "text\nb\n")
    with pytest.raises(ValueError, match=r"several forms .* Give data.pattern="):
        build(Documents(str(tmp_path / "set")))
    assert build(Documents(str(tmp_path / "set"), pattern="*.csv")).doc_ids == ("b:2",)


def test_a_name_that_is_nothing_here_is_the_hubs_with_a_revision(monkeypatch):
    with pytest.raises(ValueError, match=r"Nothing is at owner/set .* give data.revision=COMMIT"):
        Documents("owner/set").identity()
    monkeypatch.setattr(Hub, "_rows", lambda self: enumerate([{"label": 1, "input": "a text"}]))
    asked = []
    Documents("owner/set", revision="v1").build(SimpleNamespace(get=asked.append))
    Documents("owner/set", revision="v1", text_field="label").build(SimpleNamespace(get=asked.append))
    assert asked == [Hub("owner/set", None, "train", "v1", name, None) for name in ("input", "label")]
    with pytest.raises(ValueError, match=r"must be one column for a data set on the hub; got '\{a\} \{b\}'"):
        Documents("owner/set", revision="v1", text_field="{a} {b}").build(SimpleNamespace(get=asked.append))
    with pytest.raises(ValueError, match=r"Expected a file.*nothing is there"):
        Documents("gone.csv").identity()


@pytest.mark.parametrize(
    ("name", "content", "sentence"),
    [
        ("deep.jsonl", '{"text": ' + "[" * 100_000 + "]" * 100_000 + "}", "line 1 must be .*nested too deeply"),
        ("deep.json", "[" * 100_000 + "]" * 100_000, "nested too deeply"),
        ("blank.jsonl.gz", gzip.compress(b"\n" * 2_000_000), "nothing but white space"),
        ("later.jsonl.gz", gzip.compress(b'{"text": "a"}' + b"\n" * 1_100_000), "more than 1,000,000 blank lines"),
        ("later.txt.gz", gzip.compress(b"a" + b"\n" * 1_100_000), "more than 1,000,000 blank lines"),
        ("cut.jsonl.xz", lzma.compress(JSONL * 99)[:-40], "must be a complete xz file"),
        ("cut.jsonl.zst", zst(JSONL * 99)[:-20], "must be a complete Zstandard file"),
        ("cut.parquet", PARQUET[:-9], "must be a complete Parquet file"),
        ("not.parquet", "text", "must be a complete Parquet file; it does not begin as one"),
        ("ragged.csv", "a,text\n1,2\n1,2,3\n", "must be a CSV table"),
        ("same.csv", "a,a\n1,2\n", "different column names"),
        ("latin.csv", b"text\n\xe9\n", "in UTF-8"),
        ("latin.txt", b"\xe9", "must be UTF-8"),
        ("a.pkl", b"\x80\x04\x95\0", "binary file of another kind"),
        ("empty.csv", "", "has no documents: it is empty"),
        ("number.jsonl", '{"text": "a"}\n{"text": 5}\n', "line 2: column 'text' must hold text; it holds a number"),
    ],
)
def test_hostile_files_get_a_sentence(build, put, name, content, sentence):
    with pytest.raises(ValueError, match=sentence):
        build(Documents(put(name, content)))


def test_a_line_without_end_is_not_read_to_its_end(build, put, monkeypatch):
    monkeypatch.setattr(rows, "LONGEST_LINE", 1000)
    with pytest.raises(ValueError, match="line 2 must have at most 1,000 bytes"):
        build(Documents(put("d.jsonl", '{"text": "a"}\n{"text": "' + "a" * 2000)))


# ---------------------------------------------------------------------------------------------- cleaning

AS_IS = {
    "white_space": "as_is", "min_words": None, "max_words": None, "long_documents": "cut", "duplicates": "keep",
    "near_duplicate_threshold": None, "num_perm": 64,
}  # fmt: skip


def test_texts_as_they_are_are_the_source_itself(given):
    source = given("a\n b", "a\n b")
    assert Prepared(source, Cleaning(**AS_IS)).identity() == source.identity()


def test_limits_and_duplicates_without_touching_layout(build, given):
    source = given("one\n\n two\tthree", "one", "one\n\n two\tfour", " one  two ")
    cleaning = Cleaning(**AS_IS | {"min_words": 2, "max_words": 2, "duplicates": "drop"})
    corpus = build(Prepared(source, cleaning))
    assert [one.text for one in corpus.documents] == ["one\n\n two", " one  two "]
    assert corpus.dropped == {"exact_duplicate": 1, "too_short": 1}
    short = build(Prepared(source, replace(cleaning, long_documents="drop")))
    assert [one.text for one in short.documents] == [" one  two "]
    assert short.dropped == {"too_long": 2, "too_short": 1}
    with pytest.raises(ValueError, match=r"left none of 4 documents \(\{'too_short': 4\b"):
        build(Prepared(source, replace(cleaning, min_words=9, max_words=None)))
    with pytest.raises(ValueError, match=r"near_duplicate_threshold must lie in \[0.1, 1\], or be null; got 80"):
        replace(cleaning, near_duplicate_threshold=80)


def test_the_forms_say_what_they_are():
    assert formats.stem_of("sub/wikipedia.v2.JSONL.gz") == "sub/wikipedia.v2"
    assert formats.stem_of("paper.v2") == "paper.v2"


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("d.json", b'[{"text": "a"}, 7]', "item 2 must be a JSON object, or a string that is the text; it is a number"),
        ("d.json", b"7", "it is a number"),
        ("d.csv", b"text\xff\na\n", "must be UTF-8; its first line is not"),
        ("d.csv", b"", "no documents"),
        ("d.arrow", b"FEA1 and no more", "must be a complete Arrow file"),
        ("d.arrow", b"ARROW1 and no more", "must be a complete Arrow file"),
        ("d.arrow", b"a stream of another kind", "must be a complete Arrow file"),
        ("d.jsonl", b"\n\n", "has no documents"),
        ("d.csv", b"text,id\n", "has no documents"),
        ("d.parquet", written(lambda table, sink: pq.write_table(table.slice(0, 0), sink)), "has no documents"),
    ],
)
def test_files_that_hold_no_documents(build, put, name, content, message):
    with pytest.raises(ValueError, match=message):
        build(Documents(put(name, content)))
    with pytest.raises(ValueError, match=message):
        build(Documents(put(name, content), text_field="text"))


def test_a_list_of_texts_and_a_line_without_a_suffix(build, put):
    assert [one.text for one in build(Documents(put("d.json", b'["a", "b"]'))).documents] == ["a", "b"]
    assert [one.text for one in build(Documents(put("lines", b'{"text": "a"}\n{"text": "b"}\n'))).documents] == [
        "a",
        "b",
    ]
    assert [one.text for one in build(Documents(put("notes", b"{a brace}\nand more\n"), split="lines")).documents] == [
        "{a brace}",
        "and more",
    ], "what only begins like JSON is text"


def test_a_folder_without_files(build, tmp_path):
    with pytest.raises(ValueError, match="has no files"):
        build(Documents(str(tmp_path)))
    (tmp_path / "a.txt").write_text("a")
    with pytest.raises(ValueError, match=r"matches '\*\.md'"):
        build(Documents(str(tmp_path), pattern="*.md"))
