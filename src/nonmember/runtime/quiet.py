"""Silences verbose libraries: only what a user must know is logged."""

from __future__ import annotations

import logging
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

# Levels of their loggers once they are imported.
LOUD = {"lightning.pytorch": logging.INFO, "lightning.fabric": logging.INFO, "transformers": logging.WARNING}
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
    if _wanted:
        for name in LOUD.keys() & sys.modules.keys():
            logging.getLogger(name).setLevel(logging.ERROR)
        _show_bars(False)


def _show_bars(wanted: bool) -> bool:
    """Whether transformers shows progress bars from now on; returns whether it did."""
    if "transformers" not in sys.modules:
        return True
    from transformers.utils import logging as of_transformers

    before: bool = of_transformers.is_progress_bar_enabled()
    (of_transformers.enable_progress_bar if wanted else of_transformers.disable_progress_bar)()
    return before


@contextmanager
def quiet() -> Iterator[None]:
    """In this block the libraries are quiet; afterwards they say again what they said before."""
    global _wanted
    there = sys.modules.keys() | {"httpx2"}
    levels = LOUD | {name: logging.getLogger(name).level for name in ("httpx2", *LOUD) if name in there}
    before, bars = _wanted, _show_bars(False)
    with warnings.catch_warnings():
        quieten()
        try:
            yield
        finally:
            _wanted = before
            for name, level in levels.items():
                logging.getLogger(name).setLevel(level)
            _show_bars(bars)
