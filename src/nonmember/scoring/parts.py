"""Scores of a corpus larger than memory: made part by part, each kept in a file of its own.

A part is as many documents as are in memory at once. It is scored as a small corpus is, but its observations are
forgotten with it: the store stays for what is small.
"""

from __future__ import annotations

import errno
import sqlite3
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

import pyarrow as pa
import pyarrow.parquet as pq

from nonmember.artifacts import Builder, Memory, Spec
from nonmember.artifacts.store import Entry, Store
from nonmember.audits.record import versions
from nonmember.audits.walk import specs_in
from nonmember.corpora import Chunks
from nonmember.models import label_of
from nonmember.records.streams import CHUNK_BYTES, Shards
from nonmember.runtime.compute import MIB, Compute
from nonmember.runtime.files import alone_in, file_hash, replacing
from nonmember.runtime.progress import Stage, tracked
from nonmember.runtime.quiet import quieten
from nonmember.scoring.engines import DuplicateIds, Manifest
from nonmember.scoring.part_files import (
    COMPARED,
    DUPLICATES,
    MANIFEST,
    MANIFESTS,
    SCRATCH,
    TABLES,
    PartFiles,
    read_json,
    write_json,
)
from nonmember.scoring.question import Scoring
from nonmember.scoring.table import ScoreTable
from nonmember.scoring.tally import Tally
from nonmember.tracking.trackers import NoTracker

T = TypeVar("T")

FORMAT = 1  # raise it when a change of code moves what parts hold: folders that were begun before are then refused
SCHEMA = pa.schema([("doc_id", pa.string()), ("place", pa.int64()), ("first_place", pa.int64())])
ROWS_AT_ONCE = 2**16
EARLIER = """
    SELECT id, place, first FROM (SELECT id, place, MIN(place) OVER (PARTITION BY id) AS first FROM ids)
    WHERE place > first ORDER BY place
"""


@dataclass(frozen=True)
class ScoringPart:
    """first, end: its chunks, without `end`.   start: number of its first document in the stream."""

    number: int
    first: int
    end: int
    start: int
    num_documents: int

    @property
    def name(self) -> str:
        return f"part-{self.number:05d}"


