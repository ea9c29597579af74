"""A sweep as a whole: what it needs and in which order, what that costs, how far it is."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from hydra.core.utils import JobReturn
from hydra.plugins.launcher import Launcher
from omegaconf import DictConfig, OmegaConf

from nonmember.config.explain import explain
from nonmember.config.roots import FOLDER_VARIABLE
from nonmember.runtime.interruption import check
from nonmember.runtime.processes import process_rank
from nonmember.runtime.progress import Stage, duration
from nonmember.sweeps import processes, slurm
from nonmember.sweeps.costs import Assumptions, Work
from nonmember.sweeps.running import composed_again, shared

if TYPE_CHECKING:
    from nonmember.audits.cell import Cell
    from nonmember.sweeps.outcomes import Cells
    from nonmember.sweeps.plan import SweepPlan

NUM_POINTS = 2  # artifacts that must be made before the time left is told
ANOTHER = "its store or trainer is not that of the first audit; ask for it alone"
LOOKS_EVERY = 2.0  # seconds
LARGEST_SHARE = 0.01  # of the time


class Sweep:
    """Collects the cells (`config.sweeping.Watcher`); in a dry run estimates their cost, otherwise launches them.

    name: of the sweep.   made: what was made for several cells before them, as results count it.
    """

    def __init__(self, cells: Cells) -> None:
        self.cells = cells
        self.name = ""
        self.made: dict[str, int] = {}
        self.plan: SweepPlan | None = None
        self.config: DictConfig | None = None  # of the first cell
        self._is_dry = False
        self._launcher: Launcher | None = None

    def begin(self, launcher: Launcher | None) -> None:
        self._launcher = launcher

    def see(self, index: int, config: DictConfig, folder: Path) -> None:
        if process_rank() > 0:
            return
        if self.plan is None:
            self._begin(config)
        assert self.plan is not None
        try:
            if _where(config) != _where(self.config):
                raise ValueError(ANOTHER)
            from nonmember.config.parts import is_auto
            from nonmember.config.runs import cell_of

            cell = cell_of(config, folder)
            if self._is_dry and is_auto(config):
                self._see_parts(index, config, cell)
            else:
                self.plan.see(index, cell)
        except Exception as error:  # which the audit itself will meet again, and tell
            check()
            self.plan.refuse(index, explain(error))

    def _see_parts(self, index: int, config: DictConfig, cell: Cell) -> None:
        """What the parts of method=auto need. An estimate: whether a part runs depends on the results before it."""
        from nonmember.audits.joined import foreseen
        from nonmember.config.given import given
        from nonmember.config.parts import parts_of

        assert self.plan is not None
        found = parts_of(given(config), cell.folder, composed_again(), self.plan.planner)
        self.plan.see_parts(index, foreseen(found, cell.audit.method))

    def hands_out(self, launcher: Launcher) -> bool:
        return self.plan is not None and processes.serves(launcher, self.plan.planner)

    def launcher(self, launcher: Launcher) -> Launcher:
        if self.plan is None:
            return launcher
        machine = self.plan.planner.compute.machine
        if self._is_dry:
            from nonmember.sweeps.dry_run import show

            assert self.config is not None
            _forget_folder()
            work = Work.of(self.plan.graph, machine, Assumptions.of(self.config))
            show(self.plan, work, processes.number_of(launcher))
            return NothingToLaunch()
        return Launching(self, Work.of(self.plan.graph, machine), launcher)

    def _begin(self, config: DictConfig) -> None:
        self.config, self.name, self._is_dry = config, config.name, config.dry_run
        if not self._is_dry and processes.number_of(self._launcher) > 1:
            processes.start_workers(processes.number_of(self._launcher))
        from nonmember.config.runs import planner_of
        from nonmember.sweeps.plan import SweepPlan

        planner = planner_of(config, *shared(Path(config.store).absolute()))
        self.plan = SweepPlan.by(planner, self._is_dry)


class NothingToLaunch(Launcher):
    def setup(self, **_: Any) -> None: ...

    def launch(self, job_overrides: Sequence[Sequence[str]], initial_job_idx: int) -> Sequence[JobReturn]:
        return []


class Launching(Launcher):
    """A launcher with one bar over the whole sweep; joblib's and Slurm's make first what several cells need."""

    def __init__(self, sweep: Sweep, work: Work, launcher: Launcher) -> None:
        self._sweep, self._work, self._launcher = sweep, work, launcher

    def setup(self, **_: Any) -> None: ...

    def launch(self, job_overrides: Sequence[Sequence[str]], initial_job_idx: int) -> Sequence[JobReturn]:
        plan, launcher = self._sweep.plan, self._launcher
        assert plan is not None
        executor = next((item for item in (processes, slurm) if item.serves(launcher, plan.planner)), None)
        with SweepBar(self._sweep.name, plan, self._work, self._sweep.cells):
            if executor is None:
                return launcher.launch(job_overrides, initial_job_idx)
            return executor.launch(launcher, job_overrides, initial_job_idx, self._sweep, self._work)


def _where(config: DictConfig | None) -> list[Any]:
    assert config is not None
    return [config.store, OmegaConf.to_container(config.trainer, resolve=True)]


def plan_instead(arguments: list[str]) -> None:
    """Where nothing but a plan is asked for, no folder of a run is made: the question is a grid of one."""
    if "dry_run=true" in (item.lower().lstrip("+") for item in arguments):
        arguments.append("hydra.mode=MULTIRUN")


def _forget_folder() -> None:
    """Hydra leaves the config of a sweep in its folder; of one that is only told about nothing stays."""
    folder = Path(os.environ[FOLDER_VARIABLE])
    (folder / "multirun.yaml").unlink(missing_ok=True)
    if not any(folder.iterdir()):
        folder.rmdir()


class SweepBar(Stage):
    """Looks into the store and at the cells' notes, so that it does not matter who does the work, and where."""

    bar_format = "{desc}: {percentage:3.0f}%|{bar}| {n_fmt}/{total_fmt} [{elapsed}{postfix}]"

    def __init__(self, name: str, plan: SweepPlan, work: Work, cells: Cells) -> None:
        self._store, self._work, self._cells = plan.planner.store, work, cells
        self._num_cells = plan.num_cells
        self._left = set(work.costs)
        self._num_ended = 0
        super().__init__(f"sweep {name}", len(work.costs) + plan.num_cells, "steps")
        self._closed = threading.Event()
        self._looking = threading.Thread(target=self._refresh_again, name="sweep", daemon=True)

    def __enter__(self) -> Self:
        super().__enter__()
        self._looking.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._closed.set()
        self._looking.join()
        self.refresh()
        super().__exit__(kind, error, trace)

    def refresh(self) -> None:
        there = {f"{kind}/{item}" for kind in _kinds(self._left) for item in self._store.hashes(kind)}
        self._left -= there
        self._num_ended = min(self._cells.num_ended(), self._num_cells)
        self.reach(len(self._work.costs) - len(self._left) + self._num_ended, self._summary())

    def seconds_left(self) -> float | None:
        """By what the whole was expected to take and what has been done of it; None before two artifacts were made."""
        weights = {name: cost.seconds for name, cost in self._work.costs.items()}
        if self._work.without_estimate:  # tokens are the next best measure
            weights = {name: float(cost.tokens or 0) for name, cost in self._work.costs.items()}
        left = sum(weights[name] or 0.0 for name in self._left)
        done = sum(weights[name] or 0.0 for name in weights.keys() - self._left)  # a difference of sums is seldom 0
        if done > 0 and len(weights) - len(self._left) >= NUM_POINTS:
            return (time.monotonic() - self._since) * left / done
        return None

    def _refresh_again(self) -> None:
        taken = 0.0
        while not self._closed.wait(max(LOOKS_EVERY, taken / LARGEST_SHARE)):  # a large store is looked at less often
            began = time.monotonic()
            self.refresh()
            taken = time.monotonic() - began

    def _summary(self) -> str:
        made = len(self._work.costs) - len(self._left)
        what = [f"{made} of {len(self._work.costs)} artifacts made", f"{self._num_ended} of {self._num_cells} audits"]
        if self._left and (left := self.seconds_left()) is not None:
            what.append(f"about {duration(left)} left")
        return ", ".join(what)

    def _size(self) -> str:
        return f"{len(self._work.costs)} artifacts to make, {self._num_cells} audits"

    def _position(self) -> str:
        return f"{self._summary()}, "

    def _state(self) -> str:
        return f"{self._summary()}, {duration(time.monotonic() - self._since)} so far"


def _kinds(names: set[str]) -> set[str]:
    return {name.partition("/")[0] for name in names}
