"""Figures 3 to 7 of PRISM for one world, and two that the paper does not have (references, seeds).

Each is drawn from a table of numbers that goes with it. None where there are no results.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas

from nonmember.reports.core import formats
from nonmember.reports.core.grid import INTERVAL, RANGE, Block, Cell, Figure, Number, Row, dash
from nonmember.reports.core.numbers import P_VALUE, STATISTIC, number, over_draws, with_interval
from nonmember.reports.core.worlds import Scope, select
from nonmember.reports.papers.prism.tables import RHO_REFERENCE, difference, not_held_out
from nonmember.reports.render.blocks import filled, say_medians, say_missing
from nonmember.reports.render.figures import (
    MARKERS,
    QUIET,
    Line,
    colour,
    figure_of,
    legend_below,
    lines_of,
    panels,
    size_of_panels,
    stroke,
    zero_line,
)
from nonmember.results.load import Run
from nonmember.results.result import AuditResult


def figure_3(scope: Scope) -> Figure | None:
    """p against the number of documents: median and range over draws, a line per set."""
    runs = scope.of("figure3", method="prism", target=scope.world.untouched)
    domains = scope.world.found("domain", runs)
    sizes = sorted({int(run.statistics.num_documents) for run in runs})

    def cell(domain: str, size: float) -> Cell:
        here = [run for run in select(runs, domain=domain) if run.statistics.num_documents == size]
        return Cell(over_draws(here, scope.world.name, P_VALUE), (), RANGE)

    block = numbers(scope, "figure3", "set", domains, sizes, cell, ("p, median", "p, lowest", "p, highest"))
    if block is None:
        return None
    alpha = runs[0].result.question.alpha
    lines = lines_of(block, sizes)

    def paint(canvas: Canvas) -> None:
        axis = canvas.subplots()
        for place, line in enumerate(lines.values()):
            stroke(axis, line, place, band=True)
        axis.axhline(alpha, color=QUIET, linewidth=0.8, linestyle=(0, (4, 3)))
        axis.annotate(f"alpha {alpha:g}", (1, alpha), xycoords=("axes fraction", "data"), xytext=(0, 3),
                      textcoords="offset points", ha="right", color=QUIET, fontsize=8)  # fmt: skip
        axis.set(yscale="log", xlabel="documents", ylabel="p", xticks=sizes)
        axis.minorticks_off()
        axis.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
        axis.set_ylim(top=1.5)
        legend_below(canvas, axis)

    alt = "p-value of PRISM against the number of documents, a line per set."
    return figure_of("figure3", scope.world, "Figure 3", alt, block, (5.6, 3.4), paint)


def figure_4(scope: Scope) -> Figure | None:
    """How far the rank correlation falls when the target is trained on the set, against K."""
    runs = not_held_out(scope.of("figure4"))
    domains = scope.world.found("domain", runs)
    shares = sorted({float(k) for run in runs if (k := run.get("score.k")) is not None})

    def cell(domain: str, share: float) -> Cell:
        here = [run for run in select(runs, domain=domain) if run.get("score.k") == share]
        untouched, trained = (
            number(select(here, target=label), scope.world.name, RHO_REFERENCE) for label in scope.world.pair()
        )
        return Cell((difference(untouched, trained),))

    block = numbers(scope, "figure4", "set", domains, shares, cell, ("rho untouched − rho trained",), "K = ")
    if block is None:
        return None
    lines = lines_of(block, shares)

    def paint(canvas: Canvas) -> None:
        axis = canvas.subplots()
        zero_line(axis)
        for place, line in enumerate(lines.values()):
            stroke(axis, line, place)
        axis.set(xlabel="K of Min-K%++", ylabel="rho untouched − rho trained")
        legend_below(canvas, axis)

    alt = "Difference of the rank correlations of untouched and trained target with the reference against K."
    return figure_of("figure4", scope.world, "Figures 4a and 6", alt, block, (5.6, 3.4), paint)


def figure_4b(scope: Scope) -> Figure | None:
    """Change of rank against surprise, for the trained pair and for pairs of which neither read the documents."""
    runs = not_held_out(scope.of("figure4b", method="rank_shift"))
    domains = scope.world.found("domain", runs)
    pairs = dict.fromkeys((str(run.question.reference), str(run.question.target)) for run in runs)
    ordered = sorted(pairs, key=lambda pair: pair != (scope.world.untouched, scope.world.member))
    names = {pair: pair_name(scope, pair, runs) for pair in ordered}

    def at(pair: tuple[str, str], domain: str) -> list[Run]:
        return select(runs, reference=pair[0], target=pair[1], domain=domain)

    rows = tuple(
        Row(names[pair], tuple(Cell(with_interval(at(pair, domain), scope.world.name), (), INTERVAL)
                               for domain in domains))
        for pair in ordered
    )  # fmt: skip
    block = block_of(scope, "figure4b", "before → after", tuple(domains.values()), rows,
                     ("Spearman of surprise and change of rank", "lower", "upper"))  # fmt: skip
    if block is None:
        return None

    def paint(canvas: Canvas) -> None:
        axis = None
        for axis, domain in zip(panels(canvas, tuple(domains.values())), domains, strict=True):
            zero_line(axis)
            for place, pair in enumerate(ordered):
                for run in at(pair, domain)[:1]:
                    binned(axis, run.result, names[pair], place)
            axis.set(xlabel="surprise before (−Min-K%++)")
        canvas.axes[0].set_ylabel("rank after − rank before")
        if axis is not None:
            legend_below(canvas, canvas.axes[0], columns=2)

    alt = "Change of rank against surprise under the model before, with the control for regression to the mean."
    return figure_of("figure4b", scope.world, "Figures 4b and 7", alt, block, size_of_panels(len(domains), 3.2), paint)


def figure_5a(scope: Scope) -> Figure | None:
    return figure_5(scope, "figure5a", "distillation.tau", "tau")


def figure_5b(scope: Scope) -> Figure | None:
    return figure_5(scope, "figure5b", "distillation.lambda_", "lambda")


def figure_5(scope: Scope, key: str, setting: str, symbol: str) -> Figure | None:
    """Delta against a setting of the distillation, two lines a set: untouched and trained target."""
    runs = not_held_out(scope.of(key, method="prism"))
    domains, pair = scope.world.found("domain", runs), scope.world.pair()
    values = sorted({float(value) for run in runs if (value := run.get(setting)) is not None})

    def cell(row: tuple[str, str], value: float) -> Cell:
        here = [run for run in select(runs, domain=row[0], target=row[1]) if run.get(setting) == value]
        return Cell(with_interval(here, scope.world.name), (), INTERVAL)

    present = {domain: name for domain, name in domains.items() if select(runs, domain=domain)}
    rows = {(domain, label): f"{name}, {shown}" for domain, name in present.items() for label, shown in pair.items()}
    block = numbers(scope, key, "set, target", rows, values, cell, ("Delta", "lower", "upper"), f"{symbol} = ")
    if block is None:
        return None
    lines = lines_of(block, values)

    def paint(canvas: Canvas) -> None:
        for axis, domain in zip(panels(canvas, tuple(present.values())), present, strict=True):
            zero_line(axis)
            for place, (label, shown) in enumerate(pair.items()):
                line = lines.get(rows[domain, label])
                stroke(axis, Line(shown, line.points if line else ()), place, band=True)
            axis.set(xlabel=symbol)
        canvas.axes[0].set_ylabel("Delta")
        legend_below(canvas, canvas.axes[0])

    alt = f"Delta against {symbol} for the untouched and the trained target, a panel per set."
    title = "Figure 5a" if key == "figure5a" else "Figure 5b"
    return figure_of(key, scope.world, title, alt, block, size_of_panels(len(present)), paint)


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

    def cell(row: tuple[tuple[Any, Any], float], tau: float) -> Cell:
        return Cell(with_interval(at(*row, tau), scope.world.name), (), INTERVAL)

    rows = {(key, weight): f"{shown}, lambda = {weight:g}" for key, shown in panels_of.items() for weight in weights}
    block = numbers(scope, "lambda_tau", "set, target", rows, taus, cell, ("Delta", "lower", "upper"), "tau = ")
    if block is None:
        return None

    def delta(key: tuple[Any, Any], weight: float, tau: float) -> float:
        return next((v for run in at(key, weight, tau) if (v := run.statistics.value) is not None), math.nan)

    grids = {key: [[delta(key, weight, tau) for tau in taus] for weight in weights] for key in panels_of}
    known = [abs(v) for grid in grids.values() for line in grid for v in line if math.isfinite(v)]

    def paint(canvas: Canvas) -> None:
        limit = max(known, default=1.0) or 1.0
        for axis, grid in zip(panels(canvas, tuple(panels_of.values())), grids.values(), strict=True):
            drawn = axis.imshow(grid, cmap="RdBu", vmin=-limit, vmax=limit, origin="lower", aspect="auto")
            axis.set(xticks=range(len(taus)), xticklabels=[f"{tau:g}" for tau in taus], xlabel="tau",
                     yticks=range(len(weights)), yticklabels=[f"{weight:g}" for weight in weights])  # fmt: skip
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


def by_reference(scope: Scope) -> Figure | None:
    """Delta by reference, for the untouched and the trained target: which references clear a member?"""
    runs = not_held_out(scope.of("reference", method="prism"))
    domains, pair = scope.world.found("domain", runs), scope.world.pair()
    present = {run.question.reference for run in runs}
    references = {k: v for k, v in scope.world.found("reference", runs).items() if k in present}

    def at(domain: str, target: str, reference: str) -> Cell:
        here = select(runs, domain=domain, target=target, reference=reference)
        p = number(here, scope.world.name, P_VALUE, formats.p_value)
        return Cell((*with_interval(here, scope.world.name), p), (), "{} [{}, {}], p {}")

    shown = {domain: name for domain, name in domains.items() if select(runs, domain=domain)}
    keys = [(domain, target) for domain in shown for target in pair]
    rows = tuple(
        Row(f"{shown[domain]}, {pair[target]}", tuple(at(domain, target, reference) for reference in references))
        for domain, target in keys
    )
    block = block_of(scope, "reference", "set, target", tuple(references.values()), rows,
                     ("Delta", "lower", "upper", "p"))  # fmt: skip
    if block is None:
        return None
    lines = lines_of(block, range(len(references)))

    def paint(canvas: Canvas) -> None:
        for axis, domain in zip(panels(canvas, tuple(shown.values())), shown, strict=True):
            zero_line(axis)
            for place, name in enumerate(pair.values()):
                line = lines.get(f"{shown[domain]}, {name}", Line(name, ()))
                bars(axis, name, [(x + 0.16 * (place - 0.5), y, lo, hi) for x, y, lo, hi in line.points], place)
            axis.set_xticks(range(len(references)), list(references.values()))
            axis.set_xlim(-0.5, len(references) - 0.5)
            axis.set_xlabel("reference")
        canvas.axes[0].set_ylabel("Delta")
        legend_below(canvas, canvas.axes[0])

    alt = "Delta and its interval by reference for the untouched and the trained target, a panel per set."
    return figure_of("reference", scope.world, "References", alt, block, size_of_panels(len(shown)), paint)


def by_seed(scope: Scope) -> Figure | None:
    """Delta and p over seeds of the distillation."""
    runs = not_held_out(scope.of("seed", method="prism"))
    domains = {k: v for k, v in scope.world.found("domain", runs).items() if select(runs, domain=k)}
    present = {run.question.target for run in runs}
    # The colours of the other figures: untouched first, then trained.
    ordered = scope.world.pair() | scope.world.found("target", runs)
    targets = {label: name for label, name in ordered.items() if label in present}

    def cells(domain: str, target: str) -> tuple[Cell, ...]:
        here = select(runs, domain=domain, target=target)
        many = Number(formats.count(len(here)), float(len(here)), scope.world.name, tuple(r.anchor for r in here))
        return (
            Cell((many if here else dash(scope.world.name),)),
            Cell(over_draws(here, scope.world.name, STATISTIC, formats.signed), (), RANGE),
            Cell(over_draws(here, scope.world.name, P_VALUE), (), RANGE),
        )

    keys = [(domain, target) for domain in domains for target in targets]
    rows = tuple(Row(f"{domains[domain]}, {targets[target]}", cells(domain, target)) for domain, target in keys)
    block = block_of(scope, "seed", "set, target", ("seeds", "Delta", "p"), rows, ("median", "lowest", "highest"))
    if block is None:
        return None

    def paint(canvas: Canvas) -> None:
        for axis, domain in zip(panels(canvas, tuple(domains.values())), domains, strict=True):
            zero_line(axis)
            for place, target in enumerate(targets):
                here = select(runs, domain=domain, target=target)
                values = [v for run in here if (v := run.statistics.value) is not None]
                spread = [place + 0.09 * (i - (len(values) - 1) / 2) for i in range(len(values))]
                axis.plot(spread, values, MARKERS[place % len(MARKERS)], color=colour(place), label=targets[target])
            axis.set_xticks([])
            axis.set_xlim(-0.6, len(targets) - 0.4)
        canvas.axes[0].set_ylabel("Delta, a point per seed")
        legend_below(canvas, canvas.axes[0])

    alt = "Delta for each seed of the distillation, by target, a panel per set."
    return figure_of("seed", scope.world, "Seeds", alt, block, size_of_panels(len(domains)), paint)


# --------------------------------------------------------------------------------------------- numbers


def numbers(
    scope: Scope, key: str, corner: str, rows: Mapping[Any, str], columns: Sequence[float],
    cell: Callable[[Any, float], Cell], quantities: tuple[str, ...], prefix: str = "",
) -> Block | None:  # fmt: skip
    """A table with a row per line of the figure and a column per x."""
    made_rows = tuple(Row(name, tuple(cell(row, x) for x in columns)) for row, name in rows.items())
    return block_of(scope, key, corner, tuple(f"{prefix}{x:g}" for x in columns), made_rows, quantities)


def block_of(
    scope: Scope, key: str, corner: str, columns: tuple[str, ...], rows: tuple[Row, ...], quantities: tuple[str, ...]
) -> Block | None:
    rows = tuple(row for row in rows if any(not cell.missing for cell in row.cells))
    name = f"numbers-{key}-{formats.slug(scope.world.name)}"
    block = Block(name, scope.world.name, scope.world.title, corner, columns, rows, quantities)
    return filled(block, [say_medians(rows), say_missing(block)])


def pair_name(scope: Scope, pair: tuple[str, str], runs: Sequence[Run]) -> str:
    before, after = (scope.world.targets.get(label, scope.world.references.get(label, label)) for label in pair)
    truths = {run.question.truth for run in select(runs, reference=pair[0], target=pair[1])}
    return f"{before} → {after}" + (" (control: neither read)" if truths == {"non_member"} else "")


# --------------------------------------------------------------------------------------------- strokes


def bars(axis: Axes, name: str, points: Sequence[tuple[float, float, float, float]], place: int) -> None:
    for x, value, lower, upper in points:
        if math.isfinite(value):
            axis.plot([x, x], [lower, upper], color=colour(place), linewidth=1.4)
    known = [point for point in points if math.isfinite(point[1])]
    axis.plot([point[0] for point in known], [point[1] for point in known], MARKERS[place], color=colour(place),
              label=name)  # fmt: skip


def binned(axis: Axes, result: AuditResult, name: str, place: int) -> None:
    """Points faintly, bins of equally many documents with the interval of their mean."""
    details = result.statistics.details
    points, bins = details.get("points"), details.get("bins")
    if isinstance(points, list) and place == 0:
        axis.plot([x for x, _ in points], [y for _, y in points], ".", color=colour(place), alpha=0.22, markersize=3,
                  zorder=1)  # fmt: skip
    if isinstance(bins, list):
        line = Line(name, tuple((one["x"], one["mean"], one["low"], one["high"]) for one in bins))
        stroke(axis, line, place, band=True)
