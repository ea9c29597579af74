"""Dry run of a sweep or audit: the artifacts it would make, their order, and their estimated or unknown cost."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from rich.table import Table
from rich.text import Text

from nonmember.runtime.progress import duration
from nonmember.runtime.terminal import console_of, say, visible
from nonmember.sweeps.costs import Work, in_order

if TYPE_CHECKING:
    from rich.console import Console

    from nonmember.sweeps.plan import SweepPlan

KINDS = ("corpora", "tokenizers", "models", "observations")  # those that there always are, in this order
VERBS = {"models": "to train", "observations": "to observe"}
COLUMNS = ("kind", "number", "in store", "to make", "tokens", "time", "disk")
MOST_LISTED = 12
WIDTH = 120
UNITS = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))


def show(plan: SweepPlan, work: Work, num_workers: int, console: Console | None = None) -> None:
    """Raises ValueError where some audit could not be carried out at all."""
    console = console_of(WIDTH, like=console)
    if plan.refused and len(plan.refused) == plan.num_cells:
        _raise_refused(plan)
    if work.graph.nodes:
        console.print(_table(work))
    for sentence in (*_about_audits(plan), *_about_order(plan, work), *_about_costs(work, num_workers)):
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
    from nonmember.sweeps.plan import ENDED

    to_run = plan.num_cells - len(plan.ended) - len(plan.refused)
    yield f"Audits: {plan.num_cells}; {len(plan.ended)} with a result, {to_run} to be run."
    for parts in plan.parts.values():
        run, ended = ([method for method, why in parts if why == which] for which in ("", ENDED))
        yield f"method=auto runs {', '.join(run) or 'nothing more'}."
        if ended:
            yield f"  with a result already: {', '.join(ended)}"
        for method, reason in parts:
            if reason not in ("", ENDED):
                yield f"  without {method}: {reason.removeprefix(method).lstrip()}"
    for why, number in Counter(plan.invalid.values()).most_common():
        yield f"{number} would be invalid, and the distilled reference that is counted here not trained: {why}"
    if plan.asking:
        yield f"{len(plan.asking)} of them query a remote model; its requests and their cost are not estimated."
    if plan.climbing:
        yield (
            f"{len(plan.climbing)} of them look for a learning rate (ladder): the first rate is counted, the others "
            "are distilled only where it fails."
        )


def _about_order(plan: SweepPlan, work: Work) -> Iterable[str]:
    nodes = work.graph.nodes
    order = [nodes[name] for name in in_order(work.graph, work.costs)]
    shared = [node for node in order if len(node.users) > 1]
    if not order:
        return
    if shared:
        yield "First the artifacts that several audits share, in parallel where they are independent:"
    for node in shared[:MOST_LISTED]:
        cost = work.costs[node.name]
        taken = "time unknown" if cost.seconds is None else f"about {duration(cost.seconds)}"
        tokens = "" if cost.tokens is None else f", {_short(cost.tokens)} tokens"
        yield f"  {node.kind} {node.spec.readable} for {len(node.users)} audits{tokens}, {taken}"
    if len(shared) > MOST_LISTED:
        yield f"  and {len(shared) - MOST_LISTED} more"
    if others := len(order) - len(shared):
        noun = "artifact" if others == 1 else "artifacts"
        yield f"{'Then the' if shared else 'The'} audits, with {others} {noun} of their own."


def _about_costs(work: Work, num_workers: int) -> Iterable[str]:
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
        beside = f" with {num_workers} workers side by side" if num_workers > 1 else ""
        num_assumed = sum(cost.is_assumed for cost in work.costs.values())
        by = "by past runs on this machine" if not num_assumed else "by past runs and assumptions"
        by = "by assumptions" if num_assumed == len(work.costs) else by
        yield f"About {duration(work.makespan(num_workers))}{beside}, {by}; tests not counted."
    yield from _about_assumptions(work)
    if any(cost.tokens is None for name, cost in work.costs.items() if work.graph.nodes[name].kind in VERBS):
        yield "The tokens of some are unknown until the artifacts they depend on are made."
    root = work.graph.builder.store.root
    yield f"{_short(shutil.disk_usage(_existing(root)).free)}B are free where the store is."


def _about_assumptions(work: Work) -> Iterable[str]:
    assumed = work.assumptions
    if assumed is None:
        return
    if number := sum(cost.is_assumed for cost in work.costs.values()):
        device = "GPU" if assumed.device == "cuda" else "CPU"
        yield (
            f"For {number} of them nothing similar was made on this machine; their time is assumed: tokens times "
            f"parameters, at {_short(assumed.operations_a_second)}FLOP a second, half of what its {device} reaches."
        )
    if needs := [cost.memory for cost in work.costs.values() if cost.memory is not None]:
        yield f"Memory: up to {_short(max(needs))}B at a time, of {_short(assumed.memory)}B on this machine."


def _existing(path: Path) -> Path:
    return next(item for item in (path, *path.parents) if item.exists())


def _short(number: float) -> str:
    """1.2 M, 345, 12 G."""
    for size, unit in UNITS:
        if number >= size:
            return f"{number / size:.3g} {unit}"
    return f"{number:.0f} "
