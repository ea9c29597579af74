"""Progress bars: one line per piece of work on a terminal, nothing in a log file."""

from __future__ import annotations

import sys

from lightning import Callback
from lightning.pytorch.callbacks import TQDMProgressBar
from lightning.pytorch.callbacks.progress.tqdm_progress import Tqdm


def shows_progress() -> bool:
    return sys.stderr.isatty()


class DescribedProgressBar(TQDMProgressBar):
    """Lightning's bar under a name of ours; gone when the work is done."""

    def __init__(self, description: str):
        super().__init__(refresh_rate=1, leave=False)
        self._description = description

    def init_train_tqdm(self) -> Tqdm:
        return self._named(super().init_train_tqdm())

    def init_predict_tqdm(self) -> Tqdm:
        return self._named(super().init_predict_tqdm())

    def _named(self, bar: Tqdm) -> Tqdm:
        bar.set_description(self._description)
        return bar

    def on_train_epoch_start(self, *args: object) -> None:
        super().on_train_epoch_start(*args)  # type: ignore[arg-type]
        self.train_progress_bar.set_description(self._description)


def progress_callbacks(description: str) -> list[Callback]:
    return [DescribedProgressBar(description)] if shows_progress() else []
