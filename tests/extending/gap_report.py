"""A report: sections of texts and tables, filled from stored results alone."""

from typing import ClassVar

from nonmember.reports.core.grid import Block, Cell, Number, Row
from nonmember.reports.core.report import Filled, Glance, Part, Report, tables
from nonmember.reports.core.worlds import Scope


def _gaps(scope: Scope) -> list[float]:
    return [run.statistics.value for run in scope.runs if run.statistics.value is not None]


def _number(text: str, value: float, scope: Scope) -> Cell:
    return Cell((Number(text, value, scope.world.name),))


def by_target(scope: Scope) -> Filled:
    rows = tuple(
        Row(str(run.question.target), (_number(f"{run.statistics.value:+.3f}", run.statistics.value, scope),))
        for run in scope.runs
        if run.statistics.value is not None
    )
    return tables(Block("gaps", scope.world.name, scope.world.title, "target", ("gap",), rows, ("nats",)))


class GapReport(Report):
    methods: ClassVar = ("confidence_gap",)
    parts: ClassVar = (
        Part("gaps", "Gap by target", "How much more confident than the reference the target is.", fill=by_target),
    )
    glance: ClassVar = Glance(
        ("largest gap",),
        lambda scope: [_number(f"{max(_gaps(scope), default=0.0):+.3f}", max(_gaps(scope), default=0.0), scope)],
        "In nats per token.",
    )
    notes: ClassVar = ("A target that read the documents is more confident on them.",)
