"""Tables of the arena's contestants: what is found at equal errors, and verdicts."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from nonmember.reports.core import formats
from nonmember.reports.core.grid import Block, TableCell
from nonmember.reports.core.worlds import Scope
from nonmember.reports.planted.audits import (
    CLUSTERED,
    QUANTITIES,
    AuditGroup,
    cleared,
    found,
    named,
    no_rate,
    number_cell,
    share_cell,
)
from nonmember.reports.planted.contestants import ERRORS, SIZES, ArenaContestant, contestants, doses, numbers
from nonmember.reports.render.blocks import cross_table
from nonmember.results.load import Run

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
AT_A_GLANCE = ("contestants", "audits")


def cells_of_glance(scope: Scope) -> Iterator[TableCell]:
    entered = contestants(scope)
    for number in (len(entered), len({run.path for item in entered for run in item.runs})):
        yield number_cell(str(number), number, scope.world.name)


def by_name(entered: Sequence[ArenaContestant]) -> dict[str, ArenaContestant]:
    return {item.name: item for item in entered}


def columns_of(every: Sequence[int]) -> dict[str, int]:
    return {named(dose): dose for dose in every}


def found_cell(
    item: ArenaContestant, of: Sequence[int], error: float, world: str, kind: str | None = None
) -> TableCell:
    share = item.found(of, error, kind)
    return no_rate(world) if share is None else share_cell(share, [entry.run for entry in item.of(of, kind)], world)


def fewer_unread(entered: Sequence[ArenaContestant]) -> str:
    """Who was put to fewer unread sets than others, so that less is asked of it; empty where nobody was."""
    number = {item.name: len(item.of([0])) for item in entered}
    most = max(number.values(), default=0)
    few = [f"{name} ({unread})" for name, unread in number.items() if unread < most]
    if not few:
        return ""
    names = formats.listed(few)
    return f"Put to fewer than {most} unread sets, above which it is easier to lie, and not to be compared: {names}."


def power(scope: Scope, error: float) -> Block | None:
    entered, world = contestants(scope), scope.world.name
    key, title = f"found-{error * 100:.0f}", f"Found at {error:.0%} false positives"
    notes = (EQUAL.format(error), fewer_unread(entered), ABOVE, CLUSTERED)
    return cross_table(
        key,
        world,
        title,
        "contestant, sets read",
        by_name(entered),
        columns_of(doses(entered)),
        QUANTITIES,
        notes,
        lambda item, dose: found_cell(item, [dose], error, world),
    )


def verdicts(scope: Scope) -> list[Block | None]:
    """By each method's own rule: on the arena's sets, and by number of documents."""
    entered, world = contestants(scope), scope.world.name
    columns = columns_of([0, *doses(entered)])
    note = (
        "Methods without a verdict are not shown. PRISM with its world's gates, of which micro worlds have none, as "
        "its paper; LLM-DI at its paper's level; the dose meter's claim is of one reading or more."
    )
    title = "Verdicts by what was read"
    by_size = {
        f"{name}, {number}": row
        for number in numbers(scope)
        for name, row in _claims(contestants(scope, SIZES, number)).items()
    }

    def cell(row: tuple[ArenaContestant, Callable[[Run], bool]], dose: int) -> TableCell:
        item, decides = row
        return AuditGroup([entry.run for entry in item.of([dose])], world).verdict(decides, dose)

    return [
        cross_table(key, world, title + more, corner, rows, columns, QUANTITIES, (note, CLUSTERED), cell)
        for key, more, corner, rows in (
            ("verdicts", "", "verdict", _claims(entered)),
            ("verdicts-sizes", " and number of documents", "verdict, documents", by_size),
        )
    ]


def _claims(entered: Sequence[ArenaContestant]) -> dict[str, tuple[ArenaContestant, Callable[[Run], bool]]]:
    claims = ((item, *DECIDES[claim]) for item in entered for claim in item.claims)
    return {f"{item.name}: {verdict}": (item, decides) for item, verdict, decides in claims}