def parts_of(stream: Shards, mib: int) -> list[ScoringPart]:
    """The stream in parts of whole chunks."""
    size, starts = max(1, mib * MIB // CHUNK_BYTES), stream.starts
    firsts = range(0, stream.num_chunks, size)
    ends = [min(first + size, stream.num_chunks) for first in firsts]
    return [
        ScoringPart(number, first, end, int(starts[first]), int(starts[end] - starts[first]))
        for number, (first, end) in enumerate(zip(firsts, ends, strict=True))
    ]


def write_parts(scoring: Scoring, builder: Builder, folder: Path) -> Path:
    """Score a streamed corpus into a folder of Parquet files, which is returned; see `part_files`.

    Parts that an earlier run has completed are verified by their hashes and stay. Raises ValueError where the folder
    holds other scores, and for documents of one id where these are refused.
    """
    _require_possible(scoring, builder)
    stream: Any = builder.get(scoring.corpus)
    if not isinstance(stream, Shards):
        raise ValueError("A mixture of streamed corpora is for training only. Score each of its components.")
    if not len(stream):
        raise ValueError("There are no documents to score. Name others, or loosen the cleaning.")
    parts, limit, files = scoring.parts, scoring.limit(builder), PartFiles(folder.resolve())
    question = scoring.about(builder, limit) | {
        "format": FORMAT,
        "precision": builder.compute.precision,
        "part_mib": parts.mib,
    }
    with alone_in(folder, "scoring into"):
        files.begin(question)
        repeated = _duplicates(stream, files, parts.duplicate_ids)
        plan = parts_of(stream, parts.mib)
        scorer = PartScorer(scoring, stream, limit, question, files, builder)
        made: dict[int, Manifest] = {
            part.number: manifest for part in plan if (manifest := files.complete(part.name)) is not None
        }
        at = sum(part.num_documents for part in plan if part.number in made)
        with (
            Stage(f"scoring {scoring.corpus.readable}", len(stream), "documents", at=at, covers=True) as stage,
            closing(parts.engine.run(scorer, [part for part in plan if part.number not in made])) as scored,
        ):
            for new in scored:
                made[new["number"]] = new
                stage.advance(plan[new["number"]].num_documents)
        tokens = scoring.tokens(builder)
        tally = Tally.total(Tally.from_json(made[part.number]["tally"]) for part in plan)
        dropped = dict(stream.dropped) | ({"duplicate_id": repeated["number"]} if repeated["number"] else {})
        write_json(
            files.folder / MANIFEST,
            {
                **question,
                "num_read": tally.num_documents + sum(dropped.values()),
                "num_dropped": dropped,
                **tally.as_json(),
                "duplicates": repeated,
                "tokens": tokens,
                "counters": _added_up(made[part.number]["counters"] for part in plan),
                "versions": _different(made[part.number]["versions"] for part in plan),
                "parts": [{name: made[part.number][name] for name in ("file", "sha256")} for part in plan],
            },
        )
    tally.say(dropped, limit, tokens)
    return files.folder / TABLES


def _require_possible(scoring: Scoring, builder: Builder) -> None:
    if not scoring.model.has_weights or not builder.compute.in_one_process:
        number = "one device" if builder.compute.in_one_process else "several devices"
        raise ValueError(
            "A streamed corpus is scored under models with weights, by one device per process; got "
            f"{label_of(scoring.model)} and trainer.make_trainer of {number}. Take a corpus that is not streamed, or "
            "for several devices engine=ray."
        )
    for name, score in scoring.wanted().items():
        if score.neighbours is not None and score.neighbours.filler is None:
            raise ValueError(
                f"{name} replaces words by words drawn from all documents, which are not in memory. Have a masked "
                f"model propose them ({name}.filler=FOLDER_OR_HUB_NAME), or leave it out of scores."
            )


def _duplicates(stream: Shards, files: PartFiles, rule: DuplicateIds) -> dict[str, Any]:
    """How many documents have the id of an earlier one, and the hash of the table that lists them."""
    compared, listed = files.folder / MANIFESTS / COMPARED, files.folder / DUPLICATES
    found = read_json(compared)
    if found is None or (found["number"] and not (listed.is_file() and file_hash(listed) == found["sha256"])):
        chunks = tracked(range(stream.num_chunks), "comparing ids", "chunks")
        number = write_duplicates((stream.ids(chunk) for chunk in chunks), listed)
        found = {"number": number, "sha256": file_hash(listed) if number else None}
        write_json(compared, found)
    if found["number"] and rule == "refuse":
        raise ValueError(
            f"Document ids must be unique, but {found['number']:,} of {len(stream):,} documents have one that an "
            f"earlier document has; {listed} lists them. Name a column that is unique (data.id_field; null names "
            "documents by file and line), or have only the first of each scored: parts.duplicate_ids=first."
        )
    return found


def _added_up(counters: Iterator[Mapping[str, Mapping[str, float]]]) -> dict[str, dict[str, float]]:
    total: dict[str, dict[str, float]] = {}
    for item in counters:
        for score, counts in item.items():
            known = total.setdefault(score, {})
            for name, number in counts.items():
                known[name] = known.get(name, 0) + number
    return total


def _different(values: Iterator[dict[str, str]]) -> list[dict[str, str]]:
    found: list[dict[str, str]] = []
    for item in values:
        if item not in found:
            found.append(item)
    return found


@dataclass
class PartScorer:
    """Makes a part: its table first, then its manifest. In another process it loads the models again."""

    scoring: Scoring
    stream: Shards
    limit: int
    question: Mapping[str, Any]
    files: PartFiles
    builder: Builder

    def __call__(self, part: ScoringPart) -> dict[str, Any]:
        repeated = places_between(self.files.folder / DUPLICATES, part.start, part.start + part.num_documents)
        chunks = Chunks(self.stream, part.first, part.end, tuple(number - part.start for number in repeated))
        with tempfile.TemporaryDirectory(prefix=SCRATCH, dir=self.files.folder) as scratch:
            builder = PartBuilder.beside(self.builder, Path(scratch))
            table = ScoreTable.of(replace(self.scoring, corpus=chunks), builder, self.limit, one_of_many=True)
            table.write(self.files.table(part.name), self.question)
            manifest = {
                **asdict(part),
                "file": f"{TABLES}/{part.name}.parquet",
                "sha256": file_hash(self.files.table(part.name)),
                "documents": chunks.fingerprint(builder),
                "tally": table.tally.as_json(),
                "counters": table.counters,
                "versions": versions(),
            }
        write_json(self.files.manifest(part.name), manifest)
        return manifest

    def __reduce__(self) -> Any:
        """Models in memory stay here."""
        own = (self.scoring, self.stream, self.limit, self.question, self.files)
        return _in_another_process, (*own, self.builder.store.root, self.builder.compute)


def _in_another_process(
    scoring: Scoring,
    stream: Shards,
    limit: int,
    question: Mapping[str, Any],
    files: PartFiles,
    root: Path,
    compute: Compute,
) -> PartScorer:
    quieten()
    return PartScorer(scoring, stream, limit, question, files, Builder(Store(root), compute, NoTracker()))


@dataclass
class PartBuilder(Builder):
    """Makes what rests on the documents of a part in a folder of its own, and forgets it with the part; all else is
    that of the builder beside it."""

    whole: Builder | None = None
    folder: Path = Path()

    @classmethod
    def beside(cls, whole: Builder, folder: Path) -> PartBuilder:
        return cls(
            whole.store,
            whole.compute,
            whole.tracker,
            Memory(),
            whole.counters,
            whole.asking,
            _resources=whole._resources,
            whole=whole,
            folder=folder,
        )

    def get(self, spec: Spec[T]) -> T:
        return super().get(spec) if self._is_of_the_part(spec) else self._beside.get(spec)

    def entry(self, spec: Spec[Any]) -> Entry:
        if not self._is_of_the_part(spec):
            return self._beside.entry(spec)
        name = self._name(spec)
        if name not in self._entries:
            self.ensure_all(spec.parents())
            path = self.folder / str(len(self._entries))
            path.mkdir()
            facts = dict(spec.make(self, path) or {})
            self._entries[name] = Entry(path, "", facts, tuple(item.name for item in path.iterdir()), made_now=True)
        return self._entries[name]

    @property
    def _beside(self) -> Builder:
        assert self.whole is not None
        return self.whole

    @cached_property
    def _known(self) -> dict[int, tuple[Spec[Any], bool]]:
        return {}

    def _is_of_the_part(self, spec: Spec[Any]) -> bool:
        if id(spec) not in self._known:
            self._known[id(spec)] = spec, any(isinstance(item, Chunks) for item in specs_in(spec))
        return self._known[id(spec)][1]


def write_duplicates(ids: Iterable[Sequence[str]], path: Path) -> int:
    """Write a row for each document with the id of an earlier one, and return their number; 0 leaves no file.

    ids: of all documents in their order, some at a time.   place, first_place: number of the document, and of the first
    with its id, from 0. SQLite keeps its files where SQLITE_TMPDIR says, else in /var/tmp; they go with the process.
    """
    try:
        with closing(sqlite3.connect("")) as database:  # without a name: on disk, and gone when it is closed
            database.execute("CREATE TABLE ids (id TEXT, place INTEGER)")
            database.executemany("INSERT INTO ids VALUES (?, ?)", _numbered(ids))
            return _write(database.execute(EARLIER), path)
    except sqlite3.OperationalError as error:
        if "full" not in str(error):
            raise
        raise OSError(errno.ENOSPC, "No room to compare the ids", "SQLITE_TMPDIR, or /var/tmp") from error


def places_between(path: Path, first: int, end: int) -> list[int]:
    """Those of the documents from `first` on, before `end`, that have an earlier one's id."""
    if not path.is_file():
        return []
    table = pq.read_table(path, columns=["place"], filters=[("place", ">=", first), ("place", "<", end)])
    return [int(number) for number in table["place"].to_pylist()]


def _numbered(ids: Iterable[Sequence[str]]) -> Iterator[tuple[str, int]]:
    number = 0
    for some in ids:
        for item in some:
            yield item, number
            number += 1


def _write(rows: sqlite3.Cursor, path: Path) -> int:
    number = 0
    if not (some := rows.fetchmany(ROWS_AT_ONCE)):
        path.unlink(missing_ok=True)
        return number
    with replacing(path) as temporary, pq.ParquetWriter(temporary, SCHEMA) as writer:
        while some:
            writer.write_table(pa.table([list(column) for column in zip(*some, strict=True)], schema=SCHEMA))
            number += len(some)
            some = rows.fetchmany(ROWS_AT_ONCE)
    return number
