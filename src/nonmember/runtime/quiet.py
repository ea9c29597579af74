"""Silences verbose libraries: only what a user must know is logged."""

from __future__ import annotations

import logging
import warnings


def quieten() -> None:
    """Lightning's device report and tips, transformers' loading bars, and warnings about our own loaders."""
    import transformers

    logging.getLogger("httpx2").setLevel(logging.WARNING)  # a line per request
    # Their loggers get a level when Lightning is imported: it must be there by now.
    import lightning.pytorch  # noqa: F401

    for name in ("lightning.pytorch", "lightning.fabric", "transformers"):
        logging.getLogger(name).setLevel(logging.ERROR)
    transformers.utils.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    for message in (
        ".*does not have many workers.*",
        ".*`isinstance\\(treespec, LeafSpec\\)` is deprecated.*",
        ".*Checkpoint directory .* exists.*",
        ".*You defined a `validation_step` but have no `val_dataloader`.*",
        ".*number of training batches .* is smaller than the logging interval.*",
    ):
        warnings.filterwarnings("ignore", message=message)
