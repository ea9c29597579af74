"""Cells run side by side, by other processes: same results, one closing table, failures carried home."""

from __future__ import annotations

import contextlib
import errno
import itertools
import json
import logging
import os
import signal
import subprocess
import sys
from concurrent.futures import Future
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hydra.core.singleton import Singleton
from omegaconf import OmegaConf
from omegaconf.basecontainer import BaseContainer

import tiny
from command_line import Said, question, rows_of, write_rows
from nonmember.artifacts.store import Store
from nonmember.cli import audit
from nonmember.config import roots
from nonmember.config.jobs import LostJob
from nonmember.config.roots import FOLDER_VARIABLE, run_with_hydra
from nonmember.results.result import AuditResult, Failure
from nonmember.runtime import interruption
from nonmember.sweeps import outcomes, processes
from nonmember.sweeps.outcomes import Cells
from wandb_helpers import lay_down, result


def test_what_workers_note_is_told_by_the_process_that_was_started(tmp_path, monkeypatch):
    home = Cells.of_this_run()
    monkeypatch.setenv(FOLDER_VARIABLE, str(tmp_path))
    worker = Cells(home.run, home=-1)  # as another process has it
    done, failed, killed = (tmp_path / name for name in ("done", "failed", "killed"))
    lay_down(done, result(cell="done"))
    for number, folder in enumerate((done, failed, killed)):
        monkeypatch.setattr(outcomes, "number_of_cell", lambda number=number: number)
        worker.begun(folder)
        if folder == done:
            worker.done(result(made={**result().provenance.made, "models_trained": 17}), done)
            assert not home.has_failure()
        elif folder == failed:
            worker.failed(Failure("failed", "No luck.", "ValueError", "a under b", ("seed=2",)), failed)
    assert home.has_failure()
    assert home.unfinished() == [killed]
    of_done, of_failed = home.all()
    assert (of_done.question.cell, of_done.provenance.made["models_trained"]) == ("done", 17)
    assert of_failed == Failure("failed", "No luck.", "ValueError", "a under b", ("seed=2",))
    assert home.ended == {0, 1}
    assert not list(tmp_path.glob(".cells-*")), "the workers' notes are gone"


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
    assert list(tmp_path.glob("outputs/audits/audits/*")), "the cell's folder, which the task was given"


def test_a_task_of_srun_is_given_its_command_and_a_process_of_lightning_is_not(nonmember, monkeypatch):
    monkeypatch.setenv("SLURM_PROCID", "1")
    monkeypatch.delenv("NONMEMBER_COMMAND", raising=False)
    assert "no command 'given'" in nonmember("given", "seed=1").err
    monkeypatch.setenv("NONMEMBER_COMMAND", "inherited")
    assert "no command 'inherited'" in nonmember("seed=1").err


class InThisProcess:
    """joblib's executor with a worker that is this very process."""

    def __init__(self, **settings: Any) -> None:
        self.settings = settings
        self.given: list[str] = []

    def submit(self, call, *arguments) -> Future[Any]:
        self.given.append(call.__name__)
        future: Future[Any] = Future()
        hydra, resolvers = Singleton._instances, BaseContainer._resolvers  # which a worker sets, for its own process
        try:
            future.set_result(call(*arguments))
        finally:
            Singleton._instances, BaseContainer._resolvers = hydra, resolvers
        return future


@pytest.fixture
def workers(monkeypatch) -> list[InThisProcess]:
    """Those that joblib was asked for."""
    loky = pytest.importorskip("joblib.externals.loky")
    pytest.importorskip("hydra_plugins.hydra_joblib_launcher")
    asked: list[InThisProcess] = []

    def get_reusable_executor(**settings: Any) -> InThisProcess:
        asked[:] = asked or [InThisProcess(**settings)]
        assert asked[0].settings == settings, "other ones would be started beside them"
        return asked[0]

    monkeypatch.setattr(loky, "get_reusable_executor", get_reusable_executor)
    monkeypatch.setattr(processes, "worker", contextlib.nullcontext)  # which takes the process's signals for good
    return asked


