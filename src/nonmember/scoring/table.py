"""Scores of a corpus in memory, as a table with its provenance."""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from nonmember import scores as family
from nonmember.artifacts import Builder
from nonmember.artifacts.store import key_hash
from nonmember.audits.record import table_of_scores
from nonmember.corpora.transforms.cleaning import is_blank
from nonmember.models.reading import Read, TextsRead
from nonmember.observations import Scored, TokenStatistics
from nonmember.results.result import SCORES
from nonmember.runtime.files import replacing
from nonmember.runtime.source import commit, versions
from nonmember.scoring.question import Scoring
from nonmember.scoring.tally import Tally, scores_without

log = logging.getLogger(__name__)

BYTES_PER_TOKEN = 60  # of a table of observations while it is loaded: 24 stay
GIB = 2**30
BLANK = "the text is blank: it has no visible character"


@dataclass(frozen=True)
class ScoreTable:
    """columns: a row per document; a column per score, numbers of tokens and, where a score is undefined, the reason.
    counters: what each score guarded.   warnings: about the texts as they were read."""

    columns: Mapping[str, Any]
    tally: Tally
    counters: Mapping[str, Mapping[str, int | float]]
    warnings: Sequence[str] = ()

    @classmethod
    def of(cls, scoring: Scoring, builder: Builder, limit: int, *, one_of_many: bool = False) -> ScoreTable:
        """limit: tokens of a document that are read.   one_of_many: whether it is a small part of what is scored."""
        wanted = scoring.wanted()
        blank = {item.doc_id for item in builder.get(scoring.corpus).documents if is_blank(item.scored_text)}
        _say_what_is_not_unread(wanted, scoring, builder)
        read = None
        if scoring.model.has_weights:
            read = builder.get(Read(scoring.model, scoring.corpus, limit))
            if one_of_many:
                for warning in read.warnings:
                    log.warning("%s", warning)
            else:
                _say_expected_memory(wanted, scoring, read)

        def scored_by(score: family.Score) -> family.DocumentScores:
            measurement = Scored(
                *("model", scoring.model, scoring.corpus, score, limit, scoring.reference, scoring.general),
                scored_text=True,
                prefix=scoring.prefix,
                out_models=scoring.out_models,
            )
            return _without(blank, measurement.scores(measurement.inputs(builder)))

        scored = [scored_by(score) for score in wanted.values()]
        columns, reasons = table_of_scores(list(wanted), scored)
        if read is None:
            num_tokens = builder.get(TokenStatistics(scoring.model, scoring.corpus, "original", limit)).num_tokens
        else:
            num_tokens = np.array(read.num_scored, dtype=np.int64)
        columns["num_tokens"] = pa.array(num_tokens, pa.int64())
        if read is not None:
            columns["num_tokens_uncut"] = pa.array(read.num_all, pa.int64())
            columns["is_cut"] = list(read.is_cut)
        lacking = (scores_without(doc_id, reasons) for doc_id in columns["doc_id"])
        told = ("; ".join(f"{why} ({', '.join(names)})" for why, names in item.items()) or None for item in lacking)
        columns["reason"] = pa.array(list(told), pa.string())
        counters = {name: dict(item.counters) for name, item in zip(wanted, scored, strict=True) if item.counters}
        tally = Tally.of(columns["doc_id"], int(num_tokens.sum()), read, reasons)
        return cls(columns, tally, counters, read.warnings if read else ())

    def write(self, path: Path, about: Mapping[str, Any]) -> None:
        """Metadata: the whole of `about` as JSON under `nonmember`, and each of its parts under its own name."""
        path.parent.mkdir(parents=True, exist_ok=True)
        metadata = {name: item if isinstance(item, str) else json.dumps(item) for name, item in about.items()}
        table = pa.table(dict(self.columns)).replace_schema_metadata({**metadata, "nonmember": json.dumps(about)})
        with replacing(path) as temporary:
            pq.write_table(table, temporary)


