"""Figures of the calibration study: who is cleared by dose, p-values of readers, and where Delta lies."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
from matplotlib.figure import Figure as Canvas
from scipy import stats

from nonmember.records.exposure import Exposure
from nonmember.reports.core import formats
from nonmember.reports.core.grid import Block, Cell, Figure, Number, Row, dash
from nonmember.reports.core.numbers import number_in
from nonmember.reports.core.worlds import Scope, select
from nonmember.reports.papers.calibration.cells import (
    DECLARED,
    PRISM,
    UNTOUCHED,
    Rule,
    clearance,
    count,
    judged_by_one_another,
    p_at_least,
    prism_p,
    reading_of,
    runs_of,
    shares_base,
)
from nonmember.reports.papers.calibration.tables import HALVES, QUANTITIES, named, rate, readings
from nonmember.reports.render.blocks import filled
from nonmember.reports.render.figures import MARKERS, QUIET, colour, figure_of, legend_below, panels, size_of_panels
from nonmember.results.load import Run

BAND = 0.95


def rates(scope: Scope) -> Figure | None:
    """Share of targets that each rule clears, by what they read; a panel per half."""
    rules = (PRISM, clearance(DECLARED), clearance(DECLARED, own_base=True))
    halves = {half: found for half in HALVES if (found := select(runs_of(scope), half=half))}
    doses = readings(runs_of(scope))
    world = scope.world

    def row(rule: Rule, half: str, runs: Sequence[Run]) -> Row:
        cells = (rate(count(rule, [run for run in runs if reading_of(run) == one]), world.name) for one in doses)
        return Row(f"{rule.name}, {half}", tuple(cells))

    rows = tuple(row(rule, half, runs) for half, runs in halves.items() for rule in rules)
    bare = Block(f"numbers-rates-{formats.slug(world.name)}", world.name, "Cleared, by what was read", "rule, half",
                 tuple(map(named, doses)), rows, QUANTITIES)  # fmt: skip
    block = filled(bare, [])
    if block is None:
        return None

    def paint(canvas: Canvas) -> None:
        for axis, runs in zip(panels(canvas, [HALVES[half] for half in halves]), halves.values(), strict=True):
            for place, rule in enumerate(rules):
                found = [count(rule, [run for run in runs if reading_of(run) == one]) for one in doses]
                shown = [(x + (place - 1) * 0.14, one) for x, one in enumerate(found) if one.of]
                if not shown:
                    continue
                shares = [one.found / one.of for _, one in shown]
                ends = np.array([one.interval for _, one in shown]).T
                bars = np.abs(ends - shares)
                axis.errorbar([x for x, _ in shown], shares, yerr=bars, color=colour(place), label=rule.name,
                              marker=MARKERS[place], linestyle="", elinewidth=1)  # fmt: skip
            axis.axvspan(-0.5, 0.5, color=QUIET, alpha=0.1, linewidth=0)
            axis.set(ylim=(-0.03, 1.03), xlim=(-0.5, len(doses) - 0.5), xticks=range(len(doses)),
                     xlabel="what the target has read of the set")  # fmt: skip
            axis.set_xticklabels([one.label for one in doses], rotation=45, ha="right")
            axis.axhline(0.05, color=QUIET, linewidth=0.8, linestyle=(0, (4, 3)))
        canvas.axes[0].set_ylabel("share of targets cleared")
        legend_below(canvas, canvas.axes[0])

    alt = (
        "Share of targets that plain PRISM and calibrated clearance clear, with exact 95% intervals, by what the "
        "target has read of the set: nothing at the left (there clearing is right), the heaviest reading at the right."
    )
    return figure_of("rates", world, "Cleared, by what was read", alt, block, (7.6, 3.6), paint)


def quantiles(scope: Scope) -> Figure | None:
    """p-values of targets that did read against those expected of a uniform distribution; below it: too small."""
    world = scope.world
    kinds: dict[str, tuple[Callable[[Run], float | None], Callable[[Run], bool]]] = {
        PRISM.name: (prism_p, lambda run: run.question.method == "clearance" and reading_of(run).exposures > 0),
        clearance(DECLARED).name: (lambda run: p_at_least(run, DECLARED), lambda run: _reader(run, own_base=False)),
        clearance(DECLARED, own_base=True).name: (
            lambda run: p_at_least(run, DECLARED), lambda run: _reader(run, own_base=True),
        ),
    }  # fmt: skip
    found = {
        name: _sorted(value, [run for run in runs_of(scope) if wanted(run)])
        for name, (value, wanted) in kinds.items()
    }  # fmt: skip
    one_per_set = {run.question.corpus: run for run in runs_of(scope) if run.question.method == "clearance"}
    among = [(p, run) for run in one_per_set.values() for p in judged_by_one_another(run)]
    found[AMONG_CONTROLS] = sorted(among, key=lambda pair: pair[0])
    found = {name: ps for name, ps in found.items() if ps}
    levels = (0.01, 0.05, 0.1, 0.5)
    rows = tuple(
        Row(name, tuple(_share_below(level, ps, world.name) for level in levels)) for name, ps in found.items()
    )
    if not rows:
        return None
    block = filled(Block(f"numbers-quantiles-{formats.slug(world.name)}", world.name,
                         "Share of readers' p-values below a level", "test", tuple(f"p < {one:g}" for one in levels),
                         rows, ("share", "of")), [])  # fmt: skip
    assert block is not None

    def paint(canvas: Canvas) -> None:
        for place, (axis, ps) in enumerate(zip(panels(canvas, list(found)), found.values(), strict=True)):
            ranks = np.arange(1, len(ps) + 1)
            expected = ranks / (len(ps) + 1)
            axis.fill_between(expected, *stats.beta.interval(BAND, ranks, ranks[::-1]), color=QUIET, alpha=0.15,
                              linewidth=0)  # fmt: skip
            axis.plot((0, 1), (0, 1), color=QUIET, linewidth=0.7, zorder=0)
            axis.plot(expected, [p for p, _ in ps], marker=".", linestyle="", color=colour(place))
            axis.set(xlabel="expected p", xlim=(0, 1), ylim=(0, 1))
        canvas.axes[0].set_ylabel("p of targets that read")

    alt = (
        "p-values for clearing targets that did read, sorted, against those expected of a uniform distribution; points "
        "below the diagonal are targets that are cleared too easily. A panel per test."
    )
    return figure_of("quantiles", world, "p where clearing is false", alt, block, size_of_panels(len(found)), paint)


def _reader(run: Run, *, own_base: bool) -> bool:
    """Whether an audit by clearance is of a target that read what is declared."""
    of_kind = run.question.method == "clearance" and shares_base(run) is own_base
    return of_kind and reading_of(run).exposures > 0 and reading_of(run).at_least(DECLARED)


def _sorted(value: Callable[[Run], float | None], runs: Sequence[Run]) -> list[tuple[float, Run]]:
    pairs = [(p, run) for run in runs if (p := value(run)) is not None and math.isfinite(p)]
    return sorted(pairs, key=lambda pair: pair[0])


def _share_below(level: float, ps: Sequence[tuple[float, Run]], world: str) -> Cell:
    anchors = tuple(run.anchor for _, run in ps)
    share = sum(p < level for p, _ in ps) / len(ps)
    numbers = (Number(f"{share:.0%}", share, world, anchors), Number(str(len(ps)), float(len(ps)), world, anchors))
    return Cell(numbers, (), "{} of {}")


def deltas(scope: Scope) -> Figure | None:
    """Delta of every target less the mean Delta of the controls that read nothing, by what it has read."""
    runs, world = select(runs_of(scope), method="clearance"), scope.world
    doses = readings(runs)
    points = [(run, reading_of(run), delta) for run in runs if (delta := beyond_untouched(run)) is not None]
    if not points:
        return None

    kinds = {name: [one for one in points if shares_base(one[0]) is own] for name, own in BASES.items()}
    kinds = {name: here for name, here in kinds.items() if here}

    def cell(here: Sequence[Point], reading: Exposure) -> Cell:
        values = sorted(delta for _, one, delta in here if one == reading)
        if not values:
            return Cell(tuple(dash(world.name) for _ in range(3)), (), RATE_OF_DELTA)
        anchors = tuple(run.anchor for run, one, _ in here if one == reading)
        picks = [values[int(share * (len(values) - 1))] for share in (0.5, 0.05, 0.95)]
        return Cell(tuple(Number(formats.signed(one), one, world.name, anchors) for one in picks), (), RATE_OF_DELTA)

    rows = tuple(Row(name, tuple(cell(here, one) for one in doses)) for name, here in kinds.items())
    block = filled(Block(f"numbers-deltas-{formats.slug(world.name)}", world.name,
                         "Delta less that of controls that read nothing", "controls made of",
                         tuple(map(named, doses)), rows, ("median", "low", "high")), [])  # fmt: skip
    assert block is not None

    def paint(canvas: Canvas) -> None:
        looks = {f"cleared of {DECLARED.label}": (True, 0), "not cleared": (False, 1)}
        for axis, (name, points_here) in zip(panels(canvas, list(kinds)), kinds.items(), strict=True):
            rule = clearance(DECLARED, own_base=BASES[name])
            for label, (decision, place) in looks.items():
                here = [(doses.index(one), delta) for run, one, delta in points_here if rule.decides(run) is decision]
                jitter = np.random.default_rng(place).uniform(-0.3, 0.3, len(here))
                axis.plot(np.array([x for x, _ in here]) + jitter, [delta for _, delta in here], linestyle="",
                          marker=MARKERS[place], markersize=3, alpha=0.7, color=colour(place), label=label)  # fmt: skip
            axis.axhline(0, color=QUIET, linewidth=0.7, zorder=0)
            axis.set(xticks=range(len(doses)), xlabel="what the target has read of the set")
            axis.set_xticklabels([one.label for one in doses], rotation=45, ha="right")
        canvas.axes[0].set_ylabel("Delta less that of\ncontrols that read nothing")
        legend_below(canvas, canvas.axes[0])

    alt = (
        "Delta of every target less the mean Delta of the controls that read nothing, by what the target has read of "
        "the set; the more was read, the lower. Filled by whether the target is cleared of eight readings."
    )
    return figure_of("deltas", world, "Delta, by what was read", alt, block, (7.6, 3.6), paint)


AMONG_CONTROLS = "controls, by one another"
RATE_OF_DELTA = "{} ({} to {})"
BASES = {"a stand-in": False, "the target's own base": True}  # whether target and controls share theirs
Point = tuple[Run, Exposure, float]


def beyond_untouched(run: Run) -> float | None:
    """Delta less the mean of the controls that read nothing."""
    controls = run.statistics.details.get("control_deltas")
    untouched = controls.get(UNTOUCHED) if isinstance(controls, dict) else None
    delta = number_in({"delta": run.statistics.value}, "delta")
    return delta - float(np.mean(untouched)) if untouched and delta is not None else None
