"""The report of FSD: its tables and figures, base and FSD side by side, what the paper printed in blocks of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import ClassVar

from nonmember.reports.core.grid import DOUBTED, FALSE, INVALID, MEANINGS, PAIR, Block, Cell
from nonmember.reports.core.numbers import counted, detail
from nonmember.reports.core.published import PublishedTable
from nonmember.reports.core.report import Glance, Part, Report
from nonmember.reports.core.worlds import Scope
from nonmember.reports.papers.fsd import beyond, published
from nonmember.reports.papers.fsd import tables as ours
from nonmember.reports.papers.fsd.figures import by_number, of_books
from nonmember.reports.papers.fsd.grids import BASE, BLIND_LIMIT, BOTH, CHANCE, FSD, detail_of
from nonmember.reports.papers.fsd.histograms import histograms
from nonmember.reports.render.blocks import published_block
from nonmember.results.load import Run


def paper_table(
    number: str, corner: str, table: PublishedTable, quantities: tuple[str, ...] = BOTH, notes: tuple[str, ...] = (),
    what: str = "", part: str = "",
) -> Block:  # fmt: skip
    """Numbers that are probably slips carry a mark."""

    def marks(row: str, column: str) -> tuple[str, ...]:
        return tuple(DOUBTED if doubted else "" for doubted in published.doubted(table, row, column))

    title = f"{published.SOURCE}: table{'s' * (' and ' in number)} {number}{what}"
    key = f"table{number}{part}".replace(" ", "-")
    return published_block(key, title, corner, table, quantities, PAIR if len(quantities) > 1 else "{}", marks, notes)


AT_5 = ("TPR, base", "TPR, FSD")
AUCS = ("AUC, base", "AUC, FSD")
WIKIMIA = ("WikiMIA, LLaMA-7B; members are older than non-members.", published.LEAK)

PARTS = (
    Part(
        "table1", "Table 1. AUC by set and model",
        "AUC of every score under the target (base) and of its deviation after tuning on unseen documents (FSD). The "
        "control is a target that has read neither set: there every AUC should be .5, and what is above it is a "
        "difference between the sets. A row of text alone stands under each set.",
        "FSD is above base for every score, model and set; members and non-members differ in date.",
        fill=ours.table_1, made_by=("table1",),
        published=lambda: [paper_table("1", "set, score", published.TABLE_1, AUCS, (published.LEAK,))],
    ),
    Part(
        "shift", "Beyond the paper: membership and shift apart",
        "Members of one domain against non-members of the same domain and of another, as WikiMIA’s are of another "
        "time, under targets that did and did not read the members. What the untouched target shows is the shift; only "
        "what comes on top is membership.",
        fill=ours.shifts, made_by=("shift",),
    ),
    Part(
        "releases", "Beyond the paper: older and newer text, with known truth",
        "Members are documents of an older release of a library. They are told apart from others of that release and "
        "from what is new in a newer one, as WikiMIA’s members are from later articles, under a target that has read "
        "neither class and under targets that have read the members so many times. What the first shows against the "
        "newer release is time, not membership.",
        "Its sets differ in time, and it has no model that has read neither.",
        fill=beyond.releases, made_by=("releases",),
    ),
    Part(
        "protocol", "Beyond the paper: its protocol beside a clean one",
        "Sets in the shape of WikiMIA: several lengths of every document. Split by article, no part of what is tested "
        "is tuned on; split by document, as in the paper’s program, another length of a tested document often is.",
        "Some 37% of its tested non-members are parts of articles that are tuned on.",
        fill=beyond.protocols, made_by=("protocol",),
    ),
    Part(
        "table2", "Tables 2 and 15. Text read once, in pretraining",
        "AUC by subset, base / FSD, and its mean over subsets. Both classes are of one source, so date and subject "
        "differ least here.",
        "Mean of ppl .503 → .625; it falls on arXiv, Books3, Math and OpenSubtitles.",
        fill=ours.tables_2_and_15, made_by=("table15", "table1"),
        published=lambda: [
            paper_table("2", "score", published.TABLE_2, AUCS, ("Pythia-6.9B.",)),
            paper_table("15", "subset", published.TABLE_15, AUCS,
                        ("Pythia-6.9B.", published.LENGTHS, published.NOT_LEGIBLE)),
        ],
    ),
    Part(
        "table3", "Table 3. AUC by size of the target",
        "Targets that have read the members, smallest first, with their numbers of parameters.",
        "Size hardly matters on WikiMIA.",
        fill=ours.table_3, made_by=("table3",),
        published=lambda: [paper_table("3", "score", published.TABLE_3, AUCS, ("WikiMIA, LLaMA.", published.LEAK))],
    ),
    Part(
        "table4", "Table 4. Accuracy",
        "Balanced accuracy, base / FSD: with a threshold chosen on other documents, and, named optimistic, with the "
        "best one for the very documents.",
        "Books, LLaMA-7B: it rises for every score, that of ppl from 66.9 to 85.4% and from 59.0 to 96.5%.",
        fill=ours.table_4, made_by=("table1",),
        published=lambda: [
            paper_table("4", "score", published.TABLE_4_ACCURACY, ("accuracy, %, base", "accuracy, %, FSD"),
                        (published.ON_VALIDATION, published.BOOKS), ", accuracy in percent", "-accuracy"),
            paper_table("4", "score", published.TABLE_4_AUC, AUCS, (published.BOOKS,), ", AUC", "-auc"),
        ],
    ),
    Part(
        "table5", "Table 5. What the target is tuned on",
        "AUC of the base score, and of FSD after tuning on members and non-members, members, or non-members. If tuning "
        "on members helps as well, it is not unseen text that helps.",
        "Tuning on members helps too (.64 → .78): a hint of domain adaptation rather than membership.",
        fill=ours.table_5, made_by=("table5",),
        published=lambda: [paper_table("5", "score", published.TABLE_5, ("AUC",), WIKIMIA)],
    ),
    Part(
        "table6", "Tables 6 and 14. Years deleted and replaced",
        "All documents, those tuned on included, with their years as they are, deleted, and all replaced by one. What "
        "is lost was the date.",
        "The gain shrinks: ppl .64/.92, .62/.76, .54/.71.",
        fill=ours.tables_6_and_14, made_by=("table6",),
        published=lambda: [
            paper_table("6", "score", published.TABLE_6, AUCS, WIKIMIA),
            paper_table("14", "score", published.TABLE_14, AT_5, WIKIMIA),
        ],
    ),
    Part(
        "table7", "Table 7. Adapters",
        "AUC and TPR of the base score, and of FSD by the adapter it tunes.",
        "All of them gain; which is best depends on the score.",
        fill=ours.table_7, made_by=("table7",),
        published=lambda: [
            paper_table("7", "score", published.TABLE_7_AUC, ("AUC",), WIKIMIA, ", AUC", "-auc"),
            paper_table("7", "score", published.TABLE_7_TPR, ("TPR",), WIKIMIA, ", TPR at 5% FPR", "-tpr"),
        ],
    ),
    Part(
        "table8", "Tables 8 to 10. The sets",
        "Documents tuned on and under test, and how the classes differ without any model: lengths, years, words. "
        "Leaked: under test and tuned on, or part of an article that is.",
        "30% of each benchmark is drawn and its non-members tuned on; the rest is under test.",
        fill=ours.tables_8_to_10, made_by=("table8", "table15", "table5"),
        published=lambda: [
            paper_table("8 and 9", "set", published.TABLE_8_AND_9, ("documents",), (published.ORDER,)),
            paper_table("10", "set", published.TABLE_10, ("documents",)),
        ],
    ),
    Part(
        "table12", "Table 12. TPR at 5% FPR by set and model",
        "As table 1. The paper’s program wants an FPR below 5%; a second table allows 5% itself.",
        "FSD is above base everywhere but in a number that is probably a slip.",
        fill=ours.table_12, made_by=("table1",),
        published=lambda: [
            paper_table("12", "set, score", published.TABLE_12, AT_5, (published.SAME_COLUMN, published.LEAK)),
        ],
    ),
    Part(
        "table13", "Table 13. TPR at 5% FPR by size of the target",
        "As table 3.",
        "Printed with the rows zlib and lowercase probably exchanged.",
        fill=ours.table_13, made_by=("table13",),
        published=lambda: [
            paper_table("13", "score", published.TABLE_13, AT_5, ("WikiMIA, LLaMA.", published.SWAPPED)),
        ],
    ),
    Part(
        "table16", "Table 16. Tuned on other domains",
        "AUC of the base score and of FSD after tuning on unseen documents of the domain itself and of others.",
        "Tuned on Wikipedia only, arXiv falls from .68 to .52.",
        fill=ours.table_16, made_by=("table16",),
        published=lambda: [paper_table("16", "set", published.TABLE_16, AUCS, ("LLaMA-7B.", published.LEAK))],
    ),
    Part(
        "table17", "Table 17. Learning rate, rank, epochs",
        "AUC of the base score and of FSD by settings of the tuning.",
        "The rate matters, rank and epochs do not.",
        fill=ours.table_17, made_by=("table17lr", "table17rank", "table17epochs"),
        published=lambda: [
            paper_table("17", "score", published.TABLE_17_LEARNING_RATE, ("AUC, FSD",), WIKIMIA, ", learning rate",
                        "-rate"),
            paper_table("17", "score", published.TABLE_17_RANK, ("AUC, FSD",), WIKIMIA[:1], ", rank", "-rank"),
            paper_table("17", "score", published.TABLE_17_EPOCHS, ("AUC, FSD",),
                        (*WIKIMIA[:1], published.SETTINGS_DIFFER), ", epochs", "-epochs"),
        ],
    ),
    Part("table11", "Table 11. Example sentences", "There is nothing to regenerate, and none is shown here."),
    Part(
        "figure2", "Figures 2, 3 and 5. Histograms",
        "How the values of single documents are distributed: perplexity of either class before and after tuning (2); "
        "perplexity, Min-K% and their deviations (FSD) of both classes (3 and 5). Below the target that has read the "
        "members stands one that has read neither class: what it shows is the work of tuning, not of membership.",
        "Tuning on unseen documents lowers the perplexity of non-members more than that of members, and FSD parts "
        "the classes better than the score does (100 documents tuned on, 630 and 630 under test).",
        fill=histograms, made_by=("figure2",),
    ),
    Part(
        "figure4", "Figures 4 and 6. How many unseen documents",
        "AUC and TPR against the number of unseen documents tuned on, median over draws, band from lowest to highest. "
        "At 0: the score without tuning.",
        "Rising, then flat: ppl on WikiMIA from .63 to .91 at 100 documents (930 under test, LLaMA-7B).",
        fill=by_number, made_by=("figure4",),
    ),
    Part(
        "figure6", "Figure 6. The same on books of the Pile",
        "As figure 4, on BookCorpus2 with Pythia-6.9B, up to 500 documents.",
        "zlib from .48 to .78 at 100 (2,800 under test).",
        fill=of_books, made_by=("figure6",),
    ),
)  # fmt: skip

NOTES = (
    "base / FSD: the score under the target, and how much it changes when the target is tuned on unseen documents. "
    "Both point the same way, higher for members; the paper subtracts the other way round, which ranks alike.",
    "FSD ranks documents. Its verdict is score_only: no single document and no set is accused or cleared by it.",
    "blind: the AUC of the best of three classifiers that see the texts only. Above .6 no AUC of the two sets can be "
    "read as membership.",
    "Each world’s numbers and the paper’s stand in blocks of their own; where the model is the paper’s too, its number "
    "stands in parentheses beside ours.",
    "A dash is a cell without a result. It is never a zero.",
)


# ---------------------------------------------------------------------------------------- at a glance

GLANCE = (
    "All results, whatever their settings, by the first score of each. Above and below: where the target has read the "
    "members, the interval of the gain in AUC leaves out 0. Neither: where it has read neither set, the interval of "
    "the AUC leaves out .5, a false alarm. Blind: text alone tells the two sets apart."
)


def cells_of_glance(scope: Scope) -> Iterator[Cell]:
    """How often FSD is better than its base where documents were read, and alarms where none were."""
    read, neither = ([run for run in scope.runs if run.question.truth == truth] for truth in ("member", "non_member"))
    yield _share(scope, read, "gain", lambda low, high: low > 0)
    yield _share(scope, read, "gain", lambda low, high: high < 0)
    for kind in (BASE, FSD):
        yield _share(scope, neither, kind, lambda low, high: not low <= CHANCE <= high)
    aucs = [auc for run in scope.runs if (auc := detail("auroc_blind")(run.result)) is not None]
    yield counted(sum(auc > BLIND_LIMIT for auc in aucs), len(aucs), scope.world.name)


def _share(scope: Scope, runs: Sequence[Run], kind: str, holds: Callable[[float, float], bool]) -> Cell:
    """Of the intervals of the first score."""
    ends = []
    for run in runs:
        low, high = (detail_of(run.question.score, kind, key)(run.result) for key in ("auc_low", "auc_high"))
        if low is not None and high is not None:
            ends.append(holds(low, high))
    return counted(sum(ends), len(ends), scope.world.name)


class FsdReport(Report):
    """names: scores, by their keys in the results."""

    methods: ClassVar = ("fsd",)
    parts: ClassVar = PARTS
    glance: ClassVar = Glance(
        ("FSD above base", "FSD below base", "neither: base not .5", "neither: FSD not .5", "blind > .6"),
        cells_of_glance,
        GLANCE,
    )
    notes: ClassVar = NOTES
    marks: ClassVar = {
        FALSE: "the interval leaves out .5, though the target has read neither set",
        INVALID: MEANINGS[INVALID],
        DOUBTED: MEANINGS[DOUBTED],
    }
