"""Several processes for one run (ddp, fsdp): the first decides, the others follow.

Lightning starts the others by running the same command again, at its first fit or predict. They run the same code:
they wait for what the first process makes alone, and join in where all must take part.
"""

from __future__ import annotations

import os
import uuid

_SIZES = ("WORLD_SIZE", "SLURM_NTASKS")
_RANKS = ("RANK", "SLURM_PROCID", "LOCAL_RANK")
# A job that is queued again keeps its number.
_RUNS = ("TORCHELASTIC_RUN_ID", "SLURM_JOB_ID", "SLURM_STEP_ID", "SLURM_RESTART_COUNT", "NONMEMBER_RUN")


def process_rank() -> int:
    """0 in the only or first process. Raises ValueError where the environment has no number for it."""
    name, rank = next(((name, os.environ[name]) for name in _RANKS if os.environ.get(name)), ("", "0"))
    if not rank.isdecimal():
        raise ValueError(f"The environment variable {name} must be a number; got {rank!r}. Unset it.")
    return int(rank)


def of_a_group() -> str:
    """What the environment says of the processes that this one is to work with, and what to do if that is not so."""
    given = [f"{name}={os.environ[name]}" for name in (*_RANKS, *_SIZES) if os.environ.get(name)]
    return (
        f"the environment says {' '.join(given)}, by which this is a further process of a run and works with its first "
        f"one. If these are left over from another job, unset {' '.join(name.partition('=')[0] for name in given)}"
    )


def run_id() -> str:
    """The same in all processes of one run, and in no other: set here, inherited by those started later."""
    if not any(os.environ.get(name) for name in _RUNS):
        os.environ["NONMEMBER_RUN"] = uuid.uuid4().hex
    return "-".join(os.environ[name] for name in _RUNS if os.environ.get(name))
