"""Scores of a corpus larger than memory: made part by part, each kept in a file of its own.

A part is as many documents as are in memory at once. It is scored as a small corpus is, but its observations are
forgotten with it: the store stays for what is small.
"""

from __future__ import annotations

import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import xxhash

from nonmember.artifacts import Builder, Memory, Spec
from nonmember.artifacts.store import Entry, Store
from nonmember.audits.walk import specs_in
from nonmember.corpora import Chunks
from nonmember.models import label_of
from nonmember.records.streams import CHUNK_BYTES, Shards
from nonmember.runtime.compute import MIB
from nonmember.runtime.files import alone_in, file_hash
from nonmember.runtime.progress import Stage, tracked
from nonmember.runtime.quiet import quieten
from nonmember.runtime.source import versions
from nonmember.scoring.part_files import MANIFEST, SCRATCH, TABLES, PartFiles, write_json
from nonmember.scoring.question import DuplicateIds, Scoring
from nonmember.scoring.table import ScoreTable
from nonmember.scoring.tally import Tally
from nonmember.tracking.trackers import NoTracker

T = TypeVar("T")

FORMAT = 1  # raise it when a change of code moves what parts hold: folders that were begun before are then refused
Places = npt.NDArray[np.int64]


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
        repeated = repeated_ids(stream, parts.duplicate_ids)
        plan = parts_of(stream, parts.mib)
        made: list[Mapping[str, Any] | None] = [files.complete(part.name) for part in plan]
        at = sum(part.num_documents for part, manifest in zip(plan, made, strict=True) if manifest is not None)
        with Stage(f"scoring {scoring.corpus.readable}", len(stream), "documents", at=at, covers=True) as stage:
            scorer = PartScorer(scoring, stream, repeated, limit, question, files, builder)
            missing = [part for part, manifest in zip(plan, made, strict=True) if manifest is None]
            new = parts.engine.run(scorer, missing) if parts.engine and missing else map(scorer, missing)
            for manifest in new:
                made[manifest["number"]] = manifest
                stage.advance(plan[manifest["number"]].num_documents)
        manifests = [item for item in made if item is not None]
        tokens = scoring.tokens(builder)
        tally = Tally.total(Tally.from_json(item["tally"]) for item in manifests)
        dropped = dict(stream.dropped) | ({"duplicate_id": len(repeated)} if len(repeated) else {})
        write_json(
            files.folder / MANIFEST,
            {
                **question,
                "num_read": tally.num_documents + sum(dropped.values()),
                "num_dropped": dropped,
                **tally.as_json(),
                "tokens": tokens,
                "counters": _added_up(item["counters"] for item in manifests),
                "versions": versions(),
                "parts": [{name: item[name] for name in ("file", "sha256")} for item in manifests],
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


def repeated_ids(stream: Shards, rule: DuplicateIds) -> Places:
    """Places of the documents whose id an earlier one has, ascending. Raises ValueError where these are refused."""
    chunks = tracked(range(stream.num_chunks), "comparing ids", "chunks")
    names = (item.encode("utf-8", "surrogatepass") for chunk in chunks for item in stream.ids(chunk))
    hashes = np.fromiter(map(xxhash.xxh3_64_intdigest, names), np.uint64)
    repeated = np.ones(len(hashes), dtype=bool)
    repeated[np.unique(hashes, return_index=True)[1]] = False
    places = np.flatnonzero(repeated)
    if len(places) and rule == "refuse":
        raise ValueError(
            f"Document ids must be unique, but {len(places):,} of {len(stream):,} documents have one that an earlier "
            f"document has, the first of them the {places[0] + 1:,}th. Name a column that is unique (data.id_field; "
            "null names documents by file and line), or have only the first of each scored: parts.duplicate_ids=first."
        )
    return places


def _added_up(counters: Iterable[Mapping[str, Mapping[str, float]]]) -> dict[str, dict[str, float]]:
    total: dict[str, Any] = defaultdict(Counter)
    for score, counts in (pair for item in counters for pair in item.items()):
        total[score].update(counts)
    return total


@dataclass
class PartScorer:
    """Makes a part: its table first, then its manifest. In another process it loads the models again."""

    scoring: Scoring
    stream: Shards
    repeated: Places
    limit: int
    question: Mapping[str, Any]
    files: PartFiles
    builder: Builder

    def __call__(self, part: ScoringPart) -> dict[str, Any]:
        first, end = np.searchsorted(self.repeated, (part.start, part.start + part.num_documents))
        left_out = tuple(int(place) - part.start for place in self.repeated[first:end])
        chunks = Chunks(self.stream, part.first, part.end, left_out)
        with tempfile.TemporaryDirectory(prefix=SCRATCH, dir=self.files.folder) as scratch:
            own = PartBuilder.beside(self.builder, Path(scratch))
            table = ScoreTable.of(replace(self.scoring, corpus=chunks), own, self.limit, one_of_many=True)
            table.write(self.files.table(part.name), self.question)
            manifest = {
                **asdict(part),
                "file": f"{TABLES}/{part.name}.parquet",
                "sha256": file_hash(self.files.table(part.name)),
                "documents": chunks.fingerprint(own),
                "tally": table.tally.as_json(),
                "counters": table.counters,
            }
        write_json(self.files.manifest(part.name), manifest)
        return manifest

    def __getstate__(self) -> dict[str, Any]:
        """Models in memory stay here."""
        return {**vars(self), "builder": (self.builder.store.root, self.builder.compute)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        quieten()
        root, compute = state["builder"]
        vars(self).update(state, builder=Builder(Store(root), compute, NoTracker()))


@dataclass
class PartBuilder(Builder):
    """Makes what rests on a part's documents in a folder that goes with the part; all else is the other builder's."""

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
