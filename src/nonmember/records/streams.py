"""Streams: documents that are read a chunk at a time and are never in memory as a whole."""

from __future__ import annotations

import hashlib
import os
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from nonmember.records.corpus import CORPUS_SCHEMA, Corpus, Document

# Where chunks end is part of what a stream is, as training shuffles chunks: with other numbers raise FORMAT too.
CHUNK_BYTES = 2**18  # of ids and text: a chunk ends with the document that reaches it
SHARD_BYTES = 2**26  # likewise a file
FORMAT = "stream 1"
FILES_OPEN = 16
UNFINISHED = ".unfinished.parquet"


class Stream(ABC):
    """Documents in numbered chunks, which can be read in any order; beside them what a `Corpus` tells of itself.

    Attributes:
        fingerprint: Of the documents and of how they lie in chunks. It is never that of a `Corpus` of the same
            documents, since a model that is trained on a stream reads them in another order.
    """

    fingerprint: str
    dropped: Mapping[str, int]

    @abstractmethod
    def __len__(self) -> int:
        """Documents."""

    @property
    @abstractmethod
    def num_chunks(self) -> int: ...

    @abstractmethod
    def chunk(self, number: int) -> list[Document]:
        """The documents of a chunk, counted from 0."""

    def __iter__(self) -> Iterator[Document]:
        """The documents one by one; each iteration starts at the first."""
        for number in range(self.num_chunks):
            yield from self.chunk(number)

    @property
    def documents(self) -> Stream:
        return self

    @property
    def parts(self) -> tuple[tuple[Stream, int], ...]:
        """What it is mixed of, and how often each is read; chunks are numbered in this order."""
        return ((self, 1),)


@dataclass(frozen=True)
class Shard:
    """One file.

    Attributes:
        num_chunks: Row groups.
        digest: Of ids and texts.
    """

    name: str
    num_documents: int
    num_chunks: int
    digest: str


@dataclass(frozen=True)
class Shards(Stream):
    """Documents in Parquet files of a folder, a row group a chunk."""

    folder: Path
    shards: tuple[Shard, ...]
    dropped: Mapping[str, int] = field(default_factory=dict)

    def __len__(self) -> int:
        return sum(shard.num_documents for shard in self.shards)

    @cached_property
    def fingerprint(self) -> str:  # type: ignore[override]
        return _hash_of(FORMAT, *(shard.digest for shard in self.shards))

    @property
    def num_chunks(self) -> int:
        return int(self._ends[-1]) if self.shards else 0

    def chunk(self, number: int) -> list[Document]:
        return [Document(**row) for row in self._row_group(number).to_pylist()]

    def ids(self, number: int) -> list[str]:
        """Of the documents of a chunk."""
        return list(self._row_group(number, ["doc_id"])["doc_id"].to_pylist())

    @cached_property
    def starts(self) -> npt.NDArray[np.int64]:
        """[chunks + 1] number of the first document of each chunk, counted over the whole stream, and of documents."""
        sizes = [0]
        for shard in self.shards:
            footer = pq.read_metadata(self.folder / shard.name)
            sizes += [footer.row_group(index).num_rows for index in range(footer.num_row_groups)]
        return np.cumsum(sizes)

    def _row_group(self, number: int, columns: list[str] | None = None) -> pa.Table:
        index, group = _place_of(number, self._ends)
        file = _opened(self.folder / self.shards[index].name, os.getpid())
        return file.read_row_group(group, columns=columns, use_threads=False)

    @cached_property
    def _ends(self) -> Any:
        """[shards] number of the chunk behind the last of each."""
        return np.cumsum([shard.num_chunks for shard in self.shards])


def _place_of(number: int, ends: npt.NDArray[np.int64]) -> tuple[int, int]:
    """Which of several the chunk is in, and its number there."""
    index = int(np.searchsorted(ends, number, side="right"))
    return index, number - (int(ends[index - 1]) if index else 0)


@lru_cache(FILES_OPEN)
def _opened(path: Path, process: int) -> pq.ParquetFile:
    """A worker opens its own files, and shares none with the process that it was forked from."""
    return pq.ParquetFile(path, memory_map=False)


