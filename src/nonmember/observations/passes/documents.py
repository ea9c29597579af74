"""A number or a vector per document: divergence of one model's next-token distributions from another's, hidden state at
the last token, norms of the gradient of the loss.

Shapes: B documents, T tokens, N scored tokens of a batch, D hidden, V vocabulary, S ids both tokenizers have.

Lightning's predict loop, as in observing; each process writes its own part file, and loading joins them by document id.
Documents are padded on the right, so the last token is not the last column.
"""

from __future__ import annotations

import hashlib
from collections.abc import Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import pyarrow as pa
import torch
import torch.nn.functional as F
from torch import Tensor

from nonmember.models.forward import Ids, SplitForward
from nonmember.observations.base import Reading
from nonmember.observations.passes.tokens import DocumentReader, Rows, Scored, read_all, ready
from nonmember.observations.passes.vocabulary import check_distribution
from nonmember.records.documents import DIVERGENCE_SCHEMA, embedding_schema
from nonmember.records.tokens import LOG_PROB_FLOOR
from nonmember.training.adapters import dropout_of_adapter
from nonmember.training.losses import BYTES_PER_LOGIT

_ROW_GROUP_DOCUMENTS, _ROW_GROUP_VECTORS = 2**16, 4096


def observe_divergence(
    model: Any,
    other: Any,
    token_ids: Mapping[str, Sequence[int]],
    reading: Reading,
    *,
    shared_ids: tuple[Ids, Ids],
    scored: Scored | None = None,
) -> dict[str, int]:
    """Write KL(other || model), nats per token at temperature 1, mean over each document's scored tokens. Returns
    num_documents with a divergence, and num_tokens that each model read for them.

    shared_ids: ids (model's, other's) of the strings both vocabularies have; the rest is left out and what remains
    renormalised, as in distillation.   token_ids: document id -> ids, which both models read; fewer than two give no
    row.   The other arguments and the errors are those of `observe`.
    """
    (ours, sequences), (theirs, _) = (ready(item, token_ids, reading, scored=scored) for item in (model, other))
    comparer = Comparer(ours, sequences, reading, scored, other=theirs, shared_ids=shared_ids)
    counts = read_all(comparer, reading, _ROW_GROUP_DOCUMENTS)
    return {"num_documents": counts["num_documents"], "num_tokens": sum(map(len, sequences.values()))}


