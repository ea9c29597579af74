"""Cost estimates for artifacts, from the recorded costs of similar ones on this machine."""

from __future__ import annotations

import functools
import heapq
import json
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from omegaconf import DictConfig, OmegaConf

from nonmember.artifacts.keeping import size_of
from nonmember.artifacts.planner import Graph, Node, NotMade
from nonmember.artifacts.store import Store

if TYPE_CHECKING:
    from nonmember.feasibility.memory import TrainerSettings

MOST_READ = 500  # entries of a kind that are looked at, the latest


@dataclass(frozen=True)
class ArtifactCost:
    """Of one artifact that is to be made."""

    tokens: int | None  # read in making it
    # seconds, size: (bytes) None where no artifact like it was made on this machine, and nothing is assumed
    seconds: float | None
    size: float | None
    memory: float | None = None  # bytes
    is_assumed: bool = False  # the seconds are tokens times parameters at this machine's speed


@dataclass(frozen=True)
class PastRun:
    tokens: int | None
    seconds: float | None  # None where it was made on another machine, in several runs, or before times were recorded
    size: int


class PastRuns:
    """What the store's entries record, by what makes artifacts alike."""

    def __init__(self, store: Store, machine: str) -> None:
        self._store, self._machine = store, machine
        self._read: dict[str, dict[str, list[PastRun]]] = {}

    def cost(self, node: Node, tokens: int | None) -> ArtifactCost:
        past = self._of_kind(node.kind).get(node.spec.alike(), [])
        seconds = _expected([(item.seconds, item.tokens) for item in past if item.seconds is not None], tokens)
        is_model = node.kind == "models"  # whose size does not grow with what they read
        size = _expected([(item.size, None if is_model else item.tokens) for item in past], tokens)
        return ArtifactCost(tokens, seconds, size)

    def _of_kind(self, kind: str) -> dict[str, list[PastRun]]:
        if kind not in self._read:
            found: dict[str, list[PastRun]] = {}
            latest = heapq.nlargest(MOST_READ, self._store.sidecars(kind), key=_time)
            for path in latest:
                alike, run = self._past_run(path)
                found.setdefault(alike, []).append(run)
            self._read[kind] = found
        return self._read[kind]

    def _past_run(self, path: Path) -> tuple[str, PastRun]:
        try:
            sidecar = json.loads(path.read_text(encoding="utf-8"))
            made, tokens = sidecar.get("made", {}), sidecar["facts"].get("num_tokens")
            seconds = made.get("seconds") if made.get("machine") == self._machine else None
            return made.get("alike", ""), PastRun(tokens, seconds, size_of(path.parent))
        except (OSError, ValueError, KeyError, AttributeError):  # what needs the entry reports the damage
            return "", PastRun(None, None, 0)


@dataclass(frozen=True)
class Assumptions:
    """What artifacts take of which none like them was made here. settings: of the trainer.   device: cpu or cuda."""

    settings: TrainerSettings
    device: str

    @classmethod
    def of(cls, config: DictConfig) -> Assumptions:
        import torch

        from nonmember.config.feasible import settings_of_trainer

        accelerator = OmegaConf.select(config, "trainer.make_trainer.accelerator", default="auto")
        is_gpu = accelerator in ("auto", "gpu", "cuda") and torch.cuda.is_available()
        return cls(settings_of_trainer(config), "cuda" if is_gpu else "cpu")

    @functools.cached_property
    def operations_a_second(self) -> float:
        from nonmember.runtime.expectations import EFFICIENCY, speed

        return EFFICIENCY * speed(self.device, None)

    @property
    def memory(self) -> float:
        """Bytes that there are."""
        import torch

        from nonmember.runtime.expectations import memory_of

        return memory_of(torch.device(self.device))

    def added_to(self, cost: ArtifactCost, node: Node) -> ArtifactCost:
        from nonmember.feasibility.jobs import estimate_of

        estimate = estimate_of(node.spec, cost.tokens)
        if estimate is None:
            return cost
        is_assumed = cost.seconds is None and estimate.operations is not None
        seconds = (estimate.operations or 0.0) / self.operations_a_second if is_assumed else cost.seconds
        size = estimate.size if cost.size is None else cost.size
        return ArtifactCost(cost.tokens, seconds, size, estimate.needs(self.settings).total, is_assumed)


@dataclass(frozen=True)
class Work:
    """Everything that is to be made, in an order in which it can be made.

    costs: by name of the artifact, in that order.   whole: seconds until all is made by so many workers; None where
    the time of something is not known.
    """

    graph: Graph
    costs: Mapping[str, ArtifactCost]
    assumptions: Assumptions | None = None

    @classmethod
    def of(cls, graph: Graph, machine: str, assumptions: Assumptions | None = None) -> Work:
        """assumptions: for what nothing tells; None: of that nothing is known."""
        past = PastRuns(graph.builder.store, machine)
        costs = {}
        for node in graph.missing():
            try:
                tokens = node.spec.expected_tokens(graph.builder)
            except NotMade:
                tokens = None
            cost = past.cost(node, tokens)
            costs[node.name] = cost if assumptions is None else assumptions.added_to(cost, node)
        return cls(graph, costs, assumptions)

    @property
    def without_estimate(self) -> list[str]:
        """Artifacts for which no comparable run on this machine has a known duration."""
        return [name for name, cost in self.costs.items() if cost.seconds is None]

    def seconds(self, names: Iterable[str]) -> float:
        """Of those whose time is known, one after the other."""
        return sum(self.costs[name].seconds or 0.0 for name in names)

    def makespan(self, num_workers: int) -> float:
        """Seconds until all is made side by side, no artifact before what it is made of."""
        ended: dict[str, float] = {}
        free = [0.0] * max(1, num_workers)
        for name in in_order(self.graph, self.costs):
            start = max(
                [heapq.heappop(free), *(ended[item] for item in self.graph.nodes[name].parents if item in ended)]
            )
            ended[name] = start + (self.costs[name].seconds or 0.0)
            heapq.heappush(free, ended[name])
        return max(ended.values(), default=0.0)


def in_order(graph: Graph, costs: Mapping[str, ArtifactCost]) -> list[str]:
    """Of what is to be made: first what most work waits for, and nothing before what it is made of."""
    behind: dict[str, float] = {}  # seconds from its start to the end of the longest chain that rests on it
    children: dict[str, list[str]] = {}
    for name in reversed(graph.nodes):
        if name in costs:
            own = costs[name].seconds
            own = (costs[name].tokens or 1) / 1e4 if own is None else own  # some measure is better than none
            behind[name] = own + max((behind[child] for child in children.get(name, ())), default=0.0)
            for parent in graph.nodes[name].parents:
                children.setdefault(parent, []).append(name)
    # The chain behind a parent holds that of its child; where both are as long, the sort keeps their order.
    return sorted((name for name in graph.nodes if name in costs), key=lambda name: -behind[name])


def _expected(past: Sequence[tuple[float | None, int | None]], tokens: int | None) -> float | None:
    """Median of what it took per token; of the whole where tokens are not counted."""
    values = [(value, number) for value, number in past if value is not None]
    per_token = [value / number for value, number in values if number]
    if tokens is not None and per_token:
        return tokens * statistics.median(per_token)
    return statistics.median(value for value, _ in values) if values else None


def _time(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0
