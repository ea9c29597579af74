"""Lies that leave every number right: columns of another score, model or reading, ladders, seals, pages."""

from __future__ import annotations

import functools
import io
import json
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from doctored import (
    RESULT,
    SCORES,
    TOLD,
    Files,
    edited,
    in_details,
    in_scores,
    in_told,
    observation,
    put,
    require_found,
    reseal,
    rows,
    sealed,
    signed,
    with_identity,
    without,
    written,
)
from made_up_audits import SECRET, bundled, checked, gathered, key
from made_up_questions import BASELINES, CLUSTERED, audit

from nonmember.evidence.bundle import as_json, as_table
from nonmember_verify.bundle import ENVELOPE
from nonmember_verify.envelope import PREDICATE, opened
from nonmember_verify.scores import SCORES as ARITHMETIC
from nonmember_verify.scores import Tables

COLUMNS = ("columns", "suspect")
LADDER = {"chosen": 0.1, "tried": [{"learning_rate": 0.1, "passed": True, "gates": {}}]}


def rescored(change: Callable[[dict[str, Any]], None]) -> Callable[[Files], Files]:
    """The columns told otherwise, and the scores made anew as they are told."""

    def lie(files: Files) -> Files:
        told = json.loads(files[TOLD])
        change(told["columns"]["suspect"])
        table, tables = pq.read_table(io.BytesIO(files[SCORES])).to_pydict(), Tables(files)
        for column, how in told["columns"]["suspect"].items():
            read = [tables.tokens(name) for name in how["tables"]]
            table[column] = [
                ARITHMETIC[how["score"]["kind"]].compute([item[document] for item in read], how["score"], 0)
                for document in table["document"]
            ]
        return signed({**files, TOLD: as_json(told), SCORES: as_table(table)})

    return lie


def by_loss(columns: dict[str, Any]) -> None:
    for how in columns.values():
        how["score"] = {"kind": "Loss", "name": "loss"}


def by_another_k(columns: dict[str, Any]) -> None:
    for how in columns.values():
        how["score"] |= {"k": 0.5, "name": "minkpp(0.5)"}


def under_the_reference(columns: dict[str, Any]) -> None:
    columns["target"] |= {name: columns["reference"][name] for name in ("role", "tables")}


def restated(files: Files, change: Callable[[list[Any], list[Any]], object]) -> Files:
    """Another statement of these files, its subject and its audits changed."""
    statement = opened(files[ENVELOPE], PREDICATE, "it").statement
    subject, predicate = json.loads(json.dumps([statement["subject"], statement["predicate"]]))
    change(subject, predicate["audits"])
    return {**files, ENVELOPE: key().sign(PREDICATE, subject, predicate)}


def elsewhere(files: Files) -> Files:
    """Honest audits in other folders, and doctored ones in theirs."""
    moved = {name.removeprefix("audits/"): item for name, item in files.items() if name.startswith("audits/")}
    files = signed({**files, **moved, RESULT: files[RESULT].replace(b"inconclusive", b"invalid")})
    return restated(files, lambda _, audits: [item.update(folder=item["folder"][7:]) for item in audits])


def two_of_one_name(predicate: dict[str, Any]) -> None:
    """Two questions, and whichever comes out well is shown."""
    other = json.loads(json.dumps(predicate["cells"][0]))
    predicate["cells"].append({**other, "audit": "1" * 16})


def receipt(name: str, value: str) -> Callable[[Files], Files]:
    return in_told("receipt", name, value)


