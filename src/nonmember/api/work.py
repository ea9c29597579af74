"""Runs API calls inside a host program: composes the config, one process, quiet, interruptible."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from nonmember.api.inputs import Inputs
from nonmember.artifacts import Builder
from nonmember.config.compose import explained
from nonmember.config.runs import builder_of
from nonmember.runtime.interruption import interruptible, interruption_of
from nonmember.runtime.quiet import quiet


@contextmanager
def at_work() -> Iterator[None]:
    """Ctrl-C saves what training has reached and comes out as KeyboardInterrupt, Hydra's errors as ValueError with the
    sentence of the command line. The libraries are quiet meanwhile."""
    with interruptible(ends_process=False), quiet(), explained():
        try:
            yield
        except (Exception, KeyboardInterrupt, SystemExit) as error:
            if (interruption := interruption_of(error)) is not None:
                raise interruption from None
            raise


def builder_for(config: Any, inputs: Inputs) -> Builder:
    """The builder of a composed config, with the models and texts in memory.

    Raises:
        ValueError: For a trainer that starts further processes: they would run the caller's program again, and find no
            model in its memory.
    """
    builder = builder_of(config)
    if not builder.compute.in_one_process:
        raise ValueError(
            "A call from Python runs in one process; got a trainer of several. Use trainer=cpu or trainer=gpu, or save "
            "the model and give its path to the command `nonmember audit` with trainer=ddp or trainer=fsdp."
        )
    inputs.provide(builder)
    return builder
