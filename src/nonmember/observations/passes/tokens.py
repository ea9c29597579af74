"""Token statistics: one forward pass over a corpus, one Parquet row per scored token.

Shapes: B documents or prompts, T tokens, D hidden, N scored tokens of a batch, A answers.

It is Lightning's predict loop, so devices, precision and processes are the trainer's. Each process writes its
own part file and `TokenTable.load` joins them by document id.
"""

from __future__ import annotations

import sys
import warnings
from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import lightning
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import torch
from lightning.pytorch.callbacks import BasePredictionWriter
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from nonmember.models.forward import Held, SplitForward, split_forward
from nonmember.models.reading import position_limit
from nonmember.observations.base import Reading
from nonmember.observations.passes.vocabulary import Workspace, token_statistics
from nonmember.records import TOKEN_SCHEMA
from nonmember.runtime.callbacks import StageProgress, after_each, silent
from nonmember.training.sharding import ShardableModule

_ROW_GROUP_TOKENS = 2**18
CACHE_BYTES = 3 * 2**20  # of the widest layer of a batch: 512 tokens of SmolLM2, 5% quicker than 682


Scored = Mapping[str, Sequence[bool]]  # document id -> which of its ids are scored
Rows = tuple[pa.Table, dict[str, int]]  # of a batch, and what is counted; `num_documents` at least


def observe(
    model: Any,
    token_ids: Mapping[str, Sequence[int]],
    reading: Reading,
    *,
    num_context: Mapping[str, int] | None = None,
    scored: Scored | None = None,
) -> dict[str, int]:
    """Write what `model` says about each token of each document.

    Returns num_tokens, the scored ones; num_floored, those of them whose log-probability was raised to -100; and
    num_documents, of which there are any.

    model: a Hugging Face causal language model, or a `SplitForward` of one. It keeps its dtype and its
        training flags, and its weights are not copied. (A `trainer` with precision bf16-true or 16-true
        converts them in place, as Lightning does; bf16-mixed leaves them.)
    token_ids: document id -> ids. The first id is context only; fewer than two give no rows.
    num_context: document id -> ids at its beginning that are read and not scored; positions count from there.
    scored: document id -> which of its ids are scored; a document of which none is has no rows. None: all are.

    Raises ValueError for ids or lengths the model cannot read, logits that are not finite, and a trainer that
    does not read everything.
    """
    split, sequences = ready(model, token_ids, reading, scored=scored)
    return _read_tokens(Observer(split, sequences, reading, scored, num_context=num_context), reading)


def ready(
    model: Any,
    token_ids: Mapping[str, Sequence[int]],
    reading: Reading,
    *,
    scored: Scored | None = None,
    at_least: int = 2,
) -> tuple[SplitForward, dict[str, Sequence[int]]]:
    """The model with its head apart, and the documents that it can read, of so many ids, one behind the first scored;
    the folder is made."""
    split = model if isinstance(model, SplitForward) else split_forward(model)
    sequences = {
        doc_id: ids
        for doc_id, ids in token_ids.items()
        if len(ids) >= at_least and (scored is None or any(scored[doc_id][1:]))
    }
    check_readable(split, sequences)
    reading.out_dir.mkdir(parents=True, exist_ok=True)
    return split, sequences


def _read_tokens(observer: Observer, reading: Reading) -> dict[str, int]:
    dictionaries = ["doc_id", "token_id"]
    counts = read_all(observer, reading, _ROW_GROUP_TOKENS, compression="zstd", use_dictionary=dictionaries)
    return {"num_tokens": counts.pop("num_rows"), **counts}


def read_all(reader: DocumentReader, reading: Reading, row_group: int, **options: Any) -> dict[str, int]:
    """Let `reader` read its documents, and write its rows: what was counted, over all processes.

    row_group: rows that are held back until they are written together.   options: of `pyarrow.parquet.ParquetWriter`.
    """
    progress = StageProgress(reading.description, "tokens", after_each(reader.sizes()), shared=True)
    trainer = silent(reading.make_trainer, PartWriter(reading.out_dir, row_group, options), progress)
    predict(trainer, reader)
    counts = _read_counts(reading.out_dir)
    trainer.strategy.barrier("counted")  # the first process may move the folder as soon as it returns
    if counts["num_documents"] != len(reader.doc_ids):
        raise ValueError(
            f"{reading.out_dir} holds observations of {counts['num_documents']} documents instead of "
            f"{len(reader.doc_ids)}. Take limit_predict_batches and fast_dev_run out of the trainer, and start with an "
            "empty folder."
        )
    return counts


