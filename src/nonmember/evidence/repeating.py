"""Does again what a bundle tells of: has its target read documents."""

from __future__ import annotations

import random
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np

from nonmember.artifacts import Builder
from nonmember.corpora.sources.documents import InMemory, digest_of
from nonmember.models import Pretrained
from nonmember.observations.tokens import TokenStatistics
from nonmember.records.groups import SUSPECT
from nonmember_verify.bundle import Audit
from nonmember_verify.commitments import commitment
from nonmember_verify.questions import key_hash
from nonmember_verify.report import Report
from nonmember_verify.scores import Tables
from nonmember_verify.verify import Given

CLOSE = 0.01  # nats, of the mean absolute difference of log-probabilities: other machines round otherwise
TARGET = "target"
NUM_DOCUMENTS = 8  # that are read again
READING = {"dtype": "float32", "quantization": "none", "attention": "auto", "bos": "auto"}  # where the key has none


def observe(
    make_builder: Callable[[Path], Builder],
    files: Mapping[str, bytes],
    audits: list[Audit],
    given: Given,
    report: Report,
) -> None:
    """make_builder: folder of a store -> builder."""
    with tempfile.TemporaryDirectory(prefix="nonmember-verify-") as folder:
        builder = make_builder(Path(folder))
        for audit in audits:
            own = report.of(audit, audits)
            try:
                _observe(audit, Tables(files), given, builder, own)
            except ValueError as error:  # of the folder, and not of the bundle
                own.failed("model", f"not checked as requested: it could not be observed ({error})")


def _observe(audit: Audit, tables: Tables, given: Given, builder: Builder, report: Report) -> None:
    stated = [
        how["tables"][0]
        for how in audit.described["columns"][SUSPECT].values()
        if how["role"] == TARGET and how["tables"] and tables.keys[how["tables"][0]].get("view") == "original"
    ]
    if not stated:
        report.unchecked("model", "the bundle holds no token statistics of the target on the documents as they are")
        return
    key, tokens = tables.keys[stated[0]], tables.tokens(stated[0])
    assert given.secret is not None
    named = {commitment(given.secret, name, text): {"id": name, "text": text} for name, text in given.documents}
    known = [item for item in audit.groups[SUSPECT].documents if item in named and len(tokens[item]["log_prob"])]
    if not known:
        report.unchecked("model", "none of the given documents is a committed one")
        return
    # Drawn now, so that nobody knew which.
    chosen = random.SystemRandom().sample(known, min(NUM_DOCUMENTS, len(known)))
    rows = [named[item] for item in chosen]
    corpus = InMemory(digest_of(rows), text_field="text", id_field="id")
    corpus.provide(builder, rows)
    read = key["model"].get("pretrained", key["model"])  # in the audit's precision
    model = Pretrained(str(given.model), **{name: read.get(name, default) for name, default in READING.items()})
    table = builder.get(TokenStatistics(model, corpus, "original", key["max_tokens"]))
    worst = 0.0
    for index, document in enumerate(chosen):
        measured = np.sort(table.log_prob[table.rows(index)].astype(np.float64))
        expected = np.sort(tokens[document]["log_prob"])
        if len(measured) != len(expected):
            what = f"document {document[:12]} has {len(measured)} tokens, and {len(expected)} are stated."
            report.failed("model", what)
            return
        worst = max(worst, float(np.abs(measured - expected).mean()))
    report.require(
        "model",
        worst <= CLOSE,
        f"{len(chosen)} documents drawn now were observed again: log-probabilities agree within {worst:.2g} nats on "
        f"average; {CLOSE:g} may be.",
        f"of {len(chosen)} documents observed again, log-probabilities of one differ by {worst:.2g} nats on average; "
        f"at most {CLOSE:g} may be. This is another model, or the statistics are not its own.",
    )
    if key_hash(model.key(builder)) == key_hash(key["model"]):
        return
    if "pretrained" in key["model"]:
        report.failed("files of the model", "the folder holds other files than the audited model has.")
    else:
        report.unchecked("files of the model", "the audited model is known by how it was trained, and not by its files")
