"""`nonmember reproduce`: the state of a paper's tables and figures, and what is run for them."""

from __future__ import annotations

import json
import subprocess

import pytest

from nonmember.cli import check, reproduce
from nonmember.config import grid
from nonmember.config.roots import register
from nonmember.feasibility.memory import Machine
from nonmember.feasibility.table import CheckedCell
from nonmember.feasibility.verdict import GPUS, READY, CheckResult

CELLS = {"order_duplication": [CheckResult(READY, ())] * 2, "order_shards": [CheckResult(GPUS.format(2), ("a/model",))]}


@pytest.fixture
def started(monkeypatch, tmp_path):
    """Commands that were started; one sweep is made, one can be, one needs GPUs and the hub, one a folder."""

    def cells_checked(name, *_, few):
        assert few
        if name == "order_chunks":
            raise ValueError("NONMEMBER_FILES_DIR is not set.")
        return [CheckedCell(name, "", item) for item in CELLS[name]]

    commands: list[list[str]] = []

    def run(command, **_):
        commands.append(command[3:])
        return subprocess.CompletedProcess(command, 1 if "report" in command else 0)

    here = Machine(gib=7, tflops=0.05, utilisation=0.5, device="CPU")
    monkeypatch.setattr(Machine, "here", classmethod(lambda _: here))
    monkeypatch.setattr(check, "cells_checked", cells_checked)
    monkeypatch.setattr(grid, "questions_of", lambda name, _: [frozenset({f"seed={seed}"}) for seed in (1, 2)])
    monkeypatch.setattr(reproduce.subprocess, "run", run)
    monkeypatch.setenv("NONMEMBER_OUTPUTS", str(tmp_path))
    lay_down(tmp_path / "audits/order_null/1", "seed=1", "logger=csv", "trainer.micro_batch_size=4")
    lay_down(tmp_path / "audits/order_null/2", "seed=2")
    return commands


def lay_down(folder, *words):
    (folder / ".hydra").mkdir(parents=True)
    (folder / ".hydra/overrides.yaml").write_text(json.dumps(words))
    (folder / "result.json").write_text("{}")


def test_a_dry_run_lists_the_state_and_starts_nothing(nonmember, started):
    said = nonmember("reproduce", "order", "dry_run=true")
    assert said.status == 0, said.err
    rows = {
        sweep: line
        for line in said.out.splitlines()
        for sweep in CELLS | {"order_null": 0, "order_chunks": 0}
        if sweep in line
    }
    assert "2 of 2" in rows["order_null"]
    assert "made" in rows["order_null"]
    assert "0 of 2" in rows["order_duplication"]
    assert "can be made here" in rows["order_duplication"]
    assert "needs a/model from the hub; needs 2 GPUs" in rows["order_shards"]
    assert "missing: NONMEMBER_FILES_DIR is not set" in rows["order_chunks"]
    assert said.last_line == "4 sweeps: 1 made, 1 can be made here, 2 cannot."
    assert not started


def test_results_of_other_settings_are_none_of_the_sweep(nonmember, started, tmp_path):
    for seed in (1, 2):
        lay_down(tmp_path / f"audits/order_duplication/{seed}", f"seed={seed}", "method.num_resamples=200")
    lay_down(tmp_path / "audits/order_duplication/half", "seed=2", "trainer.precision=16-mixed")
    lay_down(tmp_path / "audits/order_duplication/whole", "seed=1")
    output = nonmember("reproduce", "order", "dry_run=true").out
    (line,) = [line for line in output.splitlines() if line.startswith("order_duplication")]
    assert "1 of 2  missing: can be made here" in line


def test_of_sweeps_that_fill_the_same_table_the_made_one_counts(nonmember, started, monkeypatch, tmp_path):
    monkeypatch.setattr(check, "cells_checked", lambda *_, few: [CheckedCell("", "", CELLS["order_shards"][0])])
    for seed in (1, 2):
        lay_down(tmp_path / f"audits/decop_replay/{seed}", f"seed={seed}")
    rows = dict(line.split(maxsplit=1) for line in nonmember("reproduce", "decop", "dry_run=true").out.splitlines())
    assert rows["decop_replay"] == "2 of 2  made"
    assert rows["decop_books"].startswith("0 of 2  missing: "), "nothing else fills the baselines' table"
    assert "decop_sizes" not in rows


def test_what_can_be_made_here_is_run_and_the_report_written(nonmember, started):
    said = nonmember("reproduce", "order", "logger=none")
    assert said.status == 1, "that of the report"
    assert started == [["audit", "-m", "--config-name", "order_duplication", "logger=none"], ["report", "report=order"]]


def test_results_are_counted_and_reported_where_they_are_made(nonmember, started, monkeypatch, tmp_path):
    monkeypatch.setenv("NONMEMBER_OUTPUTS", "elsewhere")
    listed = nonmember("reproduce", "order", "dry_run=true", f"outputs={tmp_path}")
    assert listed.last_line.startswith("4 sweeps: 1 made")
    nonmember("reproduce", "order", f"outputs={tmp_path}")
    assert started[-1] == ["report", "report=order", f"outputs={tmp_path}"]


def test_a_report_without_sweeps_is_written_from_what_there_is(nonmember, started):
    for paper in ("published_margins", "clearance"):  # of printed numbers; of whatever results there are
        assert "no sweeps of its own" in nonmember("reproduce", paper).out
    assert started == [["report", "report=published_margins"], ["report", "report=clearance"]]


def test_a_word_that_is_no_setting_is_refused(nonmember, started):
    assert "Settings must be written key=value; got fsd." in nonmember("reproduce", "order", "fsd").err


def test_few_cells_have_each_value_of_each_axis():
    rows = [[f"a={a}", f"b={b}", f"c={c}"] for a in range(5) for b in range(3) for c in range(2)]
    few = grid._with_each_value(rows)
    assert {word for row in few for word in row} == {word for row in rows for word in row}
    assert len(few) == 5, "as many as the longest axis has values"
    assert grid._with_each_value([[]]) == [[]]


@pytest.mark.slow
def test_cells_are_those_that_a_multirun_has():
    """What is given replaces the sweep's own axis, or is one."""
    register()
    for given, number in ((), 18), (["data.domain=scipy"], 6), (["data.domain=scipy,torch", "seed=1,2"], 24):
        assert len(grid.questions_of("table2", given)) == number
    cells = grid.cells_of("table2", ["data.domain=torch", "seed=1,2"], few=True)
    seen = [(cell.config.data.domain, cell.config.seed) for cell in cells]
    assert set(seen) == {("torch", 1), ("torch", 2)}
