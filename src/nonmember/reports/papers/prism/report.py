"""The report of PRISM: tables 1 to 12 and figures 3 to 7, with what the paper printed beside what was computed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import ClassVar

from nonmember.reports.core import controls, published
from nonmember.reports.core.grid import PAIR, Block, Cell, Figure
from nonmember.reports.core.numbers import counted, mark
from nonmember.reports.core.published import PublishedTable
from nonmember.reports.core.report import Filled, Glance, Part, Report, figures, tables
from nonmember.reports.core.worlds import Scope, select
from nonmember.reports.papers.prism import beyond
from nonmember.reports.papers.prism import figures as pictures
from nonmember.reports.papers.prism import tables as ours
from nonmember.reports.render.blocks import published_block

MEMBER_ROW = "410m-CPT"


# ------------------------------------------------------------------------------------------ what fills a part


def qualified(key: str, table: Callable[[Scope], Block | None]) -> Callable[[Scope], Filled]:
    """A table, and where its columns are not domains, so that the controls cannot stand under them, these beside it."""

    def fill(scope: Scope) -> Filled:
        block = table(scope)
        apart = block is not None and not block.footer and controls.were_run(scope)
        return tables(block, controls.controls_block(scope, scope.world.domains, key) if apart else None)

    return fill


def drawn(picture: Callable[[Scope], Figure | None]) -> Callable[[Scope], Filled]:
    return lambda scope: figures(picture(scope))


def controls_alone(scope: Scope) -> Filled:
    if not controls.were_run(scope):
        return Filled("", notes=(controls.not_run(scope),))
    return tables(controls.controls_block(scope, scope.world.found("domain", scope.of("controls")), "all"))


# ------------------------------------------------------------------------------ the paper's own tables


def by_row(table: PublishedTable, *, claim: str = "non_membership") -> Callable[[str, str], tuple[str, ...]]:
    """Marks for p-values whose row is the target: the trained model's row is the members'."""

    def marks(row: str, column: str) -> tuple[str, ...]:
        truth = "member" if row == MEMBER_ROW else "non_member"
        return tuple(_mark(text, truth, claim) for text in table.get(row, column))

    return marks


def by_place(
    table: PublishedTable, truths: tuple[str, ...], *, claim: str = "non_membership"
) -> Callable[[str, str], tuple[str, ...]]:
    """Marks for cells whose numbers stand for targets in turn."""

    def marks(row: str, column: str) -> tuple[str, ...]:
        return tuple(_mark(text, truth, claim) for text, truth in zip(table.get(row, column), truths, strict=True))

    return marks


def _mark(text: str, truth: str, claim: str) -> str:
    return mark(published.number(text) < published.ALPHA, truth, claim)


UNTOUCHED_TRAINED, BOTH_P = ("non_member", "member"), ("p, 410m", "p, 410m-CPT")
RHOS = ("rho_RT", "rho_DT", "Delta, lower", "Delta, upper")


def paper_table(
    number: int, corner: str, table: PublishedTable, quantities: tuple[str, ...], template: str = "{}",
    marks: Callable[[str, str], tuple[str, ...]] | None = None, notes: tuple[str, ...] = (),
) -> Callable[[], list[Block]]:  # fmt: skip
    def build() -> list[Block]:
        title = f"Published: table {number}"
        return [published_block(f"table{number}", title, corner, table, quantities, template, marks, notes)]

    return build


def paper_tables_8_and_9() -> list[Block]:
    return [
        *paper_table(8, "target", published.TABLE_8, RHOS, ours.AGREEMENT)(),
        *paper_table(9, "target", published.TABLE_9, RHOS, ours.AGREEMENT)(),
    ]


PARTS = (
    Part(
        "table1", "Table 1. Rank correlation of target and reference",
        "Spearman’s rho of Min-K%++ between reference (column) and target: untouched / trained on the set. "
        "Training on a set should lower it.",
        "It falls from about .8 to about .4 on every set.",
        fill=qualified("table1", ours.table_1), made_by=("table1",),
        published=paper_table(1, "set", published.TABLE_1, ("rho, 410m", "rho, 410m-CPT"), PAIR),
    ),
    Part(
        "table2", "Table 2. PRISM by target and set",
        "One-sided bootstrap p that Delta = rho_RT − rho_DT is not positive. Small: evidence that the target was not "
        "trained on the set. The sets are members of the trained targets and of no other.",
        "All untouched targets are cleared, no trained one is. Reference 410m for the larger targets, 1b for 410m and "
        "410m-CPT, OLMo-1b for Reddit.",
        fill=qualified("table2", ours.table_2), made_by=("table2",),
        published=paper_table(2, "target", published.TABLE_2, ("p",), marks=by_row(published.TABLE_2)),
    ),
    Part(
        "table3", "Table 3. Held-out halves under the trained target",
        "The trained target on documents of the same kind that it did not read: these should be cleared.",
        "All but PubMed are cleared.",
        fill=qualified("table3", ours.table_3), made_by=("table3",),
        published=paper_table(3, "target", published.TABLE_3, ("p",),
                              marks=by_place(published.TABLE_3, ("non_member",))),
    ),
    Part(
        "table4", "Table 4. Tests of membership",
        "Untouched / trained target. Here a small p speaks for membership. LLM-DI combines the p-values of its splits "
        "by the paper’s rule, which is very conservative; their median stands below it.",
        "LLM-DI finds two of five member sets at .05; PaCoST errs in both directions.",
        fill=qualified("table4", ours.table_4), made_by=("table4",),
        published=paper_table(4, "test", published.TABLE_4, BOTH_P, PAIR,
                              by_place(published.TABLE_4, UNTOUCHED_TRAINED, claim="membership")),
    ),
    Part(
        "table5", "Table 5. Weak references",
        "PRISM with the reference in the row: untouched / trained target. A reference too weak clears members.",
        "With 70m or 160m as reference, the trained model is cleared of three sets it had read.",
        fill=qualified("table5", ours.table_5), made_by=("table5",),
        published=paper_table(5, "reference", published.TABLE_5, BOTH_P, PAIR,
                              by_place(published.TABLE_5, UNTOUCHED_TRAINED)),
    ),
    Part(
        "table6", "Table 6. The sets",
        "Documents and tokens. Tokens are those scored under the first model observed, so the first of each document "
        "is not among them.",
        "Counts are per half where a set has two.",
        fill=qualified("table6", ours.table_6), made_by=("table2", "table3"),
        published=paper_table(6, "set", published.TABLE_6, ("number",)),
    ),
    Part(
        "table7", "Table 7. Choice of score",
        "Rank correlation of target and reference by score: untouched / trained / difference. A larger difference "
        "tells the two targets apart more easily.",
        "Min-K%++ has the largest difference on four of five sets; on CC it is DC-PDD (.40 against .28).",
        fill=qualified("table7", ours.table_7), made_by=("table7",),
        published=paper_table(7, "score", published.TABLE_7, ("rho, 410m", "rho, 410m-CPT", "difference"),
                              "{} / {} / {}"),
    ),
    Part(
        "table8", "Tables 8 and 9. Correlations and intervals behind table 2",
        "rho of reference and target, rho of distilled reference and target, and the interval of their difference "
        "Delta (percentile bootstrap over documents).",
        "The point estimate of Delta is positive for five of the eight member sets; they escape by sampling error.",
        fill=qualified("table8", ours.table_8), made_by=("table8",), published=paper_tables_8_and_9,
    ),
    Part(
        "table10", "Table 10. Paired t-test of Min-K%++, a cautionary baseline",
        "H1: Min-K%++ is lower under the target than under the distilled reference. A small p would read as “not "
        "trained on”. The level of the score moves with size and family of the model, so the test is reported and "
        "never believed; its verdict is score_only.",
        "All eight member sets are “cleared”, several non-members are not.",
        fill=qualified("table10", ours.table_10), made_by=("table10",),
        published=paper_table(10, "target", published.TABLE_10, ("p",), marks=by_row(published.TABLE_10)),
    ),
    Part(
        "table11", "Table 11. A target of another architecture",
        "PRISM with references (column) that are not of the target’s family.",
        "OLMo-1b on Reddit is cleared with all Pythia references.",
        fill=qualified("table11", ours.table_11), made_by=("table11",),
        published=paper_table(11, "set", published.TABLE_11, ("p",),
                              marks=by_place(published.TABLE_11, ("non_member",))),
    ),
    Part(
        "table12", "Table 12. Spearman and Kendall",
        "PRISM with either rank correlation.",
        "The choice does not matter.",
        fill=qualified("table12", ours.table_12), made_by=("table12",),
        published=paper_table(12, "correlation", published.TABLE_12, ("p",),
                              marks=by_place(published.TABLE_12, ("non_member",))),
    ),
    Part(
        "figure1", "Figures 1 and 2",
        "Diagrams of the idea and of the procedure; there is nothing to regenerate, and none is drawn here.",
    ),
    Part(
        "figure3", "Figure 3. How many documents are needed",
        "p against the number of documents: median over draws, band from lowest to highest.",
        "Flat down to about 150 documents, rising below.",
        fill=drawn(pictures.figure_3), made_by=("figure3",),
    ),
    Part(
        "figure4", "Figures 4a and 6. The choice of K",
        "How much lower the rank correlation with the reference is under the trained target than under the untouched "
        "one, by the share K of tokens that Min-K%++ looks at.",
        "The difference falls as K grows (ArXiv in figure 4a; CC, Reddit, HN and PubMed in 6).",
        fill=drawn(pictures.figure_4), made_by=("figure4",),
    ),
    Part(
        "figure4b", "Figures 4b and 7. Which documents change rank",
        "Change of rank from the model before to the model after, against how surprising a document was before. "
        "Rank 1 is the document that looks most read: a hard document that gains lies to the right and below zero. "
        "Bins of equally many documents with the interval of their mean. A slope alone shows nothing: any two "
        "imperfectly correlated models regress to the mean, hard documents gaining and easy ones losing. The control "
        "pairs, of which neither model read the documents, show that slope; only what is steeper speaks of reading.",
        "The curve falls: hard documents gain rank, easy ones lose. It draws no control.",
        fill=drawn(pictures.figure_4b), made_by=("figure4b",),
    ),
    Part(
        "figure5a", "Figure 5a. Temperature of the distillation",
        "Delta against tau at lambda .5, with its interval. A good setting separates the two targets around zero.",
        "Wikipedia, reference 1b: two lines, 410m above 410m-CPT.",
        fill=drawn(pictures.figure_5a), made_by=("figure5a",),
    ),
    Part(
        "figure5b", "Figure 5b. Weight of the distillation",
        "Delta against lambda at tau 2, with its interval. Where the trained target’s Delta is positive, members are "
        "cleared.",
        "Both lines fall with lambda; 410m-CPT is at about −.1 at .6 and −.25 at .7.",
        fill=drawn(pictures.figure_5b), made_by=("figure5b",),
    ),
    Part(
        "lambda_tau", "Beyond the paper: lambda and tau together",
        "Delta over a grid of both settings of the distillation. Only the distilled references differ.",
        fill=drawn(pictures.by_lambda_and_tau), made_by=("lambda_tau",),
    ),
    Part(
        "reference", "Beyond the paper: the reference",
        "Delta by size and architecture of the reference, for the untouched and the trained target.",
        fill=drawn(pictures.by_reference), made_by=("reference",),
    ),
    Part(
        "seed", "Beyond the paper: seeds of the distillation",
        "How far the answer depends on the seed of the distillation alone.",
        fill=drawn(pictures.by_seed), made_by=("seed",),
    ),
    Part(
        "spread", "Beyond the paper: table 2 with its spread",
        "Table 2 over three seeds of the distillation: p and Delta as median (lowest to highest), and by how many "
        "seeds the set is cleared. The bootstrap counts the documents and not this.",
        fill=beyond.seeds, made_by=("spread",),
    ),
    Part(
        "weak", "Beyond the paper: references that are truly too weak",
        "Table 5 with references that are far smaller than the target or have read next to nothing, beside the usual "
        "one. Does a weak reference clear members, or does it clear nobody?",
        "Weak references clear members and still clear most untouched targets.",
        fill=beyond.weak_references, made_by=("weak",),
    ),
    Part(
        "releases", "Beyond the paper: LLM-DI on older and newer text",
        "Members are docstrings of an older release of a library; the unseen documents are others of that release, or "
        "what is new in a newer one. p, and the median of the splits’ p. A test of membership must accuse nothing that "
        "was not read, the newer text included.",
        fill=beyond.releases, made_by=("releases",),
    ),
    Part(
        "controls", "Controls",
        "Blind AUC: how well the texts alone, without any model, tell two groups apart; above .6, no difference in "
        "scores may be read as membership. A/A: the tests on two disjoint halves of text that no model read. LLM-DI "
        "should find nothing there, and PRISM should clear both halves.",
        fill=controls_alone, made_by=("controls",),
    ),
)  # fmt: skip

NOTES = (
    "ours (published): where the models are the paper’s own, its number stands in parentheses beside ours.",
    "Small numbers under p-values are Holm-adjusted over the table (one world, one table: one family).",
    "A dash is a cell without a result. It is never a zero.",
)


# ---------------------------------------------------------------------------------------- at a glance

GLANCE = (
    "All results whose truth is known, whatever their settings: weak references and odd settings are among them. The "
    "last two columns are of the tests of membership, LLM-DI and PaCoST."
)


def cells_of_glance(scope: Scope) -> Iterator[Cell]:
    """What PRISM and the tests of membership said of every set whose truth is known, over all results there are."""
    prism = select(scope.runs, method="prism")
    tests = select(scope.runs, claim="membership")
    for runs, truth, decision in (
        (prism, "non_member", "evidence_of_non_membership"),
        (prism, "member", "evidence_of_non_membership"),
        (tests, "member", "evidence_of_membership"),
        (tests, "non_member", "evidence_of_membership"),
    ):
        of = select(runs, truth=truth)
        yield counted(sum(run.verdict.decision == decision for run in of), len(of), scope.world.name)


class PrismReport(Report):
    """names: scores, by kind; rank_metrics."""

    methods: ClassVar = ("prism", "rank_agreement", "rank_shift", "paired_t", "llm_di", "pacost", "blind")
    parts: ClassVar = PARTS
    glance: ClassVar = Glance(
        ("PRISM cleared non-members", "PRISM cleared members", "members found", "non-members accused"),
        cells_of_glance,
        GLANCE,
    )
    notes: ClassVar = NOTES
