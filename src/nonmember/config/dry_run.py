"""Dry run of a sweep or audit: the artifacts it would make, found out before anything is made, their order, and their
cost, estimated from what similar ones took on this machine, or unknown."""

from __future__ import annotations

import contextlib
import heapq
import json
import shutil
import statistics
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from omegaconf import OmegaConf
from rich.table import Table
from rich.text import Text

from nonmember.artifacts import Spec
from nonmember.artifacts.keeping import size_of
from nonmember.artifacts.planner import Graph, Node, NotMade, Planner
from nonmember.artifacts.store import Store
from nonmember.audits.cell import Cell
from nonmember.audits.distilled import obstacle_of
from nonmember.audits.keys import audit_keys
from nonmember.audits.preconditions import require_documents
from nonmember.audits.question import Audit
from nonmember.audits.record import finished
from nonmember.config.auto import Parts
from nonmember.config.compose import cells_of, composed_again, shared
from nonmember.config.explain import explain
from nonmember.config.hydra_compat import command_of
from nonmember.config.runs import cell_of, planner_of
from nonmember.endpoints.asked import Asked
from nonmember.methods import Auto
from nonmember.methods.protocols import PlantsControls
from nonmember.observations.weights import WeightChange, weights_at_hand
from nonmember.results.result import RESULT
from nonmember.runtime.interruption import check
from nonmember.runtime.progress import duration
from nonmember.runtime.terminal import console_of, say, visible

if TYPE_CHECKING:
    from rich.console import Console

KINDS = ("corpora", "tokenizers", "models", "observations")  # those that there always are, in this order
VERBS = {"models": "to train", "observations": "to observe"}
COLUMNS = ("kind", "number", "in store", "to make", "tokens", "time", "disk")
MOST_LISTED = 12
WIDTH = 120
ANOTHER = "its store or trainer is not that of the first audit; ask for it alone"
UNITS = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))
MOST_READ = 500  # entries of a kind that are looked at, the latest


def plan_only(arguments: Sequence[str]) -> None:
    """What an audit or a sweep would make, printed; nothing is run. arguments: of the command, with dry_run=true."""
    name, overrides = command_of(arguments)
    plan: SweepPlan | None = None
    where: list[Any] = []
    for config, folder in cells_of(name, overrides):
        of_cell = [config.store, OmegaConf.to_container(config.trainer, resolve=True)]
        if plan is None:
            where, plan = of_cell, SweepPlan.by(planner_of(config, *shared(Path(config.store).absolute())))
        try:
            if of_cell != where:
                raise ValueError(ANOTHER)
            cell = cell_of(config, folder)
            is_auto = isinstance(cell.audit.method, Auto)
            for item in Parts(cell, config, composed_again(), plan.planner).foreseen() if is_auto else [cell]:
                plan.see(plan.num_cells, item)
        except Exception as error:  # which the audit itself will meet again, and tell
            check()
            plan.refuse(plan.num_cells, explain(error))
    assert plan is not None
    show(plan, Work.of(plan.graph, plan.planner.compute.machine))


def show(plan: SweepPlan, work: Work, console: Console | None = None) -> None:
    """Raises ValueError where some audit could not be carried out at all."""
    console = console_of(WIDTH, like=console)
    if plan.refused and len(plan.refused) == plan.num_cells:
        _raise_refused(plan)
    if work.graph.nodes:
        console.print(_table(work))
    for sentence in (*_about_audits(plan), *_about_costs(work)):
        say(console, sentence)
    console.print("Dry run: nothing was trained, observed or queried.", highlight=False)
    if plan.refused:
        _raise_refused(plan)


def _raise_refused(plan: SweepPlan) -> None:
    first, _ = Counter(plan.refused.values()).most_common(1)[0]
    raise ValueError(f"{len(plan.refused)} of {plan.num_cells} audits cannot be planned: {first}")


def _table(work: Work) -> Table:
    nodes = work.graph.nodes
    kinds = dict.fromkeys([*KINDS, *(node.kind for node in nodes.values())])
    table = Table(title="What is needed", title_justify="left", header_style="bold", show_footer=True)
    names = {kind: [name for name, node in nodes.items() if node.kind == kind] for kind in kinds}
    rows = [_row(kind, items, work) for kind, items in names.items() if items]
    total = _row("total", list(nodes), work)
    for index, column in enumerate(COLUMNS):
        table.add_column(column, footer=Text(total[index]), justify="left" if index == 0 else "right", no_wrap=True)
    for row in rows:
        table.add_row(*(Text(visible(item)) for item in row))
    return table


def _row(kind: str, names: list[str], work: Work) -> tuple[str, ...]:
    missing = [name for name in names if name in work.costs]
    counted = [work.costs[name].tokens for name in missing if work.graph.nodes[name].kind in VERBS]
    tokens = f"{_short(sum(item or 0 for item in counted))} {VERBS.get(kind, '')}".strip() if any(counted) else "-"
    numbers = (len(names), len(names) - len(missing), len(missing))
    seconds = [work.costs[name].seconds for name in missing]
    sizes = [work.costs[name].size for name in missing]
    disk = _partly(sizes, lambda total: f"{_short(total)}B")
    return (kind, *map(str, numbers), tokens, _partly(seconds, duration), disk)


