"""The token ids of a stream in a file, written once per tokenizer and read by position: training holds none of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from nonmember.artifacts import Builder, Spec
from nonmember.artifacts.store import Entry
from nonmember.models.base import ModelSpec
from nonmember.models.encoding import encode_documents
from nonmember.records.streams import Stream
from nonmember.runtime.interruption import check
from nonmember.runtime.progress import Stage
from nonmember.training.batches import ended

IDS, ENDS = "ids.bin", "ends.bin"  # int32 ids of all documents one after another; int64 where each ends


@dataclass(frozen=True)
class TokenIds(Spec[Any]):
    """The documents of `stream` as `model`'s tokenizer reads them, the end-of-text id behind each: all ids, and where
    each document ends."""

    stream: Stream
    model: ModelSpec

    kind = "tokens"
    resumable = True

    @property
    def readable(self) -> str:
        return f"tokens-{self.model.readable}"

    def key(self, builder: Builder) -> Mapping[str, Any]:
        return {"stream": self.stream.fingerprint, "model": self.model.key(builder)}

    def make(self, builder: Builder, folder: Path) -> dict[str, Any]:
        """A later run goes on behind the last chunk that was written."""
        tokenizer, number = self.model.load_tokenizer(builder), 0
        end_of_text = end_of_text_id(tokenizer)
        with (
            (folder / IDS).open("ab") as ids_file,
            (folder / ENDS).open("ab") as ends_file,
            Stage("encoding", self.stream.num_chunks, "chunks") as stage,
        ):
            written = ends_file.tell() // 8
            end = int(np.fromfile(folder / ENDS, np.int64)[-1]) if written else 0
            ids_file.truncate(4 * end)
            for chunk in range(self.stream.num_chunks):
                documents = self.stream.chunk(chunk)
                number += len(documents)
                stage.advance()
                if number <= written:
                    continue
                encoded = [ended(ids, end_of_text) for ids in encode_documents(tokenizer, documents, None)]
                ends = end + np.cumsum(list(map(len, encoded)))
                ids_file.write(np.concatenate([np.array(ids, np.int32) for ids in encoded]).tobytes())
                ids_file.flush()
                ends_file.write(ends.astype(np.int64).tobytes())
                ends_file.flush()
                end = int(ends[-1])
                check()
        return {"num_documents": number, "num_tokens": end}

    def load(self, builder: Builder, entry: Entry) -> Any:
        return np.memmap(entry.path / IDS, np.int32, "r"), np.fromfile(entry.path / ENDS, np.int64)


class Documents(Sequence[Any]):
    """Arrays of ids of several sources one after another, each source as often as it is named; in files."""

    def __init__(self, parts: Sequence[tuple[npt.NDArray[np.int32], npt.NDArray[np.int64]]]) -> None:
        """parts: of each source the ids of all its documents, and where each ends."""
        self._ids = [ids for ids, _ in parts]
        self._starts = [np.concatenate([[0], ends]) for _, ends in parts]
        self._first = np.cumsum([0, *(len(ends) for _, ends in parts)])  # document of each part
        self.lengths = np.concatenate([np.diff(starts) for starts in self._starts])

    def __len__(self) -> int:
        return len(self.lengths)

    def __getitem__(self, index: Any) -> Any:
        part = int(np.searchsorted(self._first, index, side="right")) - 1
        starts, number = self._starts[part], index - self._first[part]
        return self._ids[part][starts[number] : starts[number + 1]]


class Packed(Sequence[Any]):
    """As `batches.packed_sequences`, but each sequence is read when it is asked for."""

    def __init__(self, documents: Documents, *, length: int, seed: int) -> None:
        self._documents, self._length = documents, length
        self._order = np.random.default_rng([seed, 0]).permutation(len(documents))
        self._ends = np.cumsum(documents.lengths[self._order])
        self.lengths = np.full(max(1, int(self._ends[-1]) // length), min(length, int(self._ends[-1])))

    def __len__(self) -> int:
        return len(self.lengths)

    def __getitem__(self, index: Any) -> Any:
        start = index * self._length
        first, last = np.searchsorted(self._ends, [start, start + self.lengths[index] - 1], side="right")
        pieces = np.concatenate([self._documents[int(number)] for number in self._order[first : last + 1]])
        before = start - (int(self._ends[first - 1]) if first else 0)
        return pieces[before : before + self.lengths[index]]


def documents_of(builder: Builder, model: ModelSpec, stream: Stream) -> Documents:
    """The ids of all documents of a mixture of streams, each as often as it is read."""
    return Documents([builder.get(TokenIds(part, model)) for part, times in stream.parts for _ in range(times)])


def end_of_text_id(tokenizer: Any) -> int:
    if tokenizer.eos_token_id is None:
        raise ValueError("The tokenizer has no end-of-text token, which training puts between documents; give it one.")
    return int(tokenizer.eos_token_id)
