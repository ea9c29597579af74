"""The tables of calibrated clearance for one world: verdicts by what was read, margins, detectable doses, gates, and
several sets together."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial

from nonmember.records.exposure import Exposure
from nonmember.reports.core import formats
from nonmember.reports.core.families import ALL, EACH, SCREENING, Family, families
from nonmember.reports.core.grid import Block, Cell, Number, dash
from nonmember.reports.core.numbers import (
    P_VALUE,
    STATISTIC,
    Value,
    counted,
    detail,
    number_in,
)
from nonmember.reports.core.report import Filled, tables
from nonmember.reports.core.worlds import Scope
from nonmember.reports.papers.clearance.rows import (
    against_truth,
    by_set,
    by_target,
    cleared,
    cleared_by_prism,
    details,
    is_invalid,
    one_of_each,
    read_something,
    readings_of,
    share_of,
    spread_of,
    table,
    two_digits,
)
from nonmember.results.load import Run
from nonmember.results.readings import excluded, planted, read_by_target, read_so_much
from nonmember.results.result import AuditResult

POWER = 0.95  # of the smallest detectable dose, as in methods/clearance.py
MARGIN, SEEDS = detail("margin"), detail("share_of_seeds")
MEDIAN = ("median", "lowest", "highest")
GATES = {
    "ce": "gain in cross-entropy on the suspect set",
    "ce_share": "that gain as a share of the controls' references'",
    "kl": "fall of divergence from the target there",
    "kl_third": "rise of divergence on a third text",
    "nll_third": "rise of loss on a third text",
    "rank_correlation": "rank correlation with the reference",
    "seeds": "standard deviation of Delta over seeds",
    "layout": "AUC by layout, suspect against third text",
    "separation": "Delta of unread controls less that of read ones",
}
SHAMS = {"sham_unrelated": "sham: unrelated text", "sham_noise": "sham: noise"}


# --------------------------------------------------------------------------------------------- verdicts


def verdicts(scope: Scope) -> Filled:
    rows = {
        name: (
            spread_of(scope, here, STATISTIC, formats.signed),
            spread_of(scope, here, MARGIN, formats.signed),
            spread_of(scope, here, P_VALUE, formats.p_value),
            against_truth(share_of(scope, here, cleared), any(read_so_much(run.result) for run in here)),
            share_of(scope, here, is_invalid),
            against_truth(share_of(scope, here, cleared_by_prism), here[0].result.question.truth == "member"),
            spread_of(scope, here, SEEDS, lambda value: formats.decimals(value, 2)),
        )
        for name, here in by_target(scope).items()
    }
    columns = ("Delta", "margin", "p", "cleared", "invalid", "cleared by PRISM", "variance due to seeds")
    limits = sorted({reading.label for run in scope.runs if (reading := excluded(run.result))})
    note = f"Excluded, with all that is heavier: {formats.listed(limits)}."
    return tables(table(scope, "verdicts", "Verdicts", "target", columns, rows, MEDIAN, [note]))


# ---------------------------------------------------------------------------------------------- margins


def margins(scope: Scope) -> Block | None:
    """Of every set, by reading: above which Delta a model with that reading is not expected."""
    labels = [label for label in read_something(readings_of(scope.runs))
              if any(label in details(run.result).get("margins", {}) for run in scope.runs)]  # fmt: skip
    rows = {
        name: [spread_of(scope, one_of_each(here), detail("margins", label, "bound"), formats.signed)
               for label in labels]
        for name, here in by_set(scope.runs).items()
    }  # fmt: skip
    return table(scope, "margins", "Margins by reading", "set", labels, rows, MEDIAN)


# -------------------------------------------------------------------------------------------- detection


def at_reading(label: str, name: str) -> Value:
    """A number of the detection curve at a planted reading."""

    def value(result: AuditResult) -> float | None:
        reading = planted(result).get(label)
        points = details(result)["detection"]["points"]
        return next((number_in(point, name) for point in points
                     if reading and (point["share"], point["exposures"]) == (reading.share, reading.exposures)),
                    None)  # fmt: skip

    return value


def power(scope: Scope) -> Block | None:
    """By set and reading: how probable it is to notice that a model which read nothing did not read so."""
    labels = list(read_something(readings_of(scope.runs)))
    rows = {
        name: [spread_of(scope, one_of_each(here), at_reading(label, "power_at_least"), two_digits) for label in labels]
        for name, here in by_set(scope.runs).items()
    }
    return table(scope, "power", "Probability of noticing", "set", labels, rows, MEDIAN)


def noticed(scope: Scope) -> Block | None:
    """By target and reading: in how many audits the reading, and every heavier one, was noticed not to be there."""
    readings = read_something(readings_of(scope.runs))

    def cell(here: Sequence[Run], reading: Exposure) -> Cell:
        p = at_reading(reading.label, "p_at_least")
        values = [(run.result, found) for run in here if (found := p(run.result)) is not None]
        num = sum(value < result.question.alpha and not is_invalid(result) for result, value in values)
        was_there = any((read := read_by_target(result)) and read.at_least(reading) for result, _ in values)
        return against_truth(counted(num, len(values), scope.world.name), was_there)

    rows = {name: [cell(here, reading) for reading in readings.values()] for name, here in by_target(scope).items()}
    return table(scope, "noticed", "Audits that noticed", "target", tuple(readings), rows, ("noticed", "of"))


def largest_p(scope: Scope) -> Block | None:
    labels = list(read_something(readings_of(scope.runs)))
    rows = {
        name: [spread_of(scope, here, at_reading(label, "p_at_least"), formats.p_value) for label in labels]
        for name, here in by_target(scope).items()
    }
    return table(scope, "largest-p", "Largest p at this reading and every heavier one", "target", labels, rows, MEDIAN)


def smallest_doses(scope: Scope) -> Block | None:
    """By set and share: the dose from which on a model that read nothing would be noticed."""
    shares = sorted({share for run in scope.runs for share in details(run.result)["detection"]["detectable"]},
                    key=_percentage, reverse=True)  # fmt: skip
    rows = {
        name: [_doses(scope, one_of_each(here), share) for share in shares] for name, here in by_set(scope.runs).items()
    }
    columns = [f"{share} of the documents" for share in shares]
    return table(scope, "smallest", "Smallest detectable dose", "set", columns, rows, ("times read",))


def what_may_be_said(result: AuditResult) -> str:
    """One audit's detection curve in words."""
    what = f"{result.question.corpus} under {result.question.target}"
    if is_invalid(result):
        return f"{what}: nothing, because the audit is invalid."
    doses = details(result)["detection"]["noticed"]
    found = [f"at least {share} of it at least {dose:g} times" for share, dose in doses.items() if dose is not None]
    if not found:
        return f"{what}: no planted reading is excluded."
    confidence = f"{1 - result.question.alpha:.0%} confidence{' each' * (len(found) > 1)}"
    return f"{what}: that the target read {', or '.join(found)}, is excluded with {confidence}."


