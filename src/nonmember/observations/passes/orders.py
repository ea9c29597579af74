"""Observing orders: how likely a model finds the examples of a shard one after the other, in its own order and in
random ones.

Shapes: W windows of all orders of all shards, B windows of a batch, T tokens, N scored tokens of a batch.

A sequence longer than the window is read in windows that overlap; each token but the very first is scored once, with as
much as possible before it. Lightning's predict loop, as in observing; a row per window, and `OrderTable.load` adds them
up.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np
import pyarrow as pa
import torch
from torch import Tensor

from nonmember.corpora.transforms.ordered import Orders
from nonmember.models.forward import SplitForward, split_forward
from nonmember.models.reading import position_limit
from nonmember.observations.base import Reading
from nonmember.observations.passes.tokens import DocumentReader, Rows, check_readable, read_all
from nonmember.observations.passes.vocabulary import Workspace, token_statistics
from nonmember.records.documents import ORDER_SCHEMA

_ROW_GROUP_WINDOWS = 2**14


@dataclass(frozen=True)
class OrderedShard:
    """examples: token ids of each, without what the tokenizer puts before a text."""

    examples: Sequence[Sequence[int]]
    orders: Orders


def observe_orders(
    model: Any, shards: Mapping[str, OrderedShard], front: Sequence[int], reading: Reading, *, window: int, stride: int
) -> dict[str, int]:
    """Write the log-likelihood of each window of each order of each shard. Returns num_orders; num_tokens, the scored
    ones of all orders; num_read, the same with what windows read again; and num_floored, the scored ones whose
    log-probability was raised to -100.

    front: ids before the first example of every order, such as a beginning-of-text token; none where there are none.
    window: most tokens that are read at once.   stride: from the beginning of a window to that of the next.
    The other arguments and the errors are those of `observe`; ValueError also where the model reads no such window.
    """
    split = model if isinstance(model, SplitForward) else split_forward(model)
    most = position_limit(split.model.config)
    if most is not None and window > most:
        raise ValueError(
            f"The window has {window} tokens, and the model reads at most {most}. Set method.window to at most that, "
            "and method.stride to half of it."
        )
    for name, shard in shards.items():
        ids = [*front, *chain.from_iterable(shard.examples)]
        check_readable(split, {name: [min(ids), max(ids)]})
    reading.out_dir.mkdir(parents=True, exist_ok=True)
    windows = Windows(shards, front, window, stride)
    reader = OrderReader(split, windows, reading)
    counts = read_all(reader, reading, _ROW_GROUP_WINDOWS, compression="zstd", use_dictionary=["doc_id"])
    num_orders = sum(len(shard.orders.draws_K) for shard in shards.values())
    return {"num_orders": num_orders} | {name: counts[name] for name in ("num_tokens", "num_read", "num_floored")}


def plan_windows(num_ids: int, window: int, stride: int) -> list[tuple[int, int, int]]:
    """(start, stop, first): a window reads the ids start:stop and scores what follows those from start + first on.

    The last id is not read, as nothing follows it. The windows after the first one score only what the one before has
    not, the last `stride` of their targets.
    """
    num_inputs = num_ids - 1
    num_later = math.ceil(max(0, num_inputs - window) / stride)
    starts = [stride * index for index in range(num_later + 1)]
    return [(start, min(start + window, num_inputs), window - stride if start else 0) for start in starts]


class Windows(Sequence[list[int]]):
    """The ids of each window and the one after them. Made when asked for: all orders are many times the file."""

    def __init__(self, shards: Mapping[str, OrderedShard], front: Sequence[int], window: int, stride: int) -> None:
        self._shards, self._front = list(shards.values()), list(front)
        planned_W: list[tuple[int, ...]] = []
        for number, shard in enumerate(self._shards):
            planned = plan_windows(len(front) + sum(map(len, shard.examples)), window, stride)
            planned_W += [(number, order, *item) for order in range(len(shard.orders.draws_K)) for item in planned]
        self.shard_W, self.order_W, self.start_W, self.stop_W, self.first_W = np.array(planned_W, np.int32).T
        self.draws_W = np.array([self._shards[shard].orders.draws_K[order] for shard, order, *_ in planned_W], np.int32)
        names = list(shards)
        self.names = [names[shard] for shard in self.shard_W]

    def __len__(self) -> int:
        return len(self.shard_W)

    def __getitem__(self, index: int) -> list[int]:  # type: ignore[override]  # no slices
        shard = self._shards[self.shard_W[index]]
        order_E = shard.orders.indices_KE[self.order_W[index]]
        ids = [*self._front, *chain.from_iterable(shard.examples[example] for example in order_E)]
        return ids[self.start_W[index] : self.stop_W[index] + 1]


class OrderReader(DocumentReader):
    """Windows in, their log-likelihoods out."""

    def __init__(self, split: SplitForward, windows: Windows, reading: Reading) -> None:
        super().__init__(split, {}, reading)
        self.doc_ids, self._sequences, self._windows = windows.names, windows, windows
        self._workspace = Workspace()

    def lengths(self) -> list[int]:
        lengths: list[int] = (self._windows.stop_W - self._windows.start_W).tolist()
        return lengths

    def predict_step(self, batch: dict[str, Tensor], batch_idx: int) -> Rows:
        """batch: input_ids [B, T] padded on the right, the ids after the windows among them; lengths, doc_index [B]."""
        ids_BT, lengths_B, index_B = batch["input_ids"], batch["lengths"], batch["doc_index"]
        features_BTD = self._split.body(ids_BT[:, : max(1, ids_BT.shape[1] - 1)])  # an empty batch is one token
        first_B = torch.from_numpy(self._windows.first_W[index_B.numpy(force=True)]).to(ids_BT.device)
        position_T = torch.arange(ids_BT.shape[1] - 1, device=ids_BT.device)
        scored_BT = (position_T >= first_B[:, None]) & (position_T < lengths_B[:, None] - 1)
        features_ND, targets_N = features_BTD[:, : scored_BT.shape[1]][scored_BT], ids_BT[:, 1:][scored_BT]
        found = token_statistics(
            features_ND, self._split.head, targets_N, block_bytes=self._block_bytes, workspace=self._workspace
        )
        scored_BT = scored_BT.cpu()  # not every accelerator has double precision
        log_prob_BT = torch.zeros(scored_BT.shape, dtype=torch.float64)
        log_prob_BT[scored_BT] = found.log_prob.cpu().double()
        real_B = (lengths_B.cpu() > 1).numpy()
        index_B, windows = index_B.numpy(force=True)[real_B], self._windows
        num_tokens_B = scored_BT.sum(1).int().numpy()[real_B]
        read_B = windows.stop_W[index_B] - windows.start_W[index_B]
        columns: dict[str, Any] = {
            "doc_id": [self.doc_ids[index] for index in index_B],
            **{name: getattr(windows, f"{name}_W")[index_B] for name in ("order", "draws", "start")},
            "num_read": read_B,
            "num_tokens": num_tokens_B,
            "log_prob": log_prob_BT.sum(1).numpy()[real_B],
        }
        counts = {"num_documents": len(index_B), "num_floored": found.num_floored}
        counts |= {"num_tokens": int(num_tokens_B.sum()), "num_read": int(read_B.sum())}
        return pa.table(columns, schema=ORDER_SCHEMA), counts
