"""Dry run of a sweep or audit: the artifacts it would make, found out before anything is made, their order, and their
cost, estimated from what similar ones took on this machine, or unknown."""

from __future__ import annotations

import contextlib
import json
import re
import shutil
import statistics
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from omegaconf import OmegaConf
from rich.table import Table
from rich.text import Text

from nonmember.artifacts import Spec
from nonmember.artifacts.keeping import size_of
from nonmember.artifacts.planner import Graph, NotMade, Planner
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
from nonmember.runtime.progress import duration, in_short
from nonmember.runtime.terminal import console_of, say, visible

if TYPE_CHECKING:
    from rich.console import Console

KINDS = ("corpora", "tokenizers", "models", "observations")  # those that there always are, in this order
VERBS = {"models": "to train", "observations": "to observe"}
COLUMNS = ("kind", "number", "in store", "to make", "tokens", "time", "disk")
MOST_LISTED = 12
WIDTH = 120
ANOTHER = "its store or trainer is not that of the first audit; ask for it alone"


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
                plan.see(item)
        except Exception as error:  # which the audit itself will meet again, and tell
            check()
            plan.refuse(explain(error))
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
    first, _ = Counter(plan.refused).most_common(1)[0]
    raise ValueError(f"{len(plan.refused)} of {plan.num_cells} audits cannot be planned: {first}")


def _table(work: Work) -> Table:
    nodes = work.graph.nodes
    kinds = dict.fromkeys([*KINDS, *(node.kind for node in nodes.values())])
    table = Table(title="What is needed", title_justify="left", header_style="bold", show_footer=True)
    names = {kind: [name for name, node in nodes.items() if node.kind == kind] for kind in kinds}
    rows = [_row(kind, items, work) for kind, items in names.items() if items]
    total = _row("total", list(nodes), work)
    for index, column in enumerate(COLUMNS):
        table.add_column(column, footer=Text(total[index]), justify="right" if index else "left", no_wrap=not index)
    for row in rows:
        table.add_row(*(Text(visible(item)) for item in row))
    return table


def _row(kind: str, names: list[str], work: Work) -> tuple[str, ...]:
    missing = [name for name in names if name in work.costs]
    counted = [work.costs[name].tokens for name in missing if work.graph.nodes[name].kind in VERBS]
    tokens = f"{in_short(sum(item or 0 for item in counted))} {VERBS.get(kind, '')}".strip() if any(counted) else "-"
    numbers = (len(names), len(names) - len(missing), len(missing))
    seconds = [work.costs[name].seconds for name in missing]
    sizes = [work.costs[name].size for name in missing]
    disk = _partly(sizes, lambda total: f"{in_short(total)}B")
    return (kind, *map(str, numbers), tokens, _partly(seconds, duration), disk)


def _partly(values: list[float | None], formatted: Callable[[float], str]) -> str:
    """The sum in words; "at least" where some are not known, and a question mark where none is."""
    known = [item for item in values if item is not None]
    if not values:
        return "-"
    if not known:
        return "?"
    return f"{'at least ' if len(known) < len(values) else ''}{formatted(sum(known))}"


def _about_audits(plan: SweepPlan) -> Iterable[str]:
    to_run = plan.num_cells - plan.ended - len(plan.refused)
    yield f"Audits: {plan.num_cells}; {plan.ended} with a result, {to_run} to be run."
    for why, number in Counter(plan.invalid).most_common():
        yield f"{number} would be invalid, and the distilled reference that is counted here not trained: {why}"
    if plan.asking:
        yield f"{plan.asking} of them query a remote model; its requests and their cost are not estimated."


def _about_costs(work: Work) -> Iterable[str]:
    if not work.costs:
        return
    seconds = [cost.seconds for cost in work.costs.values()]
    if None in seconds:
        specs = [work.graph.nodes[name].spec for name, cost in work.costs.items() if cost.seconds is None]
        alike = Counter(spec.alike() for spec in specs)
        example = {spec.alike(): spec.readable for spec in reversed(specs)}
        yield "No time estimate for these, since nothing similar was made on this machine:"
        for what, number in alike.most_common(MOST_LISTED):
            kind = re.sub("(?<=[a-z])(?=[A-Z])", " ", what.partition(" ")[0]).lower()
            yield f"  {number} of {kind}, such as {example[what]}"
    else:
        total = duration(sum(filter(None, seconds)))
        yield f"About {total}, one after the other, by past runs here; tests not counted."
    if any(cost.tokens is None for name, cost in work.costs.items() if work.graph.nodes[name].kind in VERBS):
        yield "The tokens of some are unknown until the artifacts they depend on are made."
    root = work.graph.builder.store.root
    there = next(path for path in (root, *root.parents) if path.exists())
    yield f"{in_short(shutil.disk_usage(there).free)}B are free where the store is."