@pytest.fixture
def beside(nonmember, ask, workers):
    """beside(target=folder): two audits that differ in their score, by two of joblib's workers."""

    def run(**given: Path) -> Said:
        command, *arguments = ask("launcher=joblib", "name=beside", "method.score.k=0.2,0.4", **given)
        return nonmember(command, "-m", *arguments)

    return run


@pytest.mark.slow
def test_what_cells_share_is_made_once_before_them_and_counted_as_if_the_first_had_made_it(
    beside, workers, tmp_path, monkeypatch
):
    process_executor = pytest.importorskip("joblib.externals.loky.process_executor")
    monkeypatch.setattr(process_executor, "_MAX_MEMORY_LEAK_SIZE", 1)
    said = beside()
    assert said.status == 0, said.err
    (item,) = workers
    assert item.settings["max_workers"] == 2
    item.settings["initializer"]()
    assert process_executor._MAX_MEMORY_LEAK_SIZE > 1e12, "what a worker keeps is no leak"
    assert item.given == ["getpid", *["make_artifact"] * 4, *["run_cell"] * 2], "a model and three readings"
    assert "models trained: 1, models found: 1" in said.out
    folder = tmp_path / "outputs" / "audits" / "beside"
    results = [AuditResult.load(path) for path in folder.glob("*/result.json")]
    assert {item.question.settings["score"]["k"] for item in results} == {0.2, 0.4}
    assert [item.provenance.made["models_trained"] for item in results] == [0, 0], "each found it"


@pytest.mark.slow
def test_of_what_cannot_be_made_beforehand_each_cell_says_why(beside, workers, tmp_path, monkeypatch):
    def fails(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "the store")

    monkeypatch.setattr(Store, "get_or_make", fails)
    said = beside()
    assert said.status == 1
    made, run = workers[0].given.count("make_artifact"), workers[0].given.count("run_cell")
    assert (said.out.count("could not be made beforehand: "), run) == (made, 2), "also what rests on it is tried"
    assert said.out.count("No space left on device") == made + 2, "a line for each, and for each cell"
    assert len(list(tmp_path.glob("outputs/audits/beside/*/error.json"))) == 2


@pytest.mark.slow
def test_after_a_signal_no_worker_is_given_more(beside, workers, tmp_path, monkeypatch):
    class Worker:
        def terminate(self) -> None: ...

    def interrupted(config, spec, state):
        monkeypatch.setattr(interruption.multiprocessing, "active_children", lambda: [Worker()])
        signal.raise_signal(signal.SIGTERM)

    interrupted.__name__ = "make_artifact"
    monkeypatch.setattr(processes, "make_artifact", interrupted)
    before = signal.getsignal(signal.SIGALRM)
    try:
        said = beside()
    finally:
        signal.signal(signal.SIGALRM, before)
    assert said.status == 143
    assert workers[0].given == ["getpid", "make_artifact"]
    assert "0 of 2 audits ended, 2 are left." in said.out
    assert not list(tmp_path.glob("outputs/audits/beside/*/*.json"))


