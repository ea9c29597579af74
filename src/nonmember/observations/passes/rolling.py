"""Token statistics of whole texts behind a prefix token, which a model reads window by window.

Shapes: B windows, T tokens.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from nonmember.models.forward import SplitForward, split_forward
from nonmember.observations.base import Reading
from nonmember.observations.passes.tokens import ObservationCounts, Observer, check_readable, read_all


@dataclass(frozen=True)
class Window:
    """ids: what is read, and one that is only predicted.   start: index of the first of them in the text behind its
    prefix.   first_scored: index in `ids`."""

    ids: Sequence[int]
    start: int
    first_scored: int


def windows(ids: Sequence[int], prefix: int, most: int) -> Iterator[Window]:
    """Each id of the text is scored once. All windows but the first of a short text read `most` ids: those scored stand
    behind one of context at least, and in the last window behind as many as there is room for."""
    behind = [prefix, *ids]
    for scored in range(1, len(behind), most):
        end = min(scored + most, len(behind))
        start = max(0, end - most - 1)
        yield Window(behind[start:end], start, scored - start)


def observe_windows(
    model: Any, token_ids: Mapping[str, Sequence[int]], prefix: int, most: int, reading: Reading
) -> ObservationCounts:
    """Write a row for each token of each document, as `passes.tokens.observe` does. most: tokens of a window."""
    split = model if isinstance(model, SplitForward) else split_forward(model)
    cut = {doc_id: list(windows(ids, prefix, most)) for doc_id, ids in token_ids.items() if len(ids)}
    for doc_id, parts in cut.items():
        for window in parts:
            check_readable(split, {doc_id: window.ids[1:]})
    reading.out_dir.mkdir(parents=True, exist_ok=True)
    observer = WindowObserver(split, [window for parts in cut.values() for window in parts], reading)
    counts = read_all(observer, [doc_id for doc_id, parts in cut.items() for _ in parts], reading)
    return replace(counts, num_documents=len(cut))


class WindowObserver(Observer):
    """Each window in, rows of its scored tokens out."""

    def __init__(self, split: SplitForward, parts: Sequence[Window], reading: Reading) -> None:
        super().__init__(split, [window.ids for window in parts], reading)
        self._start = torch.tensor([window.start for window in parts], dtype=torch.long)
        self._first_scored = torch.tensor([window.first_scored for window in parts], dtype=torch.long)

    def lengths(self) -> list[int]:
        """Tokens that are read of each window."""
        return [length - 1 for length in super().lengths()]

    def features_before(self, input_ids_BT: Tensor) -> Tensor:
        """The last id is not read: the window is full without it."""
        return self.features(self._split, input_ids_BT[:, :-1])

    def bounds(self, batch: Mapping[str, Tensor]) -> tuple[Tensor, Tensor]:
        index_B = batch["doc_index"].cpu()
        device = batch["input_ids"].device
        return self._first_scored[index_B].to(device), self._start[index_B].to(device)
