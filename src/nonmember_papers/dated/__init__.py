"""What of the report on text of another date is computed: who is accused, by what was read and what stands beside."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import ClassVar

from nonmember.reports.core.grid import Block, TableCell, dash
from nonmember.reports.core.report import Filled, Glance, tables
from nonmember.reports.core.worlds import Scope
from nonmember.reports.declared.report import DeclaredReport
from nonmember.reports.planted.audits import dose_of, doses, found, named, rate_of
from nonmember.reports.planted.contestants import READS_NO_MODEL, tests_of
from nonmember.reports.planted.tables import SIGNED, compared
from nonmember.reports.render.blocks import cross_table
from nonmember.results.load import Run

AGAINST = {"older": "its own release", "newer": "a newer one"}  # data.against, in world=releases


def verdicts(scope: Scope, key: str) -> Block | None:
    """Rows: methods with a verdict. Columns: readings and what stands beside."""
    runs, world = scope.of(key), scope.world.name
    rows = {name: of_test for _, _, name, of_test in tests_of(scope, decided(runs))}
    return cross_table(
        f"verdicts-{key}",
        world,
        "Taken for read",
        "method, set read, beside text of",
        rows,
        columns_of(runs),
        ("count", "of"),
        cell=lambda of_test, is_in: accused(list(filter(is_in, of_test)), world),
    )


def numbers(scope: Scope, key: str) -> Block | None:
    """Rows: methods, then single scores. Columns: readings and what stands beside."""
    runs, beside = scope.of(key), ("less_reference", "less_heldout", "less_both")
    corner, note = "statistic, set read, beside text of", f"Mean over the sets, lowest and highest. {SIGNED}"
    columns = columns_of(runs)
    return compared(f"numbers-{key}", "Statistics by what was read", corner, scope, runs, beside, columns, [note])


def decided(runs: Sequence[Run]) -> list[Run]:
    return [run for run in runs if run.verdict.decision != "score_only"]


def accused(runs: Sequence[Run], world: str) -> TableCell:
    if not runs:
        return TableCell((dash(world),))
    rate = rate_of(sum(map(found, runs)), len(runs), (), world, runs, is_false=not dose_of(runs[0]))
    return replace(rate, template="{} of {}")


def columns_of(runs: Sequence[Run]) -> dict[str, Callable[[Run], bool]]:
    return {
        f"{named(dose)}, {name}": partial(is_of, dose, against)
        for dose in doses(runs)
        for against, name in AGAINST.items()
    }


def is_of(dose: int, against: str, run: Run) -> bool:
    """What reads no model is the same whatever the target has read."""
    return run.get("against") == against and (dose_of(run) == dose or run.question.method == READS_NO_MODEL)


def cells_of_glance(scope: Scope) -> Iterator[TableCell]:
    for was_read in (False, True):
        yield accused([run for run in decided(scope.of("dated")) if bool(dose_of(run)) is was_read], scope.world.name)


def later(scope: Scope) -> Filled:
    return tables(verdicts(scope, "later_reference"), numbers(scope, "later_reference"))


class DatedReport(DeclaredReport):
    special: ClassVar = {
        "verdicts": lambda scope: tables(verdicts(scope, "dated")),
        "numbers": lambda scope: tables(numbers(scope, "dated")),
        "later": later,
    }

    def first_numbers(self) -> Glance:
        return Glance(("unread sets taken for read", "read ones found"), cells_of_glance, self.glance_note)
