"""A local index of one's own corpora: the hashes of all sequences of 13 words, sorted, in files.

Words are runs of letters, digits and underscores of the text in Unicode's form NFKC and lower case; what stands between
them does not count. The hash of a sequence is XXH3 (64 bits, seed 0) of its words, joined by blanks, in UTF-8.
Two sequences that differ share a hash with a probability of 2^-64: of a million looked up in an index of ten billion,
.0005 are expected to be found wrongly; one that the corpus holds is always found.

Files: `index.json` says what was read and how far; `hashes-00000.npy` and so on hold distinct sorted hashes (uint64) of
a part of it each.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import numpy.typing as npt
import xxhash

from nonmember.artifacts import Builder
from nonmember.artifacts.store import key_hash
from nonmember.checks import require_count, require_text
from nonmember.corpora import CorpusSpec, Streamed
from nonmember.corpora.specs import Cursor
from nonmember.lookup.base import NGRAM, TOO_SHORT, Lookup, Overlaps
from nonmember.records import Corpus
from nonmember.runtime.compute import MIB
from nonmember.runtime.files import json_object, locked, replacing, write_text_atomically
from nonmember.runtime.interruption import Interrupted, check
from nonmember.runtime.naming import path_of
from nonmember.runtime.progress import Stage

FILE, HASHES, LOCK = "index.json", "hashes-{:05d}.npy", ".lock"
RULES = 1  # of words and hashes; raise it when a change of them moves a hash
WORD = re.compile(r"\w+")
BYTES_PER_HASH = 8
COPIES = 3  # of the hashes that are in memory while they are sorted

UNREAD = {"complete": False, "num_documents": 0, "num_ngrams": 0, "cursor": {}}

Hashes = npt.NDArray[np.uint64]


def ngram_hashes(text: str) -> Hashes:
    """[number of words - 12] hashes of the text's sequences of 13 words, in their order; none of a shorter text."""
    words = [word.encode() for word in WORD.findall(unicodedata.normalize("NFKC", text).lower())]
    if len(words) < NGRAM:
        return np.zeros(0, np.uint64)
    ends = (np.cumsum([len(word) + 1 for word in words]) - 1).tolist()
    joined, starts = b" ".join(words), [0, *(end + 1 for end in ends)]
    spans = zip(starts, ends[NGRAM - 1 :], strict=False)
    return np.array([xxhash.xxh3_64_intdigest(joined[start:end]) for start, end in spans], np.uint64)


@dataclass(frozen=True)
class LocalIndex(Lookup):
    """An index that `add` made.

    Attributes:
        path: Its folder.
    """

    fields_called = "{field} of an index"
    path: Annotated[str, require_text]

    @property
    def readable(self) -> str:
        return f"index of {', '.join(source['name'] for source in self._read()['sources'].values())}"

    def key(self) -> dict[str, Any]:
        return {"index": sorted(self._read()["sources"]), "rules": RULES}

    def overlaps(self, builder: Builder, documents: Corpus) -> Overlaps:
        """Every sequence of each document is looked up, as often as it stands there."""
        hashes = [ngram_hashes(document.text) for document in documents.documents]
        numbers = np.array([len(item) for item in hashes], np.int64)
        wanted, index = np.unique(np.concatenate([np.zeros(0, np.uint64), *hashes]), return_inverse=True)
        found = np.zeros(len(wanted), dtype=bool)
        parts = list(self._parts(self._read()))
        with Stage("looking up", len(parts), "parts of the index") as stage:
            for part in parts:
                at = np.minimum(np.searchsorted(part, wanted), len(part) - 1)
                found |= part[at] == wanted
                stage.advance()
                check()
        document = np.repeat(np.arange(len(numbers)), numbers)
        num_found = np.bincount(document, found[index], minlength=len(numbers)).astype(np.int64)
        short = {doc_id: TOO_SHORT for doc_id, number in zip(documents.doc_ids, numbers, strict=True) if not number}
        return Overlaps(documents.doc_ids, numbers, num_found, short)

    def _read(self) -> dict[str, Any]:
        """What index.json says. Raises ValueError where there is no complete index."""
        state = _state(folder := path_of(self.path))
        if not state["sources"]:
            raise ValueError(
                f"There is no index in {folder}. Make one: nonmember lookup index CORPUS index={self.path}"
            )
        if unfinished := [item["name"] for item in state["sources"].values() if not item["complete"]]:
            raise ValueError(
                f"The index in {folder} is not complete: {unfinished[0]} was read in part, and what is missing would "
                "be taken for absent. Start that `nonmember lookup index` again; it goes on where it was stopped. If "
                "its files have changed since, remove the folder and make the index anew."
            )
        return state

    def _parts(self, state: dict[str, Any]) -> Iterator[Hashes]:
        """Read from the disk as they are searched."""
        for number, length in enumerate(state["lengths"]):
            path = path_of(self.path) / HASHES.format(number)
            try:
                part = np.load(path, mmap_mode="r", allow_pickle=False)
            except (OSError, ValueError) as error:
                raise ValueError(f"{path} cannot be read ({error}). Remove the index, and make it anew.") from error
            if part.shape != (length,) or part.dtype != np.uint64:
                raise ValueError(
                    f"{path} must hold {length:,} hashes; got {part.shape}. Remove the index, and make it anew."
                )
            if length:
                yield part


