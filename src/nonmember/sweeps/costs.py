"""Cost estimates for artifacts, from the recorded costs of similar ones on this machine."""

from __future__ import annotations

import heapq
import json
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from nonmember.artifacts.keeping import size_of
from nonmember.artifacts.planner import Graph, Node, NotMade
from nonmember.artifacts.store import Store

MOST_READ = 500  # entries of a kind that are looked at, the latest


@dataclass(frozen=True)
class ArtifactCost:
    """Of one artifact that is to be made."""

    tokens: int | None  # read in making it
    # seconds, size: (bytes) None where no artifact like it was made on this machine
    seconds: float | None
    size: float | None


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
class Work:
    """Everything that is to be made, in an order in which it can be made.

    costs: by name of the artifact, in that order.   whole: seconds until all is made by so many workers; None where
    the time of something is not known.
    """

    graph: Graph
    costs: Mapping[str, ArtifactCost]

    @classmethod
    def of(cls, graph: Graph, machine: str) -> Work:
        past = PastRuns(graph.builder.store, machine)
        costs = {}
        for node in graph.missing():
            try:
                tokens = node.spec.expected_tokens(graph.builder)
            except NotMade:
                tokens = None
            costs[node.name] = past.cost(node, tokens)
        return cls(graph, costs)

    @property
    def without_estimate(self) -> list[str]:
        """Artifacts for which no comparable run on this machine has a known duration."""
        return [name for name, cost in self.costs.items() if cost.seconds is None]

    def seconds(self, names: Iterable[str]) -> float:
        """Of those whose time is known, one after the other."""
        return sum(self.costs[name].seconds or 0.0 for name in names)


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
