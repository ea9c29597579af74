"""Does again what a bundle tells of: has its models read documents, and distils its references from their recipes."""

from __future__ import annotations

import hashlib
import json
import secrets
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from nonmember.artifacts import Builder
from nonmember.audits.record import versions
from nonmember.corpora import CorpusSpec
from nonmember.evidence.question import machine
from nonmember.models import ModelSpec, Pretrained
from nonmember.observations.tokens import TokenStatistics
from nonmember.records import Corpus, Document
from nonmember.records.groups import SUSPECT
from nonmember.stats.correlation import rank_correlation
from nonmember.training import Trained
from nonmember.training.recipes import Distillation, Optimization
from nonmember_verify.archive import ENVELOPE
from nonmember_verify.bundle import Audit, FloatArray
from nonmember_verify.commitments import commitment
from nonmember_verify.envelope import PREDICATE, canonical, opened
from nonmember_verify.questions import LEFT_OUT, key_hash
from nonmember_verify.report import Report
from nonmember_verify.scores import SCORES, Tables
from nonmember_verify.verify import Given, is_distilled

CLOSE = 0.01  # nats, of the mean absolute difference of log-probabilities: other machines round otherwise
TARGET = "target"
METHODS = ("prism", "paired_t", "clearance")  # which distil the reference
TOLERANCE = 1e-4  # of scores, relative (absolute below 1): the same processor and libraries give the same weights
PLAIN = ("Loss", "Perplexity", "MinK", "MaxK", "MinKPlusPlus")  # scores of the text as it is, under one model
WHAT = "reference"


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


# Distilling again -----------------------------------------------------------------------------------------------------


class CannotTrain(ValueError):
    """Why the reference cannot be distilled again."""


def _differences(audit: Audit, files: Mapping[str, bytes]) -> list[str]:
    """Of what weights depend on, between where the audit was made and where it is checked."""
    stated = opened(files[ENVELOPE], PREDICATE, "The statement").predicate["machine"]
    there = {**audit.result["provenance"]["versions"], **stated}
    ours = {**versions(), **machine()}
    return [f"{name} {there.get(name)} there, {item} here" for name, item in ours.items() if there.get(name) != item]


def trainer(make_builder: Any) -> Any:
    """The function that the verifier calls. make_builder: folder of a store -> builder."""

    def retrain(files: Mapping[str, bytes], audits: list[Audit], given: Given, report: Report) -> None:
        named = by_commitment(given)
        with tempfile.TemporaryDirectory(prefix="nonmember-verify-") as folder:
            builder = make_builder(Path(folder))
            for audit in audits:
                own = report.under(audit.cell if len(audits) > 1 else "")
                _retrain_all(audit, given, named, builder, _differences(audit, files), own)

    return retrain


def _retrain_all(
    audit: Audit, given: Given, named: Mapping[str, Document], builder: Builder, elsewhere: list[str], report: Report
) -> None:
    method = audit.question["method"]
    if method not in METHODS:
        report.unchecked(WHAT, f"{method} distils no reference")
        return
    roles = [role for role in audit.described["recipes"] if is_distilled(role)]
    if not roles:
        report.unchecked(WHAT, "no distilled reference was made in this audit")
    for role in roles:
        what = role.replace("distilled", WHAT, 1)
        try:
            _retrain(audit, role, what, given, named, builder, elsewhere, report)
        except CannotTrain as reason:
            report.unchecked(what, str(reason))


def _retrain(
    audit: Audit,
    role: str,
    what: str,
    given: Given,
    named: Mapping[str, Document],
    builder: Builder,
    elsewhere: list[str],
    report: Report,
) -> None:
    recipe = _recipe(audit, role)
    how = audit.described["columns"][SUSPECT].get(role)
    if how is None or how["kind"] != "Scored" or how["score"]["kind"] not in PLAIN:
        raise CannotTrain("the score under it is not one of the text as it is, and is not made again here")
    missing = [item for item in audit.described["documents"][SUSPECT] if item not in named]
    if missing:
        raise CannotTrain(f"it was distilled on all documents, and {len(missing)} of them were not given")
    if recipe["corpus"] != audit.result["provenance"]["keys"]["corpus"]:
        report.failed(what, "its recipe names other documents than those of the suspect set.")
        return
    own = replace(builder, compute=replace(builder.compute, precision=recipe["precision"]))
    student, teacher = (
        _model(whose, folder, recipe[part])
        for whose, folder, part in (("reference", given.reference, "base"), ("target", given.model, "teacher"))
    )
    for whose, model, part in (("reference", student, "base"), ("target", teacher, "teacher")):
        if key_hash(_key(model, own)) != key_hash(recipe[part]):
            report.failed(what, f"the folder of the {whose} holds other files than the recipe names.")
            return
    corpus = GivenDocuments(tuple(named[item] for item in audit.described["documents"][SUSPECT]))
    model = Trained(student, _distillation(recipe), corpus, recipe["seed"], teacher=teacher, label=f"{role}-again")
    draw, order = drawn(audit.groups[SUSPECT].documents, given.num_documents)
    index = {item: number for number, item in enumerate(audit.groups[SUSPECT].documents)}
    stated = audit.groups[SUSPECT].values[role][[index[item] for item in order]]
    measured = _scores(model, GivenDocuments(tuple(named[item] for item in order)), how["score"], audit, own)
    _compare(what, stated, measured, f"{len(order)} documents drawn now (draw {draw})", elsewhere, report)


