"""The cells of a sweep by joblib's workers, and before them what several of them are made of.

No cell begins while something that others need too is still being made for it, so that no worker waits for another
while there is work: what is ready is handed out one by one, that first on which most of the rest waits.
"""

from __future__ import annotations

import logging
import math
import os
import time
from collections.abc import Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from typing import TYPE_CHECKING, Any

from hydra.core.global_hydra import GlobalHydra
from hydra.core.singleton import Singleton
from hydra.core.utils import JobReturn, run_job, setup_globals
from hydra.types import HydraContext
from omegaconf import DictConfig, open_dict

from nonmember.artifacts import Spec
from nonmember.artifacts.planner import Planner
from nonmember.config.explain import explain
from nonmember.config.hydra_compat import is_a
from nonmember.runtime.interruption import Interrupted, check, pending, worker
from nonmember.sweeps.costs import Work, in_order
from nonmember.sweeps.running import builder_of

if TYPE_CHECKING:
    from nonmember.sweeps.plan import SweepPlan
    from nonmember.sweeps.sweep import Sweep

log = logging.getLogger(__name__)

IDLE_SECONDS = 300  # after which joblib's workers end by themselves
POLL_SECONDS = 1.0  # for a signal
Item = str | int  # the name of an artifact, or the place of a cell


def serves(launcher: Any, planner: Planner) -> bool:
    """Processes of joblib's that are given one thing after the other."""
    return number_of(launcher) > 1 and planner.compute.in_one_process


def number_of(launcher: Any) -> int:
    """How many cells run side by side; of a cluster's scheduler nobody knows, and one is assumed."""
    if not is_a(launcher, "JoblibLauncher"):
        return 1
    from joblib.externals.loky import cpu_count

    number = int(launcher.joblib.get("n_jobs") or 1)
    return number if number > 0 else max(1, cpu_count() + 1 + number)  # -1: all, -2: all but one


def shared(plan: SweepPlan, work: Work) -> dict[str, set[str]]:
    """Artifacts to be made that several cells need -> those of them that each is made of. First what most waits for."""
    nodes = plan.graph.nodes
    names = [name for name in in_order(plan.graph, work.costs) if len(nodes[name].users) > 1]
    return {name: set(nodes[name].parents) & set(names) for name in names}


class Order:
    """What may begin: everything whose shared parents are done."""

    def __init__(self, plan: SweepPlan, work: Work) -> None:
        first, nodes = shared(plan, work), plan.graph.nodes
        self._waits: dict[Item, set[str]] = dict(first.items())
        for index in range(plan.num_cells):
            self._waits[index] = {name for name in first if index in nodes[name].users}

    def next(self) -> Item | None:
        """The first that may begin; None where all that is left waits for what was begun."""
        item = next((item for item, parents in self._waits.items() if not parents), None)
        if item is not None:
            del self._waits[item]
        return item

    def ended(self, item: Item) -> None:
        """Also of what failed: the cells that need it will fail as well, and say why."""
        if isinstance(item, str):
            for parents in self._waits.values():
                parents.discard(item)


def launch(
    launcher: Any, job_overrides: Sequence[Sequence[str]], initial_job_idx: int, sweep: Sweep, work: Work
) -> list[JobReturn]:
    """As joblib's launcher would, in its processes; returns what the cells return, by place."""
    assert sweep.plan is not None
    setup_globals()
    number, state, context = number_of(launcher), state_for_workers(), launcher.hydra_context
    workers = workers_of(number)
    order, nodes = Order(sweep.plan, work), sweep.plan.graph.nodes
    running: dict[Future[Any], tuple[Item, float]] = {}
    started, busy = time.monotonic(), 0.0
    returned: dict[int, JobReturn] = {}

    def submit(item: Item) -> Future[Any]:
        if isinstance(item, str):
            return workers.submit(make_artifact, sweep.config, nodes[item].spec, state)
        config = context.config_loader.load_sweep_config(launcher.config, list(job_overrides[item]))
        return workers.submit(
            run_cell, initial_job_idx + item, config, context.callbacks, launcher.task_function, state
        )

    while True:
        while pending() is None and len(running) < number and (item := order.next()) is not None:
            running[submit(item)] = item, time.monotonic()
        if not running:
            break
        done, _ = wait(running, timeout=POLL_SECONDS, return_when=FIRST_COMPLETED)
        for future in done:
            item, since = running.pop(future)
            busy += time.monotonic() - since
            if isinstance(item, int):
                returned[item] = future.result()
            else:
                count(sweep, nodes[item].kind, future.result())
            order.ended(item)
    share = busy / max(1e-9, number * (time.monotonic() - started))
    log.info("%d workers were given work for %.0f%% of the time.", number, 100 * share)
    return [returned[index] for index in sorted(returned)]


def state_for_workers() -> Any:
    """Hydra's singletons but for its loader, which nothing is composed by there: the one here holds the configs of all
    cells, and gives them away while joblib's thread pickles what is sent."""
    state = Singleton.get_state()
    state["instances"].pop(GlobalHydra, None)
    return state


def workers_of(number: int) -> Any:
    """joblib's executor, the same one while this process lives."""
    from joblib.externals.loky import get_reusable_executor

    return get_reusable_executor(max_workers=number, timeout=IDLE_SECONDS, initializer=begin_worker)


def start_workers(number: int) -> None:
    """They load their libraries while this process still looks at the cells."""
    workers_of(number).submit(os.getpid)


def begin_worker() -> None:
    keep_grown_worker()
    with worker():  # which answers to signals from here on
        import nonmember.audits.run
        import nonmember.observations.passes.tokens
        import nonmember.training.run  # noqa: F401


def keep_grown_worker() -> None:
    """joblib ends a worker that has grown by 300 MB since its first task. Ours grow by models and corpora, which they
    keep within bounds of their own, and the next worker would load all of it again."""
    from joblib.externals.loky import process_executor

    process_executor._MAX_MEMORY_LEAK_SIZE = math.inf


def run_cell(index: int, config: DictConfig, callbacks: Any, task_function: Any, state: Any) -> JobReturn:
    """In a worker: a cell as joblib's launcher runs it, but for its config, which was composed to be looked at."""
    setup_globals()
    Singleton.set_state(state)
    with open_dict(config):
        config.hydra.job.id = f"{config.hydra.job.name}_{index}"
        config.hydra.job.num = index
    return run_job(
        task_function,
        config,
        "hydra.sweep.dir",
        "hydra.sweep.subdir",
        HydraContext(None, callbacks),  # type: ignore[arg-type]  # nothing is composed there
    )


def make_artifact(config: DictConfig, spec: Spec[Any], state: Any) -> dict[str, int] | None:
    """In a worker: the artifact in the store. What was made for it; None where it failed or was interrupted."""
    setup_globals()
    Singleton.set_state(state)
    builder = builder_of(config)
    try:
        with worker():
            check()
            entry = builder.entry(spec)
    except (Interrupted, KeyboardInterrupt, SystemExit):
        return None
    except Exception as error:
        log.warning("%s could not be made beforehand: %s", spec.readable, explain(error))
        return None
    made = {"models_trained": builder.counters.models_trained, "tokens_observed": builder.counters.tokens_observed}
    return made if entry.made_now else None


def count(sweep: Sweep, kind: str, made: dict[str, int] | None) -> None:
    """As if the first cell that needs it had made it, which now finds it."""
    found = {"models": "models_found", "observations": "observations_found"}.get(kind)
    if made is not None:
        for name, number in [*made.items(), *([(found, -1)] if found else [])]:
            sweep.made[name] = sweep.made.get(name, 0) + number
