"""Exact resume: a point to go on from, and the state of the random generators, which Lightning does not save."""

from __future__ import annotations

import random
import time
from pathlib import Path
from typing import Any

import lightning
import numpy as np
import torch
from lightning.fabric.plugins.io.torch_io import TorchCheckpointIO

from nonmember.training.points import ResumePoints


class PlainCheckpointIO(TorchCheckpointIO):
    """Writes to the very path it is given. Lightning's own stages the file in the machine's temporary folder, which may
    lie on another disk and keeps what a killed process left."""

    def save_checkpoint(self, checkpoint: dict[str, Any], path: Any, storage_options: Any | None = None) -> None:
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        try:
            with Path(path).open("wb") as stream:  # of a full disk torch's own writer makes a RuntimeError
                torch.save(checkpoint, stream)
        except OSError as error:
            Path(path).unlink(missing_ok=True)  # half a point on a full disk
            raise OSError(error.errno, error.strerror, str(path)) from error


class ResumePoint(lightning.Callback):
    """Every so many seconds, after a complete optimizer step, leave a resume point.

    accumulate: micro-batches of a step. They are what a checkpoint counts, so a run that divides its steps differently
    (less memory, say) cannot go on from it and has points of its own.
    """

    def __init__(self, folder: Path, every_seconds: float, accumulate: int):
        self.points = ResumePoints(folder, accumulate)
        self.every_seconds = every_seconds
        self._last = time.monotonic()

    def setup(self, trainer: lightning.Trainer, *_: object, **__: object) -> None:
        trainer.strategy.checkpoint_io = PlainCheckpointIO()

    def on_train_batch_end(self, trainer: lightning.Trainer, *_: object) -> None:
        if trainer.fit_loop._should_accumulate():
            return
        due = time.monotonic() - self._last >= self.every_seconds
        if trainer.world_size > 1:
            due = bool(trainer.strategy.broadcast(due))
        if due:
            self._save(trainer)

    def _save(self, trainer: lightning.Trainer) -> None:
        """Leave a point now; all processes together, after a complete optimizer step."""
        if trainer.is_global_zero:
            self.points.make_room()
        trainer.save_checkpoint(self.points.temporary)
        if trainer.is_global_zero:
            self.points.keep(trainer.global_step)
        self._last = time.monotonic()


class RandomState(lightning.Callback):
    """The state of torch's, NumPy's and Python's generators, as lists and tensors (checkpoints load weights only)."""

    _restored: dict[str, Any] | None = None

    def state_dict(self) -> dict[str, Any]:
        version, internal, gauss = random.getstate()
        name, keys, position, has_gauss, cached = np.random.get_state(legacy=True)  # noqa: NPY002
        state: dict[str, Any] = {
            "torch": torch.get_rng_state(),
            "python": [version, list(internal), gauss],
            "numpy": [name, np.asarray(keys).tolist(), int(position), int(has_gauss), float(cached)],
        }
        if torch.cuda.is_available():
            state["cuda"] = torch.cuda.get_rng_state_all()
        return state

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        self._restored = state_dict

    def on_train_batch_start(self, *_: object) -> None:
        # Not before: the loaders' own start-up draws from the generators too.
        if self._restored is None:
            return
        state, self._restored = self._restored, None
        torch.set_rng_state(state["torch"].cpu())
        version, internal, gauss = state["python"]
        random.setstate((version, tuple(internal), gauss))
        np.random.set_state(tuple(state["numpy"]))  # noqa: NPY002
        if "cuda" in state and torch.cuda.is_available():
            torch.cuda.set_rng_state_all([generator.cpu() for generator in state["cuda"]])
