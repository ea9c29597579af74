"""Lightning callbacks: progress stages, and interruption by signals."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import accumulate
from typing import Any

import lightning

from nonmember.runtime.interruption import check, reinstate
from nonmember.runtime.progress import Stage, shows_bars


class InterruptionGuard(lightning.Callback):
    """Keeps our handlers where Lightning has put its own, which note a signal that prediction never looks at."""

    def on_train_start(self, *_: Any, **__: Any) -> None:
        reinstate()

    def on_validation_batch_end(self, *_: Any, **__: Any) -> None:
        check()

    on_validation_start = on_predict_start = on_train_start
    on_predict_batch_end = on_validation_batch_end


def after_each(sizes: Iterable[int]) -> list[int]:
    """What is done after 0, 1, 2 ... batches of these sizes."""
    return [0, *accumulate(sizes)]


def silent(make_trainer: Callable[..., lightning.Trainer], *callbacks: lightning.Callback) -> lightning.Trainer:
    """A trainer that shows, logs and keeps nothing of its own."""
    own = ("logger", "enable_checkpointing", "enable_progress_bar", "enable_model_summary")
    return make_trainer(callbacks=list(callbacks), **dict.fromkeys(own, False))


class StageProgress(lightning.Callback):
    """Shows a loop as a stage.

    reached: what is done, in `unit`, after 0, 1, 2 ... batches.   shared: the batches are dealt out to the processes
    one by one; otherwise every process has a part of each batch.
    """

    def __init__(self, what: str, unit: str, reached: Sequence[int], *, shared: bool = False) -> None:
        self._what, self._unit = what, unit
        self._reached = reached
        self._shared = shared
        self._stage: Stage | None = None

    def on_train_start(self, trainer: lightning.Trainer, module: Any) -> None:
        self._start(trainer, min(trainer.global_step * trainer.accumulate_grad_batches, len(self._reached) - 1))

    def on_validation_start(self, trainer: lightning.Trainer, *_: Any, **__: Any) -> None:
        self._start(trainer, 0)

    on_predict_start = on_validation_start

    def _start(self, trainer: lightning.Trainer, num_batches_before: int) -> None:
        at = self._reached[num_batches_before]
        self._stage = Stage(self._what, self._reached[-1], self._unit, at=at)
        self._stage.__enter__()

    def on_train_batch_end(
        self, trainer: lightning.Trainer, module: Any, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        note = ""
        if shows_bars():
            shown = trainer.progress_bar_metrics.items()
            note = ", ".join(f"{name.removeprefix('train/')} {value:.3g}" for name, value in shown if name != "v_num")
        self._reach(batch_idx + 1, note)

    def on_validation_batch_end(
        self, trainer: lightning.Trainer, module: Any, outputs: Any, batch: Any, batch_idx: int, *_: Any
    ) -> None:
        self._reach(batch_idx + 1)

    def on_predict_batch_end(
        self, trainer: lightning.Trainer, module: Any, outputs: Any, batch: Any, batch_idx: int, *_: Any
    ) -> None:
        self._reach((batch_idx + 1) * (trainer.world_size if self._shared else 1))

    def _reach(self, num_batches: int, note: str = "") -> None:
        assert self._stage is not None
        self._stage.reach(self._reached[min(num_batches, len(self._reached) - 1)], note)

    def on_train_end(self, *_: Any, **__: Any) -> None:
        self._end(None)

    on_validation_end = on_predict_end = on_train_end

    def on_exception(self, trainer: Any, module: Any, exception: BaseException) -> None:
        self._end(exception)

    def _end(self, error: BaseException | None) -> None:
        if self._stage is not None:
            self._stage.__exit__(type(error) if error else None, error, None)
            self._stage = None
