"""A sweep as a whole: what it needs and in which order, what that costs, how far it is."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hydra.core.utils import JobReturn
from hydra.plugins.launcher import Launcher
from omegaconf import DictConfig, OmegaConf

from nonmember.config import parts, runs
from nonmember.config.explain import explain
from nonmember.config.roots import FOLDER_VARIABLE
from nonmember.runtime.interruption import check
from nonmember.runtime.processes import process_rank
from nonmember.sweeps import processes, slurm
from nonmember.sweeps.costs import Work
from nonmember.sweeps.running import composed_again, shared

if TYPE_CHECKING:
    from nonmember.audits.cell import Cell
    from nonmember.sweeps.outcomes import Cells
    from nonmember.sweeps.plan import SweepPlan

ANOTHER = "its store or trainer is not that of the first audit; ask for it alone"


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

    def see(self, place: int, config: DictConfig, folder: Path) -> None:
        if process_rank() > 0:
            return
        if self.plan is None:
            self._begin(config)
        assert self.plan is not None
        try:
            if _where(config) != _where(self.config):
                raise ValueError(ANOTHER)
            cell = runs.cell_of(config, folder)
            if self._is_dry and parts.is_auto(config):
                self._see_parts(place, config, cell)
            else:
                self.plan.see(place, cell)
        except Exception as error:  # which the audit itself will meet again, and tell
            check()
            self.plan.refuse(place, explain(error))

    def _see_parts(self, place: int, config: DictConfig, cell: Cell) -> None:
        """What the parts of method=auto need. An estimate: whether a part runs depends on the results before it."""
        from nonmember.audits.joined import foreseen

        assert self.plan is not None
        found = parts.parts_of(config, cell.folder, composed_again(), self.plan.planner)
        self.plan.see_parts(place, foreseen(found, cell.audit.method))

    def hands_out(self, launcher: Launcher) -> bool:
        return self.plan is not None and processes.serves(launcher, self.plan.planner)

    def launcher(self, launcher: Launcher) -> Launcher:
        if self.plan is None:
            return launcher
        work = Work.of(self.plan.graph, self.plan.planner.compute.machine)
        if self._is_dry:
            from nonmember.sweeps.dry_run import show

            _forget_folder()
            show(self.plan, work, processes.number_of(launcher))
            return NothingToLaunch()
        return Launching(self, work, launcher)

    def _begin(self, config: DictConfig) -> None:
        self.config, self.name, self._is_dry = config, config.name, config.dry_run
        if not self._is_dry and processes.number_of(self._launcher) > 1:
            processes.start_workers(processes.number_of(self._launcher))
        from nonmember.sweeps.plan import SweepPlan

        planner = runs.planner_of(config, *shared(Path(config.store).absolute()))
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
        from nonmember.sweeps.bar import SweepBar

        plan, launcher = self._sweep.plan, self._launcher
        assert plan is not None
        executor = next((one for one in (processes, slurm) if one.serves(launcher, plan.planner)), None)
        with SweepBar(self._sweep.name, plan, self._work, self._sweep.cells, processes.number_of(launcher)):
            if executor is None:
                return launcher.launch(job_overrides, initial_job_idx)
            return executor.launch(launcher, job_overrides, initial_job_idx, self._sweep, self._work)


def _where(config: DictConfig | None) -> list[Any]:
    assert config is not None
    return [config.store, OmegaConf.to_container(config.trainer, resolve=True)]


def plan_instead(arguments: list[str]) -> None:
    """Where nothing but a plan is asked for, no folder of a run is made: the question is a grid of one."""
    if "dry_run=true" in (one.lower().lstrip("+") for one in arguments):
        arguments.append("hydra.mode=MULTIRUN")


def _forget_folder() -> None:
    """Hydra leaves the config of a sweep in its folder; of one that is only told about nothing stays."""
    folder = Path(os.environ[FOLDER_VARIABLE])
    (folder / "multirun.yaml").unlink(missing_ok=True)
    if not any(folder.iterdir()):
        folder.rmdir()