def test_a_worker_tells_what_it_made_and_keeps_quiet_where_it_was_interrupted(monkeypatch, caplog):
    def made_of(entry):
        counters = SimpleNamespace(models_trained=1, tokens_observed=0)
        builder = SimpleNamespace(entry=entry, counters=counters)
        monkeypatch.setattr(processes, "builder_of", lambda config: builder)
        hydra, resolvers = Singleton._instances, BaseContainer._resolvers
        try:
            nothing = {"instances": {}, "omegaconf_resolvers": {}}
            return processes.make_artifact(OmegaConf.create(), SimpleNamespace(readable="m"), nothing)
        finally:
            Singleton._instances, BaseContainer._resolvers = hydra, resolvers

    def raising(error: BaseException):
        def entry(spec):
            raise error

        return entry

    monkeypatch.setattr(processes, "worker", contextlib.nullcontext)
    with caplog.at_level(logging.WARNING):
        assert made_of(lambda spec: SimpleNamespace(made_now=True)) == {"models_trained": 1, "tokens_observed": 0}
        assert made_of(lambda spec: SimpleNamespace(made_now=False)) is None, "another process was first"
        assert made_of(raising(interruption.Interrupted(signal.SIGTERM))) is None
        assert made_of(raising(SystemExit(1))) is None
        assert not caplog.records
        assert made_of(raising(ValueError("no luck"))) is None
        assert caplog.messages == ["m could not be made beforehand: no luck"]


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (BrokenProcessPool("gone"), "failed  second: A worker of the launcher was killed"),
        (
            BrokenProcessPool("exit codes {SIGTERM(-15)}"),
            "failed  second: A worker of the launcher was ended by SIGTERM",
        ),
        (LostJob("Job 7_1 ended without a result."), "not run  seed=2\n1 of 2 audits ended, 1 are left.\n"),
    ],
    ids=["a worker of joblib", "its signal", "a job of Slurm"],
)
def test_what_was_lost_with_its_process_is_named(nonmember, monkeypatch, tmp_path, error, told):
    """The first of two audits has ended when the second one's process is gone."""

    def hydra(command, task, sweep):
        monkeypatch.setenv(FOLDER_VARIABLE, str(tmp_path))
        (tmp_path / "multirun.yaml").write_text("hydra: {overrides: {task: ['seed=1,2']}}")
        worker = Cells(sweep.cells.run, home=-1)
        lay_down(tmp_path / "first", result(cell="first"))
        for number, name in enumerate(("first", "second")):
            (tmp_path / name).mkdir(exist_ok=True)
            monkeypatch.setattr(outcomes, "number_of_cell", lambda number=number: number)
            worker.begun(tmp_path / name)
            if name == "first":
                worker.done(result(), tmp_path / name)
        raise error

    monkeypatch.setattr(audit, "run_with_hydra", hydra)
    said = nonmember("audit")
    assert (said.status, said.err.count("\n")) == (1, 1), said.err
    assert told in said.out
    assert "scipy-a under micro_target_high" in said.out, "the other one's row"
    is_recorded = (tmp_path / "second" / "error.json").is_file()
    if isinstance(error, BrokenProcessPool):
        assert "Start the same command again to continue" in said.err
        assert ("memory" in said.err) == ("SIGTERM" not in str(error))
        assert said.err.endswith("Audits that were under way: second.\n")
        assert is_recorded
    else:
        assert "Job 7_1 ended without a result." in said.err
        assert not is_recorded, "the job may have been killed before it began"


def test_a_full_disk_does_not_hide_why_an_audit_failed(tmp_path, caplog):
    failure = audit.record_failure(tmp_path / "absent", ValueError("no luck"))
    assert failure == Failure("absent", "no luck", "ValueError")
    assert "could not be recorded in" in caplog.text


def test_a_failure_knows_what_was_given_for_its_cell_alone(tmp_path, monkeypatch):
    monkeypatch.setenv(FOLDER_VARIABLE, str(tmp_path))
    sweep = {"overrides": {"task": ["seed=1,2", "method=prism"]}, "sweeper": {"params": {"truth": "member"}}}
    (tmp_path / "multirun.yaml").write_text(json.dumps({"hydra": sweep}))
    (tmp_path / "prism-1a2b/.hydra").mkdir(parents=True)
    words = ["seed=2", "method=prism", "truth=member"]
    (tmp_path / "prism-1a2b/.hydra/overrides.yaml").write_text(json.dumps(words))
    config = OmegaConf.create({"data": {"label": "docs"}, "target": {"path": "tiny", "label": "${missing}"}})
    failure = audit.record_failure(tmp_path / "prism-1a2b", ValueError("no luck"), config)
    assert failure == Failure("prism-1a2b", "no luck", "ValueError", "docs under tiny", ("seed=2",))
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
    assert len(list(folder.glob("*/error.json"))) == 1
    # The closing table is shown by the process that was started, though it ran neither cell.
    assert "models trained: 1, models found: 0" in done.stdout
    assert "failed" in done.stdout
    assert "has no column 'text'" in done.stdout
    assert "nonmember audit: " in done.stderr
    assert not list(folder.glob(".cells-*")), "the workers' notes are gone"
