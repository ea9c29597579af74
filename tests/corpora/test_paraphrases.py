"""Three paraphrases in what a model wrote, or in a data set's columns."""

from __future__ import annotations

import pytest

import tiny
from nonmember.corpora import OtherTexts
from nonmember.corpora.sources.paraphrases import Paraphrases, parsed
from tiny import build


@pytest.mark.parametrize(
    "text",
    [
        "Example B: one two Example C: three Example D: four",
        "Here you are:\n\nExample B: one  two\nExample C: three\n\nExample D: four\n",
        "**Example B:** one two\n**Example C:** three\n**Example D:** four",
        "- Example B: <one two>\n- Example C: <three>\n- Example D: <four>",
        "Example A: the original\nExample B: one two\nExample C: three\nExample D: four",
        "example b: one two\nexample c : three\nEXAMPLE D: four",
    ],
)
def test_paraphrases_are_found_by_their_cues(text):
    assert parsed(text) == ["one two", "three", "four"]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "I cannot paraphrase this text.",
        "Example B: one Example C: two",
        "Example C: one Example B: two Example D: three",
        "Example B: one Example C: two Example D: three Example B: four",
    ],
)
def test_what_is_not_in_the_form_is_no_paraphrase(text):
    assert parsed(text) is None


FORM = "Example B: {} Example C: {} Example D: {}"
BASE = tiny.texts("the moss", "the fern", "the reed", "the pine", "the lark", "the wren")


def test_unusable_ones_are_counted_by_reason():
    texts = tiny.texts(
        FORM.format("a", "b", "c"),
        "Sorry.",
        "  ",
        FORM.format("a", "the  pine", "c"),
        FORM.format("a", "b", "a"),
        FORM.format("a", "", "c"),
    )
    corpus = build(Paraphrases(BASE, texts))
    assert {item.doc_id: item.text for item in corpus.documents} == {"d0#1": "a", "d0#2": "b", "d0#3": "c"}
    assert corpus.dropped == {
        "empty paraphrase": 1,
        "no paraphrases written": 1,
        "paraphrase equal to the original": 1,
        "paraphrases not in the form asked for": 1,
        "two equal paraphrases": 1,
    }
    with pytest.raises(ValueError, match=r"None of 6 documents has paraphrases .*method\.paraphraser"):
        build(Paraphrases(BASE, BASE))


def test_the_other_columns_hold_the_paraphrases():
    """As in BookTection: the original stands in one of four columns, in another one for each row."""
    rows = [("the moss", "f1"), ("m1", "f2"), ("m2", "the  fern"), ("m3", "f3")]
    corpus = build(OtherTexts(tiny.texts("the moss", "the fern"), [tiny.texts(*row) for row in rows]))
    expected = {f"d{index}#{number}": f"{'mf'[index]}{number}" for index in range(2) for number in (1, 2, 3)}
    assert {item.doc_id: item.text for item in corpus.documents} == expected
