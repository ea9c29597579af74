"""Near duplicates: the stated share of words is exchanged, always alike, and the rest stays."""

from __future__ import annotations

from dataclasses import replace

import pytest

from nonmember.corpora import NearDuplicates
from nonmember.records import Document
from tiny import Texts, build, random_texts

BASE = Texts(
    tuple(
        Document(f"d{index}", text, "cluster", "domain")
        for index, text in enumerate(random_texts(60, seed=1, words=50))
    )
)
SPEC = NearDuplicates(BASE, share=0.3, salt="s")


def changed(spec) -> list[tuple[str, str]]:
    """Pairs of words that differ, of all pairs."""
    pairs = [
        (item, other)
        for before, after in zip(BASE.documents, build(spec).documents, strict=True)
        for item, other in zip(before.text.split(), after.text.split(), strict=True)
    ]
    return [(item, other) for item, other in pairs if item != other]


def test_the_share_of_words_and_nothing_else():
    words = [word for document in BASE.documents for word in document.text.split()]
    hits = changed(SPEC)
    assert len(hits) / len(words) == pytest.approx(0.3, abs=0.03)
    assert {other for _, other in hits} <= set(words)
    assert len(changed(replace(SPEC, share=1.0))) == len(words), "an exchange is never for the same word"
    for before, after in zip(BASE.documents, build(SPEC).documents, strict=True):
        assert replace(after, text=before.text) == before


def test_white_space_stays():
    base = Texts((Document("A", " one\n  two\tthree four "),))
    (document,) = build(NearDuplicates(base, share=1.0, salt=1)).documents
    assert [letter for letter in document.text if letter.isspace()] == list(" \n  \t  ")


def test_exchanges_are_by_document_and_salt():
    assert build(SPEC) == build(SPEC)
    assert build(replace(SPEC, salt="t")) != build(SPEC)
    backwards = replace(SPEC, base=Texts(BASE.documents[::-1]))
    assert build(backwards).documents == build(SPEC).documents[::-1]
    specs = [SPEC, replace(SPEC, salt="t"), replace(SPEC, share=0.2), replace(SPEC, base=Texts(BASE.documents[:9]))]
    assert len({repr(item.identity()) for item in specs}) == len(specs)


def test_what_cannot_be():
    with pytest.raises(ValueError, match=r"must be a number in \(0, 1\]; got 0"):
        replace(SPEC, share=0)
    with pytest.raises(ValueError, match="`salt` of NearDuplicates must be any text"):
        replace(SPEC, salt=None)
    with pytest.raises(ValueError, match="does not have two different ones"):
        build(NearDuplicates(Texts((Document("A", "word word"),)), share=0.5, salt="s"))