def predict(trainer: lightning.Trainer, module: lightning.LightningModule) -> None:
    with warnings.catch_warnings():
        # Lightning can only name the documents of a batch for its own samplers; our batches name theirs.
        warnings.filterwarnings("ignore", message="Couldn't infer the batch indices")
        trainer.predict(module, return_predictions=False)


def check_readable(split: SplitForward, sequences: Mapping[str, Sequence[int]]) -> None:
    most = position_limit(split.model.config)
    for doc_id, ids in sequences.items():
        if most is not None and len(ids) > most:
            raise ValueError(
                f"Document {doc_id!r} has {len(ids)} tokens, and the model reads at most {most}. Truncate to "
                "that, or leave long documents out."
            )
        if not 0 <= min(ids) <= max(ids) < split.head.vocab_size:
            raise ValueError(
                f"Document {doc_id!r} has token ids from {min(ids)} to {max(ids)}, and the model has "
                f"{split.head.vocab_size} rows. Encode with the model's own tokenizer."
            )


def length_buckets(
    lengths: Sequence[int], max_batch_tokens: int, group: Callable[[int], Hashable] = lambda length: None
) -> list[list[int]]:
    """Indices in batches of like lengths, padded size at most `max_batch_tokens` (or one document).

    Longest first, so that a shortage of memory shows at once; ties keep their order. group: lengths of different ones
    are never in one batch (`models.lengths`).
    """
    batches: list[list[int]] = []
    for index in sorted(range(len(lengths)), key=lambda i: -lengths[i]):
        longest = lengths[batches[-1][0]] if batches else 0
        fits = bool(batches) and longest * (len(batches[-1]) + 1) <= max_batch_tokens
        if fits and group(longest) == group(lengths[index]):
            batches[-1].append(index)
        else:
            batches.append([index])
    return batches


