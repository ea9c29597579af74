"""Which sequences make up which step: all of them, drawn from the seed, however a step is divided."""

from __future__ import annotations

import pytest
import torch

import tiny
from nonmember.training.batches import StepLoader, collate, packed_sequences, plan_steps

END = 99


@pytest.mark.parametrize("length", [1, 4, 7, 1000])
def test_packing_keeps_every_document_whole_and_drops_only_a_short_last_piece(length):
    documents = [[index * 10 + offset for offset in range(1 + index % 4)] for index in range(9)]
    sequences = packed_sequences(documents, length=length, end_of_text=END, seed=0)
    stream = [token for sequence in sequences for token in sequence]
    num_tokens = sum(len(document) + 1 for document in documents)
    assert len(stream) == (num_tokens if length > num_tokens else num_tokens // length * length)
    assert len(sequences) == 1 or set(tiny.lengths(sequences)) == {length}
    cut, rest = [], []
    for token in stream:
        rest.append(token)
        if token == END:
            cut.append(rest[:-1])
            rest = []
    assert all(document in documents for document in cut)
    assert len(cut) == len({tuple(document) for document in cut})
    if length > num_tokens:
        assert sorted(cut) == sorted(documents)


def test_packing_is_drawn_from_the_seed():
    documents = [[index] for index in range(30)]

    def packed(seed):
        return packed_sequences(documents, length=10, end_of_text=END, seed=seed)

    assert packed(1) == packed(1) != packed(2)
    assert packed(1)[0] != [token for document in documents[:5] for token in (*document, END)]


@pytest.mark.parametrize(("number", "batch_size", "epochs"), [(10, 4, 1), (10, 4, 3), (3, 8, 1), (3, 8, 4), (8, 4, 2)])
def test_a_plan_goes_through_everything_once_an_epoch(number, batch_size, epochs):
    steps = plan_steps(number, batch_size=batch_size, epochs=epochs, seed=5)
    stream = [index for step in steps for index in step]
    for epoch in range(epochs):
        assert sorted(stream[epoch * number : (epoch + 1) * number]) == list(range(number))
    assert all(len(step) == batch_size for step in steps[:-1])
    assert 1 <= len(steps[-1]) <= batch_size


def test_a_plan_is_drawn_from_the_seed_and_differs_between_epochs():
    item, two = plan_steps(20, batch_size=20, epochs=2, seed=5)
    assert item != two
    assert plan_steps(20, batch_size=20, epochs=2, seed=5) == [item, two]
    assert plan_steps(20, batch_size=20, epochs=1, seed=6) != [item]


@pytest.mark.parametrize(("number", "num_steps", "last"), [(500, 32, 4), (496, 31, 16), (347, 22, 11), (360, 23, 8)])
def test_the_papers_number_of_steps(number, num_steps, last):
    steps = plan_steps(number, batch_size=16, epochs=1, seed=1234)
    assert (len(steps), len(steps[-1])) == (num_steps, last)


SEQUENCES = tiny.sequences_of_ids(11, lengths=(1, 9))
STEPS = plan_steps(11, batch_size=4, epochs=2, seed=0)


def loader(micro_batch_size: int, rank: int = 0, world_size: int = 1) -> StepLoader:
    made = StepLoader(SEQUENCES, STEPS, micro_batch_size=micro_batch_size, padding_id=END)
    return made.share(rank, world_size)


def rows_of(batch) -> list[list[int]]:
    return [row[:length].tolist() for row, length in zip(batch["input_ids"], batch["lengths"], strict=True)]


@pytest.mark.parametrize("micro_batch_size", [1, 2, 3, 4, 16])
@pytest.mark.parametrize("world_size", [1, 2, 3])
def test_micro_batches_of_all_processes_make_up_the_steps(micro_batch_size, world_size):
    loaders = [loader(micro_batch_size, rank, world_size) for rank in range(world_size)]
    assert len({len(item) for item in loaders}) == 1
    accumulate = loaders[0].accumulate
    micro_batches = list(zip(*loaders, strict=True))  # all processes give the same number
    assert len(micro_batches) == len(loaders[0])
    for number, step in enumerate(STEPS):
        mine = micro_batches[number * accumulate : (number + 1) * accumulate]
        given = sorted(row for together in mine for batch in together for row in rows_of(batch) if row != [END])
        assert given == sorted(SEQUENCES[index] for index in step)
        tokens = sum(len(SEQUENCES[index]) - 1 for index in step)
        assert {int(batch["step_tokens"]) for together in mine for batch in together} == {tokens}
        # One scored token is scored in one process, and only there.
        assert sum(int((batch["lengths"] - 1).sum()) for together in mine for batch in together) == tokens
        assert all(len(together[0]["lengths"]) <= micro_batch_size for together in mine)


def test_it_goes_on_where_it_was():
    whole = [rows_of(batch) for batch in loader(2)]
    for position in range(len(whole)):
        interrupted = loader(2)
        iterator = iter(interrupted)
        seen = [rows_of(next(iterator)) for _ in range(position)]
        state = interrupted.state_dict()
        assert state == {"position": position}
        resumed = loader(2)
        resumed.load_state_dict(state)
        assert seen + [rows_of(batch) for batch in resumed] == whole
    again = loader(2)
    assert [rows_of(batch) for batch in again] == [rows_of(batch) for batch in again]  # at the end it starts anew


def test_padding_on_the_right():
    batch = collate([[1, 2, 3], [4]], END)
    assert batch["input_ids"].tolist() == [[1, 2, 3], [4, END, END]]
    assert batch["lengths"].tolist() == [3, 1]
    assert batch["input_ids"].dtype == torch.long
