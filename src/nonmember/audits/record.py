"""What an audit leaves in its folder: result.json, scores.parquet, distribution.parquet."""

from __future__ import annotations

import importlib.metadata
import platform
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from nonmember.methods import ScoredDocuments, TestOutcome
from nonmember.mirror import DISTRIBUTION, SCORES
from nonmember.records import RESULT, AuditResult
from nonmember.scores import DocumentScores
from nonmember.store import key_hash, write_text_atomically

VERSIONS_OF = ("nonmember", "torch", "transformers", "tokenizers", "lightning", "numpy", "scipy")


def finished(folder: Path, audit_key: str) -> AuditResult | None:
    """The result that lies in `folder`, if it answers the question of this key and this version can read it."""
    result = _earlier_result(folder / RESULT)
    return result if result and result.keys.get("audit") == audit_key else None


def _earlier_result(path: Path) -> AuditResult | None:
    try:
        return AuditResult.load(path) if path.is_file() else None
    except ValueError:
        return None


def write(result: AuditResult, documents: Mapping[str, ScoredDocuments], outcome: TestOutcome, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    write_table(_columns_of_scores(documents), folder / SCORES)
    if len(outcome.distribution):
        write_table({"statistic": outcome.distribution}, folder / DISTRIBUTION)
    else:
        (folder / DISTRIBUTION).unlink(missing_ok=True)  # of another question that was put here before
    _keep_earlier(folder / RESULT)
    write_text_atomically(folder / RESULT, result.to_json())


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


def _keep_earlier(path: Path) -> None:
    """A result of another question that lies there is moved aside under its own key, never overwritten."""
    if path.is_file():
        earlier = _earlier_result(path)
        mark = earlier.keys["audit"] if earlier else f"unreadable-{key_hash(path.read_text(errors='replace'))}"
        path.rename(path.with_name(f"result-{mark}.json"))


def write_table(columns: Mapping[str, Any], path: Path) -> None:
    temporary = path.with_name(f".{path.name}")
    pq.write_table(pa.table(dict(columns)), temporary)
    temporary.replace(path)


def versions() -> dict[str, str]:
    return {"python": platform.python_version()} | {name: importlib.metadata.version(name) for name in VERSIONS_OF}


def table_of_scores(
    names: Sequence[str], scored: Sequence[DocumentScores]
) -> tuple[dict[str, Any], dict[str, Mapping[str, str]]]:
    """Columns (doc_id and a column per score) and, per score, the documents that have no value."""
    columns: dict[str, Any] = {"doc_id": list(scored[0].doc_ids)}
    reasons = {}
    for name, scores in zip(names, scored, strict=True):
        place = {doc_id: index for index, doc_id in enumerate(scores.doc_ids)}
        columns[name] = scores.values[[place[doc_id] for doc_id in columns["doc_id"]]]
        reasons[name] = scores.reasons
    return columns, reasons
