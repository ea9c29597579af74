"""The tables of the arena."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from nonmember.reports.core import formats
from nonmember.reports.core.grid import FALSE, Block, Cell, Number, Row, dash
from nonmember.reports.core.worlds import Scope
from nonmember.reports.papers.arena.contestants import (
    ERRORS,
    SIZES,
    Contestant,
    Entry,
    contestants,
    doses,
    kinds,
    numbers,
    shown,
)
from nonmember.reports.planted.audits import (
    CLUSTERED,
    QUANTITIES,
    RATE,
    cleared,
    count_cell,
    found,
    named,
    rate_cell,
    share_cell,
)
from nonmember.reports.render.blocks import filled

DECIDES = {"non_membership": ("not read", cleared), "membership": ("read", found)}
USUAL = ERRORS[-1]
ABOVE = (
    "A method that does not lie above the blind baseline, which uses no model, has shown no membership signal: the "
    "baseline's number is the same whether or not the target has read the set."
)
EQUAL = (
    "Of sets that were read so often, how many have a statistic above that of all but {:.0%} of the unread ones; with "
    "fewer unread sets than that allows, above all of them. The threshold is one for all sets, found on these very "
    "audits; gates are not asked."
)


def found_cell(one: Contestant, of: Sequence[int], error: float, world: str, kind: str | None = None) -> Cell:
    share = one.found(of, error, kind)
    if share is None:
        return no_rate(world)
    return share_cell(share, runs_of(one.entries, of, kind), world)


def fewer_unread(entered: Sequence[Contestant]) -> str:
    """Who was put to fewer unread sets than others, so that less is asked of it; empty where nobody was."""
    number = {one.name: len(one.with_dose(0)) for one in entered}
    most = max(number.values(), default=0)
    few = {name: unread for name, unread in number.items() if unread < most}
    if not few:
        return ""
    told = formats.listed([f"{name} ({unread})" for name, unread in few.items()])
    return f"Put to fewer than {most} unread sets, above which it is easier to lie, and not to be compared: {told}."


def runs_of(entries: Iterable[Entry], of: Sequence[int], kind: str | None = None) -> list:
    return [one.run for one in entries if one.dose in of and kind in (None, one.kind)]


def no_rate(world: str) -> Cell:
    return Cell(tuple(dash(world) for _ in QUANTITIES), (), RATE)


def words(text: str, world: str) -> Cell:
    return Cell((Number(text, None, world),))


# --------------------------------------------------------------------------------------------- equal errors


def power(scope: Scope, error: float) -> Block | None:
    entered = contestants(scope)
    every = doses(entered)
    world = scope.world.name
    rows = tuple(Row(one.name, tuple(found_cell(one, [dose], error, world) for dose in every)) for one in entered)
    block = Block(f"found-{error * 100:.0f}", world, f"Found at {error:.0%} false positives", "contestant, sets read",
                  tuple(map(named, every)), rows, QUANTITIES)  # fmt: skip
    return filled(block, (EQUAL.format(error), fewer_unread(entered), ABOVE, CLUSTERED))


def by_size(scope: Scope) -> Block | None:
    """A row for each contestant that figures show and number of documents."""
    world = scope.world.name
    by_number = {number: shown(contestants(scope, SIZES, number)) for number in numbers(scope)}
    every = doses([one for entered in by_number.values() for one in entered])
    names = dict.fromkeys(one.name for entered in by_number.values() for one in entered)
    rows = []
    for name in names:
        for number, entered in by_number.items():
            cells = [found_cell(one, [dose], USUAL, world) for one in entered if one.name == name for dose in every]
            rows += [Row(f"{name}, {number}", tuple(cells))] if cells else []
    block = Block("sizes", world, f"Found at {USUAL:.0%} false positives, by number of documents",
                  "contestant, documents", tuple(map(named, every)), tuple(rows), QUANTITIES)  # fmt: skip
    few = [f"{number} documents. {note}" for number, entered in by_number.items() if (note := fewer_unread(entered))]
    return filled(block, (EQUAL.format(USUAL), *few, CLUSTERED))


def by_kind(scope: Scope, of: Sequence[int]) -> Block | None:
    """By library or kind of prose, over the doses at which contestants differ."""
    world, entered = scope.world.name, shown(contestants(scope))
    every = kinds(entered)
    rows = tuple(Row(one.name, tuple(found_cell(one, of, USUAL, world, kind) for kind in every)) for one in entered)
    title = f"Found at {USUAL:.0%} false positives, by kind of text, read {formats.listed([named(one) for one in of])}"
    columns = tuple(scope.world.domains.get(kind, kind) for kind in every)
    block = Block("kinds", world, title, "contestant, kind of text", columns, rows, QUANTITIES)
    return filled(block, ("The threshold is that of the unread sets of all kinds together.", CLUSTERED))


# -------------------------------------------------------------------------------------------------- verdicts


def verdicts(scope: Scope) -> list[Block | None]:
    """By each method's own rule: on the arena's sets, and by number of documents."""
    world = scope.world.name
    entered = contestants(scope)
    every = [0, *doses(entered)]
    first = Block("verdicts", world, "Verdicts by what was read", "verdict", tuple(map(named, every)),
                  tuple(_verdict_rows(entered, every, world)), QUANTITIES)  # fmt: skip
    rows = [
        Row(f"{row.name}, {number}", row.cells)
        for number in numbers(scope)
        for row in _verdict_rows(contestants(scope, SIZES, number), every, world)
    ]
    second = Block("verdicts-sizes", world, "Verdicts by what was read and number of documents", "verdict, documents",
                   tuple(map(named, every)), tuple(rows), QUANTITIES)  # fmt: skip
    note = (
        "Methods without a verdict are not shown. PRISM with its world's gates, of which micro worlds have none, as "
        "its paper; LLM-DI at its paper's level; the dose meter's claim is of one reading or more."
    )
    return [filled(first, (note, CLUSTERED)), filled(second, (note, CLUSTERED))]


def _verdict_rows(entered: Sequence[Contestant], every: Sequence[int], world: str) -> list[Row]:
    return [
        Row(f"{one.name}: {DECIDES[claim][0]}", tuple(
            rate_cell([entry.run for entry in one.with_dose(dose)], DECIDES[claim][1], world,
                      FALSE if (dose > 0) is (claim == "non_membership") else "")
            for dose in every
        ))
        for one in entered for claim in one.claims
    ]  # fmt: skip


# ----------------------------------------------------------------------------------------------------- costs


def cost_and_power(scope: Scope, dose: int) -> Block | None:
    """What is found of sets read so often, against the tokens that it takes."""
    world = scope.world.name

    def cells(one: Contestant) -> tuple[Cell, ...]:
        if one.needs.cost is None:
            return Cell((dash(world),)), no_rate(world)
        tokens = one.needs.cost.tokens
        return Cell((Number(f"{tokens:,}", float(tokens), world),)), found_cell(one, [dose], USUAL, world)

    rows = tuple(Row(one.name, cells(one)) for one in contestants(scope))
    columns = ("tokens trained and read", f"found, read {named(dose)}")
    return filled(Block("power-cost", world, "Cost against power", "contestant", columns, rows, QUANTITIES), ())


def costs(scope: Scope) -> Block | None:
    world = scope.world.name
    sizes = numbers(scope)
    by_number = {number: {one.name: one for one in contestants(scope, SIZES, number)} for number in sizes}

    def seconds(one: Contestant | None) -> Cell:
        value = None if one is None else one.seconds
        if one is None or value is None:
            return Cell((dash(world),))
        return Cell((Number(formats.decimals(value, 1), value, world, tuple(run.anchor for run in one.runs)),))

    rows = [
        Row(one.name, (count_cell(one.runs, world), seconds(one),
                       *(seconds(by_number[number].get(one.name)) for number in sizes)))
        for one in contestants(scope) if not one.is_score
    ]  # fmt: skip
    columns = ("audits", "seconds", *(f"seconds, {number} documents" for number in sizes))
    note = (
        "Of 100 documents where no number is named. Medians over the audits that trained or observed something "
        "themselves, wall clock on one core that other work shares. Targets are not in it, nor the dose meter's "
        "controls, which serve all sets together; the paired t finds PRISM's distilled reference. "
        "Scores are observed together, by an audit of all of them."
    )
    return filled(Block("costs", world, "What an audit took", "method", columns, tuple(rows), ("count", "seconds")),
                  (note,))  # fmt: skip