def _compare(
    what: str, stated: FloatArray, measured: FloatArray, documents: str, elsewhere: list[str], report: Report
) -> None:
    worst = float(np.max(np.abs(measured - stated) / np.maximum(1.0, np.abs(stated))))
    if worst <= TOLERANCE:
        report.ok(
            what,
            f"distilled again from its recipe, it scores {documents} as stated, within {worst:.2g}; {TOLERANCE:g} "
            "may be.",
        )
        return
    rho = rank_correlation(measured, stated, "spearman") if len(measured) > 1 else float("nan")
    differs = f"distilled again from its recipe, it scores {documents} differently, by up to {worst:.2g}"
    ranks = f"rank correlation with the stated scores {rho:.3f}"
    if elsewhere:
        report.unchecked(
            what,
            f"{differs} ({ranks}). That is no sign of a lie: training depends on processor and libraries, which are "
            f"others here ({'; '.join(elsewhere[:3])})",
        )
        return
    report.failed(
        what,
        f"{differs} ({ranks}); at most {TOLERANCE:g} may be with the same processor and libraries. The scores are "
        "not those of a reference made by this recipe, or the audit ran on a GPU, with another trainer or number of "
        "threads, or elsewhere than the bundle was written.",
    )


def _recipe(audit: Audit, role: str) -> dict[str, Any]:
    """As it was carried out: a ladder of learning rates may have chosen another than was asked for."""
    recipe = dict(audit.described["recipes"][role])
    if LEFT_OUT in canonical(recipe):
        raise CannotTrain("parts of its recipe were left out of the bundle")
    if "ladder" in audit.details:
        recipe["recipe"] = audit.settings["distillation"]
    return recipe


def _model(whose: str, folder: Path | None, key: Mapping[str, Any] | None) -> ModelSpec:
    if key is None or not {"pretrained", "gguf"} & key.keys():
        raise CannotTrain(
            f"the {whose} was itself made by a recipe and is not a folder; run the audit again in its world instead"
        )
    return model_of(folder, key)


def _key(model: ModelSpec, builder: Builder) -> Mapping[str, Any]:
    """As it is written in a bundle."""
    try:
        key: dict[str, Any] = json.loads(json.dumps(model.key(builder)))
    except ValueError as error:
        raise CannotTrain(f"a model cannot be read ({error})") from error
    return key


def _distillation(recipe: Mapping[str, Any]) -> Distillation:
    settings = dict(recipe["recipe"])
    try:
        if settings.pop("kind") != "Distillation":
            raise ValueError("it is no distillation")
        return Distillation(Optimization(**settings.pop("optimization")), **settings)
    except (KeyError, TypeError, ValueError) as error:
        raise CannotTrain(f"its recipe is none that this version knows ({error})") from error


def _scores(
    model: Trained, corpus: GivenDocuments, score: Mapping[str, Any], audit: Audit, builder: Builder
) -> FloatArray:
    """Trains the model; of each document, computed by the verifier's own arithmetic."""
    try:
        table = builder.get(TokenStatistics(model, corpus, "original", audit.settings["max_tokens"]))
    except ValueError as error:  # as of tokenizers that do not fit, or weights that are no numbers
        raise CannotTrain(f"it could not be distilled again ({error})") from error
    values = []
    for index in range(len(table.doc_ids)):
        own = table.rows(index)
        tokens = {name: getattr(table, name)[own].astype(np.float64) for name in ("log_prob", "mean", "std")}
        values.append(SCORES[score["kind"]].compute([tokens], score, 0))
    return np.array(values)
