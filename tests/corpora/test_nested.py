"""Nested mixtures: how many are seen, what stays from one level to the next, and what is refused."""

from __future__ import annotations

import itertools
from types import SimpleNamespace

import pytest

import tiny
from nonmember.corpora import NestedMixture
from nonmember.corpora.transforms.mixtures import number_seen

SEEN = tiny.texts(*tiny.random_texts(30, seed=1), name="seen")
UNSEEN = tiny.texts(*tiny.random_texts(25, seed=2), name="unseen")
RATES = [index / 20 for index in range(21)]


def mixture(rate=0.5, number=20, salt="a", **changes):
    given = {"seen": SEEN, "unseen": UNSEEN, "num_documents": number, "rate": rate, "salt": salt} | changes
    return NestedMixture(**given)


def ids(rate, **changes):
    return list(mixture(rate, **changes).build(SimpleNamespace(get=lambda spec: spec.build(None))).doc_ids)


def seen(doc_ids):
    return {name for name in doc_ids if name.startswith("seen")}


def test_the_number_seen_is_rounded_and_not_cut():
    """docs/methods/kds.md: int(700 * .35) is 244, int(700 * .7) is 489."""
    assert [number_seen(700, rate) for rate in (0.35, 0.70)] == [245, 490]
    assert [number_seen(700, rate) for rate in RATES] == list(range(0, 701, 35))
    assert [number_seen(30, rate) for rate in (0.05, 0.15, 0.25)] == [2, 5, 8], "halves upwards, all alike"
    assert (number_seen(3, 0), number_seen(3, 1)) == (0, 3)


def test_levels_are_nested():
    levels = [ids(rate) for rate in RATES]
    assert [len(seen(level)) for level in levels] == list(range(21))
    for lower, higher in itertools.pairwise(levels):
        assert seen(lower) < seen(higher)
        assert set(higher) - seen(higher) < set(lower) - seen(lower)
        stay = set(lower) & set(higher)
        assert [name for name in lower if name in stay] == [name for name in higher if name in stay]


def test_a_size_is_part_of_a_larger_one():
    assert seen(ids(1.0, number=10)) < seen(ids(1.0, number=20))


def test_the_two_sides_are_mixed_in_order():
    order = [name.startswith("seen") for name in ids(0.5)]
    assert order != sorted(order)
    assert order != sorted(order, reverse=True)


def test_a_draw_is_named_by_its_salt_and_by_nothing_else():
    backwards = tiny.Texts(SEEN.documents[::-1])
    assert ids(0.5) == ids(0.5, seen=backwards)
    assert set(ids(0.5)) != set(ids(0.5, salt="b"))
    assert mixture(salt=1).identity() == mixture(salt="1").identity()
    assert mixture(rate=1).identity() == mixture(rate=1.0).identity()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"rate": 1.0, "number": 31}, "needs 31 seen documents .31 at a rate of 1.0., but there are 30"),
        ({"rate": 0.0, "number": 26}, "needs 26 unseen documents .26 at a rate of 0.0., but there are 25"),
        ({"unseen": tiny.Texts((*UNSEEN.documents, SEEN.documents[3]))}, "1 documents are both seen and unseen"),
    ],
)
def test_too_few_documents_are_refused_with_numbers(changes, message):
    with pytest.raises(ValueError, match=message):
        ids(**{"rate": 0.5} | changes)