def tokens_in_cache(model: Any) -> int:
    """Tokens whose activations in the widest layer fit into a processor's cache; more of them side by side take longer
    on a CPU. Of a GPU, where memory is the limit: all there are."""
    if model.device.type != "cpu":
        return sys.maxsize
    ends = (model.get_input_embeddings(), model.get_output_embeddings())
    embeddings = {id(getattr(layer, "weight", None)) for layer in ends}
    widths = [max(item.shape) for item in model.parameters() if item.dim() == 2 and id(item) not in embeddings]
    return max(1, CACHE_BYTES // (4 * max(widths, default=1)))


def share_of_rank(batches: Sequence[list[int]], rank: int, world_size: int) -> list[list[int]]:
    """Every `world_size`-th batch from `rank` on, filled up with empty ones to the same number on every rank.

    Sharded models need every process to make the same number of forward passes.
    """
    share = [list(batch) for batch in batches[rank::world_size]]
    num_batches = max(1, -(-len(batches) // world_size))
    return share + [[] for _ in range(num_batches - len(share))]


class PaddedBatches:
    """Iterable over right-padded batches. No DataLoader, which Lightning would cut by rank once more."""

    def __init__(self, sequences: Sequence[Sequence[int]], batches: Sequence[list[int]]) -> None:
        self.sequences, self.batches = sequences, batches

    def __len__(self) -> int:
        return len(self.batches)

    def __iter__(self) -> Iterator[dict[str, Tensor]]:
        for batch in self.batches:
            # One token gives no row, so the document an empty batch points to does not matter.
            rows = [torch.as_tensor(self.sequences[index], dtype=torch.long) for index in batch] or [torch.tensor([0])]
            lengths_B = torch.tensor([len(row) for row in rows])
            input_ids_BT = pad_sequence(rows, batch_first=True)
            yield {"input_ids": input_ids_BT, "lengths": lengths_B, "doc_index": torch.tensor(batch or [0])}


class DocumentReader(Held, ShardableModule):
    """The predict side of a language model: documents in batches of like lengths, shared out over the processes."""

    def __init__(
        self,
        split: SplitForward,
        sequences: Mapping[str, Sequence[int]],
        reading: Reading,
        scored: Scored | None = None,
    ) -> None:
        super().__init__()
        self.hold(split.model)
        self._split = split
        self.doc_ids: Sequence[str] = list(sequences)
        self._sequences: Sequence[Sequence[int]] = list(sequences.values())
        self._scored = None if scored is None else [scored[doc_id] for doc_id in sequences]
        self._max_batch_tokens, self._block_bytes = reading.max_batch_tokens, reading.block_bytes

    def batches(self) -> list[list[int]]:
        """Indices of the documents."""
        most = min(self._max_batch_tokens, tokens_in_cache(self._split.model))
        return length_buckets(self.lengths(), most, self.group)

    def group(self, length: int) -> Hashable:
        """Texts of one group may be read side by side."""
        return self._split.lengths.group(length)

    def lengths(self) -> list[int]:
        """Tokens of each document."""
        return [len(ids) for ids in self._sequences]

    def sizes(self) -> list[int]:
        """Tokens of each batch, padding left out."""
        lengths = self.lengths()
        return [sum(lengths[index] for index in batch) for batch in self.batches()]

    def scored(self, batch: Mapping[str, Tensor]) -> Tensor:
        """[B, T - 1] which of the ids behind the first are scored: those of the text, or some of them."""
        input_ids_BT, lengths_B = batch["input_ids"], batch["lengths"]
        scored_BT = torch.arange(1, input_ids_BT.shape[1], device=input_ids_BT.device) < lengths_B[:, None]
        if self._scored is not None:
            for row_T, index in zip(scored_BT, batch["doc_index"].tolist(), strict=True):
                mask = self._scored[index][1 : 1 + len(row_T)] if len(self._scored) else []
                row_T[: len(mask)] &= torch.tensor(mask, dtype=torch.bool, device=row_T.device)
        return scored_BT

    def predict_dataloader(self) -> PaddedBatches:
        share = share_of_rank(self.batches(), self.trainer.global_rank, self.trainer.world_size)
        return PaddedBatches(self._sequences, share)

    def on_predict_end(self) -> None:
        self.trainer.strategy.barrier("observed")  # the parts of all processes are complete


class Observer(DocumentReader):
    """Batches of token ids in, rows of the token table out."""

    def __init__(self, *of_reader: Any, num_context: Mapping[str, int] | None = None) -> None:
        super().__init__(*of_reader)
        context = [num_context[doc_id] if num_context else 0 for doc_id in self.doc_ids]
        self._num_context = torch.tensor(context or [0])  # an empty batch points to the first document
        self._workspace = Workspace()

    def predict_step(self, batch: dict[str, Tensor], batch_idx: int) -> Rows:
        """batch: input_ids [B, T] padded on the right, lengths [B], doc_index [B]."""
        input_ids_BT = batch["input_ids"]
        context_B = self._num_context.to(input_ids_BT.device)[batch["doc_index"]]
        positions_T = torch.arange(1, input_ids_BT.shape[1], device=input_ids_BT.device)
        scored_BT = self.scored(batch) & (positions_T >= context_B[:, None])
        features_ND = self._split.body(input_ids_BT)[:, :-1][scored_BT]
        row_N, column_N = scored_BT.nonzero(as_tuple=True)
        position_N = positions_T[column_N] - context_B[row_N]
        return self._rows(batch["doc_index"][row_N], position_N, input_ids_BT[:, 1:][scored_BT], features_ND)

    def _rows(self, doc_index_N: Tensor, position_N: Tensor, token_id_N: Tensor, features_ND: Tensor) -> Rows:
        found = token_statistics(
            features_ND, self._split.head, token_id_N, block_bytes=self._block_bytes, workspace=self._workspace
        )
        indices, index_of = np.unique(doc_index_N.numpy(force=True), return_inverse=True)
        doc_ids = pa.array([self.doc_ids[index] for index in indices], pa.string())
        columns: dict[str, Any] = {
            "doc_id": pa.DictionaryArray.from_arrays(pa.array(index_of.astype(np.int32)), doc_ids),
            "position": position_N.int().numpy(force=True),
            "token_id": token_id_N.int().numpy(force=True),
            **{name: getattr(found, name).numpy(force=True) for name in ("log_prob", "mean", "std")},
        }
        counts = {"num_floored": found.num_floored, "num_documents": len(indices)}
        return pa.table(columns, schema=TOKEN_SCHEMA), counts


class PartWriter(BasePredictionWriter):
    """Streams the rows of this process to `part-<rank>.parquet`, and its counts into the file's footer."""

    def __init__(self, out_dir: Path, row_group: int, options: Mapping[str, Any]) -> None:
        super().__init__(write_interval="batch")
        self._out_dir, self._row_group, self._options = out_dir, row_group, options
        self._file: pq.ParquetWriter | None = None
        self._waiting: list[pa.Table] = []
        self._counts: Counter[str] = Counter()

    def on_predict_start(self, trainer: lightning.Trainer, pl_module: lightning.LightningModule) -> None:
        self._counts.clear()
        self._path = self._out_dir / f"part-{trainer.global_rank}.parquet"
        self._file = None

    def write_on_batch_end(self, trainer: Any, pl_module: Any, prediction: Rows, *_: Any) -> None:
        table, counts = prediction
        self._waiting.append(table)
        for name, number in counts.items():  # an update would drop a count of 0
            self._counts[name] += number
        if sum(map(len, self._waiting)) >= self._row_group:
            self._flush()

    def _flush(self) -> None:
        if not self._waiting:
            return
        table = pa.concat_tables(self._waiting).unify_dictionaries().combine_chunks()
        self._file = self._file or pq.ParquetWriter(self._path, table.schema, **self._options)
        self._file.write_table(table)
        self._waiting = []

    def on_predict_epoch_end(self, trainer: lightning.Trainer, pl_module: lightning.LightningModule) -> None:
        self._flush()
        if self._file is not None:  # else nothing was read at all
            self._file.add_key_value_metadata({name: str(value) for name, value in self._counts.items()})
            self._file.close()

    def on_exception(self, trainer: Any, pl_module: Any, exception: BaseException) -> None:
        if self._file is not None:
            self._file.close()


def _read_counts(out_dir: Path) -> dict[str, int]:
    """Sums over the parts; `num_rows` is counted by the files themselves."""
    totals = Counter({"num_rows": 0, "num_documents": 0})
    for path in sorted(out_dir.glob("part-*.parquet")):
        footer = pq.read_metadata(path)
        totals["num_rows"] += footer.num_rows
        for name, value in (footer.metadata or {}).items():
            if name.startswith(b"num_"):
                totals[name.decode()] += int(value)
    return dict(totals)


def observe_answers(
    model: Any, prompts: Mapping[str, Sequence[int]], answers: Sequence[int], reading: Reading
) -> dict[str, int]:
    """Write what `model` says about each of the `answers` (token ids) as the token after each prompt.

    prompts: document id -> ids.   The rows are those of `observe` for the token after the prompt, `answers` in order.
    Of the whole distribution only the last position is made. The errors are those of `observe`.
    """
    split, _ = ready(model, prompts, reading, at_least=0)
    return _read_tokens(Asker(split, prompts, reading, answers=answers), reading)


class Asker(Observer):
    """An observer of what comes after each sequence."""

    def __init__(self, *of_reader: Any, answers: Sequence[int]) -> None:
        super().__init__(*of_reader)
        self._answers = answers

    def predict_step(self, batch: dict[str, Tensor], batch_idx: int) -> Rows:
        """batch: input_ids [B, T] padded on the right, lengths [B], doc_index [B]; rows: B x A."""
        input_ids_BT, lengths_B, number = batch["input_ids"], batch["lengths"], len(self._answers)
        asked_B = lengths_B > 1  # an empty batch is one token of no document
        features_BTD, rows_B = self._split.body(input_ids_BT), torch.arange(len(lengths_B), device=lengths_B.device)
        features_BD = features_BTD[rows_B, lengths_B - 1][asked_B]
        token_id_N = torch.tensor(self._answers, device=input_ids_BT.device).repeat(len(features_BD))
        doc_index_N, position_N = (item[asked_B].repeat_interleave(number) for item in (batch["doc_index"], lengths_B))
        return self._rows(doc_index_N, position_N, token_id_N, features_BD.repeat_interleave(number, dim=0))
