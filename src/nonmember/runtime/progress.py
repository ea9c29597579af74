"""Progress of a run: current stage, share done, time left. On stderr; stdout is for results.

On a terminal and in a notebook a bar per stage, gone when the stage is done. Elsewhere a line for each stage that takes
longer than a moment, another as soon as two points tell its speed, then one every half minute and one at its end.
"""

from __future__ import annotations

import operator
import sys
import threading
import time
from collections.abc import Iterable, Iterator
from contextvars import ContextVar, Token
from types import TracebackType
from typing import Any, ClassVar, Self, TypeVar

from nonmember.runtime.interruption import check
from nonmember.runtime.processes import process_rank
from nonmember.runtime.terminal import visible

T = TypeVar("T")

A_MOMENT = 2.0  # seconds: stages that are done by then leave no line
EVERY_SECONDS = 30.0
POLL_SECONDS = 0.5
NUM_POINTS = 2  # before which no time left is shown
WITHOUT_LEFT = "{l_bar}{bar}| {n_fmt}/{total_fmt} [{elapsed}{postfix}]"  # tqdm's own format without the time left

_is_covered = ContextVar("is_covered", default=False)


def shows_bars() -> bool:
    in_notebook = type(sys.stderr).__module__ == "ipykernel.iostream"
    return sys.stderr.isatty() or in_notebook


class Stage:
    """One piece of work, as a context.

    what: such as "observing pythia-70m".   total: of `unit`; None where it is not known.   unit: empty: nothing is
    counted.   at: what an earlier run has done of it.   expected: what is said before it starts, such as time and
    memory; empty: nothing.   covers: whether stages inside this one are silent, as of work that is done many times.
    """

    bar_format: ClassVar[str | None] = None  # of tqdm; None: its own

    def __init__(
        self,
        what: str,
        total: int | None = None,
        unit: str = "",
        *,
        at: int = 0,
        expected: str = "",
        covers: bool = False,
    ) -> None:
        self.what, self.total, self.unit = visible(what), total, unit  # labels are the user's
        self._covers = covers
        self._uncovered: Token[bool] | None = None
        self.done = self._at = at
        self._expected = expected
        self._bar: Any = None
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None
        self._has_spoken = False
        self._num_points = 0  # how often something was done

    def __enter__(self) -> Self:
        self._since = time.monotonic()
        if process_rank() > 0 or _is_covered.get():
            return self
        if self._covers:
            self._uncovered = _is_covered.set(True)
        if self._expected:
            self._say(f"{self._size()}, {self._expected}")
        if shows_bars():
            from tqdm import tqdm

            self._bar = tqdm(
                desc=self.what,
                total=self.total,
                initial=self._at,
                unit=f" {self.unit}",
                unit_scale=True,
                leave=False,
                dynamic_ncols=True,
                file=sys.stderr,
                smoothing=0,
                bar_format=self.bar_format or (WITHOUT_LEFT if self.total is not None else None),
            )
        else:
            self._thread = threading.Thread(target=self._speak, name="progress", daemon=True)
            self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ended.set()
        if self._uncovered is not None:
            _is_covered.reset(self._uncovered)
        if self._bar is not None:
            self._bar.close()
        if self._thread is not None:
            self._thread.join()
            if self._has_spoken:
                taken = duration(time.monotonic() - self._since)
                position = self._position() if self.total is None else f"{self._size()}, "
                self._say(
                    f"{position}done in {taken}" if kind is None else f"stopped, {self._position()}{taken} so far"
                )

    def advance(self, number: int = 1, note: str = "") -> None:
        self.reach(self.done + number, note)

    def reach(self, done: int, note: str = "") -> None:
        """done: counted from the very beginning.   note: shown beside a bar."""
        self._num_points += done > self.done
        if self._bar is not None:
            self._bar.set_postfix_str(note, refresh=False)
            if self._num_points >= NUM_POINTS:
                self._bar.bar_format = self.bar_format
            self._bar.update(done - self.done)
        self.done = done

    def _speak(self) -> None:
        """The thread: also a batch of minutes leaves no silence."""
        if self._ended.wait(A_MOMENT):
            return
        if not self._expected:
            self._say(self._size() if self.done == self._at else self._state())
        told_left, next_time = self._num_points >= NUM_POINTS, self._since + EVERY_SECONDS
        while not self._ended.wait(POLL_SECONDS):
            is_time = time.monotonic() >= next_time
            if is_time or (self._num_points >= NUM_POINTS and not told_left):
                told_left = self._num_points >= NUM_POINTS
                self._say(self._state())
            if is_time:
                next_time += EVERY_SECONDS

    def _say(self, text: str) -> None:
        self._has_spoken = True
        sys.stderr.write(f"{time.strftime('%H:%M:%S')} {self.what}: {text}\n")
        sys.stderr.flush()

    def _size(self) -> str:
        rest = f", {self._at:,} of them done before" if self._at else ""
        unit = self.unit.removesuffix("s") if self.total == 1 else self.unit
        return f"{self.total:,} {unit}{rest}" if self.total is not None else "begun"

    def _position(self) -> str:
        """With a comma behind it, since a time follows; empty where nothing is counted."""
        if self.total is None:
            return f"{self.done:,} {self.unit}, " if self.unit else ""
        return f"{self.done:,} of {self.total:,} {self.unit}, "

    def _state(self) -> str:
        taken = time.monotonic() - self._since
        rate = (self.done - self._at) / taken if taken > 0 else 0.0
        if not rate:
            return f"{self._position()}{duration(taken)} so far"
        is_told = self.total is not None and self._num_points >= NUM_POINTS
        left = f", {duration((self.total - self.done) / rate)} left" if is_told and self.total is not None else ""
        return f"{self._position()}{_speed(rate, self.unit)}{left}"


def tracked(items: Iterable[T], what: str, unit: str = "documents", total: int | None = None) -> Iterator[T]:
    """The items, one by one, as a stage."""
    if total is None:
        total = operator.length_hint(items) or None
    with Stage(what, total, unit) as stage:
        for item in items:
            yield item
            stage.advance()
            check()


def duration(seconds: float) -> str:
    """45 s, 3 min 20 s, 2 h 5 min."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"


def _speed(rate: float, unit: str) -> str:
    return f"{rate:,.0f} {unit} a second" if rate >= 10 else f"{60 * rate:,.3g} {unit} a minute"
