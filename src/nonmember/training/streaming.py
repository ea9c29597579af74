"""Optimizer steps from a stream: a pure function of its chunks, the recipe and the seed, in constant memory.

    chunks in an order drawn per epoch -> token ids, the end-of-text id behind each document -> cut into sequences
    -> a shuffle buffer of so many sequences at a time, in an order drawn per buffer -> steps -> micro-batches

How many tokens each chunk has is known before training, so every sequence has a place that can be computed, and a
number of micro-batches is all that has to be remembered to go on in the middle of a document. Worker processes read
and encode chunks ahead and change nothing in the order; each process of several reads all chunks and keeps its rows.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import lightning
import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset

from nonmember.models.tokenizing import UnreadableText, encode_beginnings
from nonmember.records.streams import Stream
from nonmember.training.batches import Resumable, StepLoader, collate, ended

CHUNKS, BUFFERS = 2, 3  # names of the draws; a corpus in memory has 0 and 1


class EncodedChunks(Dataset[Any]):
    """Chunk number -> its token ids (int32), the end-of-text id behind each document."""

    def __init__(self, stream: Stream, tokenizer: Any, end_of_text: int):
        self._stream, self._tokenizer, self._end = stream, tokenizer, end_of_text

    def __len__(self) -> int:
        return self._stream.num_chunks

    def __getitem__(self, number: int) -> Any:
        chunk = self._stream.chunk(number)
        try:
            documents = encode_beginnings(self._tokenizer, [document.text for document in chunk], None)
        except UnreadableText as error:
            named = UnreadableText(error.name, error.index, error.why, chunk[error.index].doc_id)
            raise ValueError(str(named)) from error  # which the loader's worker can send home
        # A tensor goes to the training process through shared memory. An array would go through a pipe, on which a
        # worker waits for ever that is full when the training process is killed.
        return torch.from_numpy(
            np.fromiter((token for ids in documents for token in ended(ids, self._end)), dtype=np.int32)
        )

    def in_order(self, order: Sequence[int], num_workers: int) -> Iterator[Any]:
        """The chunks in this order, whichever worker has encoded them."""
        loader: DataLoader[Any] = DataLoader(
            self,
            batch_size=None,
            sampler=order,
            num_workers=num_workers,
            collate_fn=_as_it_is,
            worker_init_fn=_quiet_worker,
            generator=torch.Generator(),
        )
        return iter(loader)


@dataclass(frozen=True)
class TokenStream:
    """A stream as a model's tokenizer reads it. num_tokens_C: [chunks] tokens, those of end of text included."""

    chunks: EncodedChunks
    num_tokens_C: Any


