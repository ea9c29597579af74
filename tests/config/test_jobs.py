"""What becomes of a sweep whose scheduler loses jobs; with real ones in tests/cli/test_slurm.py."""

from __future__ import annotations

import importlib
import os
import signal
import sys
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hydra.core.utils import JobReturn, JobStatus

from command_line import same_environment_afterwards
from nonmember.config import jobs
from nonmember.config.jobs import LostJob, all_awaited
from nonmember.runtime.interruption import Interrupted

LAUNCHERS = "hydra_plugins.hydra_submitit_launcher.submitit_launcher"
pytest.importorskip(LAUNCHERS)
core = pytest.importorskip("submitit.core.core")
utils = pytest.importorskip("submitit.core.utils")

DONE = JobReturn(status=JobStatus.COMPLETED, _return_value=None)
TOO_OFTEN = JobReturn(status=JobStatus.FAILED, _return_value=utils.UncompletedJobError("timed-out too many times."))


@dataclass
class Job:
    """Ends with an outcome, as submitit's jobs do."""

    number: int
    outcome: Any
    state: str = "CANCELLED"
    waited_for: bool = False
    paths: Any = field(default_factory=lambda: SimpleNamespace(stderr=Path("log.err")))
    _cancel_command: str = "scancel"
    is_done: bool = True

    def done(self) -> bool:
        return self.is_done

    @property
    def job_id(self) -> str:
        return f"7_{self.number}"


@pytest.fixture
def sweep(monkeypatch):
    """sweep(outcomes): runs them as jobs by a launcher that gives up at the first error."""

    def results(self: Job) -> list[Any]:
        self.waited_for = True
        if isinstance(self.outcome, BaseException):
            raise self.outcome
        return [self.outcome]

    def launch(self: object, job_overrides: list[list[str]], initial_job_idx: int) -> list[JobReturn]:
        return [core.Job.results(job)[0] for job in given]

    def run(*outcomes: Any) -> tuple[list[Job], Any]:
        given[:] = [Job(number, outcome) for number, outcome in enumerate(outcomes)]
        monkeypatch.setattr(core.Job, "results", results)
        monkeypatch.setattr(launcher, "launch", launch)
        before = core.Job.results
        try:
            with all_awaited():
                return given, launcher.launch(None, [], 0)
        except LostJob as error:
            return given, error
        finally:
            assert core.Job.results is before

    given: list[Job] = []
    launcher = importlib.import_module(
        LAUNCHERS
    ).BaseSubmititLauncher  # Hydra makes plugins anew when it looks for them
    monkeypatch.setattr(jobs, "SRUN", {})
    return run


def test_what_the_jobs_return_is_returned(sweep):
    assert sweep(DONE, DONE)[1] == [DONE, DONE]


@pytest.mark.parametrize(
    ("loss", "reason"),
    [(utils.UncompletedJobError("has not produced any output"), "CANCELLED"), (TOO_OFTEN, "timed-out too many times")],
)
def test_a_lost_job_is_told_when_all_have_ended(sweep, loss, reason):
    given, error = sweep(DONE, loss, DONE)
    assert all(job.waited_for for job in given)
    assert isinstance(error, LostJob)
    assert str(error).startswith(f"Job 7_1 ended without a result ({reason}" if loss is TOO_OFTEN else "Job 7_1 ended")
    assert reason in str(error)
    assert "the same command" in str(error)


@pytest.mark.parametrize(
    ("queue", "is_queued"),
    [
        ((0, "7_1 tests audit root PD", ""), True),
        ((0, "", ""), False),
        ((1, "", "slurm_load_jobs error: Invalid job id specified"), False),
        ((1, "", "slurm_load_jobs error: Unable to contact slurm controller"), True),
    ],
)
def test_a_job_that_the_scheduler_no_longer_knows_is_lost(monkeypatch, queue, is_queued):
    """submitit would wait for it for ever."""
    monkeypatch.setattr(jobs.shutil, "which", lambda name: name)
    monkeypatch.setattr(
        jobs.subprocess,
        "run",
        lambda *_, **__: SimpleNamespace(**dict(zip(("returncode", "stdout", "stderr"), queue, strict=True))),
    )
    slept = []

    def sleep(seconds: float) -> None:
        slept.append(seconds)
        job.is_done = is_queued and len(slept) > 3

    job = Job(1, DONE, is_done=False)
    assert jobs._is_queued(job) == is_queued
    assert jobs._is_queued(Job(1, DONE, _cancel_command="dummy")), "of submitit's local jobs no scheduler knows"
    monkeypatch.setattr(jobs, "SECONDS_BETWEEN_LOOKS", 0)
    monkeypatch.setattr(jobs.time, "sleep", sleep)
    if is_queued:
        jobs._wait(job)
        assert slept == [1] * 4, "until it has ended"
    else:
        with pytest.raises(LostJob, match="no longer queued"):
            jobs._wait(job)


def test_tasks_of_a_job_end_together_but_for_what_the_user_says(sweep, monkeypatch):
    """Else one waits for ever for another that has failed."""
    monkeypatch.setattr(jobs, "SRUN", {"SLURM_KILL_BAD_EXIT": "1", "SLURM_WAIT": "60"})
    monkeypatch.delenv("SLURM_KILL_BAD_EXIT", raising=False)
    monkeypatch.setenv("SLURM_WAIT", "5")
    with same_environment_afterwards():
        sweep(DONE)
        assert (os.environ["SLURM_KILL_BAD_EXIT"], os.environ["SLURM_WAIT"]) == ("1", "5")


def test_sweeps_need_no_submitit(monkeypatch):
    monkeypatch.setitem(sys.modules, LAUNCHERS, None)
    with all_awaited():
        pass


def test_an_interruption_cancels_the_array(sweep, monkeypatch):
    called = []
    monkeypatch.setattr(jobs.shutil, "which", lambda name: name)
    monkeypatch.setattr(jobs.subprocess, "run", lambda command, **_: called.append(command))
    with pytest.raises(Interrupted):
        sweep(DONE, Interrupted(signal.SIGINT), DONE)
    assert called == [["scancel", "7"]]
