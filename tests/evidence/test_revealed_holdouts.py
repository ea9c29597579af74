"""A sealed hold-out before those who were not there: the whole way, and lies about key, draw, score and p."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from doctored import RESULT, SCORES, edited, put, require_found, rows, written
from made_up_audits import SECRET, bundled, checked, gathered
from made_up_questions import UNREAD, audit, texts

import tiny
from nonmember.corpora import Component, Drawn, Mixture
from nonmember.evidence import holdout as planting
from nonmember.methods import Holdout
from nonmember.records import Corpus
from nonmember.scores import Loss
from nonmember.training import Trained

DOCUMENTS = Corpus(
    tuple(
        replace(item, author=f"author {index // 20}")
        for index, item in enumerate(texts(80, "suspect", per_cluster=2).documents)
    )
)


@pytest.fixture(scope="module", params=[None, "author"])
def bundle(tmp_path_factory, request) -> tuple[Path, dict[str, bytes]]:
    folder = tmp_path_factory.mktemp("holdout")
    made = planting.make(folder, DOCUMENTS, strata=request.param)
    published, kept = (Drawn(str(made.private), part, made.commitment) for part in ("published", "kept"))
    read = tiny.Texts(published.build(None).documents)
    question = audit(
        Holdout(Loss(), made.commitment, num_permutations=999, alpha=0.05, max_tokens=64),
        target=Trained(UNREAD, tiny.pretraining(), Mixture((Component(read, 6),)), seed=3, label="reader"),
        suspect=published,
        heldout=kept,
    )
    return folder, bundled([gathered(question, folder / "run")], folder / "bundle.zip")


def given(folder: Path) -> dict:
    return {"canaries": folder / planting.PRIVATE, "secret": SECRET}


def test_the_revealed_file_shows_the_draw(bundle):
    folder, _ = bundle
    report = checked(folder / "bundle.zip", **given(folder))
    assert not report.failures, "\n".join(map(str, report.lines))
    held = {line.what for line in report.lines if line.kind == "ok"}
    expected = {"statistic and interval", "p", "verdict", "claim", "commitment", "choice", "texts of the private file"}
    assert expected <= held


def test_another_draw_is_not_taken_for_it(bundle, tmp_path):
    folder, _ = bundle
    other = planting.make(tmp_path, DOCUMENTS)
    lies = {"canaries": other.private, "secret": SECRET}
    require_found(folder / "bundle.zip", "the audit was committed to", **lies)
    require_found(folder / "bundle.zip", "not those of the private file: the suspect set", **lies)
    content = json.loads(other.private.read_text())
    other.private.write_text(json.dumps(content | {"key": "00" * 32}))
    require_found(folder / "bundle.zip", "not where the key draws it", **lies)


def test_clusters_that_the_draw_does_not_know_are_found(bundle, tmp_path):
    folder, files = bundle

    def change(columns: dict) -> None:
        units = columns["unit"]
        other = next(index for index in range(len(units)) if units[index] != units[0])
        units[0], units[other] = units[other], units[0]

    path = written(rows(SCORES, change)(files), tmp_path / "bundle.zip")
    require_found(path, "counted with those of another unit", **given(folder))


def test_strata_that_the_draw_does_not_know_are_found(bundle, tmp_path):
    folder, files = bundle

    def change(columns: dict) -> None:
        columns["stratum"] = [int(unit) % 3 for unit in columns["unit"]]

    path = written(rows(SCORES, change)(files), tmp_path / "bundle.zip")
    require_found(path, "counted with those of another stratum", **given(folder))


def test_a_score_that_was_raised_is_found(bundle, tmp_path):
    def change(columns: dict) -> None:
        columns["target"][0] += 1.0

    require_found(written(rows(SCORES, change)(bundle[1]), tmp_path / "bundle.zip"), "is stated as")


@pytest.mark.parametrize(
    ("lie", "sentence"),
    [
        (put("statistics", "p_value", 0.6), "p is stated as 0.6"),
        (put("statistics", "value", 9.9), "is stated as 9.9"),
        (put("verdict", "decision", "evidence_of_non_membership"), "and the numbers say"),
    ],
)
def test_a_lie_is_found(bundle, lie, sentence, tmp_path):
    require_found(written(edited(RESULT, lie)(bundle[1]), tmp_path / "bundle.zip"), sentence)
