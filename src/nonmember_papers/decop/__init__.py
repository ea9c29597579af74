"""What of DE-COP's report is computed: the works of both groups, means over models, answers by letter."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas

from nonmember.methods.decop.questions import ORDERS
from nonmember.reports.core import formats
from nonmember.reports.core.grid import Block, Figure, Numeral, TableCell
from nonmember.reports.core.numbers import number_in
from nonmember.reports.core.published import PAPERS, PublishedTable, published_number, published_tables
from nonmember.reports.core.worlds import Scope, select
from nonmember.reports.declared.facts import with_facts
from nonmember.reports.declared.plots import Plot
from nonmember.reports.declared.report import DeclaredReport, Filled, tables
from nonmember.reports.declared.tables import TableSpec
from nonmember.reports.planted.audits import number_cell
from nonmember.reports.render.blocks import block_of
from nonmember.reports.render.figures import QUIET, colour, figure_of, legend_below, panels, size_of_panels
from nonmember.results.load import Run
from nonmember.stats.classification import roc_auc, roc_points, tpr_at_fpr
from nonmember.stats.letter_choice import LETTERS as LETTERS_OF_OPTIONS
from nonmember.stats.proportions import exact_interval

PUBLISHED = PAPERS / "decop" / "published.txt"
SCORES = {"Perplexity": "perplexity", "Zlib": "zlib", "Lowercase": "lowercase", "Min-K%": "mink(0.2)"}
OF_TABLE3 = "DE-COP, right answers in suspect works (table 3)"
GROUPS = {"suspect": "suspect", "heldout": "clean"}
CHANCE = 0.25
POTTER = "Harry_Potter_and_the_Philosopher's_Stone_-_JK_Rowling"
FALLEN_NIGHT = "A_Day_of_Fallen_Night_-_Samantha_Shannon"

QUARTILES = ("lowest", "first quarter", "median", "third quarter", "highest")
RATES = ("suspect works above, 5% of clean ones", "suspect works above, 10%", "ROC area")
SORTED = (
    "Share of right answers of every work, sorted, suspect and clean works as two lines; dotted at chance, a quarter; "
    "a panel per target."
)
CURVE = (
    "ROC curve: share of suspect works above a threshold against the share of clean ones, with the diagonal of chance; "
    "a panel per target."
)

Rows = Mapping[str, Sequence[TableCell]]
Shares = Mapping[str, Sequence[float]]  # group -> share of right answers of each work
Paint = Callable[[Axes, Shares], None]

# ------------------------------------------------------------------------------------------- facts of results


def with_probe(run: Run) -> Run:
    """With the name of a probe of text, as the paper calls it, and seconds per work where answers were made."""
    details, made = run.statistics.details, run.result.provenance.made
    works = sum(number_in(details, f"num_{group}_works") or 0 for group in GROUPS)
    is_made = any(made.get(name) for name in ("tokens_observed", "answers_asked"))
    seconds = run.result.provenance.seconds / works if works and is_made else None
    return with_facts(run, {"probe": probe(run)}, {"seconds_per_work": seconds})


def probe(run: Run) -> str:
    if run.question.method == "decop":
        return "DE-COP"
    if run.question.method == "prefix_completion":
        return f"Completion ({run.get('k')})"
    return "Name cloze with the title" if run.get("with_title") else "Name cloze"


def decop_beside() -> PublishedTable:
    """The rows of DE-COP itself in tables 2, 3 and 11: model -> our columns."""
    known = published_tables(PUBLISHED)
    columns = {
        "right, suspect works": known["table3"],
        "best balanced accuracy": known["table2"],
        "p": known["table11"],
    }
    models = {name for of in columns.values() for name in of.columns} - {"mean"}
    return PublishedTable(
        tuple(columns), {name: {column: of.get("DE-COP", name) for column, of in columns.items()} for name in models}
    )


# ------------------------------------------------------------------------------------------------ the works


def of_works(scope: Scope) -> Filled:
    """Every work's share of right answers, and the ROC curve of works, a panel per target."""
    runs = without_calibration(scope)
    names = scope.world.found("target", runs)
    first = {name: of_target[0] for target, name in names.items() if (of_target := select(runs, target=target))}
    found = {name: run for name, run in first.items() if run.get("details.works")}
    if not found:
        return tables()
    shares = {
        name: {group: run.get("details.works")[group]["accuracy"] for group in GROUPS} for name, run in found.items()
    }

    def cells(run: Run, values: Sequence[float]) -> list[TableCell]:
        return [number_cell(formats.decimals(value), value, scope.world.name, [run]) for value in values]

    def drawn(key: str, title: str, alt: str, columns: Sequence[str], rows: Rows, panel: Paint) -> Figure | None:
        block = block_of(scope, "", title, "target", columns, rows, ["share"], dash_is_missing=False)

        def paint(canvas: Canvas) -> None:
            for axis, groups in zip(panels(canvas, tuple(shares)), shares.values(), strict=True):
                panel(axis, groups)
            legend_below(canvas, canvas.axes[0])

        return figure_of(key, scope.world, title, alt, block, size_of_panels(len(shares)), paint)

    quartiles = {
        f"{name}, {shown}": cells(run, np.percentile(shares[name][group], (0, 25, 50, 75, 100)).tolist())
        for name, run in found.items()
        for group, shown in GROUPS.items()
    }
    rates = {name: cells(run, rates_of(shares[name])) for name, run in found.items()}
    accuracies = drawn("accuracies", "Share of right answers, work by work", SORTED, QUARTILES, quartiles, paint_sorted)
    roc = drawn("roc", "Suspect from clean works", CURVE, RATES, rates, paint_roc)
    return tables(accuracies, roc, means(scope))


