"""How many tokens each chunk of a stream has under a tokenizer: counted once, before any training on it."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from nonmember.artifacts import Builder, Spec
from nonmember.artifacts.store import Entry
from nonmember.models.base import ModelSpec
from nonmember.records.streams import Shards, Stream
from nonmember.runtime.files import replacing
from nonmember.runtime.interruption import check
from nonmember.runtime.progress import Stage

if TYPE_CHECKING:
    from nonmember.models.loading import LoadedModel
    from nonmember.training.streaming import TokenStream

COUNTS, SO_FAR = "counts.parquet", ".so_far.parquet"


@dataclass(frozen=True)
class TokenCounts(Spec[Any]):
    """[chunks] tokens of each chunk of `stream`, end-of-text ids included, as `model`'s tokenizer reads it."""

    stream: Stream
    model: ModelSpec

    kind = "counts"
    resumable = True

    @property
    def readable(self) -> str:
        return f"tokens-{self.model.readable}"

    def key(self, builder: Builder) -> Mapping[str, Any]:
        return {"stream": self.stream.fingerprint, "model": self.model.key(builder)}

    def make(self, builder: Builder, folder: Path) -> dict[str, Any]:
        """What is counted is kept every `checkpoint_seconds`, and a later run goes on from there."""
        chunks = _encoded(self.model.load_tokenizer(builder), self.stream)
        counts = _read(folder / SO_FAR) if (folder / SO_FAR).is_file() else []
        last = time.monotonic()
        with Stage("counting tokens", len(chunks), "chunks", at=len(counts)) as stage:
            for tokens in chunks.in_order(range(len(counts), len(chunks)), builder.compute.num_workers):
                counts.append(len(tokens))
                stage.advance()
                check()
                if time.monotonic() - last >= builder.compute.checkpoint_seconds:
                    with replacing(folder / SO_FAR) as path:
                        _write(path, counts)
                    last = time.monotonic()
        _write(folder / COUNTS, counts)
        return {"num_chunks": len(counts), "num_tokens": sum(counts)}

    def load(self, builder: Builder, entry: Entry) -> Any:
        return np.asarray(_read(entry.path / COUNTS), dtype=np.int64)


def token_stream(builder: Builder, model: ModelSpec, loaded: LoadedModel, stream: Stream) -> TokenStream:
    """A stream as the tokenizer of a model reads it, each of its parts counted."""
    from nonmember.training.streaming import TokenStream

    counts = []
    for part, exposures in stream.parts:
        if isinstance(part, Shards):
            counted = builder.get(TokenCounts(part, model))
        else:  # in memory, and soon counted
            chunks = _encoded(loaded.tokenizer, part)
            counted = np.array([len(chunks[number]) for number in range(len(chunks))], dtype=np.int64)
        counts += [counted] * exposures
    return TokenStream(_encoded(loaded.tokenizer, stream), np.concatenate(counts))


def _encoded(tokenizer: Any, stream: Stream) -> Any:
    from nonmember.training.streaming import EncodedChunks, end_of_text_id

    return EncodedChunks(stream, tokenizer, end_of_text_id(tokenizer))


def _write(path: Path, counts: list[int]) -> None:
    pq.write_table(pa.table({"num_tokens": pa.array(counts, pa.int64())}), path)


def _read(path: Path) -> list[int]:
    counts: list[int] = pq.read_table(path).column("num_tokens").to_pylist()
    return counts
