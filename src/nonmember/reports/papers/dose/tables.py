"""Tables of the dose study: errors, estimates by dose, and verdicts on attacked targets and on other bases."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from types import MappingProxyType

from nonmember.reports.core import formats
from nonmember.reports.core.grid import FALSE, Block, Cell, Row, dash
from nonmember.reports.core.report import Filled, tables
from nonmember.reports.core.worlds import Scope
from nonmember.reports.papers.dose.cells import (
    CLEARED,
    FACTOR,
    FOUND,
    GROUPS,
    INVALID,
    MUCH_RELATED,
    OWN_BASE,
    QUANTITIES,
    cleared,
    cleared_dose,
    count_cell,
    covered,
    dose_of,
    doses,
    estimate_of,
    found,
    holds,
    invalid,
    median_cell,
    named,
    near,
    of_own_base,
    rate,
    rate_cell,
    readers,
    runs_of,
    unread,
    with_dose,
)
from nonmember.reports.render.blocks import filled
from nonmember.results.load import Run

CLUSTERED = (
    "In brackets 95% intervals of the share, by resampling sets and trained models, both with replacement. Where no "
    "audit errs, or all do, resampling says nothing, and the exact binomial interval is shown of as many trials as "
    "there are sets; so none of many can have a longer interval than one of many, of which resampling may say too "
    "little. The exact interval as if audits were independent is said with the first number (in the CSV, and on the "
    "page on pointing at it)."
)
MIXED = ("value", *QUANTITIES[1:])  # of tables with medians beside rates
Question = tuple[Callable[[Sequence[Run]], list[Run]], Callable[[Run], bool], str]


def groups(scope: Scope) -> dict[str, list[Run]]:
    """Key -> audits of targets of the controls' own base; those that there are."""
    return {key: runs for key in GROUPS if (runs := of_own_base(scope, key))}


def questions(dose: Sequence[int]) -> dict[str, Question]:
    """Row -> which audits are counted, what is counted, and the mark of an error."""
    told: dict[str, Question] = {
        "false clearance, read once or more": (readers, cleared, FALSE),
        "false clearance, read once": (lambda runs: with_dose(runs, 1), cleared, FALSE),
        "power, without related reading": (lambda runs: unread(runs, related=False), cleared, ""),
        "power, with related reading": (lambda runs: unread(runs, related=True), cleared, ""),
        "false membership, without related reading": (lambda runs: unread(runs, related=False), found, FALSE),
        "false membership, with related reading": (lambda runs: unread(runs, related=True), found, FALSE),
    }
    for one in dose:
        told[f"membership found, read {named(one)}"] = (_with(one), found, "")
    return told | {"invalid": (list, invalid, "")}


def _panels(runs: Sequence[Run]) -> str:
    """Their versions."""
    return formats.listed(sorted({str(run.statistics.details.get("panel")) for run in runs}))


def _with(dose: int) -> Callable[[Sequence[Run]], list[Run]]:
    return lambda runs: with_dose(runs, dose)


def errors(scope: Scope) -> Filled:
    """What is wrong and what is found, a column per half."""
    here, world = groups(scope), scope.world.name
    planted = doses([run for runs in here.values() for run in runs], least=1)

    def cells(question: Question) -> Iterator[Cell]:
        counted, decides, mark = question
        for runs in here.values():
            yield rate_cell(rate(counted(runs), decides), world, mark)

    rows = tuple(Row(name, tuple(cells(question))) for name, question in questions(planted).items())
    notes = (
        "False clearance: of targets that read the whole set once or more, how many are said to have read it less than "
        "once. False membership: of targets that read nothing of it.",
        f"With related reading: the target read the other set of the same library {MUCH_RELATED} times or more; "
        "without: less often. Audits that a gate refuses count against power, and as no error.",
        f"Panels of features: {'; '.join(f'{GROUPS[key]}: {_panels(runs)}' for key, runs in here.items())}.",
        CLUSTERED,
    )
    columns = tuple(GROUPS[key] for key in here)
    block = Block("errors", world, "Errors and power, own base", "audits", columns, rows, QUANTITIES)
    return tables(filled(block, notes))


def by_dose(scope: Scope) -> Filled:
    """Estimates and intervals against what was read."""
    return tables(*(_by_dose(scope, key, runs) for key, runs in groups(scope).items()))


