"""Progress bars: one line per piece of work on a terminal, nothing in a log file. On stderr: stdout is for results."""

from __future__ import annotations

import sys
from typing import Any

from lightning import Callback
from lightning.pytorch.callbacks import TQDMProgressBar
from lightning.pytorch.callbacks.progress.tqdm_progress import Tqdm

from nonmember.terminal import visible


def shows_progress() -> bool:
    return sys.stderr.isatty()


class DescribedProgressBar(TQDMProgressBar):
    """Lightning's bar under a name of ours; gone when the work is done."""

    def __init__(self, description: str):
        super().__init__(leave=False)
        self._description = visible(description)

    def init_train_tqdm(self) -> Tqdm:
        return self._bar()

    def init_predict_tqdm(self) -> Tqdm:
        return self._bar()

    def on_train_epoch_start(self, *arguments: Any) -> None:
        super().on_train_epoch_start(*arguments)  # writes "Epoch 0"
        self.train_progress_bar.set_description(self._description)

    def on_predict_batch_start(self, *arguments: Any) -> None:
        super().on_predict_batch_start(*arguments)  # writes "Predicting DataLoader 0"
        self.predict_progress_bar.set_description(self._description, refresh=False)

    def _bar(self) -> Tqdm:
        return Tqdm(
            desc=self._description, disable=self.is_disabled, leave=False, dynamic_ncols=True, file=sys.stderr,
            smoothing=0, bar_format=self.BAR_FORMAT,
        )  # fmt: skip


def progress_callbacks(description: str) -> list[Callback]:
    return [DescribedProgressBar(description)] if shows_progress() else []
