"""Corpora too large for memory: read from their source once, cleaned one document at a time, kept in files."""

from __future__ import annotations

import json
import logging
from collections import Counter
from dataclasses import KW_ONLY, asdict, dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar

from nonmember.artifacts import Builder
from nonmember.artifacts.store import Entry
from nonmember.checks import Count
from nonmember.corpora.specs import CorpusSpec, Cursor
from nonmember.corpora.transforms.cleaning import Cleaning, require_cleaning
from nonmember.records import Corpus
from nonmember.records.streams import Shard, Shards, ShardWriter
from nonmember.runtime.files import write_text_atomically
from nonmember.runtime.interruption import check
from nonmember.runtime.progress import Stage

log = logging.getLogger(__name__)

CURSOR_FILE = ".place.json"


@dataclass(frozen=True)
class Streamed(CorpusSpec):
    """The documents of `source` after `cleaning`, as a `Stream`: in files of the store and never all in memory.

    For text to train on (`Pretraining`), alone or in a `Mixture`, and to score (`scoring.parts`). Whatever else takes a
    corpus reads it into memory.

    The documents of a source that is read row by row (`Hub`, from the hub or from files) never are in memory together;
    a source that was killed while it was read goes on behind the last complete file. Equal texts are not looked for,
    as all texts would have to be remembered for that, and ids are not compared here.

    Attributes:
        source: What is read.
        cleaning: Of each document.
        num_words: The first documents of the source that have so many words (white space between them) together, so
            that several sources can be given equal shares; None: all. A source that has fewer says so, and all of it is
            taken.
    """

    source: CorpusSpec
    _: KW_ONLY
    cleaning: Annotated[Cleaning, require_cleaning]
    num_words: Annotated[int | None, Count(1)] = None

    stored: ClassVar[bool] = True
    resumable = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.cleaning.duplicates != "keep" or self.cleaning.near_duplicate_threshold is not None:
            raise ValueError(
                "`cleaning` of Streamed must keep duplicates (`duplicates: keep`, `near_duplicate_threshold: null`): "
                "to find them all texts would have to be in memory. Take a source without, or a corpus in memory."
            )

    @property
    def readable(self) -> str:
        return str(self.source.identity().get("domain") or "streamed")

    def build(self, builder: Builder) -> Corpus:
        raise NotImplementedError("A streamed corpus is kept in the store; it is made by `make`.")

    def validate(self) -> None:
        self.source.validate()

    def identity(self) -> dict[str, Any]:
        return {
            "kind": "streamed",
            "rules": 1,
            "source": self.source.identity(),
            "cleaning": asdict(self.cleaning) | {"name": "", "num_perm": None},
            "num_words": self.num_words,
        }

    def make(self, builder: Builder, folder: Path) -> dict[str, Any]:
        """Read, clean and write. After every complete file the cursor is noted, and a later run goes on from there."""
        path, identity = folder / CURSOR_FILE, self.source.identity()
        known = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
        writer = ShardWriter(folder, known.get("shards", ()))
        cursor, dropped = Cursor(**known.get("place", {})), Counter(known.get("dropped", {}))
        num_words = known.get("num_words", 0)
        with Stage(f"reading {self.readable}", self.num_words, "words", at=num_words) as stage:
            for document in self.source.read(builder, dropped, cursor):
                if (cleaned := self.cleaning.cleaned(document, dropped)) is None:
                    continue
                num_words += (added := len(cleaned.text.split()))
                stage.advance(added)
                if writer.add(cleaned):
                    note = {"place": cursor.state(), "dropped": dict(dropped), "num_words": num_words}
                    write_text_atomically(path, json.dumps(note | {"shards": list(map(vars, writer.shards))}))
                check()
                if self.num_words is not None and num_words >= self.num_words:
                    break
        writer.finish()
        if self.source.identity() != identity:
            raise ValueError(f"The files of {self.readable} were changed while they were read. Start again.")
        if self.num_words is not None and num_words < self.num_words:
            log.warning(
                "%s has %s words of the %s wanted (left out on the way: %s); all of them are used, and the run "
                "continues.",
                self.readable,
                f"{num_words:,}",
                f"{self.num_words:,}",
                dict(dropped) or "nothing",
            )
        shards = Shards(folder, tuple(writer.shards))
        return {
            "num_documents": len(shards),
            "num_words": num_words,
            "dropped": dict(sorted(dropped.items())),
            "fingerprint": shards.fingerprint,
            "shards": [vars(shard) for shard in writer.shards],
        }

    def load(self, builder: Builder, entry: Entry) -> Corpus:
        shards = tuple(Shard(**shard) for shard in entry.facts["shards"])
        return Shards(entry.path, shards, entry.facts["dropped"])  # type: ignore[return-value]


@dataclass(frozen=True)
class Chunks(CorpusSpec):
    """Some chunks of a stream, in memory: what is scored at once."""

    stream: Shards
    first: int  # number of the first one
    end: int  # number of the one behind the last
    without: tuple[int, ...] = ()  # indices among their documents, from 0, of those that are left out

    stored: ClassVar[bool] = False
    pool = ""

    def build(self, builder: Builder) -> Corpus:
        documents = [item for number in range(self.first, self.end) for item in self.stream.chunk(number)]
        left_out = set(self.without)
        return Corpus(tuple(item for index, item in enumerate(documents) if index not in left_out))

    def identity(self) -> dict[str, Any]:
        chunks = [self.first, self.end]
        return {"kind": "chunks", "of": self.stream.fingerprint, "chunks": chunks, "without": list(self.without)}
