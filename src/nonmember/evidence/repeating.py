"""Does again what a bundle tells of: has its target read documents."""

from __future__ import annotations

import hashlib
import secrets
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from nonmember.artifacts import Builder
from nonmember.corpora import CorpusSpec
from nonmember.models import Pretrained
from nonmember.observations.tokens import TokenStatistics
from nonmember.records import Corpus, Document
from nonmember.records.groups import SUSPECT
from nonmember_verify.bundle import Audit
from nonmember_verify.commitments import commitment
from nonmember_verify.questions import key_hash
from nonmember_verify.report import Report
from nonmember_verify.scores import Tables
from nonmember_verify.verify import Given

CLOSE = 0.01  # nats, of the mean absolute difference of log-probabilities: other machines round otherwise
TARGET = "target"


@dataclass(frozen=True)
class GivenDocuments(CorpusSpec):
    """The documents themselves."""

    documents: tuple[Document, ...]

    stored: ClassVar[bool] = False

    def build(self, builder: Builder) -> Corpus:
        return Corpus(self.documents)

    def identity(self) -> dict[str, Any]:
        return {"kind": "chosen", "fingerprint": Corpus(self.documents).fingerprint}


def observer(make_builder: Any) -> Any:
    """The function that the verifier calls. make_builder: folder of a store -> builder."""

    def observe(files: Mapping[str, bytes], audits: list[Audit], given: Given, report: Report) -> None:
        tables, named = Tables(files), by_commitment(given)
        with tempfile.TemporaryDirectory(prefix="nonmember-verify-") as folder:
            builder = make_builder(Path(folder))
            for audit in audits:
                own = report.under(audit.cell if len(audits) > 1 else "")
                try:
                    _observe(audit, tables, given, named, builder, own)
                except ValueError as error:  # of the folder, and not of the bundle
                    own.failed("model", f"not checked as requested: it could not be observed ({error})")

    return observe


def by_commitment(given: Given) -> dict[str, Document]:
    """The documents that the checker has."""
    assert given.secret is not None
    return {commitment(given.secret, name, text): Document(name, text) for name, text in given.documents}


def model_of(path: Path | None, key: Mapping[str, Any]) -> Pretrained:
    """The model in a folder, read in the precision in which the audit read it. key: of the audited model."""
    read = key.get("pretrained", key)
    defaults = {"dtype": "float32", "quantization": "none", "attention": "auto", "bos": "auto"}
    return Pretrained(str(path), **{name: read.get(name, default) for name, default in defaults.items()})


def drawn(documents: Sequence[str], number: int) -> tuple[str, list[str]]:
    """So many of the documents, drawn now, so that nobody knew which; and what they were drawn by."""
    draw = secrets.token_hex(4)
    order = sorted(documents, key=lambda item: hashlib.sha256(f"{draw}{item}".encode()).digest())
    return draw, order[:number]


def _observe(
    audit: Audit, tables: Tables, given: Given, named: Mapping[str, Document], builder: Builder, report: Report
) -> None:
    stated = [
        how["tables"][0]
        for how in audit.described["columns"][SUSPECT].values()
        if how["role"] == TARGET and how["tables"] and tables.keys[how["tables"][0]].get("view") == "original"
    ]
    if not stated:
        report.unchecked("model", "the bundle holds no token statistics of the target on the documents as they are")
        return
    key, stated_tokens = tables.keys[stated[0]], tables.tokens(stated[0])
    known = [item for item in audit.groups[SUSPECT].documents if item in named and len(stated_tokens[item]["log_prob"])]
    if not known:
        report.unchecked("model", "none of the given documents is a committed one")
        return
    model = model_of(given.model, key["model"])
    same = key_hash(model.key(builder)) == key_hash(key["model"])
    draw, order = drawn(known, given.num_documents)
    corpus = GivenDocuments(tuple(named[item] for item in order))
    table = builder.get(TokenStatistics(model, corpus, "original", key["max_tokens"]))
    worst = 0.0
    for index, document in enumerate(order):
        measured = np.sort(table.log_prob[table.rows(index)].astype(np.float64))
        expected = np.sort(stated_tokens[document]["log_prob"])
        if len(measured) != len(expected):
            report.failed(
                "model", f"document {document[:12]} has {len(measured)} tokens, and {len(expected)} are stated."
            )
            return
        worst = max(worst, float(np.abs(measured - expected).mean()))
    report.require(
        "model",
        worst <= CLOSE,
        f"{len(order)} documents drawn now (draw {draw}) were observed again: log-probabilities agree within "
        f"{worst:.2g} nats on average; {CLOSE:g} may be.",
        f"of {len(order)} documents observed again, log-probabilities of one differ by {worst:.2g} nats on average; at "
        f"most {CLOSE:g} may be. This is another model, or the statistics are not its own.",
    )
    if not same and "pretrained" in key["model"]:
        report.failed("files of the model", "the folder holds other files than the audited model has.")
    elif not same:
        report.unchecked("files of the model", "the audited model is known by how it was trained, and not by its files")
