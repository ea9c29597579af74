"""What of the PRISM paper's report is computed: everything else is conf/report/prism.yaml."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, ClassVar

from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas

from nonmember.records.groups import SUSPECT
from nonmember.reports.core import controls, formats
from nonmember.reports.core.grid import INTERVAL, RANGE, Block, Figure, Numeral, TableCell, TableRow, dash
from nonmember.reports.core.numbers import P_VALUE, STATISTIC, Value, field, over_draws, with_interval
from nonmember.reports.core.published import PAPERS, published_number, published_tables
from nonmember.reports.core.worlds import Scope, select
from nonmember.reports.declared.cells import CellTemplate
from nonmember.reports.declared.report import DeclaredReport, Filled, figures, tables
from nonmember.reports.declared.tables import TableSpec
from nonmember.reports.render.blocks import block_of, of_figure
from nonmember.reports.render.figures import (
    MARKERS,
    PlotLine,
    colour,
    draw_line,
    figure_of,
    legend_below,
    panels,
    size_of_panels,
    zero_line,
)
from nonmember.results.load import Run
from nonmember.results.result import AuditResult

HELD_OUT = "b"
WHOLE_SETS = ("a", "b", "ab")  # halves that table 6 counts; quarters are controls
TOKENS = field("num_tokens")

# ------------------------------------------------------------------------------------------------ tables

TESTS = TableSpec(
    ["method"],
    "domain",
    "{p_value@untouched:tested} / {p_value@member:tested}",
    ["p, untouched", "p, trained"],
    sweep="table4",
    corner="test",
    where={"method": ["llm_di", "pacost"]},
    has_controls=True,
    names={"method": {"llm_di": "LLM-DI", "pacost": "PaCoST"}},
)
PROGRAM = replace(
    TESTS,
    sweep="program",
    title="LLM-DI by its authors’ program",
    names={"method": {"llm_di": "LLM-DI"}},
    has_controls=False,
)
MEDIANS = CellTemplate("{statistics.details.median_p_value@untouched:p} / {statistics.details.median_p_value@member:p}")


def tests_of_membership(scope: Scope) -> Filled:
    """Table 4, and LLM-DI as the paper ran it, each with the median of LLM-DI's splits below it."""
    return tables(*(block for table in (TESTS, PROGRAM) for block in with_medians(table, scope)))


def with_medians(table: TableSpec, scope: Scope) -> list[Block]:
    table = replace(table, published=published_tables(PAPERS / "prism" / "published.txt")["table4"])
    runs = select(table.runs(scope), method="llm_di")
    domains = table.labels(table.across(scope), scope, table.runs(scope))
    medians = TableRow(
        "LLM-DI, median of its splits", tuple(MEDIANS.cell(select(runs, domain=label), scope) for label in domains)
    )
    return [replace(block, rows=(*block.rows, medians)) for block in table.blocks(scope)]


def sets(scope: Scope) -> Filled:
    """Table 6, from any result on a whole half: all of them should agree."""
    subsampled = tuple(scope.sweeps["figure3"])
    runs = [run for run in scope.runs if run.question.sweep not in subsampled and run.statistics.num_tokens]
    halves: list[str | None] = [half for half in WHOLE_SETS if select(runs, half=half)] or [None]
    counted = {"documents": documents, "tokens": TOKENS}
    plain = halves[0] if scope.world.published else None  # the paper's columns name no half
    columns = {
        (half, what): what if half in (None, plain) else f"{what}, half {half}" for half in halves for what in counted
    }
    domains = scope.world.found("domain", select(runs, half=tuple(halves)), "table6")
    beside = published_tables(PAPERS / "prism" / "published.txt")["table6"] if scope.world.published else None

    def cell(domain: str, half: str | None, what: str) -> TableCell:
        of = select(runs, domain=domain, half=half)
        texts = beside.get(domains[domain], what) if beside else ()
        return TableCell((range_of(of, scope.world.name, counted[what]),), tuple(map(published_number, texts)))

    rows = {name: [cell(domain, *key) for key in columns] for domain, name in domains.items()}
    ran = controls.were_run(scope)
    whole = block_of(scope, "table6", "", "set", columns.values(), rows, ["number"])
    if whole and not ran:
        whole = replace(whole, notes=(*whole.notes, controls.not_run(scope)))
    return tables(whole, controls.controls_block(scope, scope.world.domains, "table6") if whole and ran else None)


