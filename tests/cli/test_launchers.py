"""Cells run side by side, by other processes: same results, one closing table, failures carried home."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import subprocess
import sys
import time
from dataclasses import asdict
from pathlib import Path

import psutil
import pytest
from omegaconf import OmegaConf

import tiny
from command_line import question, rows_of, write_rows
from nonmember.cli import audit
from nonmember.cli.audit import Outcomes
from nonmember.config import roots
from nonmember.config.roots import FOLDER_VARIABLE, RememberSweepFolder, run_with_hydra
from nonmember.results.result import AuditResult, Failure
from wandb_helpers import lay_down, result


def test_what_workers_left_is_told_by_the_process_that_was_started(tmp_path, monkeypatch):
    home = Outcomes()
    monkeypatch.setenv(FOLDER_VARIABLE, str(tmp_path))
    failure = Failure("failed", "No luck.", "ValueError", "a under b", {"seed": "2"})
    for name in ("before", "done"):
        lay_down(tmp_path / name, result(cell=name))
    for name in ("before", "done", "failed", "killed"):
        (tmp_path / name / ".hydra").mkdir(parents=True)
        (tmp_path / name / ".hydra/overrides.yaml").write_text("[]")
    os.utime(tmp_path / "before/.hydra/overrides.yaml", (0, 0))
    assert not home.has_failure()
    (tmp_path / "failed/error.json").write_text(json.dumps(asdict(failure)))
    assert home.has_failure()
    assert set(home.all()) == {tmp_path / "done", tmp_path / "failed"}
    assert home.all()[tmp_path / "failed"] == failure


def test_in_a_worker_hydra_carries_errors_home_and_an_interruption_ends_the_cell(tmp_path, monkeypatch):
    def ended_by(error: BaseException) -> None:
        def task(config, folder):
            raise error

        monkeypatch.setattr(roots.os, "getpid", itertools.count(2**22).__next__)  # never the process that was started
        run_with_hydra("audit", task)

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["nonmember", "world=micro"])
    monkeypatch.setenv("HYDRA_FULL_ERROR", "1")
    monkeypatch.setattr(roots, "worker", contextlib.nullcontext)  # which takes the process's signals for good
    with pytest.raises(ValueError, match="no luck"):
        ended_by(ValueError("no luck"))
    with pytest.raises(SystemExit, match="3"):
        ended_by(SystemExit(3))
    ended_by(KeyboardInterrupt())
    assert list(tmp_path.glob("outputs/audits/mine/*")), "the cell's folder, which the task was given"


def test_a_task_of_srun_is_given_its_command_and_a_process_of_lightning_is_not(nonmember, monkeypatch):
    monkeypatch.setenv("SLURM_PROCID", "1")
    monkeypatch.delenv("NONMEMBER_COMMAND", raising=False)
    assert "no command 'given'" in nonmember("given", "seed=1").err
    monkeypatch.setenv("NONMEMBER_COMMAND", "inherited")
    assert "no command 'inherited'" in nonmember("seed=1").err


def test_a_full_disk_does_not_hide_why_an_audit_failed(tmp_path, caplog):
    failure = audit.record_failure(tmp_path / "absent", ValueError("no luck"))
    assert failure == Failure("absent", "no luck", "ValueError")
    assert "could not be recorded in" in caplog.text


def test_a_failure_knows_what_was_given_for_its_cell_alone(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "environ", {**os.environ})
    sweep = {"overrides": {"task": ["seed=1,2", "method=prism"]}, "sweeper": {"params": {"truth": "member"}}}
    sweep |= {"sweep": {"dir": str(tmp_path)}, "launcher": {"_target_": "basic"}}
    RememberSweepFolder().on_multirun_start(OmegaConf.create({"hydra": sweep}))
    (tmp_path / "prism-1a2b/.hydra").mkdir(parents=True)
    words = ["seed=2", "method=prism", "truth=member"]
    (tmp_path / "prism-1a2b/.hydra/overrides.yaml").write_text(json.dumps(words))
    config = OmegaConf.create({"data": {"label": "docs"}, "target": {"path": "tiny", "label": "${missing}"}})
    failure = audit.record_failure(tmp_path / "prism-1a2b", ValueError("no luck"), config)
    assert failure == Failure("prism-1a2b", "no luck", "ValueError", "docs under tiny", {"seed": "2"})
    assert Failure.load(tmp_path / "prism-1a2b/error.json") == failure


@pytest.mark.slow  # the workers' start takes most of it; above is what they and the first process tell each other
@pytest.mark.parametrize("launcher", ["joblib", "submitit_local"])
def test_two_cells_side_by_side(launcher, tmp_path):
    pytest.importorskip(f"hydra_plugins.hydra_{launcher.partition('_')[0]}_launcher")
    texts = tiny.random_texts(32, seed=3)
    sound = write_rows(tmp_path / "sound.jsonl", rows_of(texts))
    broken = write_rows(tmp_path / "broken.jsonl", [{"id": "a", "txt": "moss"}])
    target, reference = (tiny.model_folder(tmp_path / f"tiny{seed}", seed) for seed in (0, 1))
    command, *arguments = question(target, reference, Path(f"{sound},{broken}"), f"launcher={launcher}", "name=beside")
    done = subprocess.run(
        [sys.executable, "-m", "nonmember.cli", command, "-m", *arguments],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
    )
    assert done.returncode == 1, done.stderr
    folder = tmp_path / "outputs" / "audits" / "beside"
    (path,) = folder.glob("*/result.json")
    result = AuditResult.load(path)
    assert (result.question.sweep, result.statistics.num_documents) == ("beside", 32)
    assert result.question.swept == {"data.path": str(sound)}
    (error,) = folder.glob("*/error.json")
    assert Failure.load(error).swept == {"data.path": str(broken)}
    # The closing table is shown by the process that was started, though it ran neither cell.
    assert "models trained: 1, models found: 0" in done.stdout
    assert "failed" in done.stdout
    assert "has no column 'text'" in done.stdout
    assert "nonmember audit: " in done.stderr


@pytest.mark.slow
def test_where_a_worker_is_killed_the_other_goes_on_and_what_they_share_is_made_once(tmp_path):
    """Two cells want one distilled reference; the worker that trains it is killed in the midst. Its cell is made when
    the same command is given again."""
    pytest.importorskip("hydra_plugins.hydra_submitit_launcher")
    documents = write_rows(tmp_path / "docs.jsonl", rows_of(tiny.random_texts(32, seed=3)))
    target, reference = (tiny.model_folder(tmp_path / f"tiny{seed}", seed) for seed in (0, 1))
    changed = ("launcher=submitit_local", "name=beside", "method.score.k=0.1,0.5", "gates=off")
    epochs = "method.distillation.optimization.epochs=100"
    command, *arguments = question(target, reference, documents, *changed, epochs)
    line = [sys.executable, "-m", "nonmember.cli", command, "-m", *arguments]
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    run = subprocess.Popen(line, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=environment)
    killed = False
    while run.poll() is None and not killed:
        time.sleep(0.2)
        under_way = psutil.Process(run.pid).children(recursive=True)
        workers = [item for item in under_way if "submitit.core._submit" in item.cmdline()]
        if len(workers) == 2 and list(tmp_path.glob("outputs/store/models/.partial-*")):
            max(workers, key=lambda item: item.cpu_times().user).kill()
            killed = True
    out, _ = run.communicate()
    assert killed, out.decode()
    folder = tmp_path / "outputs" / "audits" / "beside"
    (path,) = folder.glob("*/result.json")
    assert AuditResult.load(path).provenance.made["models_trained"] == 1, "the other trained it to its end"
    again = subprocess.run(line, cwd=tmp_path, capture_output=True, text=True, env=environment)
    assert again.returncode == 0, again.stderr
    results = [AuditResult.load(path) for path in folder.glob("*/result.json")]
    assert sorted(item.question.settings["score"]["k"] for item in results) == [0.1, 0.5]
    assert sorted(item.provenance.made["models_trained"] for item in results) == [0, 1]
    assert len({item.provenance.keys["distilled"] for item in results}) == 1
