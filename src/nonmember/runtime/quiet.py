"""Silences verbose libraries: only what a user must know is logged."""

from __future__ import annotations

import logging
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

LOUD = ("lightning.pytorch", "lightning.fabric", "transformers")
IGNORED = (
    ".*does not have many workers.*",
    ".*`isinstance\\(treespec, LeafSpec\\)` is deprecated.*",
    ".*Checkpoint directory .* exists.*",
    ".*You defined a `validation_step` but have no `val_dataloader`.*",
    ".*number of training batches .* is smaller than the logging interval.*",
    ".*`srun` command is available on your system but is not used.*",  # a login node, or one task: docs/cluster.md
)
_wanted = False


def quieten() -> None:
    """Lightning's device report and tips, transformers' loading bars, and warnings about our own loaders. The libraries
    need not be imported yet: who imports them says so (`imported`)."""
    global _wanted
    _wanted = True
    logging.getLogger("httpx2").setLevel(logging.WARNING)  # a line per request
    imported()
    for message in IGNORED:
        warnings.filterwarnings("ignore", message=message)


def imported() -> None:
    """Lightning or transformers was imported, where the loggers of both get a level."""
    if not _wanted:
        return
    for name in LOUD:
        if name in sys.modules:
            logging.getLogger(name).setLevel(logging.ERROR)
    if "transformers" in sys.modules:
        import transformers

        transformers.utils.logging.set_verbosity_error()
        transformers.utils.logging.disable_progress_bar()


@contextmanager
def quiet() -> Iterator[None]:
    """In this block the libraries are quiet; afterwards they say again what they said before."""
    global _wanted
    before, (bars, verbosity) = _wanted, (True, logging.WARNING)  # of transformers, as it is when imported
    if "transformers" in sys.modules:
        import transformers

        bars, verbosity = (
            transformers.utils.logging.is_progress_bar_enabled(),
            transformers.utils.logging.get_verbosity(),
        )
    levels = {name: logging.getLogger(name).level for name in ("httpx2", *LOUD) if name in ("httpx2", *sys.modules)}
    with warnings.catch_warnings():
        quieten()
        try:
            yield
        finally:
            _wanted = before
            for name in ("httpx2", *LOUD):
                if name in levels:
                    logging.getLogger(name).setLevel(levels[name])
                elif name in sys.modules:
                    logging.getLogger(name).setLevel(logging.INFO)
            if "transformers" in sys.modules:
                import transformers

                transformers.utils.logging.set_verbosity(verbosity)
                if bars:
                    transformers.utils.logging.enable_progress_bar()