LIES: dict[str, tuple[Callable[[Files], Files], str]] = {
    "another score": (rescored(by_loss), r"scored by Loss, and the question asks for MinKPlusPlus \(k 0.2"),
    "another share of tokens": (rescored(by_another_k), r"MinKPlusPlus \(k 0.5.* the question asks for .*k 0.2"),
    "a score called another": (
        in_told(*COLUMNS, "target", "score", "name", "loss"),
        r"has the score minkpp\(0.2\), and is stated to have loss",
    ),
    "a variant of the score": (
        in_told(*COLUMNS, "target", "score", "compat", "official"),
        "scored by MinKPlusPlus .*compat official.* the question asks for",
    ),
    "the reference's scores as the target's": (
        rescored(under_the_reference),
        "target of the suspect set is stated to be of the role reference",
    ),
    "documents cut short": (observation("max_tokens", 8, rename=True), "to 8 tokens, and the question asks for .* 64"),
    "another view of the text": (observation("view", "lowercase", rename=True), "was read as the lowercase text"),
    "a score called a divergence": (
        in_told(*COLUMNS, "target", "kind", "Diverged"),
        "stated to be of the kind Diverged",
    ),
    "statistics left out of one column": (
        in_told(*COLUMNS, "target", "tables", []),
        "are left out, and those beside it are there",
    ),
    "a table more": (
        in_told(*COLUMNS, "target", "tables", lambda item: item * 2),
        "from 1 tables of token statistics, and 2 are named",
    ),
    "statistics that are not there": (
        in_told(*COLUMNS, "target", "tables", ["0" * 16]),
        "the token statistics of target of the suspect set are missing",
    ),
    "a column of scores left out": (
        rows(SCORES, lambda columns: columns.pop("target")),
        "target of the suspect set is missing",
    ),
    "no scores": (lambda files: signed(without(SCORES)(files)), "audits/000/scores.parquet is missing"),
    "a statement of no folders": (lambda files: signed(files, audits=[7]), "It does not hold what a bundle holds"),
    # The seal.
    "two sealed questions of one name": (reseal(two_of_one_name), "several questions under one name"),
    "no date of the beginning": (receipt("started", "zzzz"), "is not a date as in"),
    "begun for another audit": (receipt("audit", "1" * 16), "what the audit left when it began is of audit 1111"),
    "a set that was not sealed": (
        in_told("documents", "third", ["ab" * 32]),
        "the third set was not sealed|third set are neither scored nor excluded",
    ),
    "more exclusions than there may be": (
        in_told("thresholds", "max_excluded", 0.5),
        "more than 20% of documents may never be excluded",
    ),
    "documents that belong together otherwise": (in_scores("unit", 1, 0), "which documents belong together"),
    # The statement.
    "a statement of another seal": (lambda files: signed(files, seal="0" * 64), "the statement names another one"),
    "a file that has two hashes": (
        lambda files: restated(
            files, lambda subject, audits: subject.insert(0, subject[0] | {"digest": {"sha256": "0"}})
        ),
        "what was signed has a name twice",
    ),
    "audits elsewhere than where everybody looks": (
        elsewhere,
        "the audits in the archive are not those of the stateme",
    ),
    # The page.
    "a page": (lambda files: signed({**files, "index.html": b"x"}), "a bundle holds no index.html"),
    # What never ends, or no reader takes.
    "resamples without end": (with_identity(put("method", "num_resamples", 10**12)), "makes at most 2,000,000"),
    "lists in lists that are read one by one": (
        with_identity(
            lambda item: item["method"].update(deep=functools.reduce(lambda inner, _: [inner], range(330), 1))
        ),
        "RecursionError",
    ),
    "lists in lists": (
        lambda files: signed({**files, "observations.json": b"[" * 200_000 + b"]" * 200_000}),
        "nested too deeply",
    ),
}


@pytest.mark.parametrize("name", LIES)
def test_a_lie_beside_the_numbers_is_found(name, tmp_path):
    lie, sentence = LIES[name]
    require_found(written(lie(sealed()), tmp_path / "bundle.zip"), sentence)


def test_a_number_of_the_layout_that_was_asked_for_cannot_be_left_out(tmp_path):
    files = bundled(
        [gathered(audit(BASELINES, suspect=CLUSTERED, max_layout_auc=0.999), tmp_path / "run")], tmp_path / "b"
    )
    assert not checked(tmp_path / "b").failures
    for change in (lambda result: result.pop("layout_auc"), put("layout_auc", {"unseen": 0.5})):
        lied = edited(RESULT, lambda result, change=change: change(result["statistics"]["details"]))(files)
        require_found(written(lied, tmp_path / "lie"), "was to be checked .* and its number is missing")
    told = in_details("layout_auc", "heldout", 1.0)(files)
    require_found(written(told, tmp_path / "lie"), "score_only is stated, and the numbers say invalid")


@pytest.fixture
def compressed(tmp_path) -> tuple[Files, Mapping[str, str]]:
    """Scores that were divided by the size of the compressed text."""
    asked = audit(BASELINES, suspect=CLUSTERED)
    documents = [item for group in (asked.suspect, asked.heldout) for item in texts_of(group)]
    return bundled([gathered(asked, tmp_path / "run")], tmp_path / "bundle"), documents


def texts_of(corpus: Any) -> list[tuple[str, str]]:
    return [(item.doc_id, item.text) for item in corpus.documents]


def test_compressed_sizes_are_checked_by_the_documents(compressed, tmp_path):
    files, documents = compressed
    path = tmp_path / "bundle"
    assert any(line.what == "compressed sizes" and line.kind == "not checked" for line in checked(path).lines)
    given = {"documents": documents, "secret": SECRET}
    said = [line.kind for line in checked(path, **given).lines if line.what == "compressed sizes"]
    assert "ok" in said
    name = "audits/000/texts.parquet"
    sizes = pq.read_table(io.BytesIO(files[name])).to_pydict()
    sizes["zlib_bytes"] = [2 * item for item in sizes["zlib_bytes"]]
    scores = pq.read_table(io.BytesIO(files[SCORES])).to_pydict()
    scores["zlib"] = list(np.array(scores["zlib"]) / 2)
    lied = written(signed({**files, name: as_table(sizes), SCORES: as_table(scores)}), tmp_path / "lie")
    assert not [line for line in checked(lied).failures if "tokens give" in line.told], "its scores follow"
    require_found(lied, "is stated and .* comes out", **given)
