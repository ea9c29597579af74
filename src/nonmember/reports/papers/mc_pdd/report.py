"""The report of MC-PDD: hit rates of two corpora, what their difference hangs on, and what the paper printed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import ClassVar

from nonmember.reports.core.grid import Block, Cell, Figure
from nonmember.reports.core.numbers import counted
from nonmember.reports.core.published import PublishedTable
from nonmember.reports.core.report import Filled, Glance, Part, Report
from nonmember.reports.core.worlds import Scope, select
from nonmember.reports.papers.mc_pdd import figures as pictures
from nonmember.reports.papers.mc_pdd import published
from nonmember.reports.papers.mc_pdd import tables as ours
from nonmember.reports.render.blocks import published_block


def printed(key: str, number: str, what: str, table: PublishedTable, corner: str, *notes: str) -> Block:
    return published_block(key, f"{published.SOURCE}: table {number}, {what}", corner, table, ("number",), notes=notes)


def drawn(filled: Filled, *found: Figure | None) -> Filled:
    return replace(filled, figures=tuple(figure for figure in found if figure is not None))


PARTS = (
    Part(
        "models", "Targets",
        "Share of documents, in percent, whose most specific word is among ten candidates of the target: in the "
        "reference corpus and in the suspect set; the difference (the corpus that is, or may be, unread minus the "
        "other), its one-sided p and upper 95% bound by bootstrap, and the p of the same test on random words, which "
        "must show no gap.",
        "All models but one guess words of games of 2014 more often than of 2024.",
        fill=lambda scope: drawn(ours.models(scope), pictures.by_arm(scope)), made_by=("models",),
        published=lambda: [printed("models", "VI", "SteamMIA", published.TABLE_6, "target", published.CLOSED_COUNTS)],
    ),
    Part(
        "null", "Where nothing was read",
        "Two halves of the same unread documents: p should be uniform.",
        fill=ours.null, made_by=("null",),
    ),
    Part(
        "sizes", "How many documents are enough",
        "The same test on resamples of fewer documents, drawn from the whole corpora as in the paper: what p would be "
        "with so many documents of the same rates. Then of corpora that have no more, each a part of the larger one.",
        "p grows as documents get fewer, and crosses .05 between 50 and 150.",
        fill=lambda scope: drawn(ours.by_size(scope), *pictures.by_size(scope)), made_by=("models", "sizes"),
        published=lambda: [
            printed("sizes-p", "XI", "p by sample size", published.TABLE_11_P, "target"),
            printed("sizes-upper", "XI", "upper bound by sample size", published.TABLE_11_UPPER, "target"),
        ],
    ),
    Part(
        "words", "Specific words and random ones",
        "The one, three or five words of the largest TF-IDF of each document, against as many random ones.",
        "Specific words tell the corpora apart, random ones do not.",
        fill=ours.words, made_by=("words",),
    ),
    Part(
        "news", "BBC news: specific words and random ones", "February 2017 against February 2025.",
        fill=ours.news, made_by=("news",),
        published=lambda: [printed("news", "IX", "BBC news, Qwen2.5-14B", published.TABLE_9, "words")],
    ),
    Part(
        "arxiv", "arXiv: specific words and random ones", "February 2017 and 2018 against February 2025.",
        "Rates are a tenth of those on games; the difference is near the limit of what can be seen.",
        fill=ours.arxiv, made_by=("arxiv",),
        published=lambda: [printed("arxiv", "X", "arXiv, OLMo-7B-Instruct", published.TABLE_10, "month, words, number",
                                   published.TWICE)],
    ),
    Part(
        "years", "BBC news by year", "Each March against March 2025, which no model of the time has read.",
        "Older news are guessed more often, down to 2020, and 2022.",
        fill=ours.years, made_by=("years",),
        published=lambda: [printed("years", "VIII", "Qwen2.5-14B-Instruct", published.TABLE_8, "month")],
    ),
    Part(
        "names", "With the name and without it",
        "Whether the prompt names what the text is about. Words that stand in a name that is shown are not asked for, "
        "so the two rows are not of quite the same documents.",
        "Rates fall without the name, the difference stays.",
        fill=ours.names, made_by=("names",),
        published=lambda: [printed("names", "XII", "SteamMIA, Llama-3.1-8B", published.TABLE_12, "prompt")],
    ),
    Part(
        "masks", "More words of a document",
        "Hits of all questions together; documents are resampled, never single words.",
        "Rates and difference fall with less specific words.",
        fill=ours.masks, made_by=("masks",),
        published=lambda: [printed("masks", "XIII", "SteamMIA, Llama-3.1-8B", published.TABLE_13, "words",
                                   published.MASKS)],
    ),
    Part(
        "contamination", "A target tuned on unread documents",
        "Hits after so many epochs of LoRA on some of the unread documents: in these, in documents read before and in "
        "clean ones.",
        "All rates fall, as tuning costs the target its manners; on the documents tuned on they recover a little.",
        fill=lambda scope: drawn(ours.contamination(scope), pictures.by_epochs(scope)), made_by=("contamination",),
    ),
    Part(
        "rivals", "Beside scores by log-probabilities",
        "How well members and others are told apart: over disjoint groups of documents, by the mean score of each "
        "(means over ten draws of groups), and over single documents. Best balanced accuracy has its threshold chosen "
        "on the very data.",
        "MC-PDD is on a level with its rivals.",
        fill=ours.rivals, made_by=("rivals",),
        published=lambda: [
            printed("rivals-3", "III", "AUC over documents", published.TABLE_3, "score"),
            printed("rivals-7", "VII", "SteamMIA", published.TABLE_7, "score", published.GROUPS),
        ],
    ),
)  # fmt: skip

NOTES = (
    "A gap says that specific words of one corpus are easier to guess. Date, fame, genre and duplicates make such gaps "
    "too. Not significant is inconclusive, never the opposite claim, though the paper’s listing takes it for that.",
    "Targets that do not answer with a list of words have no hit rate to speak of: more than 5% of such answers make a "
    "result invalid.",
    "Small numbers under p-values are Holm-adjusted over the table (one world, one table: one family).",
    "A dash is a cell without a result. It is never a zero.",
)


# ---------------------------------------------------------------------------------------- at a glance

GLANCE = (
    "Of the main sweep, significant differences by what the target has read, and results that are invalid; of two "
    "unread halves, false alarms, of which 5% are to be expected."
)


def cells_of_glance(scope: Scope) -> Iterator[Cell]:
    world = scope.world.name
    runs, null = scope.of("models"), scope.of("null")
    for of in (select(runs, truth="member"), select(runs, truth="non_member"), null):
        yield counted(sum(run.verdict.decision.startswith("evidence") for run in of), len(of), world)
    yield counted(sum(run.verdict.decision == "invalid" for run in runs), len(runs), world)


class McPddReport(Report):
    """names: scores, by their keys in the results."""

    methods: ClassVar = ("mc_pdd", "mc_pdd_groups", "mc_pdd_contaminated")
    parts: ClassVar = PARTS
    glance: ClassVar = Glance(("read", "not read", "two unread halves", "invalid"), cells_of_glance, GLANCE)
    notes: ClassVar = NOTES
