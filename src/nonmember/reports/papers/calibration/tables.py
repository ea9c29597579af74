"""Tables of the calibration study: who is cleared by what, which gates fire, what becomes of shams."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from nonmember.records.exposure import Exposure
from nonmember.reports.core import formats
from nonmember.reports.core.grid import FALSE, Block, Cell, Number, Row, dash
from nonmember.reports.core.report import Filled, tables
from nonmember.reports.core.worlds import Scope, select
from nonmember.reports.papers.calibration.cells import (
    FEWER_RULES,
    FINDS,
    RULES,
    Count,
    Deviation,
    Rule,
    count,
    deviation,
    extra_deviation,
    false_clearances,
    invalid,
    power,
    reading_of,
    root_of,
    runs_of,
    size_of,
)
from nonmember.reports.render.blocks import filled
from nonmember.results.load import Run

HALVES = {"reported": "the reported half", "chosen": "the half that rules were chosen on"}
RATE = "{} of {} [{}, {}]"
KINDS = {
    "untouched": "base models as they are",
    "general": "continued on general text alone",
    "beside": "continued with other sets planted",
}
CLUSTERED = (
    "Audits of one set share its documents and its controls, so the intervals, which take them as independent, are "
    "too short where a set is special; the tables by set show whether one is."
)


def readings(runs: Iterable[Run]) -> list[Exposure]:
    """Lightest first: by exposures in all, then by share."""
    return sorted({reading_of(run) for run in runs}, key=lambda one: (one.share * one.exposures, one.share))


def rate(of: Count, world: str, mark: str = "") -> Cell:
    """How many, with the exact interval of the share."""
    if not of.of:
        return Cell(tuple(dash(world) for _ in range(4)), (), RATE)
    anchors = tuple(run.anchor for run in of.runs)
    low, high = of.interval
    numbers = [Number(str(of.found), float(of.found), world, anchors, mark=mark if of.found else ""),
               Number(str(of.of), float(of.of), world, anchors)]  # fmt: skip
    return Cell((*numbers, *(Number(f"{end:.0%}", end, world, anchors) for end in (low, high))), (), RATE)


QUANTITIES = ("cleared", "of", "low", "high")


def errors(scope: Scope) -> Filled:
    """Per rule: false clearances and power, on each half."""
    return tables(*(_errors(scope, half) for half in HALVES))


def _errors(scope: Scope, half: str) -> Block | None:
    runs, world = select(runs_of(scope), half=half), scope.world.name
    columns = ("false clearances", "power, n = 100", "power, n = 500", "invalid")

    def cells(rule: Rule) -> tuple[Cell, ...]:
        of_size = (select_size(runs, size) for size in ("n = 100", "n = 500"))
        powers = (rate(power(rule, one), world) for one in of_size)
        return rate(false_clearances(rule, runs), world, FALSE), *powers, rate(invalid(rule, runs), world)

    rows = tuple(Row(rule.name, cells(rule)) for rule in RULES)
    notes = (
        "False: of targets that read what the clearance excludes. PRISM and the paired t claim that nothing was read, "
        "so every reading counts; a clearance of 8x excludes eight readings of the whole set, and more.",
        "Power: of targets that read nothing. Invalid: of these, how many audits a gate or a sham gives up; they count "
        "against the power.",
        "Own base: targets that were continued from the very model the controls are made of; the other rows of "
        "clearance are of targets of other base models.",
        CLUSTERED,
    )
    return filled(Block(f"errors-{half}", world, f"Errors on {HALVES[half]}", "rule", columns, rows, QUANTITIES), notes)


def select_size(runs: Sequence[Run], size: str) -> list[Run]:
    return [run for run in runs if size_of(run) == size]


def by_reading(scope: Scope) -> Filled:
    """Per reading: how many targets each rule clears."""
    return tables(*(_by_reading(scope, half) for half in HALVES))


def _by_reading(scope: Scope, half: str) -> Block | None:
    runs, world = select(runs_of(scope), half=half), scope.world.name
    rules = (*FEWER_RULES, FINDS)

    def cell(rule: Rule, reading: Exposure) -> Cell:
        false = rule.is_false_for(reading) if rule is not FINDS else not reading.exposures
        return rate(count(rule, [run for run in runs if reading_of(run) == reading]), world, FALSE if false else "")

    rows = tuple(Row(named(one), tuple(cell(rule, one) for rule in rules)) for one in readings(runs))
    columns = tuple(rule.name for rule in rules)
    block = Block(f"by-reading-{half}", world, f"Cleared, by what was read. {HALVES[half].capitalize()}",
                  "target has read", columns, rows, QUANTITIES)  # fmt: skip
    return filled(block, [])


def named(reading: Exposure) -> str:
    if not reading.exposures:
        return "nothing"
    share = "" if reading.share == 1 else f", {reading.share:.0%} of it"
    return f"{reading.exposures}x{share}"


def by_kind(scope: Scope) -> Filled:
    """Power by what the target is: base models differ from the stand-in more than continued ones do."""
    return tables(*(_by_kind(scope, half) for half in HALVES))


def kind_of(run: Run) -> str:
    case = str(run.get("case"))
    return {"u": "untouched", "g": "general"}.get(case[0], "beside")


def _by_kind(scope: Scope, half: str) -> Block | None:
    runs, world = select(runs_of(scope), half=half), scope.world.name
    rows = tuple(
        Row(
            name, tuple(rate(power(rule, [run for run in runs if kind_of(run) == kind]), world) for rule in FEWER_RULES)
        )
        for kind, name in KINDS.items()
    )
    block = Block(f"by-kind-{half}", world, f"Power, by what the target is. {HALVES[half].capitalize()}", "target",
                  tuple(rule.name for rule in FEWER_RULES), rows, QUANTITIES)  # fmt: skip
    return filled(block, [])


def by_set(scope: Scope) -> Filled:
    """Per set: false clearances and power of every rule."""
    return tables(*(_by_set(scope, half) for half in HALVES))


def _by_set(scope: Scope, half: str) -> Block | None:
    runs, world = select(runs_of(scope), half=half), scope.world.name
    sets = sorted({run.question.corpus for run in runs})
    columns = tuple(f"{rule.name}: {what}" for rule in FEWER_RULES for what in ("false", "power"))

    def cells(name: str) -> Iterable[Cell]:
        here = [run for run in runs if run.question.corpus == name]
        for rule in FEWER_RULES:
            for found, mark in ((false_clearances(rule, here), FALSE), (power(rule, here), "")):
                cell = rate(found, world, mark)
                yield Cell(cell.ours[:2], (), "{} of {}")

    rows = tuple(Row(name, tuple(cells(name))) for name in sets)
    block = Block(f"by-set-{half}", world, f"By set. {HALVES[half].capitalize()}", "set", columns, rows, QUANTITIES[:2])
    return filled(block, [])


# ---------------------------------------------------------------------------------------------------- gates

GATES = {
    "ce": "cross-entropy falls",
    "ce_share": "as far as half of what controls' references gain",
    "kl": "not farther from the target",
    "kl_third": "not farther on the third text",
    "nll_third": "loss on the third text",
    "rank_correlation": "ranks like the reference",
    "seeds": "stable over seeds",
    "layout": "prepared alike",
    "separation": "reading lowers Delta of controls",
}
SHAMS = {"sham_unrelated": "trained on other text", "sham_noise": "weights with noise"}


def gates(scope: Scope) -> Filled:
    """How often each gate fires, on real distilled references (wrongly) and on shams (rightly)."""
    runs, world = select(runs_of(scope), method="clearance"), scope.world.name
    sources = {
        "target read nothing": [
            (run, run.statistics.details.get("gates")) for run in runs if not reading_of(run).exposures
        ],
        "target read the set": [
            (run, run.statistics.details.get("gates")) for run in runs if reading_of(run).exposures
        ],
        **{f"sham: {name}": [(run, _sham(run, sham)) for run in runs] for sham, name in SHAMS.items()},
    }
    rows = [Row(name, tuple(_fired(found, gate, world) for found in sources.values())) for gate, name in GATES.items()]
    rows.append(Row("any of them", tuple(_fired(found, None, world) for found in sources.values())))
    block = Block("gates", world, "Gates that fire", "gate", tuple(sources), tuple(rows), QUANTITIES)
    return tables(filled(block, ["Fired rightly: on a sham. On a real distilled reference it is a lost audit."]))


def _sham(run: Run, name: str) -> Any:
    shams = run.statistics.details.get("shams")
    one = shams.get(name) if isinstance(shams, Mapping) else None
    return one.get("gates") if isinstance(one, Mapping) else None


def _fired(found: Sequence[tuple[Run, Any]], gate: str | None, world: str) -> Cell:
    told = [(run, gates) for run, gates in found if isinstance(gates, Mapping) and (gate is None or gate in gates)]
    failed = [
        any(not one["passed"] for one in gates.values()) if gate is None else not gates[gate]["passed"]
        for _, gates in told
    ]
    return rate(Count(sum(failed), len(failed), tuple(run for run, _ in told)), world)


def deviations(scope: Scope) -> Filled:
    """How far targets lie from the controls of their reading, and how far they would if they were some of them."""
    runs, world = select(runs_of(scope), method="clearance"), scope.world.name
    rows = []
    for half, name in HALVES.items():
        found = [one for run in select(runs, half=half) if (one := deviation(run)) is not None]
        bases = sorted({root_of(one.run) for one in found})
        for base in bases:
            rows.append(Row(f"{base}, {name}", _deviating([one for one in found if root_of(one.run) == base], world)))
        if found:
            rows.append(Row(f"all, {name}", _deviating(found, world)))
    if not rows:
        return tables(None)
    columns = ("mean", "root mean square", "of one more control", "beyond that", "targets", "sets")
    block = Block("deviations", world, "Delta of targets less that of controls with their reading",
                  "base model, half", columns, tuple(rows), ("value",))  # fmt: skip
    note = (
        "Beyond that: what is to be added to the spread of controls (`controls.deviation`), on as many degrees of "
        "freedom as there are sets (`controls.deviation_df`)."
    )
    return tables(filled(block, [note]))


def _deviating(found: Sequence[Deviation], world: str) -> tuple[Cell, ...]:
    anchors = tuple(one.run.anchor for one in found)
    values = np.array([one.value for one in found])
    beyond, num_sets = extra_deviation(found)
    mean, expected = float(values.mean()), math.sqrt(float(np.mean([one.expected for one in found])))
    told = [(formats.signed(mean), mean)]
    told += [(formats.decimals(one), one) for one in (math.sqrt(float(np.mean(values**2))), expected, beyond)]
    told += [(str(one), float(one)) for one in (len(found), num_sets)]
    return tuple(Cell((Number(text, value, world, anchors),), (), "{}") for text, value in told)


def seeds(scope: Scope) -> Filled:
    """How much of the variance of Delta is due to distillation seeds."""
    runs, world = select(runs_of(scope), method="clearance"), scope.world.name
    rows = []
    for size in ("n = 100", "n = 500"):
        shares = sorted(
            share for run in select_size(runs, size)
            if isinstance(share := run.statistics.details.get("share_of_seeds"), float)
        )  # fmt: skip
        anchors = tuple(run.anchor for run in select_size(runs, size))
        if shares:
            picks = [shares[int(place * (len(shares) - 1))] for place in (0.5, 0.1, 0.9)]
            rows.append(Row(size, (Cell(tuple(Number(formats.decimals(one), one, world, anchors) for one in picks), (),
                                        "{} ({} to {})"),)))  # fmt: skip
    if not rows:
        return tables(None)
    block = Block("seeds", world, "Share of the variance of Delta that is due to distillation seeds", "documents",
                  ("median, tenth and ninetieth percentile",), tuple(rows), ("median", "low", "high"))  # fmt: skip
    return tables(filled(block, []))
