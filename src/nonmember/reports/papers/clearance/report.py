"""The report of calibrated clearance: verdicts beside PRISM's, Delta against controls and margins, what would have been
noticed, gates and shams, and several sets together."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import ClassVar

from nonmember.reports.core.grid import FALSE, Block, Cell, Figure
from nonmember.reports.core.numbers import counted
from nonmember.reports.core.report import Filled, Glance, Part, Report, figures, tables
from nonmember.reports.core.worlds import Scope
from nonmember.reports.papers.clearance import figures as pictures
from nonmember.reports.papers.clearance import tables as ours
from nonmember.reports.papers.clearance.rows import cleared, cleared_by_prism, is_invalid
from nonmember.results.load import Run
from nonmember.results.readings import read_so_much
from nonmember.results.result import AuditResult

FEW = 6  # results, of which it is said in words what each excludes


def margins(scope: Scope) -> Filled:
    return shown([ours.margins(scope)], [pictures.deltas(scope)])


def detection(scope: Scope) -> Filled:
    filled = shown(
        [ours.smallest_doses(scope), ours.largest_p(scope)], [pictures.power(scope), pictures.noticed(scope)]
    )
    few = scope.runs if len(scope.runs) <= FEW else ()
    return replace(filled, notes=tuple(ours.what_may_be_said(run.result) for run in few))


def shown(blocks: Sequence[Block | None], pictures: Sequence[Figure | None]) -> Filled:
    """Those that there are."""
    return replace(tables(*blocks), figures=figures(*pictures).figures)


PARTS = (
    Part(
        "verdicts", "Verdicts",
        "By target and what it read: Delta, the margin it has to exceed, p of the hypothesis that the target is one "
        "more control that read what is excluded or more, how many sets it was cleared of, and of how many the paper’s "
        "own test (Delta > 0, no gates) clears it. Of several sets the median, with the lowest and the highest.",
        fill=ours.verdicts,
    ),
    Part(
        "margins", "Delta against controls and margins",
        "Controls certainly read the set, so often as the axis says (below it the share of the documents, where not "
        "all). Their Deltas make the margins; a target is cleared where its Delta lies above all margins. The table "
        "has the margins.",
        fill=margins,
    ),
    Part(
        "detection", "What would have been noticed",
        "The first figure speaks of the audit alone: the probability, judged by the negative controls, that a target "
        "which read nothing is noticed not to have read so much or more. The smallest detectable dose is where that "
        f"probability reaches {ours.POWER:.0%} and keeps it at heavier doses. The second speaks of the targets: in how "
        "many audits “this share or more, so often or more” was excluded, at level alpha; the largest p over the "
        "reading and all heavier ones decides, and an invalid audit noticed nothing. Only planted readings are spoken "
        "of, nothing is interpolated.",
        fill=detection,
    ),
    Part(
        "gates", "Gates and shams",
        "What must hold of the distilled references, the worst over seeds, and how often it did not. Shams pass for "
        "distilled references and are none: each must fail a gate, or the audit is invalid.",
        fill=ours.gates,
    ),
    Part(
        "together", "Several sets together",
        "What may be said when several sets were audited under one target. Where a set was audited several times, its "
        "largest p counts; an invalid audit counts as p = 1.",
        fill=ours.together,
    ),
)  # fmt: skip

NOTES = (
    "A clearance says that the target did not read the set so often as is excluded, or more, in the way the planted "
    "controls did. Anything else is inconclusive, never evidence that it did; invalid means that a gate failed.",
    "What targets read is known by construction where it is told. A member that read less than is excluded is not "
    "falsely cleared of that; PRISM, which knows no dose, clears it falsely. A member whose label tells no dose counts "
    "as one that read so much.",
    "A dash is a number that does not exist. It is never a zero.",
)


# ---------------------------------------------------------------------------------------- at a glance

GLANCE = (
    "All results, whatever their settings. So much: what is excluded, or more. The columns of PRISM are its own test "
    "on the same distilled references (the first seed)."
)


def read_nothing(result: AuditResult) -> bool:
    return result.question.truth == "non_member"


def read_less(result: AuditResult) -> bool:
    return result.question.truth == "member" and not read_so_much(result)


def not_known(result: AuditResult) -> bool:
    return result.question.truth is None


Holds = Callable[[AuditResult], bool]
COLUMNS: dict[str, tuple[Holds, Holds]] = {
    "read nothing: cleared": (read_nothing, cleared),
    "read so much: cleared": (read_so_much, cleared),
    "read less: cleared": (read_less, cleared),
    "not known: cleared": (not_known, cleared),
    "PRISM, read nothing": (read_nothing, cleared_by_prism),
    "PRISM, read so much": (read_so_much, cleared_by_prism),
    "invalid": (lambda _: True, is_invalid),
}


def cells_of_glance(scope: Scope) -> Iterator[Cell]:
    for among, holds in COLUMNS.values():
        of: list[Run] = [run for run in scope.runs if among(run.result)]
        yield counted(sum(holds(run.result) for run in of), len(of), scope.world.name)


class ClearanceReport(Report):
    methods: ClassVar = ("clearance",)
    parts: ClassVar = PARTS
    glance: ClassVar = Glance(tuple(COLUMNS), cells_of_glance, GLANCE)
    notes: ClassVar = NOTES
    marks: ClassVar = {FALSE: "cleared of what it did read (PRISM: of reading it at all)"}