def range_of(runs: Sequence[Run], world: str, value: Value) -> Numeral:
    """The one count all runs agree on, or the range of what they say."""
    found = sorted({int(v) for run in runs if (v := value(run.result)) is not None})
    if not found:
        return dash(world)
    text = formats.count(found[0]) if len(found) == 1 else f"{formats.count(found[0])} to {formats.count(found[-1])}"
    first = tuple(run.anchor for run in runs if value(run.result) in (found[0], found[-1]))
    if len(found) == 1:
        return Numeral(text, float(found[0]), world, first[:1], note=f"alike in {len(runs)} results")
    note = f"{len(found)} different counts in {len(runs)} results"
    return Numeral(text, float(found[0]), world, (first[0], first[-1]), note=note)


def documents(result: AuditResult) -> float | None:
    """Of the suspect set, those that have no score included."""
    return result.statistics.num_documents + len(result.exclusions.documents.get(SUSPECT, ()))


def controls_alone(scope: Scope) -> Filled:
    if not controls.were_run(scope):
        return Filled("", notes=(controls.not_run(scope),))
    return tables(controls.controls_block(scope, scope.world.found("domain", scope.of("controls")), "all"))


# ----------------------------------------------------------------------------------------------- figures


def figure_4b(scope: Scope) -> Figure | None:
    """Change of rank against surprise, for the trained pair and for pairs of which neither read the documents."""
    runs = not_held_out(scope.of("figure4b", method="rank_shift"))
    domains = scope.world.found("domain", runs)
    pairs = dict.fromkeys((str(run.question.reference), str(run.question.target)) for run in runs)
    ordered = sorted(pairs, key=lambda pair: pair != (scope.world.untouched, scope.world.member))
    names = {pair: pair_name(scope, pair, runs) for pair in ordered}

    def at(pair: tuple[str, str], domain: str) -> list[Run]:
        return select(runs, reference=pair[0], target=pair[1], domain=domain)

    rows = {names[pair]: [interval(scope, at(pair, domain)) for domain in domains] for pair in ordered}
    quantities = ("Spearman of surprise and change of rank", "lower", "upper")
    block = of_figure(block_of(scope, "", "", "before → after", domains.values(), rows, quantities))

    def paint(canvas: Canvas) -> None:
        axis = None
        for axis, domain in zip(panels(canvas, tuple(domains.values())), domains, strict=True):
            zero_line(axis)
            for index, pair in enumerate(ordered):
                for run in at(pair, domain)[:1]:
                    binned(axis, run.result, names[pair], index)
            axis.set(xlabel="surprise before (−Min-K%++)")
        canvas.axes[0].set_ylabel("rank after − rank before")
        if axis is not None:
            legend_below(canvas, canvas.axes[0], columns=2)

    alt = "Change of rank against surprise under the model before, with the control for regression to the mean."
    return figure_of("figure4b", scope.world, "Figures 4b and 7", alt, block, size_of_panels(len(domains), 3.2), paint)


def pair_name(scope: Scope, pair: tuple[str, str], runs: Sequence[Run]) -> str:
    before, after = (scope.world.targets.get(label, scope.world.references.get(label, label)) for label in pair)
    truths = {run.question.truth for run in select(runs, reference=pair[0], target=pair[1])}
    return f"{before} → {after}" + (" (control: neither read)" if truths == {"non_member"} else "")


def binned(axis: Axes, result: AuditResult, name: str, index: int) -> None:
    """Points faintly, bins of equally many documents with the interval of their mean."""
    details = result.statistics.details
    points, bins = details.get("points"), details.get("bins")
    if isinstance(points, list) and index == 0:
        axis.plot(
            [x for x, _ in points], [y for _, y in points], ".", color=colour(index), alpha=0.22, markersize=3, zorder=1
        )
    if isinstance(bins, list):
        line = PlotLine(name, tuple((item["x"], item["mean"], item["low"], item["high"]) for item in bins))
        draw_line(axis, line, index, band=True)


