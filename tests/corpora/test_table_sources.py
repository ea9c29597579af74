"""Documents in tables: patterns, rows of one document, lists; and what is wrong with a table, in one sentence."""

from __future__ import annotations

import json

import pandas as pd
import pytest

from nonmember.corpora import Table
from nonmember.corpora.sources.columns import Pattern
from tiny import build

ROWS = [
    {"book": "Emma", "passage": 0, "label": 1, "text": "one, two", "paraphrases": ["uno", "due"]},
    {"book": "Emma", "passage": 1, "label": 1, "text": 'say "three"', "paraphrases": ["tre"]},
    {"book": "New", "passage": 0, "label": 0, "text": "four\nfive", "paraphrases": []},
]


@pytest.fixture(params=["t.csv", "t.jsonl.gz"])
def path(request, tmp_path):
    """The same rows, of which those of CSV are all text and have no lists; test_documents reads the other forms."""
    path = tmp_path / request.param
    columns = ["book", "passage", "label", "text"]
    frame = pd.DataFrame(ROWS)
    if path.suffix == ".csv":
        frame[columns].to_csv(path, index=False)
    else:
        frame.to_json(path, orient="records", lines=True)
    return path


def table(path, **changes):
    given = {"doc_id": "{book}, passage {passage}", "text": "{text}", "cluster_id": "{book}"} | changes
    return Table(str(path), **given)


def test_each_form_gives_the_same_documents(path):
    corpus = build(table(path, title="{book}", author="A. {label}"))
    assert corpus.doc_ids == ("Emma, passage 0", "Emma, passage 1", "New, passage 0")
    assert [item.text for item in corpus.documents] == ["one, two", 'say "three"', "four\nfive"]
    assert (corpus.documents[2].cluster_id, corpus.documents[2].title, corpus.documents[2].author) == (
        "New",
        "New",
        "A. 0",
    )
    assert build(table(path, where={"label": 0})).doc_ids == ("New, passage 0",)


def test_rows_of_one_document_are_one_and_other_texts_of_it_are_refused(path):
    books = build(table(path, doc_id="{book}", text=""))
    assert [(item.doc_id, item.text) for item in books.documents] == [("Emma", ""), ("New", "")]
    with pytest.raises(ValueError, match="a different document the same id, 'Emma'"):
        build(table(path, doc_id="{book}"))


def test_a_list_holds_a_document_per_item(tmp_path):
    path = tmp_path / "t.jsonl"
    path.write_text("\n".join(map(json.dumps, ROWS)))
    corpus = build(table(path, doc_id="{book}, passage {passage}#{number}", text="{item}", items="paraphrases"))
    assert {item.doc_id: item.text for item in corpus.documents} == {
        "Emma, passage 0#1": "uno",
        "Emma, passage 0#2": "due",
        "Emma, passage 1#1": "tre",
    }
    with pytest.raises(ValueError, match=r"line 1: column 'text' must hold a list"):
        build(table(path, items="text"))


def test_several_files_are_read_one_after_the_other(tmp_path):
    paths = [tmp_path / "b.jsonl", tmp_path / "a.jsonl"]
    for index, path in enumerate(paths):
        path.write_text(json.dumps(ROWS[index]))
    both = Table([str(path) for path in paths], "{book}, passage {passage}", "{text}")
    assert build(both).doc_ids == ("Emma, passage 0", "Emma, passage 1")
    moved = tmp_path / "elsewhere.jsonl"
    moved.write_bytes(paths[0].read_bytes())
    assert table(moved).identity() == table(paths[0]).identity()
    assert table(paths[1]).identity() != table(paths[0]).identity()


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("t.txt", b"", r"must be a table, one of \*.csv, \*.jsonl, \*.parquet"),
        ("t.csv", b"b\n1\n", "no column 'a'; its columns are 'b'"),
        ("t.jsonl", b'{"a": {"b": 1}}', "column 'a' must hold text or a number, but it holds an object"),
    ],
)
def test_what_is_wrong_with_a_table_is_told(tmp_path, name, content, message):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(ValueError, match=message):
        build(Table(str(tmp_path / name), "{a}", ""))


def test_no_row_of_the_wanted_value_is_told(path):
    with pytest.raises(ValueError, match=r"No row of .* is chosen by `where` \({'label': 7}\)"):
        build(table(path, where={"label": 7}))


def test_patterns_take_columns_of_any_name():
    assert Pattern("{a b}/{c.d}{e}").filled({"a b": "x", "c.d": 1.5, "e": None}, "here") == "x/1.5"


def test_a_table_that_was_changed_is_read_again(tmp_path):
    path = tmp_path / "t.csv"
    for text in ("one", "another"):
        path.write_text(f"id,text,n\na,{text},1\na,{text},2\n")
        table = Table(str(path), doc_id="{id}", text="{text}")
        assert [document.text for document in build(table).documents] == [text]