def means(scope: Scope) -> Block | None:
    """The last columns of tables 2 and 3: over the paper's models, where all of them have results."""
    known, name_of = published_tables(PUBLISHED), scope.world.targets
    asked = {name_of.get(str(run.question.target)): run for run in without_calibration(scope)}
    scored = {name_of.get(str(run.question.target)): run for run in scope.of("baselines", method="decop_baselines")}
    few = ("few_resamples", "best_balanced_acc", "mean")
    of_scores = [(score, scored, ("scores", name, *few)) for score, name in SCORES.items()]
    rows = {}
    for row, runs, path in [*of_scores, ("DE-COP", asked, few), (OF_TABLE3, asked, ("mean_suspect",))]:
        table = known["table3" if row == OF_TABLE3 else "table2"]
        *models, mean = table.columns
        found = [runs[model] for model in models if model in runs]
        values = [value for run in found if (value := number_in(run.statistics.details, *path)) is not None]
        if len(values) == len(models):
            value, anchors = float(np.mean(values)), tuple(run.anchor for run in found)
            ours = Numeral(formats.decimals(value), value, scope.world.name, anchors, note="a mean over models")
            beside = table.get(row.partition(",")[0], mean) if scope.world.published else ()
            rows[row] = [TableCell((ours,), tuple(map(published_number, beside)))]
    notes = [f"Table {key[-1]}: over {', '.join(known[key].columns[:-1])}." for key in ("table2", "table3")]
    return block_of(
        scope, "means", "Means over models (tables 2 and 3)", "best balanced accuracy", ["mean"], rows, ["mean"], notes
    )


def without_calibration(scope: Scope) -> list[Run]:
    return select(scope.of("books"), method="decop", details__calibration=None)


def rates_of(groups: Shares) -> list[float]:
    values, labels = scored(groups)
    return [*(tpr_at_fpr(values, labels, fpr, "<=") for fpr in (0.05, 0.1)), roc_auc(values, labels)]


def scored(groups: Shares) -> tuple[list[float], list[int]]:
    """Shares of right answers, and 1 for suspect works."""
    values = [value for found in groups.values() for value in found]
    return values, [1] * len(groups["suspect"]) + [0] * len(groups["heldout"])


def paint_sorted(axis: Axes, groups: Shares) -> None:
    for index, (group, values) in enumerate(groups.items()):
        axis.plot(
            np.linspace(0, 1, len(values)),
            sorted(values),
            color=colour(index),
            marker=".",
            markersize=3,
            linewidth=0.8,
            label=f"{GROUPS[group]} works",
        )
    axis.axhline(CHANCE, color=QUIET, linewidth=0.7, linestyle=":")
    axis.set(ylim=(0, 1), xlabel="works, sorted", ylabel="right answers")


def paint_roc(axis: Axes, groups: Shares) -> None:
    points = roc_points(*scored(groups))
    axis.plot((0, 1), (0, 1), color=QUIET, linewidth=0.7, zorder=0)
    axis.step(points.fpr, points.tpr, where="post", color=colour(0))
    axis.set(xlabel="clean works above", ylabel="suspect works above", xlim=(0, 1), ylim=(0, 1.01))


# ---------------------------------------------------------------------------------------------- the letters

LETTERS = Plot(
    rows=["target?", "when?"],
    x="each",
    cell="{details.each}",
    numbers=["share"],
    sweep="letters",
    title="Probability of the letters, clean works",
    labels=("letter", "probability"),
    alt="Mean probability of the letters A to D over the clean works (the share of answers, where probabilities are "
    "not known), before and after calibration where there was one, with a line at a quarter; a panel per target.",
    names={"when": {"before": "before calibration", "after": "after calibration"}},
    panels=True,
    marks="bars",
    level=CHANCE,
)
PLACES = replace(
    LETTERS,
    sweep="places",
    title="Right answers by the place of the original, clean works",
    labels=("place of the original", "right answers"),
    alt="Share of right answers about clean works where the original stands at A, B, C or D, before and after "
    "calibration where there was one, with a line at a quarter; a panel per target.",
)
SWAPPED = replace(
    PLACES,
    rows=["target?"],
    sweep="swapped",
    cell="{details.each.share} [{details.each.low}, {details.each.high}], {details.each.right:n} of "
    "{details.each.asked:n}",
    numbers=["share", "low end", "high end", "right", "passages"],
    title="Right answers about Harry Potter and the Philosopher’s Stone, options A and C swapped",
    alt="Share of right answers about the same passages with the original at A, and with it at C in exchange for the "
    "paraphrase there, with 95% intervals and a line at a quarter.",
    panels=False,
)
OF_ONE_WORK = replace(
    LETTERS,
    sweep="work",
    title="Probability of the letters, A Day of Fallen Night",
    alt="Mean probability of the letters A to D over A Day of Fallen Night before and after calibration, with a line "
    "at a quarter; a panel per target.",
)
GROUPS_BEFORE_AND_AFTER = replace(
    LETTERS,
    sweep="groups",
    title="Right answers before and after calibration",
    labels=("works", "right answers"),
    published=published_tables(PUBLISHED)["figure6"],
    alt="Mean share of right answers of suspect and clean works before and after calibration, with a line at a "
    "quarter; a panel per target.",
)