# What is needed -------------------------------------------------------------------------------------------------------


def needed(audit: Audit) -> Iterator[Spec[Any]]:
    """The models and observations of an audit."""
    method = audit.method
    for item in audit.measurements:
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
    ended: int = 0  # cells that have their result
    asking: int = 0  # those that query a remote model
    refused: list[str] = field(default_factory=list)  # why a cell cannot be planned
    invalid: list[str] = field(default_factory=list)  # why its verdict would be `invalid`

    @classmethod
    def by(cls, planner: Planner) -> SweepPlan:
        return cls(planner, Graph(planner))

    def see(self, cell: Cell) -> None:
        """Raises ValueError where the documents are too few."""
        if self._has_ended(cell):
            self.ended += 1
        else:
            with contextlib.suppress(NotMade):
                require_documents(cell.audit, self.planner)
                if obstacle := obstacle_of(cell.audit, self.planner):
                    self.invalid.append(obstacle)
            self.graph.add(needed(cell.audit))
            measured = cell.audit.measurements
            self.asking += any(isinstance(item, Asked) and not item.model.has_weights for item in measured)
        self.num_cells += 1

    def refuse(self, why: str) -> None:
        """A cell that cannot be carried out, or of which nothing is known."""
        self.num_cells += 1
        self.refused.append(why)

    def _has_ended(self, cell: Cell) -> bool:
        if not (cell.folder / RESULT).is_file():
            return False
        try:
            return finished(cell.folder, audit_keys(cell.audit, self.planner)["audit"]) is not None
        except NotMade:
            return False


# What it costs --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ArtifactCost:
    """Of one artifact that is to be made, or was."""

    tokens: int | None  # read in making it
    # seconds, size: (bytes) None where no artifact like it was made on this machine
    seconds: float | None
    size: float | None


def past_costs(store: Store, kind: str, machine: str) -> dict[str, list[ArtifactCost]]:
    """What the store's entries of a kind record, by what makes artifacts alike."""
    found: dict[str, list[ArtifactCost]] = {}
    for path in store.sidecars(kind):
        with contextlib.suppress(
            OSError, ValueError, KeyError, AttributeError
        ):  # what needs the entry tells the damage
            sidecar = json.loads(path.read_text(encoding="utf-8"))
            made, tokens = sidecar["made"], sidecar["facts"].get("num_tokens")
            seconds = made.get("seconds") if made.get("machine") == machine else None
            cost = ArtifactCost(tokens, seconds, size_of(path.parent))
            found.setdefault(made["alike"], []).append(cost)
    return found


@dataclass(frozen=True)
class Work:
    """Everything that is to be made, in an order in which it can be made.

    costs: by name of the artifact, in that order.
    """

    graph: Graph
    costs: Mapping[str, ArtifactCost]

    @classmethod
    def of(cls, graph: Graph, machine: str) -> Work:
        missing = graph.missing()
        past = {kind: past_costs(graph.builder.store, kind, machine) for kind in {node.kind for node in missing}}
        costs = {}
        for node in missing:
            try:
                tokens = node.spec.expected_tokens(graph.builder)
            except NotMade:
                tokens = None
            alike = past[node.kind].get(node.spec.alike(), [])
            is_model = node.kind == "models"  # whose size does not grow with what they read
            seconds = _expected([(item.seconds, item.tokens) for item in alike], tokens)
            size = _expected([(item.size, None if is_model else item.tokens) for item in alike], tokens)
            costs[node.name] = ArtifactCost(tokens, seconds, size)
        return cls(graph, costs)


def _expected(past: Sequence[tuple[float | None, int | None]], tokens: int | None) -> float | None:
    """Median of what it took per token; of the whole where tokens are not counted."""
    values = [(value, number) for value, number in past if value is not None]
    per_token = [value / number for value, number in values if number]
    if tokens is not None and per_token:
        return tokens * statistics.median(per_token)
    return statistics.median(value for value, _ in values) if values else None
