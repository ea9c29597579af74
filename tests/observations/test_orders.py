"""Orders: every token scored once, whatever the windows, batches and processes; the same draws for the same seed."""

from __future__ import annotations

import functools

import lightning
import numpy as np
import pytest
import torch

import tiny
from nonmember.corpora.transforms.ordered import Orders, random_orders
from nonmember.observations.base import Reading
from nonmember.observations.passes.orders import OrderedShard, observe_orders, plan_windows
from nonmember.records import Document, OrderTable

VOCAB = 60
one_process = functools.partial(lightning.Trainer, accelerator="cpu", devices=1)


@pytest.fixture(scope="module")
def model():
    return tiny.model(0)  # reads 128 tokens at most


def shards_of(sizes=(3, 4, 2), *, seed=0, num_orders=5, lengths=(3, 20)) -> dict[str, OrderedShard]:
    shards = {}
    for number, size in enumerate(sizes):
        ids = tiny.sequences_of_ids(size, seed=seed + number, lengths=lengths)
        documents = [Document(str(index), f"{number}/{index}") for index in range(size)]
        shards[f"shard-{number}"] = OrderedShard(ids, random_orders(documents, num_orders, seed))
    return shards


def observed(model, shards, folder, *, front=(), window=64, stride=32, max_batch_tokens=200, make_trainer=one_process):
    reading = Reading(folder, make_trainer, max_batch_tokens, block_bytes=8192)
    counts = observe_orders(model, shards, front, reading, window=window, stride=stride)
    return counts, OrderTable.load(sorted(folder.glob("part-*.parquet")), list(shards))


def in_order(shard: OrderedShard, order, front=()) -> list[int]:
    return [*front, *(token for example in order for token in shard.examples[example])]


def log_probs(model, ids: list[int]) -> torch.Tensor:
    """[len(ids) - 1] of each id but the first, in one pass and in double precision from the logits on."""
    with torch.no_grad():
        logits = model(torch.tensor([ids])).logits[0, :-1].double()
    return logits.log_softmax(-1)[torch.arange(len(ids) - 1), torch.tensor(ids[1:])]


def in_windows(model, ids: list[int], window: int, stride: int) -> float:
    """The authors' loop."""
    inputs, total, end = ids[:-1], 0.0, 0
    start = 0
    while end < len(inputs):
        stop = min(start + window, len(inputs))
        scored = log_probs(model, [*inputs[start:stop], ids[stop]])
        total += float(scored[end - start :].sum())
        start, end = start + stride, stop
    return total


def expected(shard: OrderedShard, likelihood, front=()) -> tuple[float, float]:
    """Own order, and mean over the draws."""
    values = [likelihood(in_order(shard, order, front)) for order in shard.orders.indices_KE]
    return values[0], float(np.average(values, weights=shard.orders.draws_K))


@pytest.mark.parametrize("front", [(), (0,)])
def test_one_pass_where_the_shard_fits_the_window(model, tmp_path, front):
    shards = shards_of()
    counts, table = observed(model, shards, tmp_path, front=front, window=128, stride=64)
    for number, shard in enumerate(shards.values()):
        own, mean = expected(shard, lambda ids: float(log_probs(model, ids).sum()), front)
        assert table.canonical[number] == pytest.approx(own, abs=1e-3)
        assert table.mean_shuffled[number] == pytest.approx(mean, abs=1e-3)
        assert table.num_tokens[number] == sum(map(len, shard.examples)) + len(front) - 1
    num_orders = [len(shard.orders.draws_K) for shard in shards.values()]
    assert counts["num_orders"] == sum(num_orders)
    assert counts["num_tokens"] == counts["num_read"] == table.num_read.sum() == (num_orders * table.num_tokens).sum()
    assert counts["num_floored"] == 0