def by_letter(scope: Scope, recorded: str) -> Filled:
    """What is chosen, and where the original is found, letter by letter; before and after calibration."""
    runs = [run for key in ("calibration", "books") for run in scope.of(key) if run.question.method == "decop"]
    runs = list({run.anchor: run for run in runs}.values())
    found = [*letters(runs, "letters", ("probability", "chosen")), *letters(runs, "places", ("accuracy",))]
    found += [*by_group(runs), *of_one_work(runs), *swapped(without_calibration(scope), Path(recorded))]
    plots = (GROUPS_BEFORE_AND_AFTER, LETTERS, PLACES, SWAPPED, OF_ONE_WORK)
    parts = replace(scope, runs=tuple(found), sweeps={plot.sweep: [plot.sweep] for plot in plots})
    return tables(*(plot.figure(parts) for plot in plots))


def letters(runs: Sequence[Run], key: str, quantities: Sequence[str]) -> Iterator[Run]:
    """A result for each letter; of a target by the first of the quantities that is known of it."""
    for target in dict.fromkeys(run.question.target for run in runs):
        found = [(run, run.get("details.letters")["heldout"]) for run in select(runs, target=target)]
        for when, suffix in (("before", ""), ("after", "_calibrated")):
            known = (name for name in quantities if any(name + suffix in of for _, of in found))
            for name in list(known)[:1]:
                for run, of in found:
                    for letter, share in of.get(name + suffix, {}).items():
                        yield with_facts(run, {"each": letter, "when": when}, {"each": share}, sweep=key)


def by_group(runs: Sequence[Run]) -> Iterator[Run]:
    """Figure 6: the mean share of right answers of both groups, before and after calibration."""
    for run in (run for run in runs if run.get("details.uncalibrated")):
        for when, of in (("before", run.get("details.uncalibrated")), ("after", run.statistics.details)):
            for group, shown in GROUPS.items():
                yield with_facts(run, {"each": shown, "when": when}, {"each": of[f"mean_{group}"]}, sweep="groups")


def of_one_work(runs: Sequence[Run]) -> Iterator[Run]:
    """Figure 9: of A Day of Fallen Night, where it is among the clean works that were not calibrated on."""
    for run in (run for run in runs if run.get("details.uncalibrated")):
        works = run.get("details.works")["heldout"]
        for index in (index for index, name in enumerate(works["name"]) if name == FALLEN_NIGHT):
            for when, name in (("before", "probability"), ("after", "probability_calibrated")):
                for letter, share in zip(LETTERS_OF_OPTIONS, works[name][index], strict=True):
                    yield with_facts(run, {"each": letter, "when": when}, {"each": share}, sweep="work")


def swapped(runs: Sequence[Run], recorded: Path) -> Iterator[Run]:
    """Figure 8, where the answers themselves are at hand: Claude 2.1 with the original at A, the paraphrases behind it
    in their order, and with what stands at A and C exchanged."""
    path = recorded / "answers.parquet"
    for run in select(runs, target="claude-2.1", world="recorded") if path.is_file() else ():
        answers = pd.read_parquet(path, columns=["book", "query", "true_option", "claude_2_1"])
        for letter, order in (("A", (0, 1, 2, 3)), ("C", (2, 1, 0, 3))):
            asked = answers[(answers["book"] == POTTER) & (answers["query"] == ORDERS.index(order))]
            if num := len(asked):
                right = int((asked["claude_2_1"] == asked["true_option"]).sum())
                ends = exact_interval(right, num, alpha=0.05)
                found = {"share": right / num, "low": ends.low, "high": ends.high, "right": right, "asked": num}
                yield with_facts(run, {"each": letter}, {"each": found}, sweep="swapped")


@dataclass(frozen=True, kw_only=True)
class DecopReport(DeclaredReport):
    recorded: str  # folder that nonmember_papers.data writes; figure 8 is left out where it is not there

    @property
    def special(self) -> Mapping[str, Callable[[Scope], Filled]]:  # type: ignore[override]
        return {"books": of_works, "calibration": partial(by_letter, recorded=self.recorded)}

    @cached_property
    def all_tables(self) -> list[TableSpec]:
        beside = decop_beside()
        return [
            replace(table, published=beside) if "best balanced accuracy" in table.columns else table
            for table in super().all_tables
        ]

    def scopes(self, runs: Sequence[Run]) -> list[Scope]:
        return super().scopes([with_probe(run) for run in runs])
