"""Answer probabilities: one forward pass over each prompt, one row per candidate answer.

Shapes: B prompts, T tokens, D hidden, A answers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import lightning
import torch
from torch import Tensor

from nonmember.models.forward import SplitForward, split_forward
from nonmember.observations.passes.tokens import ObservationCounts, Observer, TokenRows, check_readable, read_all
from nonmember.observations.passes.vocabulary import token_statistics


def observe_answers(
    model: Any,
    prompts: Mapping[str, Sequence[int]],
    answers: Sequence[int],
    out_dir: Path,
    make_trainer: Callable[..., lightning.Trainer],
    *,
    max_batch_tokens: int,
    block_bytes: int,
    description: str,
) -> ObservationCounts:
    """Write what `model` says about each of the `answers` (token ids) as the token after each prompt.

    prompts: document id -> ids.   The rows are those of `observe` for the token after the prompt, `answers` in order.
    Of the whole distribution only the last position is made. The other arguments and the errors are those of `observe`.
    """
    split = model if isinstance(model, SplitForward) else split_forward(model)
    check_readable(split, prompts)
    out_dir.mkdir(parents=True, exist_ok=True)
    asker = Asker(split, list(prompts.values()), max_batch_tokens, block_bytes, answers)
    return read_all(asker, list(prompts), out_dir, make_trainer, description)


class Asker(Observer):
    """An observer of what comes after each sequence."""

    def __init__(
        self,
        split: SplitForward,
        sequences: Sequence[Sequence[int]],
        max_batch_tokens: int,
        block_bytes: int,
        answers: Sequence[int],
    ) -> None:
        super().__init__(split, sequences, max_batch_tokens, block_bytes)
        self._answers = answers

    def predict_step(self, batch: dict[str, Tensor], batch_idx: int) -> TokenRows:
        """batch: input_ids [B, T] padded on the right, lengths [B], doc_index [B]; rows: B x A."""
        input_ids_BT, lengths_B = batch["input_ids"], batch["lengths"]
        asked_B = lengths_B > 1  # an empty batch is one token of no document
        features_BTD, rows_B = self._split.body(input_ids_BT), torch.arange(len(lengths_B), device=lengths_B.device)
        features_BD = features_BTD[rows_B, lengths_B - 1][asked_B]
        number = len(self._answers)
        answers_A = torch.tensor(list(self._answers), device=input_ids_BT.device)
        token_id_N = answers_A.repeat(len(features_BD))
        statistics = token_statistics(
            features_BD.repeat_interleave(number, dim=0),
            self._split.head,
            token_id_N,
            block_bytes=self._block_bytes,
            workspace=self._workspace,
        )
        doc_index_N = batch["doc_index"][asked_B].repeat_interleave(number)
        return TokenRows(doc_index_N, lengths_B[asked_B].repeat_interleave(number), token_id_N, statistics)