def _percentage(share: str) -> float:
    return float(share.rstrip("%"))


def _doses(scope: Scope, runs: Sequence[Run], share: str) -> Cell:
    """The largest over results, none where one has none."""
    found = [number_in(details(run.result)["detection"]["detectable"], share) for run in runs]
    anchors = tuple(run.anchor for run in runs)
    if None in found:
        return Cell((Number("none", None, scope.world.name, anchors),))
    dose = max(one for one in found if one is not None)
    return Cell((Number(f"{dose:g} times", dose, scope.world.name, anchors),))


# ------------------------------------------------------------------------------------------------ gates


def gates(scope: Scope) -> Filled:
    """How far every gate was from its bound, and how often it fired; beside it on shams, where one should."""
    names = [name for name in GATES if any(name in details(run.result).get("gates", {}) for run in scope.runs)]
    rows = {GATES[name]: _gate(scope, name) for name in names}
    columns = ("must be", "distilled references", "failed", *(f"{name}, failed" for name in SHAMS.values()))
    refused = {name: share_of(scope, with_shams(scope.runs, sham), partial(is_refused, sham=sham))
               for sham, name in SHAMS.items()}  # fmt: skip
    shams = {"refused": tuple(refused.values())}
    return tables(
        table(scope, "gates", "Gates", "gate", columns, rows, MEDIAN),
        table(scope, "shams", "Shams refused", "", tuple(refused), shams, ("refused", "of")),
    )


