"""Composition of optimizer steps: a pure function of data, recipe and seed.

A *step* is the unit. Micro-batches and devices only divide it: every micro-batch carries the number of scored tokens
of its whole step, so the gradient is that of the mean over the step's tokens however it is divided.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import Self, TypeVar

import lightning
import numpy as np
import torch
from torch.nn.utils.rnn import pad_sequence

T = TypeVar("T")
Masks = Sequence[Sequence[bool]]  # of documents or sequences: which of their ids are scored


def packed_sequences(
    documents: Sequence[Sequence[int]], *, length: int, end_of_text: int, seed: int
) -> list[list[int]]:
    """Documents in an order drawn from `seed`, each ended by the end-of-text id, cut into sequences of `length`.

    The last piece is dropped when it is shorter, unless it is all there is.
    """
    return _packed([ended(ids, end_of_text) for ids in documents], length, seed)


def packed_masks(
    documents: Sequence[Sequence[int]], scored: Masks, *, length: int, end_of_text: int, seed: int
) -> list[list[bool]]:
    """Which ids of the `packed_sequences` are scored: of each document, and an end-of-text id that is added."""
    added = [len(ended(ids, end_of_text)) - len(ids) for ids in documents]
    return _packed([[*mask, *[True] * number] for mask, number in zip(scored, added, strict=True)], length, seed)


def _packed(documents: Sequence[Sequence[T]], length: int, seed: int) -> list[list[T]]:
    order = np.random.default_rng([seed, 0]).permutation(len(documents))
    stream: list[T] = []
    for index in order:
        stream += documents[index]
    sequences = [stream[start : start + length] for start in range(0, len(stream), length)]
    if len(sequences) > 1 and len(sequences[-1]) < length:
        sequences.pop()
    return sequences


def ended(document: Sequence[int], end_of_text: int) -> Sequence[int]:
    """With the end-of-text id behind it, once, also where the tokenizer has put one there."""
    return document if document and document[-1] == end_of_text else [*document, end_of_text]


def plan_steps(
    num_sequences: int, *, batch_size: int, epochs: int, seed: int, drop_last: bool = False
) -> list[list[int]]:
    """Sequence indices of each optimizer step: `epochs` permutations one after the other, cut into batches.

    Only the very last step can be smaller; with `drop_last` none is, and no step has sequences of two epochs.
    """
    orders = [np.random.default_rng([seed, 1, epoch]).permutation(num_sequences) for epoch in range(epochs)]
    if drop_last:
        orders = [order[: num_sequences // batch_size * batch_size] for order in orders]
    stream = np.concatenate(orders).tolist()
    return [stream[start : start + batch_size] for start in range(0, len(stream), batch_size)]


class StepLoader:
    """Micro-batches of the planned steps, for one of `world_size` processes; remembers where it is for exact resume.

    Lightning sees a single epoch of known length and stores `state_dict` in its checkpoints. Each batch is a dict:
    input_ids [B,T] padded on the right, lengths [B], step_tokens (scored tokens of the whole step, all processes), and
    scored [B,T] where only some ids are.
    A process that has no sequence left in a micro-batch gets one of length 1, which has nothing to score.

    group: sequences whose lengths are of different ones are never in one micro-batch (`models.lengths`).
    """

    def __init__(
        self,
        sequences: Sequence[Sequence[int]],
        steps: Sequence[Sequence[int]],
        *,
        micro_batch_size: int,
        padding_id: int,
        group: Callable[[int], Hashable] = lambda length: None,
        scored: Masks | None = None,
    ):
        self.rank, self.world_size, self.position = 0, 1, 0
        self.sequences, self.padding_id, self.scored = sequences, padding_id, scored
        self.lengths = sequences.lengths if hasattr(sequences, "lengths") else [len(item) for item in sequences]
        divided = [_divided(step, lambda index: group(int(self.lengths[index])), micro_batch_size) for step in steps]
        self.accumulate = max(1, *map(len, divided))
        self.micro_batches: list[tuple[Sequence[int], int]] = []
        for step, parts in zip(steps, divided, strict=True):
            tokens = sum(map(self._num_scored, step))
            if scored is not None:
                tokens = max(1, tokens)  # a step in which nothing is scored changes nothing
            empty: list[Sequence[int]] = [[] for _ in range(self.accumulate - len(parts))]
            self.micro_batches += [(part, tokens) for part in (parts if step is steps[-1] else [*parts, *empty])]

    def share(self, rank: int, world_size: int) -> Self:
        """Give only this process's part of every micro-batch."""
        self.rank, self.world_size = rank, world_size
        return self

    def state_dict(self) -> dict[str, int]:
        return {"position": self.position}

    def load_state_dict(self, state: dict[str, int]) -> None:
        self.position = state["position"]

    def __len__(self) -> int:
        return len(self.micro_batches)

    def __iter__(self) -> Iterator[dict[str, torch.Tensor]]:
        if self.position >= len(self):
            self.position = 0
        while self.position < len(self):
            indices, step_tokens = self.micro_batches[self.position]
            self.position += 1
            mine = [self.sequences[index] for index in indices[self.rank :: self.world_size]]
            batch = collate(mine or [[self.padding_id]], self.padding_id)
            if self.scored is not None:
                masks = [self.scored[index] for index in indices[self.rank :: self.world_size]]
                batch["scored"] = collate(masks or [[False]], False)["input_ids"].bool()
            yield batch | {"step_tokens": torch.tensor(step_tokens)}

    def _num_scored(self, index: int) -> int:
        """The first id has nothing before it."""
        return max(0, int(self.lengths[index]) - 1) if self.scored is None else sum(self.scored[index][1:])

    @property
    def num_steps(self) -> int:
        return math.ceil(len(self) / self.accumulate)

    @property
    def num_tokens(self) -> int:
        """Scored tokens of all steps."""
        return sum(tokens for _, tokens in self.micro_batches[:: self.accumulate])

    def facts(self) -> dict[str, int]:
        return {"num_sequences": len(self.sequences), "num_steps": self.num_steps, "num_tokens": self.num_tokens}

    def sizes(self) -> list[int]:
        """Tokens of each micro-batch, over all processes."""
        return [int(sum(self.lengths[index] for index in indices)) for indices, _ in self.micro_batches]


def _divided(step: Sequence[int], group: Callable[[int], Hashable], size: int) -> list[Sequence[int]]:
    """The sequences of a step in micro-batches of one group each."""
    groups: dict[Hashable, list[int]] = {}
    for index in step:
        groups.setdefault(group(index), []).append(index)
    return [item[start : start + size] for item in groups.values() for start in range(0, len(item), size)]


def collate(sequences: Sequence[Sequence[int]], padding_id: int) -> dict[str, torch.Tensor]:
    """Pad on the right: causal attention keeps padding away from the real tokens, so no mask is needed."""
    rows = [torch.as_tensor(sequence, dtype=torch.long) for sequence in sequences]
    input_ids = pad_sequence(rows, batch_first=True, padding_value=padding_id)
    return {"input_ids": input_ids, "lengths": torch.tensor([len(row) for row in rows])}


class TrainingData(lightning.LightningDataModule):
    """Gives each process its part of the loader's micro-batches.

    It has no state of its own: the loader's is one number, the same in all processes, which Lightning keeps once, with
    the loops of a checkpoint.
    """

    def __init__(self, loader: StepLoader):
        super().__init__()
        self._loader = loader

    def train_dataloader(self) -> StepLoader:
        assert self.trainer is not None
        return self._loader.share(self.trainer.global_rank, self.trainer.world_size)
