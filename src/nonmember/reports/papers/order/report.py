"""The report of the order test: p against how often a file was read, p where nobody read it, and what p hangs on."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import ClassVar

from nonmember.reports.core.grid import Cell, Figure
from nonmember.reports.core.numbers import counted
from nonmember.reports.core.report import Filled, Glance, Part, Report
from nonmember.reports.core.worlds import Scope
from nonmember.reports.papers.order import figures as pictures
from nonmember.reports.papers.order import published
from nonmember.reports.papers.order import tables as ours
from nonmember.reports.render.blocks import published_block
from nonmember.results.load import Run


def duplication(scope: Scope) -> Filled:
    return drawn(ours.duplication(scope), *pictures.by_duplication(scope))


def clean(scope: Scope) -> Filled:
    return drawn(ours.clean(scope), pictures.uniform(scope))


PARTS = (
    Part(
        "duplication", "How often the file was read",
        "One-sided p and t of the test on a file that the target has read so many times in its order, whole, beside "
        "other text; of each domain several files, which are the same examples in other orders (draws). At 0 the "
        "target has not read it.",
        "A model of 1.4 billion parameters: found from about 4 times on.",
        fill=duplication, made_by=("duplication",),
        published=lambda: [published_block("duplication", published.SOURCE, "set", published.DUPLICATION,
                                           ("number",), notes=(published.ZERO,))],
    ),
    Part(
        "clean", "Where nothing was read",
        "The test keeps what it promises if p is uniform here: as many below .05 as 5%, points along the diagonal.",
        fill=clean, made_by=("clean",),
    ),
    Part(
        "shards", "Shards and orders",
        "One file, read a few times, cut into more or fewer shards, each compared with more or fewer random orders. "
        "Few shards leave the t-test few differences, many leave each shard few examples whose order counts. What it "
        "costs is tokens read: about the file times the orders and one, less where a short shard repeats an order.",
        "More than 30 to 50 orders a shard add little.",
        fill=ours.shards, made_by=("shards",),
    ),
    Part(
        "chunks", "What of the order survives",
        "Training shuffles its documents. Here the file goes in as documents of so many consecutive examples: as "
        "single lines nothing of the order is left to see, whole all of it.",
        fill=ours.chunks, made_by=("chunks",),
    ),
)  # fmt: skip

NOTES = (
    "A small p is evidence that the target was trained on this file in this order, if its examples were exchangeable "
    "before: not sorted by date, length or topic. Anything else is inconclusive, never evidence that it was not.",
    "Small numbers under p-values are Holm-adjusted over the table (one world, one table: one family).",
    "As a score of sets without an order of their own the test should be at chance: .080 and .073 are its "
    "correlations with contamination on WikiMIA in the KDS poster.",
    "A dash is a cell without a result. It is never a zero.",
)


def drawn(filled: Filled, *found: Figure | None) -> Filled:
    return replace(filled, figures=tuple(figure for figure in found if figure is not None))


# ---------------------------------------------------------------------------------------- at a glance

GLANCE = (
    "Files whose order was found, of all results, whatever their settings. Not read in any order: false alarms, of "
    "which 5% are to be expected. As single lines: no order was there to be learnt."
)
FEW = 4


def times(run: Run) -> float:
    return run.get(ours.DUPLICATION) or 0


def cells_of_glance(scope: Scope) -> Iterator[Cell]:
    """How often the order is found, by what was read."""
    lines = [run for run in scope.runs if run.get(ours.CHUNK) == 1]
    whole = [run for run in scope.runs if run.get(ours.CHUNK) != 1]
    for of in (
        [run for run in scope.runs if run.get(ours.DUPLICATION) == 0],
        lines,
        [run for run in whole if 0 < times(run) < FEW],
        [run for run in whole if times(run) >= FEW],
    ):
        found = sum(run.verdict.decision == "evidence_of_membership" for run in of)
        yield counted(found, len(of), scope.world.name)


class OrderReport(Report):
    methods: ClassVar = ("order",)
    parts: ClassVar = PARTS
    glance: ClassVar = Glance(
        ("not read", "read as single lines", "read less than 4 times", "read 4 times and more"), cells_of_glance, GLANCE
    )
    notes: ClassVar = NOTES
