"""What an audit leaves in its folder: result.json, scores.parquet, distribution.parquet."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from nonmember.artifacts.store import key_hash
from nonmember.methods import ScoredDocuments, TestOutcome
from nonmember.results.result import DISTRIBUTION, RESULT, SCORES, AuditResult
from nonmember.runtime.files import replacing
from nonmember.scores import DocumentScores

log = logging.getLogger(__name__)


def finished(folder: Path, audit_key: str) -> AuditResult | None:
    """The result in `folder`, if it is of this key, this version can read it, and nothing was changed or lost since."""
    path = folder / RESULT
    if not path.is_file():
        return None
    try:
        result = AuditResult.load(path)
    except ValueError as error:
        log.warning("%s It is made again now.", error)
        return None
    return result if result.provenance.keys.get("audit") == audit_key else None


def write(result: AuditResult, documents: Mapping[str, ScoredDocuments], outcome: TestOutcome, folder: Path) -> None:
    """The tables first, and then the result with the seal of all of it."""
    folder.mkdir(parents=True, exist_ok=True)
    tables = [folder / SCORES]
    write_table(_columns_of_scores(documents), folder / SCORES)
    if len(outcome.distribution):
        tables.append(folder / DISTRIBUTION)
        write_table({"statistic": outcome.distribution}, folder / DISTRIBUTION)
    else:
        (folder / DISTRIBUTION).unlink(missing_ok=True)  # of another question that was put here before
    _keep_earlier(folder / RESULT, result)
    result.save(folder / RESULT, tables)


def _columns_of_scores(documents: Mapping[str, ScoredDocuments]) -> dict[str, Any]:
    """doc_id and a column per measurement; with several groups of documents one below the other, named in `group`."""
    names = list(dict.fromkeys(name for group in documents.values() for name in group.values))
    columns: dict[str, Any] = {"doc_id": [doc_id for group in documents.values() for doc_id in group.doc_ids]}
    if len(documents) > 1:
        columns["group"] = [name for name, group in documents.items() for _ in group.doc_ids]
    for name in names:
        parts = [group.values.get(name, np.full(len(group.doc_ids), np.nan)) for group in documents.values()]
        columns[name] = np.concatenate(parts)
    return columns


def _keep_earlier(path: Path, result: AuditResult) -> None:
    """A result of another question that lies there is moved aside under its own key, and one that was changed under a
    hash; neither is overwritten. One of the same question is: `result` is that result made anew."""
    if not path.is_file():
        return
    try:
        mark = AuditResult.load(path, files_too=False).provenance.keys["audit"]
    except (ValueError, KeyError):
        mark = f"unreadable-{key_hash(path.read_text(errors='replace'))}"
    if mark != result.provenance.keys["audit"]:
        path.rename(path.with_name(f"result-{mark}.json"))


def write_table(columns: Mapping[str, Any], path: Path) -> None:
    with replacing(path) as temporary:
        pq.write_table(pa.table(dict(columns)), temporary)


def table_of_scores(
    names: Sequence[str], scored: Sequence[DocumentScores]
) -> tuple[dict[str, Any], dict[str, Mapping[str, str]]]:
    """Columns (doc_id and a column per score) and, per score, the documents that have no value."""
    columns: dict[str, Any] = {"doc_id": list(scored[0].doc_ids)}
    reasons = {}
    for name, scores in zip(names, scored, strict=True):
        index_of = {doc_id: index for index, doc_id in enumerate(scores.doc_ids)}
        columns[name] = scores.values[[index_of[doc_id] for doc_id in columns["doc_id"]]]
        reasons[name] = scores.reasons
    return columns, reasons
