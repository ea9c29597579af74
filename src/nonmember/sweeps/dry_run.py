"""Dry run of a sweep or audit: the artifacts it would make, their order, and their estimated or unknown cost."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from omegaconf import OmegaConf
from rich.table import Table
from rich.text import Text

from nonmember.config.explain import explain
from nonmember.config.grid import cells_of
from nonmember.config.hydra_compat import command_of
from nonmember.config.runs import cell_of, planner_of
from nonmember.methods import Auto
from nonmember.runtime.interruption import check
from nonmember.runtime.progress import duration
from nonmember.runtime.terminal import console_of, say, visible
from nonmember.sweeps.auto import Parts
from nonmember.sweeps.costs import Work
from nonmember.sweeps.plan import SweepPlan
from nonmember.sweeps.running import composed_again, shared

if TYPE_CHECKING:
    from rich.console import Console

KINDS = ("corpora", "tokenizers", "models", "observations")  # those that there always are, in this order
VERBS = {"models": "to train", "observations": "to observe"}
COLUMNS = ("kind", "number", "in store", "to make", "tokens", "time", "disk")
MOST_LISTED = 12
WIDTH = 120
ANOTHER = "its store or trainer is not that of the first audit; ask for it alone"
UNITS = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))


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