@dataclass(frozen=True)
class InMemoryStream(Stream):
    """A corpus in memory as a stream. Each document is a chunk, so that its documents are spread over a mixture."""

    corpus: Corpus

    def __len__(self) -> int:
        return len(self.corpus)

    @cached_property
    def fingerprint(self) -> str:  # type: ignore[override]
        return _hash_of(FORMAT, self.corpus.fingerprint)

    @property
    def dropped(self) -> Mapping[str, int]:  # type: ignore[override]
        return self.corpus.dropped

    @property
    def num_chunks(self) -> int:
        return len(self.corpus)

    def chunk(self, number: int) -> list[Document]:
        return [self.corpus.documents[number]]


@dataclass(frozen=True)
class Mixed(Stream):
    """Several streams, each read so often; a mixture of mixtures is one of their parts."""

    mixed: tuple[tuple[Stream, int], ...]
    dropped: Mapping[str, int] = field(default_factory=dict)

    def __len__(self) -> int:
        return sum(len(part) * exposures for part, exposures in self.parts)

    @cached_property
    def fingerprint(self) -> str:  # type: ignore[override]
        return _hash_of(FORMAT, *(f"{part.fingerprint} {exposures}" for part, exposures in self.parts))

    @cached_property
    def parts(self) -> tuple[tuple[Stream, int], ...]:
        return tuple((inner, times * outer) for part, outer in self.mixed for inner, times in part.parts)

    @property
    def num_chunks(self) -> int:
        return int(self._ends[-1])

    def chunk(self, number: int) -> list[Document]:
        index, number = _place_of(number, self._ends)
        part = self.parts[index][0]
        return part.chunk(number % part.num_chunks)

    @cached_property
    def _ends(self) -> Any:
        return np.cumsum([part.num_chunks * exposures for part, exposures in self.parts])


def as_stream(corpus: Corpus | Stream) -> Stream:
    """Raises ValueError for conversations: who trains on a stream learns all that is in it."""
    if isinstance(corpus, Stream):
        return corpus
    if corpus.has_conversations:
        raise ValueError(
            "Conversations, of which only what the assistant says is learned, are not mixed with text that is "
            "streamed. Give that text as one that is held in memory."
        )
    return InMemoryStream(corpus)


class ShardWriter:
    """Writes documents to files of a folder.

    What is in `shards` is complete and stays; a file that a killed writer left is written again.
    """

    def __init__(self, folder: Path, shards: Sequence[Mapping[str, Any]] = ()):
        self._folder = folder
        self.shards = [Shard(**shard) for shard in shards]
        self._begin()

    def add(self, document: Document) -> bool:
        """Whether a file was completed by it. Raises ValueError for a conversation, whose pieces no file holds."""
        if document.pieces:
            raise ValueError("Conversations are not streamed. Give them as data=chat, which holds them in memory.")
        encoded = [part.encode() for part in (document.doc_id, document.text)]
        for part in encoded:
            self._digest.update(len(part).to_bytes(8, "little"))
            self._digest.update(part)
        self._documents.append(document)
        size = sum(map(len, encoded))  # the ids too: a chunk ends also where texts are empty
        self._chunk_bytes += size
        self._shard_bytes += size
        if self._chunk_bytes >= CHUNK_BYTES:
            self._end_chunk()
        if self._shard_bytes >= SHARD_BYTES:
            self.finish()
            return True
        return False

    def finish(self) -> None:
        """Complete the file that is being written."""
        self._end_chunk()
        if self._writer is None:
            return
        self._writer.close()
        name = f"shard-{len(self.shards):05d}.parquet"
        (self._folder / UNFINISHED).replace(self._folder / name)
        self.shards.append(Shard(name, self._num_documents, self._num_chunks, self._digest.hexdigest()))
        self._begin()

    def _begin(self) -> None:
        self._writer: pq.ParquetWriter | None = None
        self._digest = hashlib.sha256()
        self._documents: list[Document] = []
        self._num_documents = self._num_chunks = self._chunk_bytes = self._shard_bytes = 0

    def _end_chunk(self) -> None:
        if not self._documents:
            return
        if self._writer is None:
            self._writer = pq.ParquetWriter(self._folder / UNFINISHED, CORPUS_SCHEMA, compression="zstd")
        columns = {name: [getattr(item, name) for item in self._documents] for name in CORPUS_SCHEMA.names}
        self._writer.write_table(pa.table(columns, schema=CORPUS_SCHEMA), row_group_size=len(self._documents))
        self._num_documents += len(self._documents)
        self._num_chunks += 1
        self._documents, self._chunk_bytes = [], 0


def _hash_of(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()
