"""What of FSD's report is computed: intervals and marks of AUCs, text alone, how the two classes differ otherwise."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any, ClassVar

from nonmember.reports.core import formats
from nonmember.reports.core.grid import FALSE, PAIR, Block, Numeral, TableCell, TableRow
from nonmember.reports.core.numbers import counted, detail, mean_of, number_in
from nonmember.reports.core.worlds import Scope
from nonmember.reports.declared.cells import CellTemplate, Quantity
from nonmember.reports.declared.facts import with_facts
from nonmember.reports.declared.plots import Plot
from nonmember.reports.declared.report import DeclaredReport, Filled, Glance, figures
from nonmember.reports.declared.tables import TableSpec
from nonmember.results.load import Run
from nonmember_papers.fsd.differences import BLIND_LIMIT, CHANCE, say_differences, say_targets
from nonmember_papers.fsd.histograms import histograms

BLIND = "blind (text alone)"
PAPERS_MODEL = "Pythia-6.9B"
PAIRED = "{{details.each.base.{0}:.3!}} / {{details.each.fsd.{0}:.3!}}"
GAIN = "{details.each.gain.auc:+.3} [{details.each.gain.auc_low:+.3}, {details.each.gain.auc_high:+.3}]"
MEASURES = {
    "auc": "AUC",
    "gain": "Gain: AUC of FSD less AUC of base, with its interval",
    "tpr_below_5pct_fpr": "TPR at FPR < 5%, as the paper’s program counts",
    "tpr_at_5pct_fpr": "TPR at FPR ≤ 5%",
    "balanced_accuracy": "Balanced accuracy, threshold from other documents",
    "best_balanced_accuracy": "Best balanced accuracy, threshold from the same documents: optimistic",
}
ENDS = {"auc": ("auc_low", "auc_high"), "tpr_at_5pct_fpr": ("tpr_low", "tpr_high")}

# ------------------------------------------------------------------------------------------------ tables


class IntervalTemplate(CellTemplate):
    """Numbers with their interval, and with a mark where the target has read neither set and the AUC says otherwise."""

    def numbers(self, runs: Sequence[Run], scope: Scope) -> tuple[Numeral, ...]:
        made = super().numbers(runs, scope)
        return tuple(with_interval(item, of, runs) for item, of in zip(made, self.quantities, strict=True))


def with_interval(made: Numeral, of: Quantity, runs: Sequence[Run]) -> Numeral:
    *_, kind, measure = of.path.split(".")
    if len(runs) != 1 or kind == "gain" or measure not in ENDS or made.value is None:
        return made
    low, high = (detail("each", kind, end)(runs[0].result) for end in ENDS[measure])
    if low is None or high is None:
        return made
    question = runs[0].question
    note = f"{1 - question.alpha:.0%} interval {formats.decimals(low)} to {formats.decimals(high)}"
    is_false = measure == "auc" and question.truth == "non_member" and not low <= CHANCE <= high
    return replace(made, note=note, mark=FALSE if is_false and not made.mark else made.mark)


@dataclass(frozen=True)
class FsdTable(TableSpec):
    """What results say of scores, with text alone beside their AUCs and how the classes differ below them."""

    @cached_property
    def templates(self) -> Mapping[str, CellTemplate]:
        return {name: IntervalTemplate(item.text) for name, item in super().templates.items()}

    def runs(self, scope: Scope) -> list[Run]:
        found = super().runs(scope)
        if self.columns == "sized?" and len({run.get("sized")[0] for run in found}) < 2:
            return []
        if "base.auc" in self.cell:
            found += TableSpec.runs(replace(self, each={BLIND: "text_alone"}), scope)
        return found

    def block(self, scope: Scope) -> Block | None:
        runs = self.runs(scope)
        targets = {scope.world.targets.get(str(run.question.target)) for run in runs}
        of_paper = self if targets == {PAPERS_MODEL} else replace(self, published=None)
        if not runs or (block := TableSpec.block(of_paper, scope)) is None:
            return None
        targets_note = [say_targets(scope, runs)] if self.each else []
        notes = [*targets_note, *block.notes, *say_differences(self.sets(scope, runs))]
        return replace(block, rows=tuple(map(with_blind, block.rows)), notes=tuple(filter(None, notes)))

    def blocks(self, scope: Scope) -> list[Block]:
        made = super().blocks(scope)
        return [*(table_2(scope, item) for item in made if item.title.startswith("Table 15")), *made]

    def sets(self, scope: Scope, runs: Sequence[Run]) -> dict[str, list[Run]]:
        """Name of a row, without its score -> its results."""
        rows = [text for text in self.rows if not text.startswith("each")]
        joined = self.joined.removesuffix(", {}")
        results = {run.anchor: run for run in runs}.values()
        return replace(self, rows=rows, columns="domain", joined=joined).groups(scope, list(results))


def with_blind(row: TableRow) -> TableRow:
    """A number of text alone is no pair."""

    def cell(pair: TableCell) -> TableCell:
        is_alone = pair.template == PAIR and not pair.ours[0].missing and pair.ours[1].missing
        return TableCell(pair.ours[:1]) if is_alone else pair

    return TableRow(row.name, tuple(map(cell, row.cells)))


def table_2(scope: Scope, block: Block) -> Block:
    """The mean of table 15 over its sets."""
    rows = [row for row in block.rows if not all(cell.missing for cell in row.cells)]
    means = tuple(
        TableRow(name, (mean_of([row.cells[index] for row in rows], scope.world.name),))
        for index, name in enumerate(block.columns)
    )
    return replace(
        block,
        key=block.key.replace("table15", "table2"),
        title=f"Table 2: AUC, mean over sets. {scope.world.title}",
        corner="score",
        columns=(f"mean of {len(rows)} sets",),
        rows=means,
        notes=block.notes[:1],
    )


# ----------------------------------------------------------------------------------------------- figures

BY_NUMBER = Plot(
    rows=["domain?", "each?"],
    x="details.num_unseen",
    cell="{details.each.fsd.auc} ({details.each.fsd.auc:.3,lowest} to {details.each.fsd.auc:.3,highest})",
    numbers=["median", "lowest", "highest"],
    title="AUC",
    labels=("unseen documents (0: base)", "AUC"),
    alt="{} of FSD against the number of unseen documents tuned on, median over draws, a line per score and a panel "
    "per set; at 0 the score without tuning.",
    corner="set, score",
    where={"target": "@one"},
    each="scores",
    names={"details.num_unseen": {0: "0 (base)", "other": "{}"}},
    panels=True,
    band=True,
    level=CHANCE,
)


def by_number(key: str, title: str) -> Callable[[Scope], Filled]:
    """Median over draws, band from lowest to highest; at 0 the score without tuning."""
    auc = replace(BY_NUMBER, sweep=key, title=f"{title}, AUC", of_numbers="AUC", alt=BY_NUMBER.alt.format("AUC"))
    tpr = replace(
        auc,
        part="tpr",
        title=f"{title}, TPR",
        of_numbers=MEASURES["tpr_below_5pct_fpr"],
        cell=auc.cell.replace("fsd.auc", "fsd.tpr_below_5pct_fpr"),
        labels=(auc.labels[0], "TPR at FPR < 5%"),
        alt=BY_NUMBER.alt.format("TPR at FPR < 5%"),
        level=0.05,
    )

    def fill(scope: Scope) -> Filled:
        runs = scope.of(key)
        first = {(run.domain, run.question.target): run for run in reversed(runs)}
        with_base = replace(scope, runs=(*runs, *map(without_tuning, first.values())))
        return figures(*(plot.figure(with_base) for plot in (auc, tpr)))

    return fill


def without_tuning(run: Run) -> Run:
    """Its scores under the target itself, as those of no unseen documents."""
    scores = {name: {"fsd": score["base"]} for name, score in run.statistics.details.get("scores", {}).items()}
    return with_facts(run, {}, {"num_unseen": 0, "scores": scores})


# ------------------------------------------------------------------------------------------------ report


class FsdReport(DeclaredReport):
    special: ClassVar = {
        "figure2": histograms,
        "figure4": by_number("figure4", "Figures 4 and 6"),
        "figure6": by_number("figure6", "Figure 6"),
    }

    @cached_property
    def all_tables(self) -> list[TableSpec]:
        """A table for each of the measures that a cell names."""
        scored = [table for table in super().all_tables if table.each]
        others = [table for table in super().all_tables if not table.each]
        return [
            *(self.of_measure(table, measure) for table in scored for measure in table.cell.split()),
            *(as_scores(table) if table.part != "documents" else table for table in others),
        ]

    def of_measure(self, table: TableSpec, measure: str) -> FsdTable:
        is_gain, is_auc = measure == "gain", measure == "auc"
        return as_scores(
            table,
            part="" if is_auc else measure.replace("_", "-"),
            title="Table 15: AUC" if is_auc and table.published else MEASURES[measure],
            cell=GAIN if is_gain else PAIRED.format(measure),
            numbers=("gain", "lower", "upper") if is_gain else ("base", "FSD"),
            names={**table.names, "each": {**self.names["each"], BLIND: BLIND}},
            published=table.published if is_auc else None,
        )

    def scopes(self, runs: Sequence[Run]) -> list[Scope]:
        scopes = super().scopes(runs)
        return [replace(scope, runs=tuple(with_text_alone(run, scope) for run in scope.runs)) for scope in scopes]

    def first_numbers(self) -> Glance:
        columns = ("FSD above base", "FSD below base", "neither: base not .5", "neither: FSD not .5", "blind > .6")
        return Glance(columns, cells_of_glance, self.glance_note)


def as_scores(table: TableSpec, **changed: Any) -> FsdTable:
    return FsdTable(**{item.name: getattr(table, item.name) for item in fields(table)} | changed)


def with_text_alone(run: Run, scope: Scope) -> Run:
    """With the AUC of text alone told as that of a score, and the target with its number of parameters."""
    target = str(run.question.target)
    size = number_in(run.result.health.capability, "target", "num_parameters") or 0
    text_alone = {"base": {"auc": detail("auroc_blind")(run.result)}}
    return with_facts(run, {"sized": (size, scope.world.targets.get(target, target))}, {"text_alone": text_alone})


def cells_of_glance(scope: Scope) -> Iterator[TableCell]:
    """How often FSD is better than its base where documents were read, and alarms where none were."""
    read, neither = ([run for run in scope.runs if run.question.truth == truth] for truth in ("member", "non_member"))
    yield share(scope, read, "gain", lambda low, high: low > 0)
    yield share(scope, read, "gain", lambda low, high: high < 0)
    for kind in ("base", "fsd"):
        yield share(scope, neither, kind, lambda low, high: not low <= CHANCE <= high)
    aucs = [auc for run in scope.runs if (auc := detail("auroc_blind")(run.result)) is not None]
    yield counted(sum(auc > BLIND_LIMIT for auc in aucs), len(aucs), scope.world.name)


def share(scope: Scope, runs: Sequence[Run], kind: str, holds: Callable[[float, float], bool]) -> TableCell:
    """Of the intervals of the first score."""
    ends = [
        [detail("scores", run.question.score, kind, end)(run.result) for end in ("auc_low", "auc_high")] for run in runs
    ]
    known = [holds(low, high) for low, high in ends if low is not None and high is not None]
    return counted(sum(known), len(known), scope.world.name)
