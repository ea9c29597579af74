"""The report on text of another date: what methods say whose held-out text is newer than the suspect set."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import ClassVar

from nonmember.reports.core.grid import FALSE, Block, Cell, Number, Row, dash
from nonmember.reports.core.report import Filled, Glance, Part, Report, tables
from nonmember.reports.core.worlds import Scope
from nonmember.reports.papers.arena.compared import SIGNED, compared
from nonmember.reports.papers.arena.contestants import READS_NO_MODEL, tests_of
from nonmember.reports.planted.audits import dose_of, named
from nonmember.reports.render.blocks import filled
from nonmember.results.load import Run

DATED, LATER_REFERENCE = "dated", "later_reference"  # of conf/report/dated.yaml
AGAINST = {"older": "its own release", "newer": "a newer one"}  # data.against, in world=releases
MEMBERSHIP = "evidence_of_membership"


def _verdicts(scope: Scope, key: str) -> Filled:
    """Rows: methods with a verdict. Columns: readings and what stands beside."""
    runs = scope.of(key)
    world, columns = scope.world.name, _columns(runs)
    rows = tuple(
        Row(name, tuple(_accused(list(filter(is_in, found)), world) for is_in in columns.values()))
        for _, _, name, found in tests_of(scope, _decided(runs))
    )
    block = Block(f"verdicts-{key}", world, "Taken for read", "method, set read, beside text of", tuple(columns), rows,
                  ("count", "of"))  # fmt: skip
    return tables(block if rows else None)


def _by_later_reference(scope: Scope) -> Filled:
    told, numbers = _verdicts(scope, LATER_REFERENCE), _numbers(scope, LATER_REFERENCE)
    return tables(*told.blocks, *numbers.blocks)


def _decided(runs: Sequence[Run]) -> list[Run]:
    return [run for run in runs if run.verdict.decision != "score_only"]


def _accused(runs: Sequence[Run], world: str) -> Cell:
    if not runs:
        return Cell((dash(world),))
    number = sum(run.verdict.decision == MEMBERSHIP for run in runs)
    mark = FALSE if number and not dose_of(runs[0]) else ""
    counts = ((number, mark), (len(runs), ""))
    return Cell(tuple(
        Number(str(count), float(count), world, tuple(run.anchor for run in runs), mark=mark) for count, mark in counts
    ), (), "{} of {}")  # fmt: skip


def _numbers(scope: Scope, key: str) -> Filled:
    """Rows: methods, then single scores. Columns: readings and what stands beside."""
    runs = scope.of(key)
    beside = ("less_reference", "less_heldout", "less_both")
    block = compared(f"numbers-{key}", "Statistics by what was read", "statistic, set read, beside text of", scope,
                     runs, beside, _columns(runs))  # fmt: skip
    return tables(filled(block, (f"Mean over the sets, lowest and highest. {SIGNED}",)) if block else None)


def _columns(runs: Sequence[Run]) -> Mapping[str, Callable[[Run], bool]]:
    doses = sorted({dose for run in runs if (dose := dose_of(run)) is not None})
    return {
        f"{named(dose)}, {name}": partial(_is_of, dose, against) for dose in doses for against, name in AGAINST.items()
    }


def _is_of(dose: int, against: str, run: Run) -> bool:
    """What reads no model is the same whatever the target has read."""
    return run.get("against") == against and (dose_of(run) == dose or run.question.method == READS_NO_MODEL)


def _cells_of_glance(scope: Scope) -> Iterator[Cell]:
    decided = _decided(scope.of(DATED))
    for was_read in (False, True):
        yield _accused([run for run in decided if bool(dose_of(run)) == was_read], scope.world.name)


PARTS = (
    Part(
        "verdicts", "Who is accused",
        "Sets of an older release, read never to four times, beside unread text of the same release and beside text "
        "that a newer release alone has. At the left every claim of membership is false.",
        fill=partial(_verdicts, key=DATED), made_by=(DATED,),
    ),
    Part(
        "numbers", "Every method by what was read",
        "What lies between the two columns of one reading is the date.",
        fill=partial(_numbers, key=DATED), made_by=(DATED,),
    ),
    Part(
        "later", "By a reference of a later date",
        "The same by a reference that has also read other text of the newer releases, as one would have that was "
        "trained after the target.",
        fill=_by_later_reference, made_by=(LATER_REFERENCE,),
    ),
)  # fmt: skip


class DatedReport(Report):
    methods: ClassVar = ("difference_in_differences", "llm_di", "blind", "levels")
    parts: ClassVar = PARTS
    glance: ClassVar = Glance(
        ("unread sets taken for read", "read ones found"), _cells_of_glance, "Of the methods that give a verdict."
    )
    notes: ClassVar = (
        "Truth is known in this world: every model was trained here, on text that its recipe names.",
        "A dash is a cell without a result. It is never a zero.",
    )
    marks: ClassVar = {FALSE: "the truth says otherwise"}
