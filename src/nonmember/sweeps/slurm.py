"""The cells of a sweep as jobs of Slurm, behind jobs that make what several of them need: no slot waits for a lock."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from hydra.core.utils import JobReturn
from omegaconf import DictConfig

from nonmember.artifacts import Spec
from nonmember.artifacts.planner import Planner
from nonmember.config.hydra_compat import is_a, replaced, submitit_parts
from nonmember.config.jobs import LostJob, cancel, returned
from nonmember.runtime.interruption import hand_back, interruption_of
from nonmember.sweeps.costs import Work
from nonmember.sweeps.processes import count, make_artifact, shared, state_for_workers

if TYPE_CHECKING:
    from nonmember.sweeps.sweep import Sweep

log = logging.getLogger(__name__)

Chain = list[str]  # names of artifacts that one job makes, each from the one before


@dataclass(frozen=True)
class Make:
    """What a job runs.   config: of the first cell.   state: Hydra's."""

    config: DictConfig
    state: Any

    def __call__(self, specs: Sequence[Spec[Any]]) -> list[dict[str, int] | None]:
        made = []
        for spec in specs:
            made.append(make_artifact(self.config, spec, self.state))
            hand_back()
        return made

    def checkpoint(self, *arguments: Any) -> Any:
        """Queued again for the same; the store has how far it came."""
        from submitit.helpers import DelayedSubmission

        return DelayedSubmission(self, *arguments)


def serves(launcher: Any, planner: Planner) -> bool:
    """Jobs of one process."""
    return is_a(launcher, "SlurmLauncher") and planner.compute.in_one_process


def launch(
    launcher: Any, job_overrides: Sequence[Sequence[str]], initial_job_idx: int, sweep: Sweep, work: Work
) -> list[JobReturn]:
    """As submitit's launcher would; its job array depends on others, one for each level of what cells share."""
    assert sweep.plan is not None
    assert sweep.config is not None
    waits, nodes = shared(sweep.plan, work), sweep.plan.graph.nodes
    make = Make(sweep.config, state_for_workers())
    makers: list[tuple[Chain, Any]] = []

    def wrap_map(map_array: Callable[..., list[Any]]) -> Callable[..., list[Any]]:
        def behind_makers(executor: Any, function: Callable[..., Any], *columns: Sequence[Any]) -> list[Any]:
            for level in levels(waits):
                jobs = map_array(executor, make, [[nodes[name].spec for name in chain] for chain in level])
                makers.extend(zip(level, jobs, strict=True))
                _wait_for(executor, jobs[0], launcher.params.get("additional_parameters") or {})
            return map_array(executor, function, *columns)

        return behind_makers

    try:
        with replaced(submitit_parts()[0], "map_array", wrap_map):
            results: list[JobReturn] = launcher.launch(job_overrides, initial_job_idx)
        return results
    except BaseException as error:
        if interruption_of(error) is not None:
            for array in dict.fromkeys(_array(job) for _, job in makers):
                cancel(array)
        raise
    finally:
        for chain, job in makers:
            if job.done():
                _take(sweep, chain, job)


def levels(waits: Mapping[str, set[str]]) -> list[list[Chain]]:
    """Chains of artifacts, those first on which others rest, a list for each step of that.

    waits: name -> what of the others it is made of, parents before their children. What is all that is made of one
    other follows that one in the same job.
    """
    num_children = Counter(parent for parents in waits.values() for parent in parents)
    chains: dict[str, Chain] = {}
    depths: dict[str, int] = {}
    for name, parents in waits.items():
        parent = next(iter(parents)) if len(parents) == 1 else None
        follows = parent is not None and num_children[parent] == 1
        chains[name] = chains[parent] if follows and parent is not None else []
        chains[name].append(name)
        depths[name] = max((depths[item] for item in parents), default=-1) + (not follows)
    found: list[list[Chain]] = [[] for _ in range(max(depths.values(), default=-1) + 1)]
    for name, depth in depths.items():
        if chains[name][0] == name:
            found[depth].append(chains[name])
    return found


def _wait_for(executor: Any, job: Any, own: Mapping[str, Any]) -> None:
    """Whatever is submitted next begins when the job's array has ended, also where a part of it failed: the cells then
    make it, or say why they cannot."""
    dependencies = [*([str(own["dependency"])] if "dependency" in own else []), f"afterany:{_array(job)}"]
    executor.update_parameters(slurm_additional_parameters={**own, "dependency": ",".join(dependencies)})


def _array(job: Any) -> str:
    return str(job.job_id).partition("_")[0]


def _take(sweep: Sweep, chain: Chain, job: Any) -> None:
    assert sweep.plan is not None
    try:
        made = returned(job)[0]
    except LostJob as error:
        log.warning("%s It was to make what several audits need; the first of them to run makes it instead.", error)
        return
    for name, item in zip(chain, made, strict=True):
        count(sweep, sweep.plan.graph.nodes[name].kind, item)