def add(folder: Path, source: CorpusSpec, name: str, builder: Builder, memory_mib: int) -> dict[str, Any]:
    """Read a corpus into the index in `folder`, which is made where there is none, document by document.

    What was read is written whenever the hashes fill their share of the memory, and when it is interrupted; a later
    call goes on from there. A corpus that was read before, by the content of its files, is passed over.

    Args:
        source: The corpus; one that is streamed is read from its own source, and kept nowhere else.
        name: What the corpus is called.
        memory_mib: Of the hashes, sorting included.

    Returns:
        What index.json says of it: num_documents and num_ngrams among others.

    Raises:
        ValueError: Where `folder` is none, or holds something else.
    """
    require_count(memory_mib, 1, "memory")
    source = source.source if isinstance(source, Streamed) else source
    if folder.exists() and not folder.is_dir():
        raise ValueError(f"The index must be a folder, and {folder} is a file. Name another: index=FOLDER.")
    folder.mkdir(parents=True, exist_ok=True)
    most = memory_mib * MIB // (BYTES_PER_HASH * COPIES)
    with locked(folder / LOCK, f"indexing into {folder}"):
        state = _state(folder)
        item = state["sources"].setdefault(key_hash(source.identity()), {"name": name, **UNREAD})
        if not item["complete"]:
            _read_into(folder, state, item, source, builder, most)
    return item


def _read_into(
    folder: Path, state: dict[str, Any], item: dict[str, Any], source: CorpusSpec, builder: Builder, most: int
) -> None:
    waiting: list[Hashes] = []
    num_waiting, cursor = 0, Cursor(**item["cursor"])

    def keep(*, complete: bool) -> None:
        """The hashes first: without the note of them they are written again under the same name."""
        nonlocal num_waiting
        if waiting:
            hashes = np.unique(np.concatenate(waiting))
            with replacing(folder / HASHES.format(len(state["lengths"]))) as temporary, temporary.open("wb") as file:
                np.save(file, hashes)
            state["lengths"].append(len(hashes))
        item.update(complete=complete, cursor=cursor.state(), num_documents=cursor.documents)
        write_text_atomically(folder / FILE, json.dumps(state, indent=1) + "\n")
        waiting.clear()
        num_waiting = 0

    with Stage(f"indexing {item['name']}", None, "documents", at=cursor.documents) as stage:
        for document in source.read(builder, Counter(), cursor):
            hashes = ngram_hashes(document.text)
            waiting += [hashes] if len(hashes) else []
            num_waiting += len(hashes)
            item["num_ngrams"] += len(hashes)
            stage.advance()
            if num_waiting >= most:
                keep(complete=False)
            try:
                check()
            except Interrupted:
                keep(complete=False)
                raise
        keep(complete=True)


def _state(folder: Path) -> dict[str, Any]:
    """Raises ValueError where index.json is damaged, of other rules, or of something else."""
    if not (folder / FILE).is_file():
        return {"rules": RULES, "ngram": NGRAM, "sources": {}, "lengths": []}
    try:
        state = json_object(folder / FILE)
        usable = state["rules"] == RULES and isinstance(state["lengths"], list)
        usable = usable and all({"name", *UNREAD} <= item.keys() for item in state["sources"].values())
    except (ValueError, KeyError, AttributeError):
        usable = False
    if not usable:
        raise ValueError(
            f"{folder / FILE} is no index that this version can read. Remove the folder, and make it anew."
        )
    return state
