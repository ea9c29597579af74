"""SIGTERM and Ctrl-C end a run in order: at once, but in training after the current batch and with a resume point.

The first signal raises `Interrupted` in the main thread. Training asks for it at the end of each batch instead
(`postponed` and `check`). A second signal ends the process immediately. Where a launcher runs cells in further
processes, the signal is passed on and the launcher is left to end by itself.

Signals belong to the process, so the state of this module does too.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from types import FrameType
from typing import Any

SIGNALS = (signal.SIGINT, signal.SIGTERM)
REPEATED_WITHIN = 1.0  # seconds: `timeout` and terminals signal a process and its group, which is no second request
GRACE_OF_WORKERS = 30.0  # seconds for a launcher's workers to end their batches and save resume points
GRACE_OF_ORPHANS = 10.0
POLL_SECONDS = 1.0


class Interrupted(KeyboardInterrupt):
    """signum: the signal.   where: what was reached and what follows, where more can be said than "start again"."""

    def __init__(self, signum: int, where: str = "") -> None:
        super().__init__(signal.Signals(signum).name)
        self.signum = signum
        self.where = where

    @property
    def status(self) -> int:
        """Exit status by the convention of shells: 130 for Ctrl-C, 143 for SIGTERM."""
        return 128 + self.signum

    def __str__(self) -> str:
        name = "Ctrl-C" if self.signum == signal.SIGINT else signal.Signals(self.signum).name
        return f"interrupted ({name}); " + (
            self.where or "everything finished before is kept, start the same command again to continue."
        )


@dataclass
class _State:
    # received, since: the first signal and when it came
    received: int | None = None
    since: float = 0.0
    postponing: int = 0  # depth of `postponed`
    in_worker: bool = False  # this is a launcher's worker
    busy: bool = True  # it runs a cell
    ends_process: bool = True  # a second signal ends the process
    previous: dict[int, Any] = field(default_factory=dict)  # the handlers that ours replaced


_state = _State()


@contextlib.contextmanager
def interruptible(*, ends_process: bool = True) -> Iterator[None]:
    """Handle both signals in this block; the earlier handlers come back after it. No effect outside the main thread.

    ends_process: whether the second signal ends the process; False where the process is another program's.
    """
    _state.ends_process = ends_process
    _install()
    try:
        yield
    finally:
        _state.received, _state.ends_process = None, True
        signal.setitimer(signal.ITIMER_REAL, 0)
        for signum, handler in _state.previous.items():
            signal.signal(signum, handler)
        _state.previous.clear()


@contextlib.contextmanager
def worker() -> Iterator[None]:
    """A cell in a launcher's process: a signal interrupts the cell and not the process, which ends with its parent."""
    if not _state.in_worker:
        _state.in_worker = True
        _install()
        watch_parent()
    _state.busy = True
    try:
        yield
    finally:
        _state.busy = False


def pending() -> int | None:
    """The signal that was received, if any."""
    return _state.received


def check(where: str = "") -> None:
    """Raise Interrupted if a signal was received."""
    if _state.received is not None:
        raise Interrupted(_state.received, where)


@contextlib.contextmanager
def postponed() -> Iterator[None]:
    """In this block a signal is only noted, until `check` or the end of the block."""
    _state.postponing += 1
    try:
        yield
    finally:
        _state.postponing -= 1
    check()


def interruption_of(error: BaseException) -> Interrupted | None:
    """The interruption that `error` is or came from: Lightning answers it with SystemExit, a launcher with errors."""
    seen: BaseException | None = error
    while seen is not None:
        if isinstance(seen, Interrupted):
            return seen
        seen = seen.__cause__ or seen.__context__
    if _state.received is not None:
        return Interrupted(_state.received)
    return Interrupted(signal.SIGINT) if isinstance(error, KeyboardInterrupt) else None


def reinstate() -> None:
    """Put our handlers back where a library has replaced them."""
    if threading.current_thread() is threading.main_thread():
        for signum in _state.previous:
            signal.signal(signum, _on_signal)


def watch_parent() -> None:
    """End this process when the one that started it is gone, after an orderly interruption where there is time."""
    parent = os.getppid()

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(POLL_SECONDS)
        if _state.busy:
            os.kill(os.getpid(), signal.SIGTERM)
            time.sleep(GRACE_OF_ORPHANS)
        os._exit(128 + signal.SIGTERM)

    threading.Thread(target=watch, name="watch-parent", daemon=True).start()


def _install() -> None:
    """Take both signals, unless another handler is installed: a background job ignores Ctrl-C, submitit requeues."""
    if threading.current_thread() is not threading.main_thread():
        return
    for signum in SIGNALS:
        if signal.getsignal(signum) in (signal.SIG_DFL, signal.default_int_handler):
            _state.previous[signum] = signal.signal(signum, _on_signal)


def _on_signal(signum: int, frame: FrameType | None) -> None:
    if _state.received is not None:
        if not _state.ends_process:
            raise Interrupted(signum)
        if not _state.in_worker and time.monotonic() - _state.since > REPEATED_WITHIN:
            for child in multiprocessing.active_children():
                child.kill()
            os._exit(128 + signum)
        return
    _state.received, _state.since = signum, time.monotonic()
    if children := multiprocessing.active_children():  # the workers of joblib
        for child in children:
            child.terminate()
        signal.signal(signal.SIGALRM, lambda *_: check())
        signal.setitimer(signal.ITIMER_REAL, GRACE_OF_WORKERS)
        return
    if _state.postponing:
        sys.stderr.write("\nnonmember: interrupted; ending after the current batch. Once more to end at once.\n")
        return
    if _state.busy or not _state.in_worker:
        raise Interrupted(signum)
