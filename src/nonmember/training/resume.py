"""Exact resume: checkpoints with the state of the random generators, which Lightning does not save."""

from __future__ import annotations

import contextlib
import copy
import hashlib
import logging
import os
import random
import time
from pathlib import Path
from typing import Any

import lightning
import numpy as np
import torch
from lightning.fabric.plugins.io.torch_io import TorchCheckpointIO

from nonmember.runtime.files import flush
from nonmember.runtime.interruption import check, pending

LARGEST_SHARE = 0.05  # of the time, that is spent on writing resume points
log = logging.getLogger(__name__)

KEPT = 2  # the one before is there in case the last is damaged
CHECKSUM_LENGTH = 16


class PlainCheckpointIO(TorchCheckpointIO):
    """Writes to the very path it is given. Lightning's own stages the file in the machine's temporary folder, which may
    lie on another disk and keeps what a killed process left."""

    def save_checkpoint(self, checkpoint: dict[str, Any], path: Any, storage_options: Any | None = None) -> None:
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        try:
            with Path(path).open("wb") as stream:
                torch.save(checkpoint, stream)
        except RuntimeError as error:  # torch ends its file in any case, and what it says then hides why it could not
            Path(path).unlink(missing_ok=True)
            raise (error.__context__ if isinstance(error.__context__, OSError) else error) from error


class ResumePoint(lightning.Callback):
    """Every so many seconds, and at an interruption, leave a resume point. Less often where writing one takes more than
    a twentieth of that time, as of a model of gigabytes; at each step where the seconds are 0.

    It is always that of a complete optimizer step: between two steps neither weights nor optimizer change, so a run
    that is interrupted within a step saves them with the place and the random state of the step before.

    accumulate: micro-batches of a step. They are what a checkpoint counts, so a run that divides its steps differently
    (less memory, say) cannot go on from it and has points of its own.
    """

    def __init__(
        self,
        folder: Path,
        every_seconds: float,
        accumulate: int,
        *,
        random_state: RandomState,
        num_steps: int,
        description: str,
    ):
        self.points = ResumePoints(folder, accumulate)
        self.every_seconds = every_seconds
        self._accumulate, self._num_steps, self._description = accumulate, num_steps, description
        self._random = random_state
        self._last = time.monotonic()
        self._wait = every_seconds
        self._saved_step = 0
        self._reached: dict[str, Any] | None = None  # of the last complete step, while a later one is under way

    def on_train_start(self, trainer: lightning.Trainer, *_: object) -> None:
        self._saved_step = trainer.global_step

    def setup(self, trainer: lightning.Trainer, *_: object, **__: object) -> None:
        trainer.strategy.checkpoint_io = PlainCheckpointIO()

    def on_train_batch_end(self, trainer: lightning.Trainer, *_: object) -> None:
        if trainer.fit_loop._should_accumulate():
            if pending() and trainer.world_size == 1:  # several processes agree at the end of a step
                self._end(trainer)
            return
        self._reached = None
        due, interrupted = time.monotonic() - self._last >= self._wait, bool(pending())
        if trainer.world_size > 1:
            due, interrupted = trainer.strategy.broadcast((due, interrupted))
        if due:
            self._save(trainer)
        if interrupted:
            self._end(trainer)
        if self._accumulate > 1:
            self._reached = {
                "fit_loop": copy.deepcopy(trainer.fit_loop.state_dict()),
                "random": {self._random.state_key: self._random.state_dict()},
            }

    def on_save_checkpoint(self, trainer: lightning.Trainer, module: object, checkpoint: dict[str, Any]) -> None:
        if self._reached is not None:
            checkpoint["loops"]["fit_loop"] = self._reached["fit_loop"]
            checkpoint["callbacks"] |= self._reached["random"]

    def _end(self, trainer: lightning.Trainer) -> None:
        step = trainer.global_step
        if step > self._saved_step:
            self._save(trainer)
        going_on = f"to continue from step {step} of {self._num_steps}" if step else "to train from the first step"
        check(f"start the same command again {going_on} ({self._description}).")
        raise KeyboardInterrupt  # the signal reached the first process alone

    def _save(self, trainer: lightning.Trainer) -> None:
        """Leave a point now; all processes together."""
        begun = time.monotonic()
        if trainer.is_global_zero:
            self.points.make_room()
        trainer.save_checkpoint(self.points.temporary)
        if trainer.is_global_zero:
            self.points.keep(trainer.global_step)
        self._last = time.monotonic()
        if self.every_seconds:
            self._wait = max(self.every_seconds, (self._last - begun) / LARGEST_SHARE)
        self._saved_step = trainer.global_step


class RandomState(lightning.Callback):
    """The state of torch's, NumPy's and Python's generators, as tensors (checkpoints load weights only)."""

    _restored: dict[str, Any] | None = None

    def state_dict(self) -> dict[str, Any]:
        version, internal, gauss = random.getstate()
        name, keys, position, has_gauss, cached = np.random.get_state(legacy=True)  # noqa: NPY002
        state: dict[str, Any] = {
            "torch": torch.get_rng_state(),
            "python": [version, torch.tensor(internal), gauss],
            "numpy": [name, torch.tensor(np.asarray(keys, np.int64)), int(position), int(has_gauss), float(cached)],
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
        random.setstate((version, tuple(internal.tolist()), gauss))
        name, keys, *others = state["numpy"]
        np.random.set_state((name, np.asarray(keys, np.uint32), *others))  # noqa: NPY002
        if "cuda" in state and torch.cuda.is_available():
            torch.cuda.set_rng_state_all([generator.cpu() for generator in state["cuda"]])


class ResumePoints:
    """The points of one training that divides its steps into `accumulate` micro-batches."""

    def __init__(self, folder: Path, accumulate: int):
        # Dot files: the store removes them when the entry is complete.
        self._folder, self._stem = folder, f".resume-{accumulate}"

    @property
    def temporary(self) -> Path:
        """Where the next point is written, beside its final place; the store's lock keeps other writers away."""
        return self._folder / f"{self._stem}.new"

    def make_room(self) -> None:
        """Remove all but the newest, so that there are never more than two on the disk, one that is being written
        included."""
        for path in self._newest_first()[KEPT - 1 :]:
            path.unlink(missing_ok=True)

    def keep(self, num_steps: int) -> None:
        """What was written to `temporary` is the newest point from now on."""
        flush(self.temporary)
        name = f"{self._stem}-{num_steps:08d}-{_checksum(self.temporary, self._folder)}.ckpt"
        os.replace(self.temporary, self._folder / name)

    def newest(self, description: str, *, first_process: bool) -> Path | None:
        """The newest sound point, None where there is none. The first process says which are damaged and removes
        them."""
        for path in self._newest_first():
            with contextlib.suppress(FileNotFoundError):  # removed by the first process
                if path.stem.endswith(f"-{_checksum(path, self._folder)}"):
                    return path
            if first_process:
                log.warning(
                    "%s: the resume point %s is damaged or belongs to another training (its content does not match the "
                    "checksum in its name). It is removed; the one before it is used, or training starts over.",
                    description,
                    path,
                )
                path.unlink(missing_ok=True)
        return None

    def _newest_first(self) -> list[Path]:
        return sorted(self._folder.glob(f"{self._stem}-*.ckpt"), reverse=True)


def _checksum(path: Path, folder: Path) -> str:
    digest = hashlib.sha256(folder.name.encode() + b"\0")
    with path.open("rb") as stream:
        hashlib.file_digest(stream, lambda: digest)
    return digest.hexdigest()[:CHECKSUM_LENGTH]