def _without(blank: Collection[str], scores: family.DocumentScores) -> family.DocumentScores:
    """No scores of texts without a visible character, whatever a model makes of zero-width marks."""
    if not blank:
        return scores
    values = scores.values.copy()
    values[[doc_id in blank for doc_id in scores.doc_ids]] = np.nan
    return replace(scores, values=values, reasons={**scores.reasons, **dict.fromkeys(blank, BLANK)})


def write_table(scoring: Scoring, builder: Builder, folder: Path) -> Path:
    """Write scores.parquet and report how many documents were read, truncated or left without a score. A table that
    this program made of the same question is left as it is."""
    limit, path = scoring.limit(builder), (folder / SCORES).resolve()
    about = scoring.about(builder, limit) | {"versions": versions()}
    about["question"] = key_hash({"scoring": repr(scoring), "commit": commit(), **about})
    found = _made_before(path, about["question"])
    if found is None or not _is_known(scoring):
        found = about | _make(scoring, builder, limit, path, about)
    for warning in found["warnings"]:
        log.warning("%s", warning)
    Tally.from_json(found["tally"]).say(found["num_dropped"], limit, found["tokens"])
    return path


def _make(scoring: Scoring, builder: Builder, limit: int, path: Path, about: Mapping[str, Any]) -> dict[str, Any]:
    """What is known of the table once it is made."""
    corpus = builder.get(scoring.corpus)
    if not len(corpus):
        raise ValueError("There are no documents to score. Name others, or loosen the cleaning.")
    table = ScoreTable.of(scoring, builder, limit)
    found = {
        "num_read": len(corpus) + sum(corpus.dropped.values()),
        "num_dropped": dict(corpus.dropped),
        "num_cut": table.tally.cut.number if scoring.model.has_weights else None,
        "tokens": scoring.tokens(builder),
        "counters": table.counters,
        "tally": table.tally.as_json(),
        "warnings": list(table.warnings),
    }
    table.write(path, {**about, **found})
    return found


def _made_before(path: Path, question: str) -> dict[str, Any] | None:
    """What is known of the table that is there, if it answers the question."""
    if not path.is_file():
        return None
    about = json.loads((pq.read_schema(path).metadata or {}).get(b"nonmember", b"{}"))
    return about if about.get("question") == question else None


def _is_known(scoring: Scoring) -> bool:
    """Whether versions and commit say by which code it is scored: not by one's own, nor by a changed checkout."""
    own = any(not type(item).__module__.startswith("nonmember.") for item in scoring.wanted().values())
    return not own and not str(commit()).endswith("-changed")


def _say_what_is_not_unread(wanted: Mapping[str, family.Score], scoring: Scoring, builder: Builder) -> None:
    """Documents among the unread texts, of which ReCaLL takes none."""
    ranking = [name for name, item in wanted.items() if item.needs_population]
    if scoring.prefix is None or not ranking:
        return
    documents = {item.scored_text for item in builder.get(scoring.corpus).documents}
    texts = [item.scored_text for item in builder.get(scoring.prefix).documents]
    if shared := sum(text in documents for text in texts):
        log.warning(
            "%s of the %s unread texts (prefix) are documents themselves, so that %s ranks these among one another. "
            "Give texts that are not in question.",
            f"{shared:,}",
            f"{len(texts):,}",
            ", ".join(ranking),
        )


def _say_expected_memory(wanted: Mapping[str, family.Score], scoring: Scoring, read: TextsRead) -> None:
    views = {view for item in wanted.values() for view in item.views}
    num_tables = len(views) + (scoring.reference is not None)
    expected = num_tables * sum(read.num_read) * BYTES_PER_TOKEN
    if expected > (there_is := memory_of_machine()) / 2:
        log.warning(
            "The observations of %s documents will take about %.1f GiB of memory; the machine has %.1f GiB. Stream the "
            "documents (data=streamed), or lower max_tokens.",
            f"{len(read.parts):,}",
            expected / GIB,
            there_is / GIB,
        )


def memory_of_machine() -> int:
    """Bytes, or those of this process's container where it has fewer."""
    there_is = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    limit = Path("/sys/fs/cgroup/memory.max")
    allowed = limit.read_text().strip() if limit.is_file() else "max"
    return there_is if allowed == "max" else min(there_is, int(allowed))
