"""Embedding: one forward pass over a corpus, one vector per document, the hidden state at its last token.

Shapes: B documents, T tokens, D hidden.

Documents are padded on the right, so the last token is not the last column. No logits are made. Lightning's predict
loop, as in observing; each process writes its own part file and `Embeddings.load` joins them by document id.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import lightning
import pyarrow as pa
import torch
from torch import Tensor

from nonmember.models.forward import SplitForward, split_forward
from nonmember.observations.passes.tokens import PartWriter, Reader, check_readable, write_parts
from nonmember.records import embedding_schema
from nonmember.training.adapters import dropout_of_adapter

_ROW_GROUP_DOCUMENTS = 4096


@dataclass(frozen=True)
class EmbeddingCounts:
    """Documents with a vector, those among them whose vector is zero, and the tokens that were read for them."""

    num_documents: int
    num_zero: int
    num_tokens: int


@dataclass(frozen=True)
class DocumentVectors:
    """Of one batch: `doc_index` [B] counts documents from 0; `vectors` [B, D] float32."""

    doc_index: Tensor
    vectors: Tensor


def embed(
    model: Any,
    token_ids: Mapping[str, Sequence[int]],
    out_dir: Path,
    make_trainer: Callable[..., lightning.Trainer],
    *,
    layer: int,
    dropout_seed: int | None,
    max_batch_tokens: int,
    description: str,
) -> EmbeddingCounts:
    """Write the embedding of each document under `model` to `out_dir/part-<rank>.parquet`, scaled to length 1.

    token_ids: document id -> ids; fewer than two give no row.   layer: which entry of the tuple of hidden states; 0 the
    embedded tokens, -1 the last, usually after the final norm.
    dropout_seed: None for evaluation mode; a number lets the adapter drop out as in training. The draws for a document
    come from the number and its id, so that neither order nor batches matter: each document is then read alone.

    A hidden state of zeros is written as it is. The other arguments and the errors are those of `observe`.
    """
    split = model if isinstance(model, SplitForward) else split_forward(model)
    sequences = {doc_id: ids for doc_id, ids in token_ids.items() if len(ids) >= 2}
    if not sequences:
        raise ValueError(f"None of the {len(token_ids)} documents has two tokens. Give longer texts.")
    check_readable(split, sequences)
    _check_layer(split, layer)
    out_dir.mkdir(parents=True, exist_ok=True)
    embedder = Embedder(split, sequences, max_batch_tokens, layer, dropout_seed)
    counts = write_parts(embedder, VectorWriter(out_dir, list(sequences)), make_trainer, description)
    return EmbeddingCounts(counts["num_documents"], counts["num_zero"], sum(map(len, sequences.values())))


class Embedder(Reader):
    """Batches of token ids in, one vector per document out."""

    def __init__(
        self,
        split: SplitForward,
        sequences: Mapping[str, Sequence[int]],
        max_batch_tokens: int,
        layer: int,
        dropout_seed: int | None,
    ) -> None:
        super().__init__(split, list(sequences.values()), max_batch_tokens)
        self._doc_ids = list(sequences)
        self._layer = layer
        self._dropout_seed = dropout_seed

    def batches(self) -> list[list[int]]:
        return super().batches() if self._dropout_seed is None else [[index] for index in range(len(self._sequences))]

    def predict_step(self, batch: dict[str, Tensor], batch_idx: int) -> DocumentVectors:
        """batch: input_ids [B, T] padded on the right, lengths [B], doc_index [B]."""
        lengths_B = batch["lengths"]
        with self._dropout(batch["doc_index"]):
            hidden_BTD = self._split.hidden(batch["input_ids"], self._layer)
        is_real_B = lengths_B > 1  # an empty batch is one token of no document
        rows_B = torch.arange(len(lengths_B), device=lengths_B.device)
        # In double precision a length is neither 0 nor infinite that is not so in itself.
        last_BD = hidden_BTD[rows_B, lengths_B - 1][is_real_B].double()
        doc_index_B = batch["doc_index"][is_real_B]
        self._check_finite(last_BD, doc_index_B)
        length_B = last_BD.norm(dim=1, keepdim=True)
        return DocumentVectors(doc_index_B, (last_BD / length_B.where(length_B > 0, 1.0)).float())

    @contextmanager
    def _dropout(self, doc_index_B: Tensor) -> Iterator[None]:
        if self._dropout_seed is None:
            yield
            return
        (index,) = doc_index_B.tolist()
        digest = hashlib.sha256(f"{self._dropout_seed}\0{self._doc_ids[index]}".encode("utf-8", "surrogatepass"))
        devices = [doc_index_B.device] if doc_index_B.is_cuda else []
        with torch.random.fork_rng(devices=devices), dropout_of_adapter(self.model):
            torch.manual_seed(int.from_bytes(digest.digest()[:8], "big") >> 1)
            yield

    def _check_finite(self, last_BD: Tensor, doc_index_B: Tensor) -> None:
        bad = (~last_BD.isfinite()).any(dim=1).nonzero().flatten()
        if len(bad):
            first = self._doc_ids[int(doc_index_B[bad[0]])]
            raise ValueError(
                f"The model's hidden states hold NaN or infinity for {len(bad)} of {len(last_BD)} documents of a "
                f"batch, first for {first!r}. If the model runs in float16, load it in bfloat16 or float32; if not, "
                "its weights are damaged."
            )


class VectorWriter(PartWriter):
    """Writes a row per document."""

    def __init__(self, out_dir: Path, doc_ids: Sequence[str]) -> None:
        super().__init__(out_dir, doc_ids, _ROW_GROUP_DOCUMENTS, compression="none", use_dictionary=False)

    def rows_of(self, prediction: DocumentVectors) -> tuple[pa.Table, dict[str, int]]:
        vectors_BD = prediction.vectors.numpy(force=True)
        width = vectors_BD.shape[1]
        columns = {
            "doc_id": [self.doc_ids[index] for index in prediction.doc_index.tolist()],
            "vector": pa.FixedSizeListArray.from_arrays(pa.array(vectors_BD.ravel()), width),
        }
        counts = {"num_documents": len(vectors_BD), "num_zero": int((~vectors_BD.any(axis=1)).sum())}
        return pa.table(columns, schema=embedding_schema(width)), counts


def _check_layer(split: SplitForward, layer: int) -> None:
    config: Any = split.model.config
    num_blocks = config.get_text_config().num_hidden_layers
    if not -num_blocks - 1 <= layer <= num_blocks:
        raise ValueError(
            f"layer must be from 0 (the embedded tokens) to {num_blocks} (the last block of this model), or -1 "
            f"for the last, -2 for the one before, down to {-num_blocks - 1}; got {layer}."
        )
