"""Several processes for one run (ddp, fsdp): the first decides, the others follow.

Lightning starts the others by running the same command again, at its first fit or predict. They run the same code:
they wait for what the first process makes alone, and join in where all must take part.
"""

from __future__ import annotations

import logging
import os
import time
import uuid
from collections.abc import Callable

log = logging.getLogger(__name__)

_SIZES = ("WORLD_SIZE", "SLURM_NTASKS")
_RANKS = ("RANK", "SLURM_PROCID", "LOCAL_RANK")
# A job that is queued again keeps its number.
_RUNS = ("TORCHELASTIC_RUN_ID", "SLURM_JOB_ID", "SLURM_STEP_ID", "SLURM_RESTART_COUNT", "NONMEMBER_RUN")

POLL_SECONDS = 0.05
SILENT_SECONDS = 60.0  # that a further process waits before it says for what, and between looks at the first one
WAIT_VARIABLE, WAIT_MINUTES = "NONMEMBER_WAIT_MINUTES", 30.0  # as long as torch waits for a process


def process_rank() -> int:
    """0 in the only or first process."""
    return int(next((os.environ[name] for name in _RANKS if os.environ.get(name)), 0))


def of_a_group() -> str:
    """What the environment says of the processes that this one is to work with, and what to do if that is not so."""
    names = [name for name in (*_RANKS, *_SIZES) if os.environ.get(name)]
    given = " ".join(f"{name}={os.environ[name]}" for name in names)
    return (
        f"the environment says {given}, by which this is one of several processes of a run, which wait for each other. "
        f"If these are left over from another job, unset {' '.join(names)}"
    )


class Waiting:
    """A further process waits for what the first one makes.

    Attributes:
        what: it waits for, in words.
        is_made: whether a process is at it now.
    """

    def __init__(self, what: str, is_made: Callable[[], bool]) -> None:
        self._what, self._is_made = what, is_made
        self._parent = os.getppid()
        self._heard = self._looked = time.monotonic()
        self._has_said = False

    def a_moment(self) -> None:
        """Raises SystemExit where the first process is gone, ValueError where nobody has been at it for too long."""
        if os.getppid() != self._parent:
            raise SystemExit("The first process has ended.")
        now = time.monotonic()
        if now - self._looked > SILENT_SECONDS:
            self._looked = now
            if self._is_made():
                self._heard = now
            elif now - self._heard > 60 * minutes_to_wait():
                raise ValueError(
                    f"For {minutes_to_wait():g} minutes no process has been making {self._what}: {of_a_group()}. To "
                    f"wait longer, set {WAIT_VARIABLE}."
                )
            if not self._has_said:
                log.warning("Waiting for %s: %s.", self._what, of_a_group())
                self._has_said = True
        time.sleep(POLL_SECONDS)


def minutes_to_wait() -> float:
    """For another process of this run that gives no sign."""
    return float(os.environ.get(WAIT_VARIABLE) or WAIT_MINUTES)


def run_id() -> str:
    """The same in all processes of one run, and in no other: set here, inherited by those started later."""
    if not any(os.environ.get(name) for name in _RUNS):
        os.environ["NONMEMBER_RUN"] = uuid.uuid4().hex
    return "-".join(os.environ[name] for name in _RUNS if os.environ.get(name))
