"""Which rephrasings can be used, and what a written corpus is called."""

from __future__ import annotations

from dataclasses import replace

import pytest

import tiny
from nonmember.endpoints.rephrased import Rephrasings, Written
from nonmember.models import Pretrained
from nonmember.records import Document, Prompt
from tiny import build

BASE = tiny.texts("one two three four", "five six seven eight", "nine ten", "a b c d", "e f g h", "i j k l", "m n o p")


def rephrasings(**texts: str) -> Rephrasings:
    return Rephrasings(BASE, tiny.Texts(tuple(Document(*item) for item in texts.items())), 0.5, 2.0)


def test_rejected_are_counted_by_reason_and_the_rest_is_in_order():
    corpus = build(
        rephrasings(
            d6="p  o\nn m",
            d0="four three two one",
            d1="five six\n seven  eight",
            d2="   ",
            d3="abc",
            d4="e" * 15,
            other="of nobody",
        )
    )
    assert [(document.doc_id, document.text) for document in corpus.documents] == [
        ("d0", "four three two one"),
        ("d6", "p o n m"),
    ]
    assert corpus.dropped == {
        "empty": 1,
        "equal to the original": 1,
        "no rephrasing given": 1,
        "too long": 1,
        "too short": 1,
    }


def test_limits_are_within():
    base = tiny.texts("abcdef", "abcdef")
    texts = tiny.texts("abc", "abcdefghijkl")
    assert len(build(Rephrasings(base, texts, 0.5, 2.0))) == 2
    with pytest.raises(ValueError, match=r"`min_length_ratio` of Rephrasings must be a number in \[0, 1\]; got 1\.5"):
        Rephrasings(base, texts, 1.5, 2.0)


def test_all_rejected_is_one_sentence():
    with pytest.raises(ValueError, match=r"7 documents none can be used \(equal to the original: 7\). Choose a model"):
        build(Rephrasings(BASE, BASE, 0.5, 2.0))
    with pytest.raises(ValueError, match="7 documents 1 can be used"):
        build(rephrasings(d0="four three two one"))


def test_half_a_rephrasing_is_left_out_as_an_endpoints_is(tmp_path):
    spec = Written(tiny.SUSPECT, tiny.scratch(1), Prompt("Say it."), 1.0, max_new_tokens=40, max_tokens=9, seed=3)
    whole = tiny.builder(tmp_path).get(spec)
    assert 0 < len(whole) < len(tiny.SUSPECT.documents)
    assert whole.dropped == {"written: cut at max_new_tokens=40": len(tiny.SUSPECT.documents) - len(whole)}


def test_a_rephrasing_is_as_long_as_what_was_rephrased(tmp_path):
    """Of long documents the beginnings are, and would be rejected as too short for the whole."""
    base = tiny.texts(*(20 * f"{item.text} " for item in tiny.SUSPECT.documents))
    written = Written(base, tiny.scratch(1), Prompt("Say it."), 1.0, max_new_tokens=40, max_tokens=9, seed=3)
    assert len(tiny.builder(tmp_path).get(Rephrasings(base, written, 0.5, 100.0))) >= 2
    whole = tiny.builder(tmp_path).get(replace(written, whole=True))
    assert whole.dropped == {"written: longer than max_tokens=9": len(base.documents)}


def test_a_written_corpus_is_known_by_all_it_is_made_of():
    spec = Written(BASE, tiny.scratch(1), Prompt("Say it."), temperature=0.1, max_new_tokens=5, max_tokens=9, seed=3)
    others = [
        replace(spec, base=tiny.SUSPECT),
        replace(spec, model=tiny.scratch(2)),
        replace(spec, prompt=Prompt("Sing.")),
        replace(spec, temperature=0.2),
        replace(spec, max_new_tokens=6),
        replace(spec, max_tokens=8),
        replace(spec, seed=4),
        replace(spec, model=Pretrained("a/name")),
    ]
    assert len({repr(item.identity()) for item in [spec, *others]}) == 1 + len(others)
    assert replace(spec).identity() == spec.identity()
    with pytest.raises(ValueError, match="max_new_tokens"):
        replace(spec, max_new_tokens=0)
    with pytest.raises(ValueError, match="temperature"):
        replace(spec, temperature=-1)


def test_the_recipe_of_a_model_leaves_out_what_it_is_called():
    from nonmember.training import Trained

    trained = Trained(tiny.scratch(1), tiny.pretraining(), tiny.GENERAL, seed=1, label="one")
    assert trained.recipe() == replace(trained, label="other").recipe()
    assert trained.recipe() != replace(trained, teacher=tiny.scratch(2)).recipe()
