"""Norms of the gradient of each document's loss: a forward and a backward pass for each, one number per norm.

Shapes: T tokens, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import lightning
import pyarrow as pa
import torch
import torch.nn.functional as F
from torch import Tensor

from nonmember.models.forward import SplitForward, split_forward
from nonmember.observations.passes.tokens import PartWriter, Reader, check_readable, write_parts
from nonmember.records.gradients import GRADIENT_SCHEMA, NORMS

_ROW_GROUP_DOCUMENTS = 2**16
ORDERS = dict(zip(NORMS, (1, 2, float("inf")), strict=True))


@dataclass(frozen=True)
class GradientCounts:
    """Documents with numbers, and the tokens read for them."""

    num_documents: int
    num_tokens: int


@dataclass(frozen=True)
class DocumentNorms:
    """Of one document, or of none: `doc_index` counts documents from 0; `norms` by name."""

    doc_index: int | None
    norms: Mapping[str, float]


def observe_gradients(
    model: Any,
    token_ids: Mapping[str, Sequence[int]],
    out_dir: Path,
    make_trainer: Callable[..., lightning.Trainer],
    *,
    description: str,
) -> GradientCounts:
    """Write, per document, the mean over parameter tensors of the l1, l2 and maximum norm of the gradient of its mean
    loss per token (nats). All floating-point parameters count, each tensor once; none is changed.

    token_ids: document id -> ids; fewer than two give no row.   The other arguments and the errors are those of
    `observe`; ValueError also for a model whose weights are sharded or quantized, which have no such gradients.
    """
    split = model if isinstance(model, SplitForward) else split_forward(model)
    sequences = {doc_id: ids for doc_id, ids in token_ids.items() if len(ids) >= 2}
    check_readable(split, sequences)
    if any(not parameter.is_floating_point() for parameter in split.model.parameters()):
        raise ValueError("Its weights are quantized, and gradients need floating-point ones. Load it unquantized.")
    out_dir.mkdir(parents=True, exist_ok=True)
    reader = GradientReader(split, list(sequences.values()), max_batch_tokens=1)
    counts = write_parts(reader, NormWriter(out_dir, list(sequences)), make_trainer, description)
    return GradientCounts(counts["num_documents"], sum(map(len, sequences.values())))


class GradientReader(Reader):
    """One document after the other in, norms out."""

    def batches(self) -> list[list[int]]:
        return [[index] for index in range(len(self._sequences))]

    def predict_step(self, batch: dict[str, Tensor], batch_idx: int) -> DocumentNorms:
        """batch: input_ids [1, T], lengths [1], doc_index [1]."""
        if int(batch["lengths"][0]) < 2:
            return DocumentNorms(None, {})  # an empty batch is one token of no document
        with torch.inference_mode(False), torch.enable_grad(), _differentiable(self.model) as parameters:
            input_ids_1T = batch["input_ids"].clone()
            logits_TV = self._split.head(self._split.body(input_ids_1T)[0, :-1]).float()
            loss = F.cross_entropy(logits_TV, input_ids_1T[0, 1:])
            gradients = torch.autograd.grad(loss, parameters, allow_unused=True)
        there = [gradient for gradient in gradients if gradient is not None]
        norms = {name: _mean_norm(there, order) for name, order in ORDERS.items()}
        return DocumentNorms(int(batch["doc_index"][0]), norms)


def _mean_norm(gradients: Sequence[Tensor], order: float) -> float:
    return sum(float(gradient.float().norm(order)) for gradient in gradients) / len(gradients)


@contextmanager
def _differentiable(model: Any) -> Iterator[list[Any]]:
    """All parameters, ready for gradients for a while, whatever else they are kept for."""
    parameters = list(model.parameters())
    if any(type(item).__name__ == "DTensor" or item.is_inference() for item in parameters):
        raise ValueError("Its weights are sharded, and norms of gradients need whole ones. Use trainer=cpu or gpu.")
    flags = [parameter.requires_grad for parameter in parameters]
    for parameter in parameters:
        parameter.requires_grad_(True)
    try:
        yield parameters
    finally:
        for parameter, flag in zip(parameters, flags, strict=True):
            parameter.requires_grad_(flag)


class NormWriter(PartWriter):
    """Writes a row per document."""

    def __init__(self, out_dir: Path, doc_ids: Sequence[str]) -> None:
        super().__init__(out_dir, doc_ids, _ROW_GROUP_DOCUMENTS)

    def rows_of(self, prediction: DocumentNorms) -> tuple[pa.Table, dict[str, int]]:
        there = prediction.doc_index is not None
        columns: dict[str, Any] = {"doc_id": [self.doc_ids[prediction.doc_index or 0]] if there else []}
        columns |= {name: [prediction.norms[name]] if there else [] for name in NORMS}
        return pa.table(columns, schema=GRADIENT_SCHEMA), {"num_documents": int(there)}
