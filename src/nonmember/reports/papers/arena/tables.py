"""The tables of the arena."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from nonmember.advice.contestants import Contestant as Advised
from nonmember.advice.measured import Measured, Says, measured
from nonmember.reports.core.grid import FALSE, Block, Cell, Choice, Number, Row, dash
from nonmember.reports.core.worlds import Scope
from nonmember.reports.papers.arena.contestants import (
    ERRORS,
    SIZES,
    TOKENS,
    Contestant,
    Entry,
    contestants,
    doses,
    kinds,
    numbers,
    shown,
)
from nonmember.reports.papers.arena.needs import ACCESS, CLAIMS, NOTHING, Needs, needs_of, not_here, situation_of
from nonmember.reports.papers.dose.cells import (
    QUANTITIES,
    RATE,
    cleared,
    count_cell,
    found,
    named,
    percent,
    rate,
    rate_cell,
    share_cell,
)
from nonmember.reports.papers.dose.tables import CLUSTERED
from nonmember.reports.render import formats
from nonmember.reports.render.blocks import filled

DECIDES = {"non_membership": ("not read", cleared), "membership": ("read", found)}
USUAL = ERRORS[-1]
NEEDS, COSTS = ("reads of the model", "needs beside", "may say"), ("trains", "tokens trained", "tokens read")
ABOVE = (
    "What does not lie above the blind baseline, which reads no model, owes nothing to the model: its number is the "
    "same for a set whoever has read it."
)
EQUAL = (
    "Of sets that were read so often, how many have a statistic above that of all but {:.0%} of the unread ones; with "
    "fewer unread sets than that allows, above all of them. The threshold is one for all sets, found on these very "
    "audits; gates are not asked."
)
FOLLOWS = "no model at hand follows instructions"
IN_ITS_STUDY, ITS_OWN_TEXT = "see its own study, below", "not here"


def found_cell(one: Contestant, of: Sequence[int], error: float, world: str, kind: str | None = None) -> Cell:
    share = one.found(of, error, kind)
    if share is None:
        return no_rate(world)
    return share_cell(share, runs_of(one.entries, of, kind), world)


def runs_of(entries: Iterable[Entry], of: Sequence[int], kind: str | None = None) -> list:
    return [one.run for one in entries if one.dose in of and kind in (None, one.kind)]


def no_rate(world: str) -> Cell:
    return Cell(tuple(dash(world) for _ in QUANTITIES), (), RATE)


def words(text: str, world: str) -> Cell:
    return Cell((Number(text, None, world),))


# ------------------------------------------------------------------------------------ method and what it needs


def overview(scope: Scope) -> Block | None:
    """Every contestant with what it needs, what it finds and what it costs; and those of which nothing was measured."""
    world, entered = scope.world.name, contestants(scope)
    if not entered:
        return None
    every = doses(entered)
    situation = situation_of(100, TOKENS)
    rows = [
        Row(one.name, (*_needs(one.needs, world), *(_counted(one, dose, world) for dose in every), _false(one, world),
                       *_costs(one.needs, world)))
        for one in entered
    ]  # fmt: skip
    for method in not_here(one.method for one in entered):
        why = words(_why_not(method), world)
        needs = needs_of(method, situation)
        cells = (why, *(Cell((dash(world),)) for _ in every[1:]), Cell((dash(world),)))
        rows.append(Row(method.title, (*_needs(needs, world), *cells, *_costs(needs, world))))
    columns = (*NEEDS, *map(named, every), "false verdicts", *COSTS)
    notes = (
        f"Found at {USUAL:.0%} false positives, of the sets read so often; intervals below. False verdicts: of "
        "membership where nothing was read, of non-membership where something was, by the method's own rule.",
        "Trains: models, of which controls serve all sets of a study together. Tokens: as `nonmember advise` reckons "
        f"them for 100 texts of {TOKENS} tokens, without the general text that controls read; what is asked of an "
        "endpoint costs a request for each text and pass.",
        "Held-out text is of the same draw here. Text of another date there is none of in this world: a comparison "
        "with it finds the date (the sweep years).",
    )
    had = dict.fromkeys(entry for row in rows for entry in row.cells[1].ours[0].text.split(", ") if entry != NOTHING)
    choices = (
        Choice(NEEDS[0], tuple(ACCESS.values()), is_rising=True),
        Choice(NEEDS[1], tuple(had), is_list=True),
        Choice(NEEDS[2], tuple(dict.fromkeys(row.cells[2].ours[0].text for row in rows))),
    )
    block = Block("methods", world, "Method and what it takes", "contestant", columns, tuple(rows), ("value",),
                  choices=choices)  # fmt: skip
    return filled(block, notes)


def _needs(needs: Needs, world: str) -> tuple[Cell, ...]:
    return tuple(words(text, world) for text in (needs.access, needs.beside_in_words, needs.says))


def _counted(one: Contestant, dose: int, world: str) -> Cell:
    share, runs = one.found([dose], USUAL), runs_of(one.entries, [dose])
    if share is None:
        return Cell((dash(world),))
    return Cell((Number(f"{round(share.share * len(runs))} of {len(runs)}", share.share, world,
                        tuple(run.anchor for run in runs)),))  # fmt: skip


def _false(one: Contestant, world: str) -> Cell:
    wrong = [
        run for claim in one.claims
        for run in (entry.run for entry in one.entries if (entry.dose > 0) is (claim == "non_membership"))
        if DECIDES[claim][1](run)
    ]  # fmt: skip
    if not one.claims:
        return words("no verdict", world)
    return Cell((Number(str(len(wrong)), float(len(wrong)), world, tuple(run.anchor for run in wrong),
                        mark=FALSE if wrong else ""),))  # fmt: skip


def _costs(needs: Needs, world: str) -> tuple[Cell, ...]:
    if needs.cost is None:
        return tuple(Cell((dash(world),)) for _ in COSTS)
    cost = needs.cost
    models = " and ".join(
        part for part in (f"{cost.controls} controls" * bool(cost.controls), f"{cost.tuned}" * bool(cost.tuned)) if part
    )
    values = ((models or "0", float(cost.models)), (f"{cost.trained:,}", float(cost.trained)),
              (f"{cost.read:,}", float(cost.read)))  # fmt: skip
    return tuple(Cell((Number(text, value, world),)) for text, value in values)


def _why_not(method: Advised) -> str:
    if any(need.name == "follows" for need in method.needs):
        return FOLLOWS
    return IN_ITS_STUDY if any(_quoted(method)) else ITS_OWN_TEXT


# --------------------------------------------------------------------------------------------- equal errors


def power(scope: Scope, error: float) -> Block | None:
    entered = contestants(scope)
    every = doses(entered)
    world = scope.world.name
    rows = tuple(Row(one.name, tuple(found_cell(one, [dose], error, world) for dose in every)) for one in entered)
    block = Block(f"found-{error * 100:.0f}", world, f"Found at {error:.0%} false positives", "contestant, sets read",
                  tuple(map(named, every)), rows, QUANTITIES)  # fmt: skip
    return filled(block, (EQUAL.format(error), ABOVE, CLUSTERED))


def by_size(scope: Scope) -> Block | None:
    """A row for each contestant and number of documents."""
    world = scope.world.name
    by_number = {number: contestants(scope, SIZES, number) for number in numbers(scope)}
    every = doses([one for entered in by_number.values() for one in entered])
    names = dict.fromkeys(one.name for entered in by_number.values() for one in entered)
    rows = []
    for name in names:
        for number, entered in by_number.items():
            cells = [found_cell(one, [dose], USUAL, world) for one in entered if one.name == name for dose in every]
            rows += [Row(f"{name}, {number}", tuple(cells))] if cells else []
    block = Block("sizes", world, f"Found at {USUAL:.0%} false positives, by number of documents",
                  "contestant, documents", tuple(map(named, every)), tuple(rows), QUANTITIES)  # fmt: skip
    return filled(block, (EQUAL.format(USUAL), CLUSTERED))


def by_kind(scope: Scope, of: Sequence[int]) -> Block | None:
    """By library, over the doses at which contestants differ."""
    world, entered = scope.world.name, shown(contestants(scope))
    every = kinds(entered)
    rows = tuple(Row(one.name, tuple(found_cell(one, of, USUAL, world, kind) for kind in every)) for one in entered)
    title = f"Found at {USUAL:.0%} false positives, by library, read {formats.listed([named(one) for one in of])}"
    block = Block("kinds", world, title, "contestant, library", tuple(every), rows, QUANTITIES)
    return filled(block, ("The threshold is that of the unread sets of all libraries together.", CLUSTERED))


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
        "Methods without a verdict are not shown. PRISM without gates, as in its paper; LLM-DI at its paper's level; the "
        "dose meter's claim is of one reading or more."
    )
    return [filled(first, (note, CLUSTERED)), filled(second, (note, CLUSTERED))]


def _verdict_rows(entered: Sequence[Contestant], every: Sequence[int], world: str) -> list[Row]:
    return [
        Row(f"{one.name}: {DECIDES[claim][0]}", tuple(
            rate_cell(rate([entry.run for entry in one.with_dose(dose)], DECIDES[claim][1]), world,
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
        "Of 100 documents where no number is named. Medians over the audits that trained or observed something themselves, wall clock on one core that other work "
        "shares. Targets are not in it, nor the dose meter's fifteen controls, some minute each for all sets together; "
        "the paired t finds PRISM's distilled reference. Scores are observed together, by an audit of all of them."
    )
    return filled(Block("costs", world, "What an audit took", "method", columns, tuple(rows), ("count", "seconds")),
                  (note,))  # fmt: skip


# ---------------------------------------------------------------------------------------- from other studies


def quoted(scope: Scope) -> Block | None:
    """What was measured of methods that the arena has no results of, in studies of their own."""
    world = scope.world.name
    here = not_here(one.method for one in contestants(scope))
    tables = [(method, says, cells) for method in here for says, cells in _quoted(method)]
    every = sorted({dose for _, _, cells in tables for dose in cells})
    rows = []
    for method, says, cells in tables:
        wrong = {dose for dose in every if (dose == 0 if says == "membership" else dose >= method.excludes)}
        made = [_share(cells.get(dose), world, dose in wrong) for dose in every]
        first = next(iter(cells.values()))
        source = f"{first.study.partition(':')[0]} ({first.cell.partition(',')[0].partition(':')[0]})"
        rows.append(Row(f"{method.title}: {CLAIMS[says]}", (*made, words(source, world))))
    columns = (*map(named, every), "from")
    notes = ("Verdicts by each method's own rule, on other sets and other targets than above; intervals as there.",)
    return filled(Block("quoted", world, "From studies of their own", "verdict", columns, tuple(rows), QUANTITIES),
                  notes) if rows else None  # fmt: skip


def _quoted(method: Advised) -> list[tuple[Says, dict[int, Measured]]]:
    return [(says, cells) for says in method.says if (cells := measured(method.name, method.setting, says))]


def _share(one: Measured | None, world: str, is_false: bool) -> Cell:
    if one is None:
        return no_rate(world)
    mark = FALSE if is_false and one.count else ""
    ends = [dash(world) if end is None else Number(percent(end), end, world) for end in (one.low, one.high)]
    count, of = (Number(str(value), float(value), world, mark=mark * (place == 0))
                 for place, value in enumerate((one.count, one.of)))  # fmt: skip
    return Cell((count, of, *ends), (), RATE)