@pytest.mark.slow
@pytest.mark.parametrize(("window", "stride"), [(16, 8), (16, 16), (16, 5), (7, 1), (2, 1)])
def test_windows_are_those_of_a_plain_loop(model, tmp_path, window, stride):
    shards = shards_of()
    counts, table = observed(model, shards, tmp_path, window=window, stride=stride)
    for number, shard in enumerate(shards.values()):
        own, mean = expected(shard, lambda ids: in_windows(model, ids, window, stride))
        assert table.canonical[number] == pytest.approx(own, abs=1e-3)
        assert table.mean_shuffled[number] == pytest.approx(mean, abs=1e-3)
    assert counts["num_tokens"] == sum(
        len(shard.orders.draws_K) * (sum(map(len, shard.examples)) - 1) for shard in shards.values()
    )
    assert counts["num_read"] > counts["num_tokens"] or stride == window


@pytest.mark.parametrize("stride", [1, 3, 4, 8])
@pytest.mark.parametrize("num_ids", [2, 3, 8, 9, 10, 17, 40])
def test_every_token_but_the_first_is_scored_once_with_most_before_it(num_ids, stride):
    scored, read = [], 0
    for start, stop, first in plan_windows(num_ids, 8, stride):
        assert 0 < stop - start <= 8
        scored += range(start + first + 1, stop + 1)
        read += stop - start
        if start:
            assert first == 8 - stride  # so many before the first that is scored
    assert scored == list(range(1, num_ids))
    assert read >= num_ids - 1


@pytest.mark.slow
def test_batches_and_processes_do_not_matter(model, tmp_path):
    shards = shards_of()
    _, alone = observed(model, shards, tmp_path / "alone", window=16, stride=8, max_batch_tokens=1)
    counts, together = observed(model, shards, tmp_path / "together", window=16, stride=8)
    two = functools.partial(lightning.Trainer, accelerator="cpu", devices=2, strategy="ddp_fork")
    shared_counts, shared = observed(model, shards, tmp_path / "shared", window=16, stride=8, make_trainer=two)
    assert len(list((tmp_path / "shared").glob("part-*.parquet"))) == 2
    assert counts == shared_counts
    for table in (together, shared):
        np.testing.assert_allclose(table.canonical, alone.canonical, rtol=0, atol=1e-3)
        np.testing.assert_allclose(table.mean_shuffled, alone.mean_shuffled, rtol=0, atol=1e-3)
        assert np.array_equal(table.num_tokens, alone.num_tokens)


def test_twice_the_same(model, tmp_path):
    shards = shards_of()
    for name in ("a", "b"):
        observed(model, shards, tmp_path / name)
    assert (tmp_path / "a/part-0.parquet").read_bytes() == (tmp_path / "b/part-0.parquet").read_bytes()


def test_an_order_drawn_often_is_read_once_and_counts_often(model, tmp_path):
    """Two examples have two orders, however many are drawn."""
    shard = OrderedShard(tiny.sequences_of_ids(2), Orders(np.array([[0, 1], [1, 0]]), np.array([3, 1])))
    counts, table = observed(model, {"s": shard}, tmp_path)
    own, other = (float(log_probs(model, in_order(shard, order)).sum()) for order in ([0, 1], [1, 0]))
    assert counts["num_orders"] == 2
    assert table.canonical[0] == pytest.approx(own, abs=1e-3)
    assert table.mean_shuffled[0] == pytest.approx((3 * own + other) / 4, abs=1e-3)


def test_refusals(model, tmp_path):
    shards = shards_of()
    with pytest.raises(ValueError, match="window has 129 tokens, and the model reads at most 128"):
        observed(model, shards, tmp_path, window=129)
    wrong = {"s": OrderedShard([[1, 2], [VOCAB, 3]], random_orders([Document("a", "a"), Document("b", "b")], 1, 0))}
    with pytest.raises(ValueError, match=f"'s' has token ids from 1 to {VOCAB}"):
        observed(model, wrong, tmp_path)
    stopped = functools.partial(one_process, limit_predict_batches=1)
    with pytest.raises(ValueError, match="limit_predict_batches"):
        observed(model, shards, tmp_path, make_trainer=stopped)
