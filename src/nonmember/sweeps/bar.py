"""One bar over a whole sweep: what is made of all that its audits need, how many have ended, the time left."""

from __future__ import annotations

import threading
import time
from types import TracebackType
from typing import TYPE_CHECKING, Self

from nonmember.runtime.progress import Stage, duration

if TYPE_CHECKING:
    from nonmember.sweeps.costs import Work
    from nonmember.sweeps.outcomes import Cells
    from nonmember.sweeps.plan import SweepPlan

LOOKS_EVERY = 2.0  # seconds
LARGEST_SHARE = 0.01  # of the time


class SweepBar(Stage):
    """Looks into the store and at the cells' notes, so that it does not matter who does the work, and where."""

    bar_format = "{desc}: {percentage:3.0f}%|{bar}| {n_fmt}/{total_fmt} [{elapsed}{postfix}]"

    def __init__(self, name: str, plan: SweepPlan, work: Work, cells: Cells, num_workers: int) -> None:
        self._store, self._work, self._cells = plan.planner.store, work, cells
        self._num_workers, self._num_cells = num_workers, plan.num_cells
        self._left = set(work.costs)
        self._num_ended = 0
        super().__init__(f"sweep {name}", len(work.costs) + plan.num_cells, "steps")
        self._closed = threading.Event()
        self._looking = threading.Thread(target=self._look_again, name="sweep", daemon=True)

    def __enter__(self) -> Self:
        super().__enter__()
        self._looking.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._closed.set()
        self._looking.join()
        self.look()
        super().__exit__(kind, error, trace)

    def look(self) -> None:
        there = {f"{kind}/{one}" for kind in _kinds(self._left) for one in self._store.hashes(kind)}
        self._left -= there
        self._num_ended = min(self._cells.num_ended(), self._num_cells)
        self.reach(len(self._work.costs) - len(self._left) + self._num_ended, self._told())

    def seconds_left(self) -> float | None:
        """By what the whole was expected to take and what has been done of it; None where nothing tells."""
        weights = {name: cost.seconds for name, cost in self._work.costs.items()}
        if self._work.without_estimate:  # tokens are the next best measure
            weights = {name: float(cost.tokens or 0) for name, cost in self._work.costs.items()}
        left = sum(weights[name] or 0.0 for name in self._left)
        done = sum(weights[name] or 0.0 for name in weights.keys() - self._left)  # a difference of sums is seldom 0
        if done > 0:
            return (time.monotonic() - self._since) * left / done
        return None if self._work.without_estimate else self._work.makespan(self._num_workers)

    def _look_again(self) -> None:
        taken = 0.0
        while not self._closed.wait(max(LOOKS_EVERY, taken / LARGEST_SHARE)):  # a large store is looked at less often
            began = time.monotonic()
            self.look()
            taken = time.monotonic() - began

    def _told(self) -> str:
        made = len(self._work.costs) - len(self._left)
        what = [f"{made} of {len(self._work.costs)} artifacts made", f"{self._num_ended} of {self._num_cells} audits"]
        if self._left and (left := self.seconds_left()) is not None:
            what.append(f"about {duration(left)} left")
        return ", ".join(what)

    def _size(self) -> str:
        return f"{len(self._work.costs)} artifacts to make, {self._num_cells} audits"

    def _place(self) -> str:
        return f"{self._told()}, "

    def _state(self) -> str:
        return f"{self._told()}, {duration(time.monotonic() - self._since)} so far"


def _kinds(names: set[str]) -> set[str]:
    return {name.partition("/")[0] for name in names}
