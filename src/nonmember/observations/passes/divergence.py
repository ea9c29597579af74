"""Divergence of one model's next-token distributions from another's, one number per document.

Shapes: B documents, T tokens, N scored tokens of a batch, D hidden, V vocabulary, S ids both tokenizers have.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import lightning
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import torch
import torch.nn.functional as F
from torch import Tensor

from nonmember.models.forward import Ids, SplitForward, split_forward
from nonmember.observations.passes.features import Features
from nonmember.observations.passes.tokens import PartWriter, Reader, check_readable, write_parts
from nonmember.records import DIVERGENCE_SCHEMA
from nonmember.scores.base import NO_TOKENS, DocumentScores
from nonmember.training.losses import BYTES_PER_LOGIT

_ROW_GROUP_DOCUMENTS = 2**16


@dataclass(frozen=True)
class DivergenceCounts:
    """Documents with a number, and the tokens read for them, by both models alike."""

    num_documents: int
    num_tokens: int


@dataclass(frozen=True)
class DocumentDivergences:
    """Of one batch: `doc_index` [B] counts documents from 0; `divergences` [B] float32."""

    doc_index: Tensor
    divergences: Tensor


def observe_divergence(
    model: Any,
    other: Any,
    token_ids: Mapping[str, Sequence[int]],
    out_dir: Path,
    make_trainer: Callable[..., lightning.Trainer],
    *,
    shared_ids: tuple[Ids, Ids],
    max_batch_tokens: int,
    block_bytes: int,
    description: str,
    features: Features | None = None,
) -> DivergenceCounts:
    """Write KL(other || model), nats per token at temperature 1, mean over each document's scored tokens.

    shared_ids: ids (model's, other's) of the strings both vocabularies have; the rest is left out and what remains
    renormalised, as in distillation.   token_ids: document id -> ids, which both models read; fewer than two give no
    row.   The other arguments and the errors are those of `observe`.
    """
    ours, theirs = (item if isinstance(item, SplitForward) else split_forward(item) for item in (model, other))
    sequences = {doc_id: ids for doc_id, ids in token_ids.items() if len(ids) >= 2}
    check_readable(ours, sequences)
    check_readable(theirs, sequences)
    out_dir.mkdir(parents=True, exist_ok=True)
    comparer = Comparer(ours, theirs, list(sequences.values()), max_batch_tokens, block_bytes, shared_ids, features)
    counts = write_parts(comparer, DivergenceWriter(out_dir, list(sequences)), make_trainer, description)
    return DivergenceCounts(counts["num_documents"], sum(map(len, sequences.values())))


class Comparer(Reader):
    """Batches of token ids in, one divergence per document out. The other model stays outside the module tree."""

    def __init__(
        self,
        split: SplitForward,
        other: SplitForward,
        sequences: Sequence[Sequence[int]],
        max_batch_tokens: int,
        block_bytes: int,
        shared_ids: tuple[Ids, Ids],
        features: Features | None = None,
    ) -> None:
        super().__init__(split, sequences, max_batch_tokens, features)
        self._outside = (other, shared_ids)
        self._block_bytes = block_bytes

    @property
    def models(self) -> tuple[Any, ...]:
        return (self.model, self._outside[0].model)

    def group(self, length: int) -> Hashable:
        return super().group(length), self._outside[0].lengths.group(length)

    def setup(self, stage: str) -> None:
        other, shared_ids = self._outside
        if not getattr(other.model, "hf_device_map", None):
            other.model.to(self.device)
        ours, theirs = (ids.to(self.device) if isinstance(ids, Tensor) else ids for ids in shared_ids)
        self._outside = (other, (ours, theirs))

    def predict_step(self, batch: dict[str, Tensor], batch_idx: int) -> DocumentDivergences:
        """batch: input_ids [B, T] padded on the right, lengths [B], doc_index [B]."""
        other, _ = self._outside
        input_ids_BT, lengths_B = batch["input_ids"], batch["lengths"]
        positions_T = torch.arange(1, input_ids_BT.shape[1], device=input_ids_BT.device)
        scored_BT = positions_T < lengths_B[:, None]
        ours_ND = self.features(self._split, input_ids_BT)[:, :-1][scored_BT]
        theirs_ND = self.features(other, input_ids_BT)[:, :-1][scored_BT]
        is_real_B = lengths_B > 1  # an empty batch is one token of no document
        sums_B = torch.zeros(len(lengths_B), dtype=torch.float64, device=input_ids_BT.device)
        rows_N, _ = scored_BT.nonzero(as_tuple=True)
        sums_B.index_add_(0, rows_N, self._by_token(ours_ND, theirs_ND).double())
        means_B = sums_B / (lengths_B - 1).clamp_min(1)
        return DocumentDivergences(batch["doc_index"][is_real_B], means_B[is_real_B].float())

    def _by_token(self, ours_ND: Tensor, theirs_ND: Tensor) -> Tensor:
        """[N] KL of each token's distributions, with logits made for a few rows at a time."""
        other, (our_ids, their_ids) = self._outside
        step = max(1, self._block_bytes // (BYTES_PER_LOGIT * self._split.head.vocab_size))
        found = []
        for ours, theirs in zip(ours_ND.split(step), theirs_ND.split(step), strict=True):
            ours_NS = F.log_softmax(self._split.head(ours).float()[:, our_ids], dim=-1)
            theirs_NS = F.log_softmax(other.head(theirs).float()[:, their_ids], dim=-1)
            found.append(F.kl_div(ours_NS, theirs_NS, log_target=True, reduction="none").sum(dim=-1))
        return torch.cat(found) if found else ours_ND.new_zeros(0)


class DivergenceWriter(PartWriter):
    """Writes a row per document."""

    def __init__(self, out_dir: Path, doc_ids: Sequence[str]) -> None:
        super().__init__(out_dir, doc_ids, _ROW_GROUP_DOCUMENTS)

    def rows_of(self, prediction: DocumentDivergences) -> tuple[pa.Table, dict[str, int]]:
        columns = {
            "doc_id": [self.doc_ids[index] for index in prediction.doc_index.tolist()],
            "divergence": prediction.divergences.numpy(force=True),
        }
        return pa.table(columns, schema=DIVERGENCE_SCHEMA), {"num_documents": len(prediction.doc_index)}


def load_divergences(paths: Sequence[Path], doc_ids: Sequence[str]) -> DocumentScores:
    """Read the Parquet parts and put the documents into the order of `doc_ids` (a join, never a zip)."""
    found: dict[str, float] = {}
    for path in paths:
        table = pq.read_table(path, schema=DIVERGENCE_SCHEMA)
        found |= dict(zip(table["doc_id"].to_pylist(), table["divergence"].to_pylist(), strict=True))
    values = np.array([found.get(doc_id, np.nan) for doc_id in doc_ids], dtype=np.float64)
    reasons = {doc_id: NO_TOKENS for doc_id in doc_ids if doc_id not in found}
    return DocumentScores(tuple(doc_ids), values, reasons)