def _partly(values: list[float | None], formatted: object) -> str:
    """The sum in words; "at least" where some are not known, and a question mark where none is."""
    known = [item for item in values if item is not None]
    if not values:
        return "-"
    if not known:
        return "?"
    assert callable(formatted)
    return f"{'at least ' if len(known) < len(values) else ''}{formatted(sum(known))}"


def _about_audits(plan: SweepPlan) -> Iterable[str]:
    to_run = plan.num_cells - len(plan.ended) - len(plan.refused)
    yield f"Audits: {plan.num_cells}; {len(plan.ended)} with a result, {to_run} to be run."
    for why, number in Counter(plan.invalid.values()).most_common():
        yield f"{number} would be invalid, and the distilled reference that is counted here not trained: {why}"
    if plan.asking:
        yield f"{len(plan.asking)} of them query a remote model; its requests and their cost are not estimated."


def _about_costs(work: Work) -> Iterable[str]:
    if not work.costs:
        return
    if work.without_estimate:
        nodes = work.graph.nodes
        alike = Counter(nodes[name].spec.alike() for name in work.without_estimate)
        example = {nodes[name].spec.alike(): nodes[name].spec.readable for name in reversed(work.without_estimate)}
        yield "No time estimate for these, since nothing similar was made on this machine:"
        for what, number in alike.most_common(MOST_LISTED):
            yield f"  {number} {what.partition(' ')[0]} such as {example[what]}"
    else:
        yield f"About {duration(work.seconds(work.costs))}, one after the other, by past runs here; tests not counted."
    if any(cost.tokens is None for name, cost in work.costs.items() if work.graph.nodes[name].kind in VERBS):
        yield "The tokens of some are unknown until the artifacts they depend on are made."
    root = work.graph.builder.store.root
    yield f"{_short(shutil.disk_usage(_existing(root)).free)}B are free where the store is."


def _existing(path: Path) -> Path:
    return next(item for item in (path, *path.parents) if item.exists())


def _short(number: float) -> str:
    """1.2 M, 345, 12 G."""
    for size, unit in UNITS:
        if number >= size:
            return f"{number / size:.3g} {unit}"
    return f"{number:.0f} "


# What is needed -------------------------------------------------------------------------------------------------------


def needed(audit: Audit) -> Iterator[Spec[Any]]:
    """The models and observations of an audit."""
    measured = list(audit.measurements)
    method = audit.method
    for item in measured:
        yield item.model
        yield from item.needs()
    compared = method.moved_from(audit.roles) if isinstance(method, PlantsControls) else None
    if compared is not None and weights_at_hand(audit.target):
        base, others = compared
        yield from (WeightChange(model, base) for model in (audit.target, *others.values()))


@dataclass
class SweepPlan:
    """The cells of a sweep and what they need, added one by one."""

    planner: Planner
    graph: Graph
    num_cells: int = 0
    ended: set[int] = field(default_factory=set)  # places of the cells that have their result
    refused: dict[int, str] = field(default_factory=dict)  # place -> why it cannot be planned
    asking: set[int] = field(default_factory=set)  # those that query a remote model
    invalid: dict[int, str] = field(default_factory=dict)  # place -> why its verdict would be `invalid`

    @classmethod
    def by(cls, planner: Planner) -> SweepPlan:
        return cls(planner, Graph(planner))

    def see(self, index: int, cell: Cell) -> None:
        if self._has_ended(cell):
            self.ended.add(index)
        else:
            self._add(index, cell)
        self.num_cells += 1

    def _add(self, index: int, cell: Cell) -> None:
        self._check_documents(index, cell)
        if any(isinstance(item, Asked) and not item.model.has_weights for item in cell.audit.measurements):
            self.asking.add(index)
        self.graph.add(index, needed(cell.audit))

    def _check_documents(self, index: int, cell: Cell) -> None:
        """Raises ValueError where the documents are too few."""
        with contextlib.suppress(NotMade):
            require_documents(cell.audit, self.planner)
            if obstacle := obstacle_of(cell.audit, self.planner):
                self.invalid[index] = obstacle

    def refuse(self, index: int, why: str) -> None:
        """A cell that cannot be carried out, or of which nothing is known."""
        self.num_cells += 1
        self.refused[index] = why

    def _has_ended(self, cell: Cell) -> bool:
        if not (cell.folder / RESULT).is_file():
            return False
        try:
            keys = audit_keys(cell.audit, self.planner)
        except NotMade:
            return False
        return finished(cell.folder, keys["audit"]) is not None


# What it costs --------------------------------------------------------------------------------------------------------


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
    seconds: float | None  # None where it was made on another machine, or in several runs
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
