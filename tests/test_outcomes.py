"""Results carry a seal: what was edited, damaged or lost is refused by whoever reads them, and said with its path."""

from __future__ import annotations

import json
import os
import re
import sys
from pathlib import Path

import pytest

from nonmember.cli import table
from nonmember.results.load import load_runs
from nonmember.results.outcomes import num_without_seal, outcome_paths, read_outcome
from nonmember.results.result import ERROR, RESULT, AuditResult, Failure
from wandb_helpers import lay_down, lay_down_failure, result


def sealed(folder: Path, **changes) -> Path:
    path = lay_down(folder, result(cell=folder.name, **changes))
    of = result(cell=folder.name, **changes)
    of.save(path, [folder / "scores.parquet", folder / "distribution.parquet"])
    return path


def edit(path: Path, **values: object) -> None:
    path.write_text(json.dumps(json.loads(path.read_text()) | values))


def flip(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


DAMAGE = {
    "verdict": (lambda path: edit(path, verdict="evidence_of_non_membership"), RESULT),
    "statistic": (lambda path: edit(path, statistic=0.9), RESULT),
    "warnings": (lambda path: edit(path, warnings=[]), RESULT),
    "seal": (lambda path: edit(path, seal={"files": {}}), RESULT),
    "no seal at all": (lambda path: edit(path, seal=None), RESULT),
    "scores": (lambda path: flip(path.with_name("scores.parquet")), "scores.parquet"),
    "other scores": (lambda path: path.with_name("scores.parquet").write_bytes(b""), "scores.parquet"),
    "no scores": (lambda path: path.with_name("scores.parquet").unlink(), "scores.parquet"),
    "distribution": (lambda path: flip(path.with_name("distribution.parquet")), "distribution.parquet"),
}


@pytest.mark.parametrize("what", DAMAGE)
def test_what_was_changed_is_refused_by_name(tmp_path, what):
    path = sealed(tmp_path / "one")
    assert AuditResult.load(path) == result(cell="one")
    damage, name = DAMAGE[what]
    damage(path)
    expected = rf"(?s)^{re.escape(str(path.with_name(name)))} must .*Start the audit again to make it anew"
    with pytest.raises(ValueError, match=expected):
        read_outcome(path)
    with pytest.raises(ValueError, match=r"There is no result\.json below .* \(1 that it cannot\)"):
        load_runs([tmp_path])
    if name != RESULT:
        assert AuditResult.load(path, files_too=False) == result(cell="one")


def test_how_the_file_is_laid_out_does_not_matter(tmp_path):
    path = sealed(tmp_path / "one")
    path.write_text(json.dumps(json.loads(path.read_text()), sort_keys=True))
    assert AuditResult.load(path) == result(cell="one")


def test_results_without_a_seal_are_read(tmp_path):
    lay_down(tmp_path / "old", result(cell="old"))
    sealed(tmp_path / "new")
    paths = outcome_paths(tmp_path)
    assert [read_outcome(path).question.cell for path in paths] == ["new", "old"]
    assert num_without_seal(paths) == 1
    assert len(load_runs([tmp_path]).runs) == 2


def test_a_damaged_result_does_not_hide_the_others_in_a_table(tmp_path, monkeypatch, capsys):
    for cell in ("good", "bad"):
        sealed(tmp_path / cell)
    edit(tmp_path / "bad" / RESULT, p_value=0.001)
    lay_down(tmp_path / "old", result(cell="old"))
    monkeypatch.setattr(sys, "argv", ["nonmember table", str(tmp_path)])
    with pytest.raises(ValueError, match=r"1 of 3 results cannot be used\. The first: .*bad/result.json must be what"):
        table.main()
    said = capsys.readouterr().out
    assert "failed  bad: " in said
    assert "0.0010" not in said
    assert said.count("0.9300") == 2
    assert "1 of 3 results have no seal" in said


def test_a_failure_that_was_mended_is_not_shown(tmp_path):
    lay_down_failure(tmp_path / "mended")
    sealed_path = tmp_path / "mended" / RESULT
    result().save(sealed_path)
    assert outcome_paths(tmp_path) == [sealed_path]
    lay_down_failure(tmp_path / "failed")
    error = tmp_path / "mended" / ERROR
    os.utime(error, ns=(0, sealed_path.stat().st_mtime_ns + 1))  # another question failed there later
    assert outcome_paths(tmp_path) == [tmp_path / "failed" / ERROR, error, sealed_path]
    assert isinstance(read_outcome(error), Failure)
