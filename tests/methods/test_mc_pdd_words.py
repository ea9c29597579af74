"""Which words MC-PDD masks, by hand; and that a masked word is nowhere left to be copied."""

from __future__ import annotations

import math
from collections import Counter

import pytest

from nonmember.methods.mc_pdd.questions import BLANK, chosen, document_frequencies, masked, occurs, weights, words_of

TV5 = ("the red dragon saw the red castle", "the blue castle fell", "a dragon saw a blue moon")


def pick(text, corpus=TV5, **changes):
    settings = {"strategy": "max", "number": 1, "letters_only": False, "stop_words": (), "name": "x"} | changes
    return chosen(text, document_frequencies(corpus), len(corpus), **settings)


def test_words():
    text = "The Half-Life of Dr. O'Neil's cat: 2nd-rate 'quoted' snake_case -dash- rock’n’roll Ünïcode"
    assert words_of(text) == [
        "the",
        "half-life",
        "of",
        "dr",
        "o'neil's",
        "cat",
        "2nd-rate",
        "quoted",
        "snake",
        "case",
        "dash",
        "rock’n’roll",
        "ünïcode",
    ]


def test_the_specified_vector():
    """docs/methods/checks.md, TV5."""
    frequencies = document_frequencies(TV5)
    found = [weights(words_of(text), frequencies, 3) for text in TV5]
    assert found[0] == pytest.approx(
        {"the": 0.115847, "red": 0.313889, "dragon": 0.057924, "saw": 0.057924, "castle": 0.057924}, abs=1e-6
    )
    assert found[1] == pytest.approx(
        {"the": 0.101366, "blue": 0.101366, "castle": 0.101366, "fell": 0.274653}, abs=1e-6
    )
    assert found[2] == pytest.approx(
        {"a": 0.366204, "dragon": 0.067578, "saw": 0.067578, "blue": 0.067578, "moon": 0.183102}, abs=1e-6
    )
    assert [pick(text) for text in TV5] == [["red"], ["fell"], ["a"]]


def test_stop_words_and_letters():
    assert pick(TV5[2], stop_words=("a",)) == ["moon"]
    corpus = ("x1 x1 x1 moon", "y", "z")
    assert (pick(corpus[0], corpus), pick(corpus[0], corpus, letters_only=True)) == (["x1"], ["moon"])
    assert pick("12 12", ("12 12", "y"), letters_only=True) == []


def test_the_largest_weights_ties_by_first_occurrence():
    assert pick(TV5[0], number=3) == ["red", "the", "dragon"]
    assert pick(TV5[0], number=9) == ["red", "the", "dragon", "saw", "castle"]
    assert pick(TV5[1], number=2) == ["fell", "the"]


def test_weights_equal_on_paper_are_a_tie_in_floats():
    """2 ln(100/10) = ln(100/1) in every document of equal length; which float is larger is chance."""
    frequencies = Counter({"late": 1, "twice": 10, "other": 50})
    text = "twice twice late other"
    assert math.isclose(*(weights(words_of(text), frequencies, 100)[word] for word in ("late", "twice")))
    for order, first in (("twice twice late other", "twice"), ("late twice twice other", "late")):
        settings = {"strategy": "max", "number": 1, "letters_only": False, "stop_words": (), "name": ""}
        assert chosen(order, frequencies, 100, **settings) == [first]


def test_random_words_are_uniform_over_different_ones_and_fixed_by_their_name():
    text, corpus = "the the the the red fox", ("the the the the red fox", "a b")
    drawn = Counter(pick(text, corpus, strategy="random", name=str(name))[0] for name in range(900))
    assert set(drawn) == {"the", "red", "fox"}
    assert all(abs(number - 300) < 75 for number in drawn.values())
    again = [pick(text, corpus, strategy="random", number=2, name="d") for _ in range(2)]
    assert again[0] == again[1]
    assert len(set(again[0])) == 2


@pytest.mark.parametrize(
    ("word", "text", "expected"),
    [
        ("leon", "Leon's LEON, leon-like; Leonard, leon_s", "<blank>'s <blank>, <blank>-like; Leonard, <blank>_s"),
        ("half-life", "Half-Life 2, half life, Half-Lifer", "<blank> 2, half life, Half-Lifer"),
        ("strasse", "Straße und STRASSE, Strasse.", "<blank> und <blank>, <blank>."),
        ("c", "C++ and C, cc", "<blank>++ and <blank>, cc"),
        ("2", "2 22 2.5 v2", "<blank> 22 <blank>.5 v2"),
        ("moon", "no such word", "no such word"),
    ],
)
def test_every_occurrence_is_masked_in_any_case(word, text, expected):
    assert masked(word, text) == expected
    assert not occurs(word, masked(word, text))
    assert occurs(word, text) == (BLANK in expected)


def test_nothing_that_is_chosen_can_be_read_in_the_prompt():
    corpus = (*TV5, "İstanbul'un İstanbul ẞẞ ǅ ŉ-a Ünïcode-ünïcode", "e-mail E-MAIL mail, e- mail")
    for text in corpus:
        for word in pick(text, corpus, number=99):
            assert occurs(word, text)
            assert not occurs(word, masked(word, text))
