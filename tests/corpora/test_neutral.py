"""Neutral text: disjoint from the suspect set, cut short, in two halves."""

from __future__ import annotations

import pytest

from nonmember.corpora import Neutral
from nonmember.records import Corpus
from tiny import build, random_texts, texts

LONG = [f"{number} {text}" for number, text in enumerate(random_texts(60, seed=3, words=60))]
SUSPECT = texts(*random_texts(10, seed=4, words=60), name="suspect")


def built(*general: str, suspect=SUSPECT, half: str = "third", number: int | None = 60, most: int = 1000) -> Corpus:
    recipe = Neutral(texts(*general), suspect, half=half, num_documents=number, min_characters=40, max_characters=most)
    return build(recipe)


def test_halves_share_nothing_and_come_in_the_order_of_a_draw():
    third, practice = built(*LONG), built(*LONG, half="practice")
    assert set(third.doc_ids).isdisjoint(practice.doc_ids)
    assert len(third) + len(practice) == 60
    assert built(*LONG, number=7).doc_ids == third.doc_ids[:7]
    assert len(built(*LONG, number=None)) == len(SUSPECT.documents)


def test_text_is_as_it_is_but_cut_between_words():
    text = "  One\n\ttwo   three four five six seven eight nine"
    found = [built(text, half=half) for half in ("third", "practice") if _has(text, half)]
    assert [corpus.documents[0].text for corpus in found] == [text]
    cut = next(built(text, half=half, most=45) for half in ("third", "practice") if _has(text, half))
    assert cut.documents[0].text == "  One\n\ttwo   three four five six seven eight"


def _has(text: str, half: str) -> bool:
    try:
        return bool(built(text, half=half))
    except ValueError:
        return False


@pytest.mark.parametrize(
    "suspect",
    [
        LONG,  # equal
        [f"before {text} after" for text in LONG],  # they contain it
        [text[30:150] for text in LONG],  # they lie in it
        [text[40:80] for text in LONG],  # short ones
        ["\n\n".join(text.split()) for text in LONG],  # in another layout
    ],
)
def test_what_shares_a_passage_with_the_suspect_set_is_left_out(suspect):
    with pytest.raises(ValueError, match="shares nothing with the suspect set"):
        built(*LONG, suspect=texts(*suspect))


def test_short_texts_and_repetitions_are_left_out():
    assert len(built(*LONG, "short", LONG[0])) + len(built(*LONG, "short", LONG[0], half="practice")) == 60
