"""`nm.load_results`: a row per audit, those that failed too."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import nonmember as nm
from api.conftest import SHORT_READING
from nonmember.api.results import _plain_values
from nonmember.results.load import load_runs


@pytest.mark.slow
def test_a_row_per_audit(make_model, texts):
    asked = {
        "target": make_model(0),
        "reference": make_model(1),
        "documents": texts,
        "overrides": SHORT_READING,
        "name": "mine",
    }
    found = [nm.audit("rank_agreement", **asked, seed=seed) for seed in (1, 2)]
    failed = found[0].folder.with_name("failed")
    failed.mkdir()
    (failed / "error.json").write_text(json.dumps({"cell": "failed", "error": "no room", "kind": "OSError"}))
    runs = nm.load_results("outputs/audits/mine")
    assert len(runs) == 3
    runs = runs.set_index("cell")
    for item in found:
        row = runs.loc[item.folder.name]
        assert (row["verdict"], row["statistic"], Path(row["folder"]).absolute()) == (
            item.verdict,
            item.statistic,
            item.folder,
        )
    assert sorted(runs["seed"].dropna()) == [1, 2]
    assert runs.loc["failed", "error"] == "no room"
    assert {"settings.max_tokens", "data.label"} <= set(runs)
    assert len(nm.load_results([item.folder for item in found])) == 2
    both = [Path("outputs"), Path("outputs/audits/mine")]
    assert len(nm.load_results(both)) == 3, "each once"
    assert len(load_runs(both).runs) == 2


def test_nested_settings_are_columns_too():
    settings = {"distillation": {"lambda_": 0.7, "optimization": {"betas": [0.9, 0.999], "epochs": 1}}, "margin": None}
    assert dict(_plain_values(settings, "settings")) == {
        "settings.distillation.lambda_": 0.7,
        "settings.distillation.optimization.epochs": 1,
        "settings.margin": None,
    }


def test_of_nothing_there_is_no_table(tmp_path):
    for given in (tmp_path, []):
        with pytest.raises(ValueError, match=r"There is no result.json below|got none"):
            nm.load_results(given)
    for given in (5, None, [5], b"outputs", {"outputs": 1}):
        with pytest.raises(ValueError, match=r"folders must be a folder of audits, or several; got"):
            nm.load_results(given)


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: nm.load_scores(None), "folder must be a folder of scores; got null"),
        (lambda: nm.make_canaries(["a b"], None), "out must be a new folder; got null"),
        (lambda: nm.make_canaries(None, "new"), "data.path is not given"),
    ],
)
def test_what_is_no_folder_is_said_in_a_sentence(call, sentence):
    with pytest.raises(ValueError, match=sentence):
        call()


def test_what_a_disk_says_is_told_with_what_to_do(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(NotADirectoryError, match=r"file/audits.*: check that path, or choose .* outputs=FOLDER"):
        nm.audit("blind", documents=["a b"], heldout=["c d"], outputs=tmp_path / "file")
