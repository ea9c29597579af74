"""Progress of a run: current stage, share done, time left. On stderr; stdout is for results.

On a terminal and in a notebook a bar of tqdm's per stage, gone when the stage is done. Elsewhere a line every half
minute of a stage and one at its end; none of a stage that takes a moment.
"""

from __future__ import annotations

import operator
import sys
import time
from collections.abc import Iterable, Iterator
from contextvars import ContextVar, Token
from types import TracebackType
from typing import Any, Self, TypeVar

from nonmember.runtime.interruption import check
from nonmember.runtime.processes import process_rank
from nonmember.runtime.terminal import visible

T = TypeVar("T")

A_MOMENT = 2.0  # seconds: stages that are done by then leave no line
EVERY_SECONDS = 30.0
UNITS = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))

_is_covered = ContextVar("is_covered", default=False)


def shows_bars() -> bool:
    in_notebook = type(sys.stderr).__module__ == "ipykernel.iostream"
    return sys.stderr.isatty() or in_notebook


class Stage:
    """One piece of work, as a context.

    what: such as "observing pythia-70m".   total: of `unit`; None where it is not known.   unit: empty: nothing is
    counted.   at: what an earlier run has done of it.   covers: whether stages inside this one are silent, as of work
    that is done many times.
    """

    def __init__(
        self, what: str, total: int | None = None, unit: str = "", *, at: int = 0, covers: bool = False
    ) -> None:
        self.what, self.total, self.unit = visible(what), total, unit  # labels are the user's
        self.done = self._at = at
        self._covers = covers
        self._uncovered: Token[bool] | None = None
        self._is_silent = True
        self._bar: Any = None

    def __enter__(self) -> Self:
        self._since = self._told = time.monotonic()
        if process_rank() > 0 or _is_covered.get():
            return self
        self._is_silent = False
        if self._covers:
            self._uncovered = _is_covered.set(True)
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
            )
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._uncovered is not None:
            _is_covered.reset(self._uncovered)
        taken = time.monotonic() - self._since
        if self._bar is not None:
            self._bar.close()
        elif not self._is_silent and taken > A_MOMENT:
            what = "done in" if kind is None else "stopped after"
            self._say(", ".join(filter(None, [self._position(), f"{what} {duration(taken)}"])))

    def advance(self, number: int = 1, note: str = "") -> None:
        self.reach(self.done + number, note)

    def reach(self, done: int, note: str = "") -> None:
        """done: counted from the very beginning.   note: shown beside a bar."""
        if self._bar is not None:
            self._bar.set_postfix_str(note, refresh=False)
            self._bar.update(done - self.done)
        self.done = done
        if self._bar is None and not self._is_silent and time.monotonic() - self._told > EVERY_SECONDS:
            self._told = time.monotonic()
            self._say(self._state())

    def _say(self, text: str) -> None:
        sys.stderr.write(f"{time.strftime('%H:%M:%S')} {self.what}: {text}\n")
        sys.stderr.flush()

    def _position(self) -> str:
        """Empty where nothing is counted."""
        if self.total is None:
            return f"{self.done:,} {self.unit}" if self.unit else ""
        return f"{self.done:,} of {self.total:,} {self.unit}"

    def _state(self) -> str:
        rate = (self.done - self._at) / (time.monotonic() - self._since)
        left = f", {duration((self.total - self.done) / rate)} left" if self.total is not None and rate else ""
        speed = f"{rate:,.0f} {self.unit} a second" if rate >= 10 else f"{60 * rate:,.3g} {self.unit} a minute"
        return f"{self._position()}, {speed}{left}"


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


def in_short(number: float) -> str:
    """1.2 M, 345, 12 G."""
    for size, unit in UNITS:
        if number >= size:
            return f"{number / size:.3g} {unit}"
    return f"{number:.0f} "
