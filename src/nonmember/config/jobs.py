"""Cells as jobs of a scheduler, by Hydra's submitit launcher: all are waited for, also where some are lost.

The launcher itself gives up at the first job that left no result (killed, out of memory, out of time, its node gone),
while the others go on without anybody who would read what they have done.
"""

from __future__ import annotations

import contextlib
import logging
import os
import shutil
import subprocess
import time
from collections.abc import Callable, Sequence
from typing import Any

from hydra.core.utils import JobReturn, JobStatus

from nonmember.config.hydra_compat import launcher_of_jobs, replaced, submitit_parts
from nonmember.runtime.interruption import interruption_of

log = logging.getLogger(__name__)

# Of a job of several tasks none may wait for ever for one that has failed or ended.
SRUN = {"SLURM_KILL_BAD_EXIT": "1", "SLURM_WAIT": "60"}
SECONDS_BETWEEN_LOOKS = 30.0
SECONDS_TO_APPEAR = 10.0  # for what another node has written


class LostJob(ValueError):
    """A job that ended without a result."""


def all_awaited() -> contextlib.AbstractContextManager[Any]:
    """While it lasts, a sweep of jobs raises LostJob for a lost one when all others have ended; an interruption cancels
    all."""

    def wrap_launch(launch: Callable[..., Sequence[JobReturn]]) -> Callable[..., Sequence[JobReturn]]:
        def launch_and_wait(*arguments: Any) -> Sequence[JobReturn]:
            for name, value in SRUN.items():
                os.environ.setdefault(name, value)
            lost: list[LostJob] = []

            def wrap_results(results: Callable[[Any], list[Any]]) -> Callable[[Any], list[Any]]:
                def results_or_loss(job: Any) -> list[Any]:
                    try:
                        return _results(job, results)
                    except LostJob as error:
                        log.warning("%s", error)
                        lost.append(error)
                        return [JobReturn(status=JobStatus.FAILED, _return_value=error)]

                return results_or_loss

            with replaced(submitit_parts()[1], "results", wrap_results):
                returned = launch(*arguments)
            if lost:
                raise lost[0]
            return returned

        return launch_and_wait

    launcher = launcher_of_jobs()
    return contextlib.nullcontext() if launcher is None else replaced(launcher, "launch", wrap_launch)


def returned(job: Any) -> list[Any]:
    """What each task of a job returned. Raises LostJob where the job ended without."""
    return _results(job, submitit_parts()[1].results)


def _results(job: Any, results: Callable[[Any], list[Any]]) -> list[Any]:
    from submitit.core.utils import UncompletedJobError

    try:
        _wait(job)
        found = results(job)
        error = getattr(found[0], "_return_value", None)  # of a cell
        if not isinstance(error, UncompletedJobError):
            return found
        reason = str(error)  # submitit's, of a job that was queued again too often
    except UncompletedJobError:
        reason = f"state {job.state}"
    except BaseException as error:
        if interruption_of(error) is not None and shutil.which(job._cancel_command):
            # The whole array. submitit's local jobs, which no command cancels, end with the process that started them.
            cancel(str(job.job_id).partition("_")[0])
        raise
    raise _lost(job, reason.rstrip("."))


def _wait(job: Any) -> None:
    """Until it has ended. submitit asks `sacct`, which knows nothing of a job that was cancelled before it began, nor
    of any where Slurm keeps no accounts, and would then wait for ever: so `squeue` is asked as well."""
    looked = time.monotonic()
    while not job.done():
        time.sleep(1)
        if time.monotonic() - looked > SECONDS_BETWEEN_LOOKS:
            if not _is_queued(job):
                time.sleep(SECONDS_TO_APPEAR)
                if not job.done():
                    raise _lost(job, "no longer queued")
            looked = time.monotonic()


def _is_queued(job: Any) -> bool:
    """Also where nobody can tell."""
    if job._cancel_command != "scancel" or not shutil.which("squeue"):
        return True
    asked = subprocess.run(["squeue", "-h", "-j", job.job_id], capture_output=True, text=True, check=False)
    return bool(asked.stdout.strip()) or (asked.returncode != 0 and "Invalid job id" not in asked.stderr)


def _lost(job: Any, reason: str) -> LostJob:
    return LostJob(
        f"Job {job.job_id} ended without a result ({reason}); its output is in {job.paths.stderr}. Start the same "
        "command again to continue."
    )


def cancel(array: str) -> None:
    """All jobs of an array of Slurm's."""
    subprocess.run(["scancel", array], check=False)
    log.info("Job %s was cancelled.", array)
