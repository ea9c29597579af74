"""Collects the contents of a bundle for one finished audit from its folder and the store; recomputes nothing."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from nonmember.artifacts import Builder
from nonmember.artifacts.store import Entry, Store, key_hash
from nonmember.audits.distilled import prepare
from nonmember.audits.keys import audit_keys
from nonmember.audits.question import Audit
from nonmember.corpora import CorpusSpec
from nonmember.evidence.question import WITHOUT_PATHS, question_of
from nonmember.evidence.redaction import Redaction
from nonmember.evidence.seal import RECEIPT, SEAL
from nonmember.methods import Auto
from nonmember.observations import Measurement, Scored
from nonmember.observations.tokens import TokenStatistics
from nonmember.records import Corpus, TokenTable
from nonmember.records.groups import SUSPECT
from nonmember.results.answers import ANSWERS
from nonmember.results.evidence import columns_of
from nonmember.results.result import DISTRIBUTION, RESULT, SCORES, AuditResult
from nonmember.runtime.files import file_hash, json_object
from nonmember.scores import Score
from nonmember.scores.relative import zlib_bytes
from nonmember_verify.commitments import commitment

MADE = ("models", "observations")  # kinds of artifacts that cost something


class KeptStore(Store):
    """A store that makes no model and no observation: those that are gone are named."""

    def get_or_make(self, kind: str, name: str, key: Mapping[str, Any], make: Any, **how: Any) -> Entry:
        entry = self.find(kind, name, key)
        if entry is None and kind in MADE:
            raise ValueError(
                f"The store {self.root} no longer has {name} ({kind} {key_hash(key)}). Name the store that the audit "
                "used (--store), run the audit again, or leave the token statistics out (--observations scores)."
            )
        return entry or super().get_or_make(kind, name, key, make, **how)


@dataclass(frozen=True)
class Included:
    """What goes into a bundle."""

    observations: bool = True  # token statistics, else scores alone
    token_ids: bool = False  # with the ids of tokens, in their order


@dataclass
class Gathered:
    """Of one audit."""

    described: dict[str, Any]  # as it stands in audit.json
    result: dict[str, Any]  # without names of documents
    tables: dict[str, dict[str, Any]]  # name of a file -> columns
    tokens: dict[str, dict[str, Any]]  # by the hash of their key
    keys: dict[str, Any]  # hash -> key
    texts: Sequence[tuple[str, str]]  # of all groups, with ids, of which two may be one; they are never written
    seal: bytes | None


def gather(audit: Audit, builder: Builder, folder: Path, secret: bytes, choice: Included) -> Gathered:
    """Raises ValueError where the folder holds no result of this audit, or the store lacks what it rests on."""
    if isinstance(audit.method, Auto):
        raise ValueError(f"{folder / RESULT} joins several audits. Bundle these: the folders below {folder / 'parts'}.")
    result = AuditResult.load(folder / RESULT)
    keys = audit_keys(audit, builder)
    if keys["audit"] != result.provenance.keys.get("audit"):
        raise ValueError(
            f"{folder / RESULT} answers another question (audit {result.provenance.keys.get('audit')}) than the "
            f"config.json beside it asks now ({keys['audit']}): documents or models were changed since. Run the audit "
            "again."
        )
    described = question_of(audit, builder, keys, folder.name)
    carried_out = prepare(audit, builder)
    gathering = _Gathering(builder, choice)
    corpora = {name: builder.get(group.corpus) for name, group in carried_out.groups.items()}
    names = {
        name: {item.doc_id: commitment(secret, item.doc_id, item.text) for item in corpus.documents}
        for name, corpus in corpora.items()
    }
    redaction = Redaction.of(corpora, names)
    excluded = {
        group: {names[group][doc_id]: reason for doc_id, reason in reasons.items()}
        for group, reasons in result.exclusions.documents.items()
    }
    values: dict[str, Any] = json.loads(result.to_json())
    values["exclusions"]["documents"] = excluded
    shown = redaction.of_json(values)
    shown["question"]["settings"] = WITHOUT_PATHS.of_json(values["question"]["settings"])  # as in the sealed question
    tables = {SCORES: _scores(folder / SCORES, corpora, names, result)}
    if (folder / DISTRIBUTION).is_file():
        tables[DISTRIBUTION] = {"statistic": np.asarray(columns_of(folder / DISTRIBUTION)["statistic"])}
    if (folder / ANSWERS).is_file():
        tables["answers.parquet"] = _answers(folder / ANSWERS, names)
    described |= {
        "documents": {name: list(named.values()) for name, named in names.items()},
        "columns": {
            name: {
                column: gathering.described(measurement, group.corpus, names[name])
                for column, measurement in group.measured.items()
            }
            for name, group in carried_out.groups.items()
        },
        "original_result_sha256": file_hash(folder / RESULT),
        "receipt": json_object(folder / RECEIPT) if (folder / RECEIPT).is_file() else None,
    }
    if gathering.sizes:
        documents, sizes = zip(*sorted(gathering.sizes.items()), strict=True)
        tables["texts.parquet"] = {"document": list(documents), "zlib_bytes": list(sizes)}
    return Gathered(
        described,
        shown,
        tables,
        gathering.tokens,
        gathering.keys,
        [(item.doc_id, item.text) for corpus in corpora.values() for item in corpus.documents],
        (folder / SEAL).read_bytes() if (folder / SEAL).is_file() else None,
    )


@dataclass
class _Gathering:
    """Observations are read once, however many scores rest on them."""

    builder: Builder
    choice: Included
    tokens: dict[str, dict[str, Any]] = field(default_factory=dict)
    keys: dict[str, Any] = field(default_factory=dict)
    sizes: dict[str, int] = field(default_factory=dict)  # of the compressed text of each document

    def described(self, measurement: Measurement, corpus: CorpusSpec, names: Mapping[str, str]) -> dict[str, Any]:
        """How a column of scores.parquet was measured. tables: hashes of the observations that it can be recomputed
        from; none where these are no token statistics, or are left out."""
        column: dict[str, Any] = {"kind": type(measurement).__name__, "role": measurement.role, "tables": []}
        if isinstance(measurement, Scored):
            column["score"] = {
                "kind": type(measurement.score).__name__,
                **asdict(measurement.score),  # type: ignore[call-overload]
                "name": measurement.score.name,
            }
            if self.choice.observations and measurement.corpus == corpus and _recomputable(measurement):
                column["tables"] = [self._table(spec, names) for spec in _observations(measurement)]
                if measurement.score.needs_texts:
                    texts = measurement.inputs(self.builder).texts or ()
                    doc_ids = self.builder.get(corpus).doc_ids
                    self.sizes |= {names[key]: zlib_bytes(text) for key, text in zip(doc_ids, texts, strict=True)}
        return column

    def _table(self, spec: TokenStatistics, names: Mapping[str, str]) -> str:
        key = spec.key(self.builder)
        name = key_hash(key)
        if name not in self.tokens:
            self.keys[name] = key
            self.tokens[name] = _by_document(self.builder.get(spec), names, ids=self.choice.token_ids)
        return name


def _recomputable(measurement: Scored) -> bool:
    """Whether the score is arithmetic on the kept token statistics; others are of answers, count ids, or read more."""
    score = measurement.score
    return (
        score.asks is None and measurement.model.has_weights and not score.needs_counts and not score.needs_more_passes
    )


def _observations(measurement: Scored) -> Iterator[TokenStatistics]:
    """In the order in which a verifier takes them: the text, another view of it, the text under the reference."""
    score: Score = measurement.score
    for view in score.views:
        yield TokenStatistics(measurement.model, measurement.corpus, view, measurement.max_tokens)
    if score.needs_reference and measurement.reference is not None:
        yield TokenStatistics(measurement.reference, measurement.corpus, "original", measurement.max_tokens)


def _by_document(table: TokenTable, names: Mapping[str, str], *, ids: bool) -> dict[str, Any]:
    """A row per document, ordered by their commitments. Without ids the tokens of a document are ordered by their
    log-probability, so that nothing tells which came after which."""
    rows = []
    for index, doc_id in enumerate(table.doc_ids):
        if doc_id not in names:
            continue
        own = table.rows(index)
        columns: dict[str, npt.NDArray[Any]] = {name: getattr(table, name)[own] for name in ("log_prob", "mean", "std")}
        if ids:
            columns["token_id"] = table.token_id[own]
        else:
            order = np.lexsort((columns["std"], columns["mean"], columns["log_prob"]))
            columns = {name: values[order] for name, values in columns.items()}
        rows.append((names[doc_id], columns))
    rows.sort(key=lambda row: row[0])
    found: dict[str, Any] = {name: [row[name] for _, row in rows] for name in (rows[0][1] if rows else ())}
    return {"document": [name for name, _ in rows], **found}


def _scores(
    path: Path, corpora: Mapping[str, Corpus], names: Mapping[str, Mapping[str, str]], result: AuditResult
) -> dict[str, Any]:
    """scores.parquet with commitments in place of ids, and the unit that each document is drawn with, by number."""
    columns = columns_of(path)
    doc_ids = columns.pop("doc_id")
    groups = columns.pop("group", [SUSPECT] * len(doc_ids))
    for group, corpus in corpora.items():
        excluded = result.exclusions.documents.get(group, {})
        scored = [doc_id for item, doc_id in zip(groups, doc_ids, strict=True) if item == group]
        if scored != [doc_id for doc_id in corpus.doc_ids if doc_id not in excluded]:
            raise ValueError(
                f"{path} and the {group} set do not hold the same documents; they were changed since. Run the audit "
                "again."
            )
    clusters = {group: {item.doc_id: item.cluster_id for item in corpus.documents} for group, corpus in corpora.items()}
    units = [
        f"cluster:{clusters[group][doc_id]}" if clusters[group][doc_id] else f"document:{group}/{doc_id}"
        for group, doc_id in zip(groups, doc_ids, strict=True)
    ]
    number = {unit: index for index, unit in enumerate(sorted(set(units)))}
    domains = {item.doc_id: item.domain for corpus in corpora.values() for item in corpus.documents}
    strata = [domains[doc_id] for doc_id in doc_ids] if result.question.method == "holdout" else []
    order = sorted(set(strata))
    return {
        **({"stratum": [order.index(name) for name in strata]} if len(order) > 1 else {}),
        "group": groups,
        "document": [names[group][doc_id] for group, doc_id in zip(groups, doc_ids, strict=True)],
        "unit": [number[unit] for unit in units],
        **columns,
    }


def _answers(path: Path, names: Mapping[str, Mapping[str, str]]) -> dict[str, Any]:
    """Of every answer what it was about and how it was judged; no text, neither asked nor answered."""
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    documents = [names[row["group"]].get(row["doc_id"], "") for row in rows]
    kept = ("group", "measurement", "kind", "correct")
    return {"document": documents} | {name: [row[name] for row in rows] for name in kept}
