"""What of the arena's report is computed: what each contestant finds at equal errors, and what it costs."""

from __future__ import annotations

from typing import ClassVar

from nonmember.reports.core import formats
from nonmember.reports.core.grid import Block, TableCell, dash
from nonmember.reports.core.worlds import Scope
from nonmember.reports.declared.report import DeclaredReport, Filled, Glance, tables
from nonmember.reports.planted.audits import CLUSTERED, QUANTITIES, AuditGroup, named, no_rate, number_cell
from nonmember.reports.planted.contestants import (
    ERRORS,
    SIZES,
    ArenaContestant,
    by_name,
    columns_of,
    contestants,
    doses,
    fewer_unread,
    found_cell,
    numbers,
    shown,
)
from nonmember.reports.render.blocks import cross_table
from nonmember_papers.arena import figures
from nonmember_papers.arena.overview import (
    AT_A_GLANCE,
    EQUAL,
    USUAL,
    cells_of_glance,
    overview,
    power,
    quoted,
    verdicts,
)

LIGHT = (1, 2)  # readings at which contestants differ most


def at_equal_errors(scope: Scope) -> Filled:
    """The usual error as a figure with its numbers, the others as tables."""
    *strict, usual = (power(scope, error) for error in ERRORS)
    return tables(*strict, usual and figures.power(scope, usual))


def by_size(scope: Scope) -> Filled:
    """A row for each contestant that figures show and number of documents."""
    world, entered = scope.world.name, {number: shown(contestants(scope, SIZES, number)) for number in numbers(scope)}
    every = doses([item for entrants in entered.values() for item in entrants])
    found = {number: by_name(entrants) for number, entrants in entered.items()}
    names = dict.fromkeys(name for items in found.values() for name in items)
    rows = {f"{name}, {number}": items[name] for name in names for number, items in found.items() if name in items}
    few = [f"{number} documents. {note}" for number, entrants in entered.items() if (note := fewer_unread(entrants))]
    title = f"Found at {USUAL:.0%} false positives, by number of documents"
    block = cross_table(
        "sizes",
        world,
        title,
        "contestant, documents",
        rows,
        columns_of(every),
        QUANTITIES,
        (EQUAL.format(USUAL), *few, CLUSTERED),
        lambda item, dose: found_cell(item, [dose], USUAL, world),
    )
    return tables(block and figures.sizes(scope, block, list(entered)), scores_by_size(scope))


def scores_by_size(scope: Scope) -> Block | None:
    """The single scores, by themselves and beside what they are compared with, over the doses at which they differ."""
    world, entered = scope.world.name, {number: contestants(scope, SIZES, number) for number in numbers(scope)}
    light = [dose for dose in LIGHT if dose in doses([item for items in entered.values() for item in items])]
    found = {number: by_name([item for item in items if item.is_score]) for number, items in entered.items()}
    rows = {name: name for items in found.values() for name in items}

    def cell(name: str, number: int) -> TableCell:
        item = found[number].get(name)
        return no_rate(world) if item is None else found_cell(item, light, USUAL, world)

    title = f"Single scores by number of documents, read {formats.listed(list(map(named, light)))}"
    columns = {f"{number} documents": number for number in found}
    return cross_table("sizes-scores", world, title, "score", rows, columns, QUANTITIES, (CLUSTERED,), cell)


def by_kind(scope: Scope) -> Filled:
    """By library or kind of prose, over the doses at which contestants differ."""
    world, entered = scope.world.name, contestants(scope)
    if not (light := [dose for dose in LIGHT if dose in doses(entered)]):
        return tables(None)
    lines = shown(entered)
    kinds = sorted({entry.run.domain for item in lines for entry in item.entries})
    columns = {scope.world.domains.get(kind, kind): kind for kind in kinds}
    title = f"Found at {USUAL:.0%} false positives, by kind of text, read {formats.listed(list(map(named, light)))}"
    return tables(
        cross_table(
            "kinds",
            world,
            title,
            "contestant, kind of text",
            by_name(lines),
            columns,
            QUANTITIES,
            ("The threshold is that of the unread sets of all kinds together.", CLUSTERED),
            lambda item, kind: found_cell(item, light, USUAL, world, kind),
        )
    )


# ----------------------------------------------------------------------------------------------------- costs


def costs(scope: Scope) -> Filled:
    planted = doses(contestants(scope))
    dose = next((dose for dose in (LIGHT[-1], *planted) if dose in planted), None)
    beside = None if dose is None else cost_and_power(scope, dose)
    drawn = None if beside is None or dose is None else figures.cost_against_power(scope, beside, dose)
    return tables(what_audits_took(scope), drawn)


def cost_and_power(scope: Scope, dose: int) -> Block | None:
    """What is found of sets read so often, against the tokens that it takes."""
    world = scope.world.name

    def tokens(item: ArenaContestant) -> TableCell:
        cost = item.needs.cost
        return TableCell((dash(world),)) if cost is None else number_cell(f"{cost.tokens:,}", cost.tokens, world)

    def found(item: ArenaContestant) -> TableCell:
        return no_rate(world) if item.needs.cost is None else found_cell(item, [dose], USUAL, world)

    columns = {"tokens trained and read": tokens, f"found, read {named(dose)}": found}
    rows = by_name(contestants(scope))
    return cross_table("power-cost", world, "Cost against power", "contestant", rows, columns, QUANTITIES)


def what_audits_took(scope: Scope) -> Block | None:
    world, sizes = scope.world.name, numbers(scope)
    of_size = {number: by_name(contestants(scope, SIZES, number)) for number in sizes}

    def seconds(item: ArenaContestant | None) -> TableCell:
        if item is None or item.seconds is None:
            return TableCell((dash(world),))
        return number_cell(formats.decimals(item.seconds, 1), item.seconds, world, item.runs)

    def cell(item: ArenaContestant, column: int | str) -> TableCell:
        if column == "audits":
            return AuditGroup(item.runs, world).count()
        return seconds(of_size[column].get(item.name) if isinstance(column, int) else item)

    columns: dict[str, int | str] = {"audits": "audits", "seconds": "seconds"}
    columns |= {f"seconds, {number} documents": number for number in sizes}
    note = (
        "Of 100 documents where no number is named. Medians over the audits that trained or observed something "
        "themselves, wall clock on one core that other work shares. Targets are not in it, nor the dose meter's "
        "controls, which serve all sets together; the paired t finds PRISM's distilled reference. "
        "Scores are observed together, by an audit of all of them."
    )
    rows = by_name([item for item in contestants(scope) if not item.is_score])
    return cross_table(
        "costs", world, "What an audit took", "method", rows, columns, ("count", "seconds"), [note], cell
    )


class ArenaReport(DeclaredReport):
    special: ClassVar = {
        "methods": lambda scope: tables(overview(scope)),
        "power": at_equal_errors,
        "sizes": by_size,
        "kinds": by_kind,
        "verdicts": lambda scope: tables(*verdicts(scope)),
        "costs": costs,
        "quoted": lambda scope: tables(quoted(scope)),
    }

    def first_numbers(self) -> Glance:
        return Glance(AT_A_GLANCE, cells_of_glance, self.glance_note)
