"""What of the calibration study's report is computed: who is cleared by what, which gates fire, where Delta lies."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas

from nonmember.records.exposure import Exposure
from nonmember.reports.core import formats
from nonmember.reports.core.grid import RANGE, Block, Numeral, TableCell, dash
from nonmember.reports.core.numbers import counted, number_in
from nonmember.reports.core.report import Filled, Glance, figures, tables
from nonmember.reports.core.worlds import Scope, select
from nonmember.reports.declared.report import DeclaredReport
from nonmember.reports.planted.audits import CONFIDENCE, no_rate, number_cell, rate_of
from nonmember.reports.render.blocks import cross_table
from nonmember.reports.render.figures import (
    MARKERS,
    QUIET,
    colour,
    draw_shares,
    figure_of,
    legend_below,
    panels,
    quantile_axis,
    share_axis,
    shares_of,
    size_of_panels,
    zero_line,
)
from nonmember.results.load import Run
from nonmember.stats.proportions import exact_interval
from nonmember_papers.calibration.rules import (
    DECLARED,
    DECLARED_RULES,
    FEWER_RULES,
    FINDS,
    PRISM,
    RULES,
    UNTOUCHED,
    DecisionRule,
    Deviation,
    RuleCount,
    count,
    deviation,
    extra_deviation,
    false_clearances,
    invalid,
    judged_by_one_another,
    p_at_least,
    power,
    prism_p,
    reading_of,
    root_of,
    runs_of,
    shares_base,
    size_of,
)

HALVES = {"reported": "the reported half", "chosen": "the half that rules were chosen on"}
SIZES = ("n = 100", "n = 500")
QUANTITIES = ("cleared", "of", "low", "high")


def by_clearance(scope: Scope) -> list[Run]:
    return select(runs_of(scope), method="clearance")


def readings(runs: Iterable[Run]) -> dict[str, Exposure]:
    """Lightest first: by exposures in all, then by share."""
    every = {reading_of(run) for run in runs}
    return {named(item): item for item in sorted(every, key=lambda item: (item.share * item.exposures, item.share))}


def named(reading: Exposure) -> str:
    if not reading.exposures:
        return "nothing"
    share = "" if reading.share == 1 else f", {reading.share:.0%} of it"
    return f"{reading.exposures}x{share}"


def having(runs: Iterable[Run], reading: Exposure) -> list[Run]:
    return [run for run in runs if reading_of(run) == reading]


def rate(of: RuleCount, world: str, is_false: bool = False) -> TableCell:
    """How many, with the exact interval of the share."""
    if not of.runs:
        return no_rate(world)
    interval = exact_interval(of.found, len(of.runs), 1 - CONFIDENCE)
    return rate_of(of.found, len(of.runs), interval, world, of.runs, is_false, digits=0)


# ----------------------------------------------------------------------------------- tables of either half


def of_halves(block: Callable[[str, str, Sequence[Run], str], Block | None]) -> Callable[[Scope], Filled]:
    """block: of a half, from its key, its name, its audits and the world."""

    def fill(scope: Scope) -> Filled:
        runs = runs_of(scope)
        halves = ((half, name, select(runs, half=half)) for half, name in HALVES.items())
        return tables(*(block(half, name, of_half, scope.world.name) for half, name, of_half in halves))

    return fill


def errors(half: str, name: str, runs: Sequence[Run], world: str) -> Block | None:
    """Per rule: false clearances and power."""

    def power_of(size: str) -> Callable[[DecisionRule], TableCell]:
        return lambda rule: rate(power(rule, [run for run in runs if size_of(run) == size]), world)

    columns: dict[str, Callable[[DecisionRule], TableCell]] = {
        "false clearances": lambda rule: rate(false_clearances(rule, runs), world, is_false=True),
        **{f"power, {size}": power_of(size) for size in SIZES},
        "invalid": lambda rule: rate(invalid(rule, runs), world),
    }
    notes = (
        "False: of targets that read what the clearance excludes. PRISM and the paired t claim that nothing was read, "
        "so every reading counts; a clearance of 8x excludes eight readings of the whole set, and more.",
        "Power: of targets that read nothing. Invalid: of these, how many audits a gate or a sham gives up; they count "
        "against the power.",
        "Own base: targets that were continued from the very model the controls are made of; the other rows of "
        "clearance are of targets of other base models.",
    )
    rows = {rule.name: rule for rule in RULES}
    return cross_table(f"errors-{half}", world, f"Errors on {name}", "rule", rows, columns, QUANTITIES, notes)


def by_reading(half: str, name: str, runs: Sequence[Run], world: str) -> Block | None:
    """How many targets each rule clears."""

    def cell(reading: Exposure, rule: DecisionRule) -> TableCell:
        is_false = rule.is_false_for(reading) if rule is not FINDS else not reading.exposures
        return rate(count(rule, having(runs, reading)), world, is_false)

    columns, title = (
        {rule.name: rule for rule in (*FEWER_RULES, FINDS)},
        f"Cleared, by what was read. {name.capitalize()}",
    )
    return cross_table(
        f"by-reading-{half}", world, title, "target has read", readings(runs), columns, QUANTITIES, cell=cell
    )


def by_kind(half: str, name: str, runs: Sequence[Run], world: str) -> Block | None:
    """Power by what the target is: base models differ from the stand-in more than continued ones do."""
    kinds: dict[str, list[Run]] = {
        "base models as they are": [],
        "continued on general text alone": [],
        "continued with other sets planted": [],
    }
    for run in runs:
        kinds[list(kinds)[{"u": 0, "g": 1}.get(str(run.get("case"))[0], 2)]].append(run)
    columns = {rule.name: rule for rule in FEWER_RULES}
    return cross_table(
        f"by-kind-{half}",
        world,
        f"Power, by what the target is. {name.capitalize()}",
        "target",
        kinds,
        columns,
        QUANTITIES,
        cell=lambda of_kind, rule: rate(power(rule, of_kind), world),
    )


def by_set(half: str, name: str, runs: Sequence[Run], world: str) -> Block | None:
    """False clearances and power of every rule."""
    kinds = {"false": (false_clearances, True), "power": (power, False)}
    columns = {f"{rule.name}: {what}": (rule, *kind) for rule in FEWER_RULES for what, kind in kinds.items()}

    def cell(
        corpus: str, column: tuple[DecisionRule, Callable[[DecisionRule, Iterable[Run]], RuleCount], bool]
    ) -> TableCell:
        rule, counts, is_false = column
        whole = rate(counts(rule, select(runs, corpus=corpus)), world, is_false)
        return TableCell(whole.ours[:2], (), "{} of {}")

    rows = {corpus: corpus for corpus in sorted({run.question.corpus for run in runs})}
    title = f"By set. {name.capitalize()}"
    return cross_table(f"by-set-{half}", world, title, "set", rows, columns, QUANTITIES[:2], cell=cell)


# ---------------------------------------------------------------------------------------- gates, deviations


def gates(scope: Scope) -> Filled:
    """How often each gate fires, on real distilled references (wrongly) and on shams (rightly)."""
    runs, world = by_clearance(scope), scope.world.name

    def gates_of(runs: Sequence[Run], *path: str) -> list[tuple[Run, Mapping[str, Any]]]:
        found = []
        for run in runs:
            node: Any = run.statistics.details
            for part in (*path, "gates"):
                node = node.get(part) if isinstance(node, Mapping) else None
            found += [(run, node)] if isinstance(node, Mapping) else []
        return found

    def fired(gate: str | None, found: Sequence[tuple[Run, Mapping[str, Any]]]) -> TableCell:
        """gate: None: any of them."""
        with_gate = [(run, gates) for run, gates in found if gate is None or gate in gates]
        failed = [
            any(not item["passed"] for name, item in gates.items() if gate in (None, name)) for _, gates in with_gate
        ]
        return rate(RuleCount(sum(failed), [run for run, _ in with_gate]), world)

    sources = {
        "target read nothing": gates_of([run for run in runs if not reading_of(run).exposures]),
        "target read the set": gates_of([run for run in runs if reading_of(run).exposures]),
        **{f"sham: {name}": gates_of(runs, "shams", sham) for sham, name in scope.names["shams"].items()},
    }
    rows = {name: gate for gate, name in scope.names["gates"].items()} | {"any of them": None}
    notes = ["Fired rightly: on a sham. On a real distilled reference it is a lost audit."]
    return tables(cross_table("gates", world, "Gates that fire", "gate", rows, sources, QUANTITIES, notes, fired))


def deviations(scope: Scope) -> Filled:
    """How far targets lie from the controls of their reading, and how far they would if they were some of them."""
    world, rows = scope.world.name, {}
    for half, name in HALVES.items():
        found = [item for run in select(by_clearance(scope), half=half) if (item := deviation(run)) is not None]
        for base in sorted({root_of(item.run) for item in found}):
            rows[f"{base}, {name}"] = [item for item in found if root_of(item.run) == base]
        if found:
            rows[f"all, {name}"] = found

    def decimals(value: Callable[[Sequence[Deviation]], float], *, signed: bool = False) -> Callable[..., TableCell]:
        return lambda group: number_cell(
            formats.decimals(value(group), signed=signed), value(group), world, [item.run for item in group]
        )

    def number(value: Callable[[Sequence[Deviation]], int]) -> Callable[..., TableCell]:
        return lambda group: number_cell(str(value(group)), value(group), world, [item.run for item in group])

    columns = {
        "mean": decimals(lambda group: float(np.mean([item.value for item in group])), signed=True),
        "root mean square": decimals(lambda group: math.sqrt(np.mean([item.value**2 for item in group]))),
        "of one more control": decimals(lambda group: math.sqrt(np.mean([item.expected for item in group]))),
        "beyond that": decimals(lambda group: extra_deviation(group)[0]),
        "targets": number(len),
        "sets": number(lambda group: extra_deviation(group)[1]),
    }
    notes = [
        "Beyond that: what is to be added to the spread of controls (`controls.deviation`), on as many degrees of "
        "freedom as there are sets (`controls.deviation_df`)."
    ]
    title = "Delta of targets less that of controls with their reading"
    return tables(cross_table("deviations", world, title, "base model, half", rows, columns, ("value",), notes))


def seeds(scope: Scope) -> Filled:
    """How much of the variance of Delta is due to distillation seeds."""
    world, runs = scope.world.name, by_clearance(scope)

    def spread(of_size: Sequence[Run]) -> TableCell:
        shares = [share for run in of_size if isinstance(share := run.statistics.details.get("share_of_seeds"), float)]
        return picks(shares, (0.5, 0.1, 0.9), of_size, world, formats.decimals)

    rows = {size: [run for run in runs if size_of(run) == size] for size in SIZES}
    known = {size: of_size for size, of_size in rows.items() if not spread(of_size).missing}
    title, column = (
        "Share of the variance of Delta that is due to distillation seeds",
        "median, tenth and ninetieth percentile",
    )
    quantities = ("median", "low", "high")
    return tables(cross_table("seeds", world, title, "documents", known, {column: spread}, quantities))


def picks(
    values: Iterable[float], shares: Sequence[float], runs: Sequence[Run], world: str, form: Callable[[float], str]
) -> TableCell:
    """Of sorted values those at these shares of the way."""
    if not (values := sorted(values)):
        return TableCell((dash(world),) * len(shares), (), RANGE)
    picked, anchors = [values[int(share * (len(values) - 1))] for share in shares], tuple(run.anchor for run in runs)
    return TableCell(tuple(Numeral(form(item), item, world, anchors) for item in picked), (), RANGE)


# ------------------------------------------------------------------------------------------------- figures


def reading_axis(axis: Axes, doses: Iterable[Exposure]) -> None:
    labels = [item.label for item in doses]
    axis.set(xlabel="what the target has read of the set")
    axis.set_xticks(range(len(labels)), labels, rotation=45, ha="right")


def rates(scope: Scope) -> Filled:
    """Share of targets that each rule clears, by what they read; a panel per half."""
    world, doses, rules = scope.world, readings(runs_of(scope)), (PRISM, *DECLARED_RULES)
    halves = {half: found for half in HALVES if (found := select(runs_of(scope), half=half))}
    rows = {f"{rule.name}, {half}": (rule, runs) for half, runs in halves.items() for rule in rules}
    title = "Cleared, by what was read"
    block = cross_table(
        "",
        world.name,
        title,
        "rule, half",
        rows,
        doses,
        QUANTITIES,
        cell=lambda row, reading: rate(count(row[0], having(row[1], reading)), world.name),
    )
    if block is None:
        return figures()

    def paint(canvas: Canvas) -> None:
        lines = iter(block.rows)
        for axis in panels(canvas, [HALVES[half] for half in halves]):
            for index, rule in enumerate(rules):
                if points := shares_of(next(lines), range(len(doses))):
                    draw_shares(axis, rule.name, points, index, 0.14 * (index - 1), linestyle="")
            axis.axvspan(-0.5, 0.5, color=QUIET, alpha=0.1, linewidth=0)
            reading_axis(axis, doses.values())
            axis.set_xlim(-0.5, len(doses) - 0.5)
            share_axis(axis, 0.05)
        canvas.axes[0].set_ylabel("share of targets cleared")
        legend_below(canvas, canvas.axes[0])

    alt = (
        "Share of targets that plain PRISM and calibrated clearance clear, with exact 95% intervals, by what the "
        "target has read of the set: nothing at the left (there clearing is right), the heaviest reading at the right."
    )
    return figures(figure_of("rates", world, title, alt, block, (7.6, 3.6), paint))


def quantiles(scope: Scope) -> Filled:
    """p-values of targets that did read against those expected of a uniform distribution; below it: too small."""
    world, runs = scope.world, by_clearance(scope)
    declared = [run for run in runs if reading_of(run).exposures and reading_of(run).at_least(DECLARED)]
    stand_in, own = DECLARED_RULES
    one_per_set = {run.question.corpus: run for run in runs}
    pairs: dict[str, list[tuple[float | None, Run]]] = {
        PRISM.name: [(prism_p(run), run) for run in runs if reading_of(run).exposures],
        stand_in.name: [(p_at_least(run, DECLARED), run) for run in declared if not shares_base(run)],
        own.name: [(p_at_least(run, DECLARED), run) for run in declared if shares_base(run)],
        "controls, by one another": [(p, run) for run in one_per_set.values() for p in judged_by_one_another(run)],
    }
    exist = {name: [(p, run) for p, run in of if p is not None and math.isfinite(p)] for name, of in pairs.items()}
    found = {name: sorted(of, key=lambda pair: pair[0]) for name, of in exist.items() if of}

    def cell(ps: Sequence[tuple[float, Run]], level: float) -> TableCell:
        anchors = tuple(run.anchor for _, run in ps)
        share = sum(p < level for p, _ in ps) / len(ps)
        numbers = (
            Numeral(f"{share:.0%}", share, world.name, anchors),
            Numeral(str(len(ps)), float(len(ps)), world.name, anchors),
        )
        return TableCell(numbers, (), "{} of {}")

    title = "Share of readers' p-values below a level"
    columns = {f"p < {level:g}": level for level in (0.01, 0.05, 0.1, 0.5)}
    block = cross_table("", world.name, title, "test", found, columns, ("share", "of"), cell=cell)

    def paint(canvas: Canvas) -> None:
        for index, (axis, ps) in enumerate(zip(panels(canvas, list(found)), found.values(), strict=True)):
            quantile_axis(axis, [p for p, _ in ps], index, ".")
        canvas.axes[0].set_ylabel("p of targets that read")

    alt = (
        "p-values for clearing targets that did read, sorted, against those expected of a uniform distribution; points "
        "below the diagonal are targets that are cleared too easily. A panel per test."
    )
    size = size_of_panels(len(found))
    return figures(figure_of("quantiles", world, "p where clearing is false", alt, block, size, paint))


def deltas(scope: Scope) -> Filled:
    """Delta of every target less the mean Delta of the controls that read nothing, by what it has read."""
    world, runs = scope.world, by_clearance(scope)
    doses = readings(runs)
    points = [(run, delta) for run in runs if (delta := beyond_untouched(run)) is not None]
    rules = dict(zip(("a stand-in", "the target's own base"), DECLARED_RULES, strict=True))
    kinds = {
        name: of_kind
        for name, rule in rules.items()
        if (of_kind := [item for item in points if shares_base(item[0]) is (rule is DECLARED_RULES[1])])
    }

    def cell(of_kind: Sequence[tuple[Run, float]], reading: Exposure) -> TableCell:
        of = [(run, delta) for run, delta in of_kind if reading_of(run) == reading]
        deltas, runs = [delta for _, delta in of], [run for run, _ in of]
        return picks(deltas, (0.5, 0.05, 0.95), runs, world.name, formats.signed)

    title, quantities = "Delta less that of controls that read nothing", ("median", "low", "high")
    block = cross_table("", world.name, title, "controls made of", kinds, doses, quantities, cell=cell)

    def paint(canvas: Canvas) -> None:
        for axis, (name, of_kind) in zip(panels(canvas, list(kinds)), kinds.items(), strict=True):
            for index, label in enumerate((f"cleared of {DECLARED.label}", "not cleared")):
                shown = [(run, delta) for run, delta in of_kind if rules[name].decides(run) is (index == 0)]
                xs = np.array([list(doses.values()).index(reading_of(run)) for run, _ in shown])
                jitter = np.random.default_rng(index).uniform(-0.3, 0.3, len(shown))
                axis.plot(
                    xs + jitter,
                    [delta for _, delta in shown],
                    linestyle="",
                    marker=MARKERS[index],
                    markersize=3,
                    alpha=0.7,
                    color=colour(index),
                    label=label,
                )
            zero_line(axis)
            reading_axis(axis, doses.values())
        canvas.axes[0].set_ylabel("Delta less that of\ncontrols that read nothing")
        legend_below(canvas, canvas.axes[0])

    alt = (
        "Delta of every target less the mean Delta of the controls that read nothing, by what the target has read of "
        "the set; the more was read, the lower. Filled by whether the target is cleared of eight readings."
    )
    return figures(figure_of("deltas", world, "Delta, by what was read", alt, block, (7.6, 3.6), paint))


def beyond_untouched(run: Run) -> float | None:
    """Delta less the mean of the controls that read nothing."""
    controls = run.statistics.details.get("control_deltas")
    untouched = controls.get(UNTOUCHED) if isinstance(controls, dict) else None
    delta = number_in({"delta": run.statistics.value}, "delta")
    return delta - float(np.mean(untouched)) if untouched and delta is not None else None


# -------------------------------------------------------------------------------------------------- report


def cells_of_glance(scope: Scope) -> Iterator[TableCell]:
    runs = select(runs_of(scope), half="reported")
    for rule in (PRISM, *DECLARED_RULES):
        for of in (false_clearances(rule, runs), power(rule, runs)):
            yield counted(of.found, len(of.runs), scope.world.name)


class CalibrationReport(DeclaredReport):
    """names: gates and shams, by their keys in the results."""

    special: ClassVar = {
        "errors": of_halves(errors),
        "rates": rates,
        "by-reading": of_halves(by_reading),
        "quantiles": quantiles,
        "deltas": deltas,
        "gates": gates,
        "deviations": deviations,
        "by-kind": of_halves(by_kind),
        "by-set": of_halves(by_set),
        "seeds": seeds,
    }

    def first_numbers(self) -> Glance:
        rules = ("PRISM", "clearance", "clearance, own base")
        columns = tuple(f"{rule}: {what}" for rule in rules for what in ("false", "power"))
        return Glance(columns, cells_of_glance, self.glance_note)