def by_lambda_and_tau(scope: Scope) -> Figure | None:
    """Delta over a grid of lambda and tau, a panel per target and set."""
    runs = not_held_out(scope.of("lambda_tau", method="prism"))
    weights, taus = (
        sorted({float(value) for run in runs if (value := run.get(f"distillation.{name}")) is not None})
        for name in ("lambda_", "tau")
    )
    names = scope.world.pair() | scope.world.found("target", runs)
    found = {(run.question.target, run.get("domain")): None for run in runs}
    domains = scope.world.found("domain", runs)
    panels_of = {key: f"{domains.get(str(key[1]), key[1])}, {names.get(str(key[0]), key[0])}" for key in found}

    def at(key: tuple[Any, Any], weight: float, tau: float) -> list[Run]:
        wanted = {"target": key[0], "domain": key[1], "distillation__lambda_": weight, "distillation__tau": tau}
        return select(runs, **wanted)

    rows = {
        f"{shown}, lambda = {weight:g}": [interval(scope, at(key, weight, tau)) for tau in taus]
        for key, shown in panels_of.items()
        for weight in weights
    }
    columns, quantities = [f"tau = {tau:g}" for tau in taus], ("Delta", "lower", "upper")
    block = of_figure(block_of(scope, "", "", "set, target", columns, rows, quantities))

    def delta(key: tuple[Any, Any], weight: float, tau: float) -> float:
        return next((v for run in at(key, weight, tau) if (v := run.statistics.value) is not None), math.nan)

    grids = {key: [[delta(key, weight, tau) for tau in taus] for weight in weights] for key in panels_of}
    known = [abs(v) for grid in grids.values() for line in grid for v in line if math.isfinite(v)]

    def paint(canvas: Canvas) -> None:
        limit = max(known, default=1.0) or 1.0
        for axis, grid in zip(panels(canvas, tuple(panels_of.values())), grids.values(), strict=True):
            drawn = axis.imshow(grid, cmap="RdBu", vmin=-limit, vmax=limit, origin="lower", aspect="auto")
            axis.set(
                xticks=range(len(taus)),
                xticklabels=[f"{tau:g}" for tau in taus],
                xlabel="tau",
                yticks=range(len(weights)),
                yticklabels=[f"{weight:g}" for weight in weights],
            )
            for y, line in enumerate(grid):
                for x, value in enumerate(line):
                    if math.isfinite(value):
                        light = "white" if abs(value) > 0.6 * limit else "black"
                        axis.text(x, y, formats.signed(value), ha="center", va="center", fontsize=7, color=light)
        canvas.axes[0].set_ylabel("lambda")
        canvas.colorbar(drawn, ax=canvas.axes, label="Delta", shrink=0.8)

    alt = "Delta by lambda and tau of the distillation, a map per set and target."
    return figure_of(
        "lambda_tau", scope.world, "Lambda and tau", alt, block, size_of_panels(len(panels_of), 3.2), paint
    )


def by_seed(scope: Scope) -> Figure | None:
    """Delta and p over seeds of the distillation."""
    runs = not_held_out(scope.of("seed", method="prism"))
    domains = {k: v for k, v in scope.world.found("domain", runs).items() if select(runs, domain=k)}
    present = {run.question.target for run in runs}
    # The colours of the other figures: untouched first, then trained.
    ordered = scope.world.pair() | scope.world.found("target", runs)
    targets = {label: name for label, name in ordered.items() if label in present}

    def cells(domain: str, target: str) -> tuple[TableCell, ...]:
        found = select(runs, domain=domain, target=target)
        many = Numeral(formats.count(len(found)), float(len(found)), scope.world.name, tuple(r.anchor for r in found))
        return (
            TableCell((many if found else dash(scope.world.name),)),
            TableCell(over_draws(found, scope.world.name, STATISTIC, formats.signed), (), RANGE),
            TableCell(over_draws(found, scope.world.name, P_VALUE), (), RANGE),
        )

    keys = [(domain, target) for domain in domains for target in targets]
    rows = {f"{domains[domain]}, {targets[target]}": cells(domain, target) for domain, target in keys}
    columns, quantities = ("seeds", "Delta", "p"), ("median", "lowest", "highest")
    block = of_figure(block_of(scope, "", "", "set, target", columns, rows, quantities))

    def paint(canvas: Canvas) -> None:
        for axis, domain in zip(panels(canvas, tuple(domains.values())), domains, strict=True):
            zero_line(axis)
            for index, target in enumerate(targets):
                found = select(runs, domain=domain, target=target)
                values = [v for run in found if (v := run.statistics.value) is not None]
                spread = [index + 0.09 * (i - (len(values) - 1) / 2) for i in range(len(values))]
                axis.plot(spread, values, MARKERS[index % len(MARKERS)], color=colour(index), label=targets[target])
            axis.set_xticks([])
            axis.set_xlim(-0.6, len(targets) - 0.4)
        canvas.axes[0].set_ylabel("Delta, a point per seed")
        legend_below(canvas, canvas.axes[0])

    alt = "Delta for each seed of the distillation, by target, a panel per set."
    return figure_of("seed", scope.world, "Seeds", alt, block, size_of_panels(len(domains)), paint)


def interval(scope: Scope, runs: Sequence[Run]) -> TableCell:
    return TableCell(with_interval(runs, scope.world.name), (), INTERVAL)


def not_held_out(runs: Sequence[Run]) -> list[Run]:
    return [run for run in runs if run.get("half") != HELD_OUT]


class PrismReport(DeclaredReport):
    special: ClassVar = {
        "table4": tests_of_membership,
        "table6": sets,
        "figure4b": lambda scope: figures(figure_4b(scope)),
        "lambda_tau": lambda scope: figures(by_lambda_and_tau(scope)),
        "seed": lambda scope: figures(by_seed(scope)),
        "controls": controls_alone,
    }