def _by_dose(scope: Scope, key: str, runs: Sequence[Run]) -> Block | None:
    valid, world = [run for run in runs if not invalid(run)], scope.world.name
    columns = ("audits", "median estimate", f"within a factor of {FACTOR:g}", "interval holds it",
               "median cleared dose")  # fmt: skip

    def cells(here: list[Run], dose: int | None) -> tuple[Cell, ...]:
        read = readers(here)
        return (
            count_cell(here, world),
            Cell((dash(world),)) if dose is None
            else median_cell([value for run in here if (value := estimate_of(run)) is not None], here, world),
            rate_cell(rate(read, is_near), world),
            rate_cell(rate(here, covered), world),
            median_cell([cleared_dose(run) for run in here], here, world) if dose == 0 else Cell((dash(world),)),
        )  # fmt: skip

    rows = [Row(named(one), cells(with_dose(valid, one), one)) for one in doses(valid)]
    rows.append(Row("once or more", cells(readers(valid), None)))
    rows.append(Row("all", cells([run for run in valid if dose_of(run) is not None], None)))
    notes = (
        "In readings of the whole set; audits that a gate refuses are left out. Within a factor of 1.5: of estimates "
        "where something was read.",
        "Cleared dose: the least such that it and all heavier ones are excluded, over targets that read nothing.",
    )
    block = Block(f"dose-{key}", world, f"Readings: {GROUPS[key]}", "target has read", columns, tuple(rows),
                  MIXED)  # fmt: skip
    return filled(block, notes) if valid else None


def is_near(run: Run) -> bool:
    estimate, dose = estimate_of(run), dose_of(run)
    return estimate is not None and dose is not None and near(estimate, dose)


# ------------------------------------------------------------------------------- other targets than planted ones


ATTACKS = {"attacks": "Verdicts on changed targets", "attacks_again": "Verdicts on changed targets, second protocol"}


def attacks(scope: Scope) -> Filled:
    """Verdicts by what was done to the target."""
    return tables(*(_attacks(scope, key, title) for key, title in ATTACKS.items()))


def _attacks(scope: Scope, key: str, title: str) -> Block | None:
    kinds = by_label(runs_of(scope, key), "attack", scope.names.get("attacks", {}))
    return verdicts(scope, key, title, "what was done, target has read", kinds)


def by_label(runs: Sequence[Run], fact: str, known: Mapping[str, str]) -> dict[str, list[Run]]:
    """Printed name of a label -> the runs that have it; in printed order, those that are not known last."""
    found: dict[str, list[Run]] = {}
    for run in runs:
        found.setdefault(str(run.get(fact) or "none"), []).append(run)
    labels = [*known, *sorted(set(found) - set(known))]
    return {known.get(label, label): found[label] for label in labels if label in found}


def stand_ins(scope: Scope) -> Filled:
    """Verdicts by the base that targets were continued from, where it is not that of the controls."""
    runs = [run for run in runs_of(scope, "stand_in") if run.get("base") != OWN_BASE]
    bases = sorted({str(run.get("base")) for run in runs})
    by_base = {base: [run for run in runs if str(run.get("base")) == base] for base in bases}
    if len(bases) > 1:
        by_base["all of these"] = runs
    return tables(verdicts(scope, "stand-in", "Verdicts on targets of other bases", "base, target has read", by_base))


def verdicts(
    scope: Scope, key: str, title: str, corner: str, kinds: Mapping[str, Sequence[Run]],
    read: Callable[[Run], int | None] = dose_of, further: Mapping[str, Callable[[Run], bool]] = MappingProxyType({}),
) -> Block | None:  # fmt: skip
    """A row for each kind of target and number of readings. read: how often the target has read the set.   further:
    columns of clearances by other rules."""
    world = scope.world.name
    columns = ("audits", "not read", "read", "no verdict", "invalid", *further, "median estimate", "interval holds it")

    def row(name: str, runs: list[Run], dose: int | None) -> Row:
        decisions = ((cleared, FALSE if dose else ""), (found, FALSE if dose == 0 else ""))
        shown = [rate_cell(rate(runs, decides), world, mark) for decides, mark in decisions]
        undecided = [run for run in runs if run.verdict.decision not in (CLEARED, FOUND, INVALID)]
        estimates = [value for run in runs if (value := estimate_of(run)) is not None]
        counts = [count_cell(one, world) for one in (undecided, [run for run in runs if invalid(run)])]
        counts += [rate_cell(rate(runs, decides), world, FALSE if dose else "") for decides in further.values()]
        known = [run for run in runs if read(run) is not None]
        held = (median_cell(estimates, runs, world), rate_cell(rate(known, lambda run: holds(run, read(run))), world))
        return Row(name, (count_cell(runs, world), *shown, *counts, *held))

    rows = []
    for name, runs in kinds.items():
        by_dose: dict[int | None, list[Run]] = {}
        for run in runs:
            by_dose.setdefault(read(run), []).append(run)
        unknown = by_dose.pop(None, [])
        planted = sorted(dose for dose in by_dose if dose is not None)
        rows += [row(f"{name}, {named(dose)}", by_dose[dose], dose) for dose in planted]
        if sum(dose > 0 for dose in planted) > 1:
            rows.append(row(f"{name}, once or more", [run for run in runs if (read(run) or 0) >= 1], 1))
        if unknown:
            rows.append(row(f"{name}, a part or unknown", unknown, None))
    notes = (
        "Not read: evidence of non-membership, false where the set was read once or more. Read: evidence of "
        "membership, false where nothing was read. Estimate and interval: of all audits, whatever the verdict.",
    )
    return filled(Block(key, world, title, corner, columns, tuple(rows), MIXED), notes) if rows else None