class StreamLoader(Resumable):
    """The micro-batches of all steps for one of `world_size` processes, as `StepLoader` gives them.

    All sequences have `length` tokens; what is left at the end of an epoch is dropped. Memory: `buffer` sequences and
    the chunks that are read ahead, whatever the number of tokens.
    """

    def __init__(
        self,
        stream: TokenStream,
        *,
        length: int,
        buffer: int,
        batch_size: int,
        epochs: int,
        seed: int,
        micro_batch_size: int,
        padding_id: int,
        num_workers: int,
    ):
        super().__init__()
        self._stream, self._length, self._buffer, self._seed = stream, length, buffer, seed
        self._num_workers, self._padding_id = num_workers, padding_id
        self.num_sequences = int(stream.num_tokens_C.sum()) // length
        if not self.num_sequences:
            raise ValueError(
                f"There is nothing to train on: the streamed corpus has {int(stream.num_tokens_C.sum())} tokens, and a "
                f"sequence takes {length}."
            )
        self._total = epochs * self.num_sequences
        self._batch_size, self._micro = batch_size, micro_batch_size
        self.num_steps = math.ceil(self._total / batch_size)
        self.accumulate = math.ceil(min(batch_size, self._total) / micro_batch_size)

    def __len__(self) -> int:
        whole, rest = divmod(self._total, self._batch_size)
        return whole * self.accumulate + math.ceil(rest / self._micro)

    def __iter__(self) -> Iterator[dict[str, torch.Tensor]]:
        if self.position >= len(self):
            self.position = 0
        rows = self._sequences(self._position(self.position))
        while self.position < len(self):
            number = self._position(self.position + 1) - self._position(self.position)
            step = self.position // self.accumulate
            in_step = min(self._batch_size, self._total - step * self._batch_size)
            self.position += 1
            micro_batch = [next(rows) for _ in range(number)]
            mine = micro_batch[self.rank :: self.world_size] or [[self._padding_id]]
            yield collate(mine, self._padding_id) | {"step_tokens": torch.tensor(in_step * (self._length - 1))}

    @property
    def num_tokens(self) -> int:
        """Scored tokens of all steps."""
        return self._total * (self._length - 1)

    def reached(self) -> Reached:
        return Reached(self)

    def tokens_before(self, num_micro_batches: int) -> int:
        return self._position(num_micro_batches) * self._length

    def _position(self, num_micro_batches: int) -> int:
        """Sequences of the first so many micro-batches."""
        step, within = divmod(num_micro_batches, self.accumulate)
        return min(step * self._batch_size + min(within * self._micro, self._batch_size), self._total)

    def _sequences(self, first: int) -> Iterator[Any]:
        """The sequences of all epochs from one on."""
        epoch, within = divmod(first, self.num_sequences)
        while epoch * self.num_sequences < self._total:
            yield from self._epoch(epoch, within)
            epoch, within = epoch + 1, 0

    def _epoch(self, epoch: int, first: int) -> Iterator[Any]:
        """From the buffer on in which the first lies: only the chunks that it is cut from are read again."""
        start = first // self._buffer * self._buffer
        tokens = self._tokens(epoch, start * self._length)
        while start < self.num_sequences:
            number = min(self._buffer, self.num_sequences - start)
            rows = tokens.take(number * self._length).reshape(number, self._length)
            order = np.random.default_rng([self._seed, BUFFERS, epoch, start]).permutation(number)
            for index in order[max(0, first - start) :]:
                yield rows[index]
            start += number

    def _tokens(self, epoch: int, first: int) -> _Tokens:
        """The tokens of an epoch from one on."""
        order = np.random.default_rng([self._seed, CHUNKS, epoch]).permutation(len(self._stream.chunks))
        ends = np.cumsum(self._stream.num_tokens_C[order])
        index = int(np.searchsorted(ends, first, side="right"))
        before = int(ends[index - 1]) if index else 0
        chunks = self._stream.chunks.in_order(order[index:].tolist(), self._num_workers)
        return _Tokens(chunks, self._stream.num_tokens_C[order[index:]], skipped=first - before)


class Reached(Sequence[int]):
    """Tokens of the first 0, 1, 2 ... micro-batches, without a list of them."""

    def __init__(self, loader: StreamLoader):
        self._loader = loader

    def __len__(self) -> int:
        return len(self._loader) + 1

    def __getitem__(self, index: Any) -> Any:
        return self._loader.tokens_before(range(len(self))[index])


class _Tokens:
    """Chunks one after the other as one row of tokens."""

    def __init__(self, chunks: Iterator[Any], num_tokens_C: Any, *, skipped: int):
        self._chunks, self._expected = chunks, iter(num_tokens_C)
        self._rest = np.empty(0, dtype=np.int32)
        self._skipped = skipped

    def take(self, number: int) -> Any:
        taken, index = np.empty(number, dtype=np.int32), 0
        while index < number:
            if not len(self._rest):
                self._rest, self._skipped = self._next()[self._skipped :], 0
            part = self._rest[: number - index]
            taken[index : index + len(part)] = part
            index, self._rest = index + len(part), self._rest[len(part) :]
        return taken

    def _next(self) -> Any:
        chunk, expected = next(self._chunks).numpy(), int(next(self._expected))
        if len(chunk) != expected:
            raise ValueError(
                f"A chunk of the streamed corpus has {len(chunk)} tokens, and {expected} were counted before training. "
                "Has the tokenizer been changed? Remove the folder `counts` of the store and run again."
            )
        return chunk


def _as_it_is(item: Any) -> Any:
    return item


def _quiet_worker(_: int) -> None:
    os.environ["TOKENIZERS_PARALLELISM"] = "false"  # workers are side by side already


def end_of_text_id(tokenizer: Any) -> int:
    if tokenizer.eos_token_id is None:
        raise ValueError("The tokenizer has no end-of-text token, which training puts between documents; give it one.")
    return int(tokenizer.eos_token_id)


Loader = StepLoader | StreamLoader


class TrainingData(lightning.LightningDataModule):
    """Gives each process its part of the loader's micro-batches.

    It has no state of its own: the loader's is one number, the same in all processes, which Lightning keeps once, with
    the loops of a checkpoint.
    """

    def __init__(self, loader: Loader):
        super().__init__()
        self._loader = loader

    def train_dataloader(self) -> Loader:
        assert self.trainer is not None
        return self._loader.share(self.trainer.global_rank, self.trainer.world_size)
