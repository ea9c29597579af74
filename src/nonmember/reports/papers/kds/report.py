"""The report of KDS: how scores go with the share of a set that was read; what the poster printed in its own blocks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from nonmember.reports.core.grid import DOUBTED, MEANINGS, PAIR, Block, Cell
from nonmember.reports.core.numbers import counted
from nonmember.reports.core.published import PublishedTable
from nonmember.reports.core.report import Glance, Part, Report
from nonmember.reports.core.worlds import Scope
from nonmember.reports.papers.kds import published
from nonmember.reports.papers.kds import tables as ours
from nonmember.reports.papers.kds.figures import against_share
from nonmember.reports.papers.kds.studies import KDS, Levels, Study, everything
from nonmember.reports.papers.kds.tables import BOTH
from nonmember.reports.render.blocks import published_block
from nonmember.stats.contamination import level_correlation


def poster_table(number: int, table: PublishedTable, quantities: tuple[str, ...], *notes: str) -> Block:
    """Numbers that are probably slips carry a mark."""

    def marks(row: str, column: str) -> tuple[str, ...]:
        mark = DOUBTED if published.doubted(table, row, column) else ""
        return (mark,) * len(table.get(row, column))

    title = f"{published.SOURCE}: table {number}"
    template = PAIR if len(quantities) > 1 else "{}"
    return published_block(f"table{number}", title, "score", table, quantities, template, marks, notes)


PARTS = (
    Part(
        "table1", "Table 1. Benchmarks",
        "Spearman and Pearson correlation between the share c of a set that the target has read and the score of the "
        "set: KDS, means of simple scores over the documents, the same after FSD’s tuning on the set, and the t of the "
        "order test (SRCT), which has no order to find here. Each score is the higher, the more was read. Members of "
        "these sets are older than non-members.",
        "KDS .990 and .982 on average; perplexity .966 and .964 without any tuning; zlib −1.000 on BookMIA.",
        fill=ours.table_1, made_by=("table1",),
        published=lambda: [poster_table(1, published.TABLE_1, BOTH, published.OVER_AVAILABLE, published.MISCOUNTED,
                                        published.UNSAID)],
    ),
    Part(
        "table2", "Table 2. Members and non-members of one time",
        "As table 1, for sets whose two pools are of one source and time.",
        "KDS .944 on average, Min-K% after FSD’s tuning .879; without tuning zlib, perplexity and Min-K% fall on some "
        "sets.",
        fill=ours.table_2, made_by=("table2",),
        published=lambda: [poster_table(2, published.TABLE_2, ("correlation",), published.ONE_COEFFICIENT)],
    ),
    Part(
        "levels", "The score against the share read",
        "Sets of one draw are nested: each share of seen documents contains the smaller ones. First S itself, of the "
        "target and of one that has read neither pool; S of two models does not compare, its shape does. Then how far "
        "every score of the target lies above its value at the lowest share, in standard deviations of a draw: a line "
        "that rises far is one that tells shares apart.",
        "It asks that S rise with c (requirement 1); its tables show correlations alone.",
        fill=against_share, made_by=("levels",),
    ),
    Part(
        "consistency", "Consistency",
        "How alike draws of one share score. The gap is the smallest difference in c from which on two draws are told "
        "apart, one-sided p < .05, by the spread of draws pooled over shares. Draws are taken from the same two pools "
        "and share documents, and the gap holds for these pools: how they differ by chance is in no spread.",
        "It is asked for (requirement 2); no test of it is shown.",
        fill=ours.consistencies, made_by=("consistency",),
    ),
    Part(
        "ablation", "What the score hangs on",
        "KDS with another bandwidth, layer, number of optimizer steps, and with dropout in the second pass, which the "
        "authors’ program leaves on.",
        fill=ours.ablations, made_by=("ablation",),
    ),
    Part(
        "control", "Control: a target that has read neither pool",
        "If the pools are alike, nothing should rise or fall here. Judge by the rise and the gap, not by the "
        "correlation: nested mixtures draw a line between the means of any two pools, and two pools always differ a "
        "little. In 8,000 simulated worlds of noise (two pools of 150 documents of one distribution, 100 a set, 5 "
        "draws of 21 shares) the correlation of the mean over draws is beyond ±.9 in 37%, and its median size is .83; "
        "a gap is found in 9%.",
        fill=ours.control, made_by=("control",),
    ),
    Part(
        "epochs", "The target that read beside its control, tuned for longer",
        "KDS of a target that has read one pool and of one that has read neither, both tuned for one epoch and for "
        "four, on the same sets. What rises alike for both is no sign of reading. Beside it Min-K%++, and the t of the "
        "order test (SRCT), which no tuning touches.",
        fill=ours.epochs, made_by=("epochs",),
    ),
)  # fmt: skip

NOTES = (
    "KDS is a number to compare between sets, under one model, one recipe and one number of documents: score_only. No "
    "set is accused or cleared by it, and none of these tables has a threshold.",
    "A correlation near 1 over mixtures of the same two pools says that the means of the pools differ, whatever the "
    "cause: reading, date, length, style. It does not say that the score measures the share.",
    "Correlations are of the mean over draws, then mean and standard deviation of those of single draws.",
    "A dash is a cell without a result. It is never a zero.",
)


# ---------------------------------------------------------------------------------------- at a glance

GLANCE = (
    "Of the main sweep; other scores are counted set by set. Rises: Spearman’s correlation with c is above 0. "
    "Separates: some gap in c tells two draws apart. Control: the same for a target that has read neither pool, where "
    "nothing should."
)


def cells_of_glance(scope: Scope) -> Iterator[Cell]:
    """How often KDS and the other scores rise, and tell shares apart; and where nothing was read."""
    main, control = everything(scope, "levels"), everything(scope, "control")
    for study, holds in ((main, _rises), (main, _tells_apart), (control, _tells_apart)):
        for is_kds in (True, False):
            found = [holds(levels) for levels in _levels(study, is_kds=is_kds)]
            yield counted(sum(found), len(found), scope.world.name)


def _levels(study: Study, *, is_kds: bool) -> list[Levels]:
    return [levels for name, row in study.rows.items() if (name == KDS) == is_kds
            for levels in row.values() if levels is not None]  # fmt: skip


def _rises(levels: Levels) -> bool:
    return level_correlation(levels.levels, levels.scores_DL).spearman > 0


def _tells_apart(levels: Levels) -> bool:
    found = levels.consistency()
    return found is not None and found.smallest_gap > 0


class KdsReport(Report):
    """names: scores, by their keys in the results."""

    methods: ClassVar = ("kds",)
    parts: ClassVar = PARTS
    glance: ClassVar = Glance(
        ("KDS rises", "others rise", "KDS separates", "others separate", "control: KDS", "control: others"),
        cells_of_glance,
        GLANCE,
    )
    notes: ClassVar = NOTES
    marks: ClassVar = {DOUBTED: MEANINGS[DOUBTED]}
