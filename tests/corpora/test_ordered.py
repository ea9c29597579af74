"""Ordered files: a fixed random order, joined without losing it, cut into shards without losing an example."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pytest

import tiny
from nonmember.corpora import Component, Joined, Mixture, Select, Sharded, Shuffled
from nonmember.corpora.transforms.ordered import line, random_orders
from nonmember.models.exposure import truth_about
from nonmember.records import Document
from nonmember.training import Trained
from nonmember.training.batches import packed_sequences
from tiny import jsonl


def lines(number: int, domain: str = "x") -> list[Document]:
    return [Document(f"{domain}-{index}", f"line {index} of {domain}", "", domain) for index in range(number)]


def texts(corpus) -> list[str]:
    return [document.text for document in corpus.documents]


# ---------------------------------------------------------------------------------------------------- Shuffled


def test_a_file_keeps_its_order_on_the_way(write_lines, build):
    rows = [{"text": f"line {place}"} for place in (3, 1, 2, 0)]
    source = jsonl(str(write_lines("file.jsonl", *rows)), None, "text")
    assert texts(build(source)) == ["line 3", "line 1", "line 2", "line 0"]
    assert texts(build(Sharded(Select(source, num_documents=4, salt="s"), 2, 100))) == [
        "line 3\nline 1\n",
        "line 2\nline 0\n",
    ]


def test_a_shuffled_file_has_one_order_a_salt_whatever_the_order_before(given, build):
    documents = lines(30)
    item, same, other = (
        build(Shuffled(given(*base), salt)).doc_ids
        for base, salt in ((documents, "a"), (documents[::-1], "a"), (documents, "b"))
    )
    assert item == same
    assert sorted(item) == sorted(other) == sorted(document.doc_id for document in documents)
    assert len({item, other, tuple(document.doc_id for document in documents)}) == 3
    smaller = build(Shuffled(given(*documents[:20]), "a")).doc_ids
    assert smaller == tuple(name for name in item if name in set(smaller)), "others do not move when some leave"


# ------------------------------------------------------------------------------------------------------ Joined


@pytest.mark.parametrize(("size", "sizes"), [(None, [10]), (4, [4, 4, 2]), (1, [1] * 10), (10, [10]), (99, [10])])
def test_joined_documents_are_the_file_again(given, build, size, sizes):
    documents = lines(10)
    joined = build(Joined(given(*documents), size))
    assert [text.count("\n") for text in texts(joined)] == sizes
    assert "".join(texts(joined)) == "".join(f"{item.text}\n" for item in documents)
    assert {document.domain for document in joined.documents} == {"x"}
    assert len(set(joined.doc_ids) | {item.doc_id for item in documents}) == len(sizes) + 10, "no id means two texts"


def test_a_joined_file_stands_in_the_training_stream_as_it_is(given, build):
    """... as often as it is to be read, though training shuffles documents."""
    file, general = Joined(given(*lines(50)), None), given(*lines(40, "general"))
    mixture = build(Mixture((Component(general, 1), Component(file, 3))))
    ids = [list(document.text.encode()) for document in mixture.documents]
    for seed in range(3):
        sequences = packed_sequences(ids, length=64, end_of_text=0, seed=seed)
        stream = bytes(token for sequence in sequences for token in sequence)
        assert stream.count(texts(build(file))[0].encode()[:-64]) == 3  # the last piece of the stream may be dropped


def test_examples_of_several_lines_are_not_joined(given, build):
    with pytest.raises(ValueError, match="one example on a line, but 'd1' has 2 lines"):
        build(Joined(given("one", "two\nlines"), None))


# ----------------------------------------------------------------------------------------------------- Sharded


@pytest.mark.parametrize(("number", "sizes"), [(8, [2, 2, 2, 2]), (10, [3, 3, 2, 2]), (11, [3, 3, 3, 2])])
def test_shards_are_consecutive_and_larger_ones_come_first(given, build, number, sizes):
    documents = lines(number)
    spec = Sharded(given(*documents), 4, 100)
    corpus = build(spec)
    assert corpus.doc_ids == ("shard-000", "shard-001", "shard-002", "shard-003")
    assert [text.count("\n") for text in texts(corpus)] == sizes
    assert "".join(texts(corpus)) == "".join(line(item.text) for item in documents)
    shards = spec.shards(build(given(*documents)))
    assert [len(examples) for examples in shards.values()] == sizes
    assert [item for examples in shards.values() for item in examples] == documents


def test_only_the_beginning_of_a_long_file(given, build):
    assert texts(build(Sharded(given(*lines(50)), 2, 5)))[-1] == "line 3 of x\nline 4 of x\n"


def test_blank_examples_are_dropped_and_counted(given, build):
    corpus = build(Sharded(given("a", "", "b\n", "  ", "c", "\n", "d"), 2, 4))
    assert texts(corpus) == ["a\nb\n", "c\nd\n"]
    assert corpus.dropped == {"blank": 3}


def test_refusals_of_shards(given, build):
    with pytest.raises(ValueError, match="4 shards of at least 2 examples need 8 examples, and the file has 7"):
        build(Sharded(given(*lines(7)), 4, 100))
    with pytest.raises(ValueError, match=r"max_examples.*at least 8"):
        Sharded(given(*lines(7)), 4, 7)
    with pytest.raises(ValueError, match=r"num_shards.*at least 2"):
        Sharded(given(*lines(7)), 1, 7)


# ------------------------------------------------------------------------------------------------------ orders


def test_orders_are_seeded_by_shard():
    first, second = lines(6), lines(6, "y")
    item, same, other_seed, other_text = (
        random_orders(examples, 40, seed) for examples, seed in ((first, 1), (first, 1), (first, 2), (second, 1))
    )
    assert np.array_equal(item.indices_KE, same.indices_KE)
    assert np.array_equal(item.draws_K, same.draws_K)
    for other in (other_seed, other_text):
        assert not np.array_equal(item.indices_KE, other.indices_KE)


@pytest.mark.parametrize("size", [2, 3, 6, 40])
def test_each_order_once_the_own_one_first(size):
    orders = random_orders(lines(size), 60, 0)
    assert orders.indices_KE[0].tolist() == list(range(size))
    assert len({tuple(order) for order in orders.indices_KE}) == len(orders.draws_K) <= min(61, math.factorial(size))
    assert all(sorted(order) == list(range(size)) for order in orders.indices_KE.tolist())
    assert orders.draws_K.sum() == 60
    assert (orders.draws_K[1:] > 0).all()


def test_all_orders_are_drawn_alike():
    """The own one too."""
    counts: Counter[tuple[int, ...]] = Counter()
    for seed in range(20):
        orders = random_orders(lines(3), 300, seed)
        counts.update(
            {tuple(order): int(draws) for order, draws in zip(orders.indices_KE.tolist(), orders.draws_K, strict=True)}
        )
    assert len(counts) == 6
    assert all(abs(count - 1000) < 5 * np.sqrt(1000) for count in counts.values())


def test_the_workshop_knows_that_a_joined_file_was_read(tmp_path):
    """Truth comes from recipes: the examples are lines of what was read."""
    file = tiny.texts("moss fern reed", "pine lark wren", "hare vole dusk", "rain mist tide")
    shop = tiny.builder(tmp_path)
    for corpus, truth in ((Joined(file, None), "member"), (tiny.GENERAL, "non_member")):
        trained = Trained(tiny.scratch(1), tiny.pretraining(), corpus, seed=1)
        assert truth_about(shop, trained, file) == truth