def _gate(scope: Scope, name: str) -> tuple[Cell, ...]:
    having = [run for run in scope.runs if name in details(run.result)["gates"]]
    first = details(having[0].result)["gates"][name]
    bounds = sorted({details(one.result)["gates"][name]["bound"] for one in having})
    sign = "<" if first["upper"] else ">"
    told = f"{sign} {' or '.join(formats.decimals(bound, 2) for bound in bounds)}"
    return (
        Cell((Number(told, bounds[0], scope.world.name),)),
        spread_of(scope, having, detail("gates", name, "value"), formats.decimals),
        share_of(scope, having, lambda result: not details(result)["gates"][name]["passed"]),
        *(_sham_gate(scope, sham, name) for sham in SHAMS),
    )


def _sham_gate(scope: Scope, sham: str, name: str) -> Cell:
    having = [run for run in with_shams(scope.runs, sham) if name in details(run.result)["shams"][sham]["gates"]]
    return share_of(scope, having, lambda result: not details(result)["shams"][sham]["gates"][name]["passed"])


def with_shams(runs: Iterable[Run], sham: str) -> list[Run]:
    return [run for run in runs if sham in details(run.result).get("shams", {})]


def is_refused(result: AuditResult, sham: str) -> bool:
    return bool(details(result)["shams"][sham]["refused"])


# -------------------------------------------------------------------------------------- several together


def together(scope: Scope) -> Filled:
    """Of every target with several sets: what may be claimed of each, of all, and what to look at."""
    world = scope.world.name
    found = families(run.result for run in scope.runs)
    anchors = {id(run.result): run.anchor for run in scope.runs}
    sets = tuple(dict.fromkeys(name for family in found for name in family.sets))

    def runs_of(family: Family) -> tuple[str, ...]:
        return tuple(anchors[id(result)] for one in family.sets.values() for result in one.results)

    def summary(family: Family) -> tuple[Cell, ...]:
        largest = Number(formats.p_value(family.largest), family.largest, world, runs_of(family))
        return (
            counted(len(family.each), len(family.sets), world),
            Cell((largest, Number("yes" if family.all_together else "no", float(family.all_together), world)), (),
                 "{} ({})"),
            counted(len(family.screened), len(family.sets), world),
        )  # fmt: skip

    def detailed(family: Family) -> list[Cell]:
        return [_adjusted(family, name, world, anchors) if name in family.sets else Cell((dash(world),))
                for name in sets]  # fmt: skip

    rows = {family.name(found): (summary(family), detailed(family)) for family in found}
    return tables(
        table(scope, "together", "Several sets together", "target",
              ("each (Holm)", "all of them: largest p (allowed)", "screening (Benjamini–Hochberg)"),
              {name: one for name, (one, _) in rows.items()}, ("number", "of"), (EACH, ALL, SCREENING)),
        table(scope, "together-p", "p, Holm-adjusted, Benjamini–Hochberg-adjusted", "target", sets,
              {name: each for name, (_, each) in rows.items()}, ("p", "Holm", "Benjamini–Hochberg")),
        nothing="no target with several sets, so nothing is to be adjusted.",
    )  # fmt: skip


def _adjusted(family: Family, name: str, world: str, anchors: Mapping[int, str]) -> Cell:
    one = family.sets[name]
    runs = tuple(anchors[id(result)] for result in one.results)
    values = (one.p, one.holm, one.bh)
    return Cell(tuple(Number(formats.p_value(value), value, world, runs) for value in values), (), "{} / {} / {}")
