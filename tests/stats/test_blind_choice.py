"""The text-only control: rules that pick the original, by hand; and how often it finds something where nothing is."""

from __future__ import annotations

import numpy as np
import pytest

from nonmember.stats.letter_choice import blind_guesses, picks


def test_each_rule_by_hand():
    found = picks(
        [
            ["a long original text indeed", "a text", "a text", "a text"],
            ["moss fern reed", "moss fern pine", "moss fern pine", "zebra crow lynx"],
            ["one two", "three four", "five six", "six five"],
        ]
    )
    assert found["longest"].tolist() == [1, 0, 0]  # "three four" is the longest of the third
    assert found["odd"].tolist() == [1, 0, 0.5]  # of the third, the first two are like no other
    assert found["rarest"][:2].tolist() == [1, 0]


def world(rng, num_units, *, longer=0.0, num_passages=6):
    words = [f"w{number}" for number in range(200)]
    units, passages = [], []
    for unit in range(num_units):
        for _ in range(num_passages):
            lengths = rng.integers(20, 30, size=4) + np.array([30 * (rng.random() < longer), 0, 0, 0])
            passages.append([" ".join(rng.choice(words, size=length)) for length in lengths])
            units.append(unit)
    return passages, np.array(units)


def test_a_longer_original_is_noticed_and_in_which_group():
    rng = np.random.default_rng(0)
    (first, first_units), (second, second_units) = world(rng, 12, longer=0.8), world(rng, 12)
    found = blind_guesses(first, second, first_units, second_units)["longest"]
    assert found.first > 0.7
    assert found.p_chance_first < 1e-6
    assert found.p_groups < 1e-4
    assert found.p_chance_second > 0.05
    assert found.second == pytest.approx(0.25, abs=0.1)


@pytest.mark.slow
def test_where_nothing_is_it_warns_as_often_as_it_says():
    """Texts of which nothing tells the original; Holm over all rules and groups."""
    rng = np.random.default_rng(1)
    warned = 0
    for _ in range(60):
        (first, first_units), (second, second_units) = world(rng, 8, num_passages=3), world(rng, 8, num_passages=3)
        found = blind_guesses(first, second, first_units, second_units)
        warned += any(min(item.p_chance_first, item.p_chance_second) < 0.05 for item in found.values())
    assert warned / 60 < 0.15


def test_a_rule_that_never_or_always_picks_it_is_found():
    passages = [["longest of all", "short", "tiny", "wee"], ["the longest text", "some", "more", "words"]]
    units = np.array([0, 1])
    (found, *_) = blind_guesses(passages, passages, units, units).values()
    assert (found.first, found.p_chance_first) == (1.0, 0.0)
    assert np.isnan(found.p_groups)