class Comparer(DocumentReader):
    """Batches of token ids in, one divergence per document out. The other model stays outside the module tree."""

    def __init__(self, *of_reader: Any, other: SplitForward, shared_ids: tuple[Ids, Ids]) -> None:
        super().__init__(*of_reader)
        self._outside = (other, shared_ids)

    def group(self, length: int) -> Hashable:
        return super().group(length), self._outside[0].lengths.group(length)

    def setup(self, stage: str) -> None:
        other, shared_ids = self._outside
        if not getattr(other.model, "hf_device_map", None):
            other.model.to(self.device)
        ours, theirs = (ids.to(self.device) if isinstance(ids, Tensor) else ids for ids in shared_ids)
        self._outside = (other, (ours, theirs))

    def predict_step(self, batch: dict[str, Tensor], batch_idx: int) -> Rows:
        """batch: input_ids [B, T] padded on the right, lengths [B], doc_index [B]."""
        other, _ = self._outside
        input_ids_BT, lengths_B = batch["input_ids"], batch["lengths"]
        scored_BT = self.scored(batch)
        ours_ND = self._split.body(input_ids_BT)[:, :-1][scored_BT]
        theirs_ND = other.body(input_ids_BT)[:, :-1][scored_BT]
        is_real_B = lengths_B > 1  # an empty batch is one token of no document
        sums_B = torch.zeros(len(lengths_B), dtype=torch.float64, device=input_ids_BT.device)
        rows_N, _ = scored_BT.nonzero(as_tuple=True)
        sums_B.index_add_(0, rows_N, self._by_token(ours_ND, theirs_ND).double())
        means_B = sums_B / scored_BT.sum(1).clamp_min(1)
        columns = {
            "doc_id": [self.doc_ids[index] for index in batch["doc_index"][is_real_B].tolist()],
            "divergence": means_B[is_real_B].float().numpy(force=True),
        }
        table = pa.table(columns, schema=DIVERGENCE_SCHEMA)
        return table, {"num_documents": len(table)}

    def _by_token(self, ours_ND: Tensor, theirs_ND: Tensor) -> Tensor:
        """[N] KL of each token's distributions, with logits made for a few rows at a time."""
        other, (our_ids, their_ids) = self._outside
        step = max(1, self._block_bytes // (BYTES_PER_LOGIT * self._split.head.vocab_size))
        divergences = []
        for ours, theirs in zip(ours_ND.split(step), theirs_ND.split(step), strict=True):
            ours_NS = F.log_softmax(self._split.head(ours).float()[:, our_ids], dim=-1)
            theirs_NS = F.log_softmax(other.head(theirs).float()[:, their_ids], dim=-1)
            for log_probs_NS in (ours_NS, theirs_NS):  # of masked entries 0 times minus infinity would be NaN
                log_probs_NS.clamp_(min=LOG_PROB_FLOOR)
            divergences.append(F.kl_div(ours_NS, theirs_NS, log_target=True, reduction="none").sum(dim=-1))
        divergences_N = torch.cat(divergences) if divergences else ours_ND.new_zeros(0)
        check_distribution(divergences_N)
        return divergences_N


def embed(
    model: Any, token_ids: Mapping[str, Sequence[int]], reading: Reading, *, layer: int, dropout_seed: int | None
) -> dict[str, int]:
    """Write the embedding of each document under `model`, scaled to length 1. Returns num_documents with a vector,
    num_zero of whose vectors are zero, and num_tokens that were read for them.

    token_ids: document id -> ids; fewer than two give no row.   layer: which entry of the tuple of hidden states; 0 the
    embedded tokens, -1 the last, usually after the final norm.
    dropout_seed: None for evaluation mode; a number lets the adapter drop out as in training. The draws for a document
    come from the number and its id, so that neither order nor batches matter: each document is then read alone.

    A hidden state of zeros is written as it is. The other arguments and the errors are those of `observe`.
    """
    split, sequences = ready(model, token_ids, reading)
    if not sequences:
        raise ValueError(f"None of the {len(token_ids)} documents has two tokens. Give longer texts.")
    config: Any = split.model.config
    num_blocks = config.get_text_config().num_hidden_layers
    if not -num_blocks - 1 <= layer <= num_blocks:
        raise ValueError(
            f"layer must be from 0 (the embedded tokens) to {num_blocks} (the last block of this model), or -1 "
            f"for the last, -2 for the one before, down to {-num_blocks - 1}; got {layer}."
        )
    embedder = Embedder(split, sequences, reading, layer=layer, dropout_seed=dropout_seed)
    counts = read_all(embedder, reading, _ROW_GROUP_VECTORS, compression="none", use_dictionary=False)
    kept = {name: counts[name] for name in ("num_documents", "num_zero")}
    return kept | {"num_tokens": sum(map(len, sequences.values()))}


class Embedder(DocumentReader):
    """Batches of token ids in, one vector per document out."""

    def __init__(self, *of_reader: Any, layer: int, dropout_seed: int | None) -> None:
        super().__init__(*of_reader)
        self._layer, self._dropout_seed = layer, dropout_seed

    def batches(self) -> list[list[int]]:
        return super().batches() if self._dropout_seed is None else [[index] for index in range(len(self._sequences))]

    def predict_step(self, batch: dict[str, Tensor], batch_idx: int) -> Rows:
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
        vectors_BD = (last_BD / length_B.where(length_B > 0, 1.0)).float().numpy(force=True)
        width = vectors_BD.shape[1]
        columns = {
            "doc_id": [self.doc_ids[index] for index in doc_index_B.tolist()],
            "vector": pa.FixedSizeListArray.from_arrays(pa.array(vectors_BD.ravel()), width),
        }
        counts = {"num_documents": len(vectors_BD), "num_zero": int((~vectors_BD.any(axis=1)).sum())}
        return pa.table(columns, schema=embedding_schema(width)), counts

    @contextmanager
    def _dropout(self, doc_index_B: Tensor) -> Iterator[None]:
        if self._dropout_seed is None:
            yield
            return
        (index,) = doc_index_B.tolist()
        digest = hashlib.sha256(f"{self._dropout_seed}\0{self.doc_ids[index]}".encode("utf-8", "surrogatepass"))
        devices = [doc_index_B.device] if doc_index_B.is_cuda else []
        with torch.random.fork_rng(devices=devices), dropout_of_adapter(self.model):
            torch.manual_seed(int.from_bytes(digest.digest()[:8], "big") >> 1)
            yield

    def _check_finite(self, last_BD: Tensor, doc_index_B: Tensor) -> None:
        bad = (~last_BD.isfinite()).any(dim=1).nonzero().flatten()
        if len(bad):
            first = self.doc_ids[int(doc_index_B[bad[0]])]
            raise ValueError(
                f"The model's hidden states hold NaN or infinity for {len(bad)} of {len(last_BD)} documents of a "
                f"batch, first for {first!r}. If the model runs in float16, load it in bfloat16 or float32; if not, "
                "its weights are damaged."
            )
