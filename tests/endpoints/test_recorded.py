"""A table of earlier answers in a model's place: how rows are found, and what is wrong with a table."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import pytest

import tiny
from nonmember.endpoints import Completion, Request
from nonmember.endpoints.asked import complete
from nonmember.endpoints.models import NO_PROBABILITIES, NO_ROW, NOT_ASKED, Recorded, prompt_hash

CSV = """book,passage,query,says,p_a,p_b
Emma,0,0,A,0.75,0.25
Emma,0,1, ,1,0
Emma,1,0,none of them,0.5,
"""
COLUMNS = {"doc_id": "{book}, {passage}", "name": "query", "text": "says", "p(A)": "p_a", "p(B)": "p_b"}


def asked(*names: tuple[str, str]) -> list[Request]:
    return [Request(doc_id, name, f"About {doc_id}?", 1, 0.0, 0) for doc_id, name in names]


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "answers.csv"
    path.write_text(CSV)
    return path


def test_answers_are_found_by_name_in_the_order_of_the_questions(path):
    found = Recorded(str(path), "m", COLUMNS).complete(
        None, asked(("Emma, 1", "0"), ("Emma, 0", "0"), ("Emma, 0", "1"), ("Emma, 2", "0"))
    )
    assert [item.text for item in found] == ["none of them", "A", " ", ""]
    assert [item.outcome for item in found] == ["answered", "answered", "empty", "failed"]
    assert found[3].reason == NO_ROW
    assert found[1].top_logprobs == ((("A", math.log(0.75)), ("B", math.log(0.25))),)
    assert found[0].top_logprobs == ((("A", math.log(0.5)),),), "what is not there has no probability"


@pytest.mark.parametrize("token", ["p(ĠA)", "p(▁A)"])
def test_marks_of_tokenizers_in_the_names_of_columns_are_blanks(path, token):
    """DE-COP looks for the letter with a blank and without."""
    columns = {name: column for name, column in COLUMNS.items() if name != "p(A)"} | {token: "p_a"}
    (found,) = Recorded(str(path), "m", columns).complete(None, asked(("Emma, 0", "0")))
    assert found.top_logprobs[0][0] == (" A", math.log(0.75))


def test_a_document_without_any_answer_was_not_asked_about(tmp_path):
    """In DE-COP a book that the model was never shown would otherwise have a share of right answers of 0."""
    path = tmp_path / "answers.csv"
    path.write_text("book,passage,query,says\nEmma,0,0,\nEmma,0,1, \nEmma,1,0,\nEmma,1,1,B\n")
    columns = {"doc_id": "{book}, {passage}", "name": "query", "text": "says"}
    about = asked(*((f"Emma, {passage}", query) for passage in "01" for query in "01"))
    found = Recorded(str(path), "m", columns).complete(None, about)
    assert [item.outcome for item in found] == ["failed", "failed", "empty", "answered"]
    assert {item.reason for item in found[:2]} == {NOT_ASKED}


def test_answers_are_found_by_their_prompt(tmp_path):
    (request,) = asked(("whatever", "it is called"))
    path = tmp_path / "answers.jsonl"
    row = {"hash": prompt_hash(request).upper(), "text": "yes", "when": "2024-01-01", "who": "m-0613"}
    path.write_text(json.dumps(row))
    columns = {"prompt_sha256": "hash", "served_model": "who", "date": "when"}
    found = Recorded(str(path), "m", columns).complete(None, [request])
    assert found == [Completion("yes", "answered", served_model="m-0613", date="2024-01-01")]


def test_a_workshop_asks_a_table_like_a_model(path, tmp_path):
    spec, builder = Recorded(str(path), "m", COLUMNS), tiny.builder(tmp_path / "store")
    assert [item.text for item in complete(builder, spec, asked(("Emma, 0", "0")))] == ["A"]
    key = spec.key(builder)
    moved = tmp_path / "moved.csv"
    moved.write_bytes(path.read_bytes())
    assert Recorded(str(moved), "m", COLUMNS).key(builder) == key, "a table is known by its content"
    moved.write_text(CSV.replace("none", "all"))
    assert Recorded(str(moved), "m", COLUMNS).key(builder) != key
    assert Recorded(str(path), "m", COLUMNS | {"text": "query"}).key(builder) != key


def test_a_table_that_changed_is_read_again(path):
    spec, questions = Recorded(str(path), "m", COLUMNS), asked(("Emma, 0", "0"))
    assert spec.complete(None, questions)[0].text == "A"
    path.write_text(CSV.replace("0,0,A", "0,0,BB"))
    assert spec.complete(None, questions)[0].text == "BB"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"answer": "says"}, r"columns of a recorded model must be among doc_id, .*; got 'answer'"),
        ({"name": "{book}/{query}"}, r"none of the 1 questions: .* \('Emma, 0', '0'\), .* \('Emma, 0', 'Emma/0'\)"),
        ({"p(A)": "says"}, r"a probability must be a number in \[0, 1\]; got 'A'"),
        ({"p(A)": "{passage}{p_a}"}, r"a probability must be a number in \[0, 1\]; got '10\.5'"),
    ],
)
def test_what_is_wrong_with_a_table_is_told(path, changes, message):
    with pytest.raises(ValueError, match=message):
        Recorded(str(path), "m", COLUMNS | changes).complete(None, asked(("Emma, 0", "0")))


def test_probabilities_that_are_not_there_are_missed_at_once(path):
    columns = {name: column for name, column in COLUMNS.items() if not name.startswith("p(")}
    wanted = [replace(item, top_logprobs=4) for item in asked(("Emma, 0", "0"))]
    with pytest.raises(ValueError, match=r"no columns of .* that hold them: add p\(A\)"):
        Recorded(str(path), "m", columns).complete(None, wanted)


def test_where_probabilities_are_wanted_they_are_the_answer(path):
    wanted = [replace(item, top_logprobs=4) for item in asked(("Emma, 0", "1"), ("Emma, 1", "0"), ("Emma, 2", "0"))]
    path.write_text(f"{CSV}Emma,2,0,B,,\n")
    found = Recorded(str(path), "m", COLUMNS).complete(None, wanted)
    assert [item.outcome for item in found] == ["answered", "answered", "failed"], "whether or not there is a text"
    assert found[2].reason == NO_PROBABILITIES


def test_a_missing_file_is_told(tmp_path):
    spec = Recorded(str(tmp_path / "none.csv"), "m", COLUMNS)
    for ask in (lambda: spec.complete(None, asked(("Emma, 0", "0"))), lambda: spec.key(None)):
        with pytest.raises(ValueError, match="Expected a file"):
            ask()
