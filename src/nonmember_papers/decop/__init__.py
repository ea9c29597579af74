"""What of DE-COP's report is computed: the works of both groups, answers by letter, what a work costs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import ClassVar

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas

from nonmember.reports.core import formats
from nonmember.reports.core.grid import Figure, TableCell
from nonmember.reports.core.numbers import number_in
from nonmember.reports.core.published import PAPERS, PublishedTable, published_tables
from nonmember.reports.core.report import Filled, tables
from nonmember.reports.core.worlds import Scope, select
from nonmember.reports.declared.facts import with_facts
from nonmember.reports.declared.plots import Plot
from nonmember.reports.declared.report import DeclaredReport
from nonmember.reports.declared.tables import TableSpec
from nonmember.reports.planted.audits import number_cell
from nonmember.reports.render.blocks import block_of
from nonmember.reports.render.figures import QUIET, colour, figure_of, legend_below, panels, size_of_panels
from nonmember.results.load import Run
from nonmember.stats.classification import roc_auc, roc_points, tpr_at_fpr
from nonmember.stats.letter_choice import LETTERS as LETTERS_OF_OPTIONS

GROUPS = {"suspect": "suspect", "heldout": "clean"}
CHANCE = 0.25

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
    known = published_tables(PAPERS / "decop" / "published.txt")
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
    runs = select(scope.of("books"), method="decop", details__calibration=None)
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
    return tables(accuracies, roc)


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
OF_ONE_WORK = replace(
    LETTERS,
    sweep="work",
    title="Probability of the letters, the first clean work by name",
    alt="Mean probability of the letters A to D over one clean work before and after calibration, with a line at a "
    "quarter; a panel per target.",
)
GROUPS_BEFORE_AND_AFTER = replace(
    LETTERS,
    sweep="groups",
    title="Right answers before and after calibration",
    labels=("", "right answers"),
    alt="Mean share of right answers of suspect and clean works before and after calibration, with a line at a "
    "quarter; a panel per target.",
)


def by_letter(scope: Scope) -> Filled:
    """What is chosen, and where the original is found, letter by letter; before and after calibration."""
    runs = [run for key in ("calibration", "books") for run in scope.of(key) if run.question.method == "decop"]
    runs = list({run.anchor: run for run in runs}.values())
    found = [*letters(runs, "letters", ("probability", "chosen")), *letters(runs, "places", ("accuracy",))]
    found += [*by_group(runs), *of_one_work(runs)]
    parts = replace(scope, runs=tuple(found))
    parts = replace(parts, sweeps={name: [name] for name in ("letters", "places", "groups", "work")})
    return tables(*(plot.figure(parts) for plot in (GROUPS_BEFORE_AND_AFTER, LETTERS, PLACES, OF_ONE_WORK)))


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
                data = {"each": f"{shown} works", "when": when}
                yield with_facts(run, data, {"each": of[f"mean_{group}"]}, sweep="groups")


def of_one_work(runs: Sequence[Run]) -> Iterator[Run]:
    """Figure 9, which does not say of which book: of the first clean one, by name."""
    for run in runs:
        works = run.get("details.works")["heldout"] if run.get("details.uncalibrated") else {}
        for when, name in (("before", "probability"), ("after", "probability_calibrated")) if works else ():
            index = works["name"].index(min(works["name"]))
            for letter, share in zip(LETTERS_OF_OPTIONS, works[name][index], strict=True):
                yield with_facts(run, {"each": letter, "when": when}, {"each": share}, sweep="work")


class DecopReport(DeclaredReport):
    special: ClassVar = {"books": of_works, "calibration": by_letter}

    @cached_property
    def all_tables(self) -> list[TableSpec]:
        beside = decop_beside()
        return [
            replace(table, published=beside) if "best balanced accuracy" in table.columns else table
            for table in super().all_tables
        ]

    def scopes(self, runs: Sequence[Run]) -> list[Scope]:
        return super().scopes([with_probe(run) for run in runs])
