"""answers.jsonl, and the examples in warnings about answers."""

from __future__ import annotations

import json

import numpy as np

from nonmember.audits.measuring import rows_of_answers
from nonmember.endpoints import Answer, AskedDocuments, Completion, ParsedAnswer, Request
from nonmember.results import answers


def answered(doc_id, text, *, valid=True, outcome="answered", correct=False):
    request = Request(doc_id, "q", "Which?", max_new_tokens=1, temperature=0.0, seed=0, expected="A")
    return (Answer(request, Completion(text, outcome), ParsedAnswer(valid=valid, correct=correct, read=text[:1])),)


ASKED = AskedDocuments(
    tuple("abcdef"),
    np.zeros(6),
    {},
    answers=(
        answered("a", "A", correct=True),
        answered("b", "B"),
        answered("c", "I would rather\nnot say", valid=False),
        answered("d", "x" * 200, valid=False),
        answered("e", "", valid=False, outcome="empty"),
        answered("f", "\udc80", valid=False),
    ),
)


def test_every_answer_has_a_row_and_warnings_have_examples(tmp_path):
    rows = list(rows_of_answers("suspect", "decop", None, ASKED, None))
    answers.write(rows, tmp_path)
    written = [json.loads(line) for line in (tmp_path / "answers.jsonl").read_text().splitlines()]
    assert [row["kind"] for row in written] == ["right", "wrong", "unreadable", "unreadable", "empty", "unreadable"]
    assert written[1] | {"prompt": "Which?", "answer": "B", "read": "B", "correct": False} == written[1]
    empty, unreadable = answers.warnings_about(rows)
    assert empty == "1 of 6 answers about the suspect set are empty, such as nothing (e) (all: answers.jsonl)."
    assert unreadable.startswith('3 of 6 answers about the suspect set cannot be read, such as "I would rather not say')
    assert "x" * 81 not in unreadable


def test_an_audit_that_asks_nothing_leaves_no_file(tmp_path):
    (tmp_path / "answers.jsonl").write_text("of an earlier audit")
    answers.write([], tmp_path)
    assert list(tmp_path.iterdir()) == []
