"""`nm.load_results`: a row per audit, those that failed too."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import nonmember as nm
from api.conftest import SHORT_READING
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
    assert {"settings.max_tokens", "settings.score.k", "data.label"} <= set(runs)
    assert len(nm.load_results([item.folder for item in found])) == 2
    both = [Path("outputs"), Path("outputs/audits/mine")]
    assert len(nm.load_results(both)) == 3, "each once"
    assert len(load_runs(both).runs) == 2


def test_of_nothing_there_is_no_table(tmp_path):
    for given in (tmp_path, []):
        with pytest.raises(ValueError, match=r"There is no result.json below|got none"):
            nm.load_results(given)


def test_what_a_disk_says_is_told_with_what_to_do(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(NotADirectoryError, match=r"file/audits.*outputs=FOLDER"):
        nm.audit("blind", documents=["a b"], heldout=["c d"], outputs=tmp_path / "file")
