"""Rows and columns of the tables of FSD: the AUCs of results, and what is said beside them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from nonmember.reports.core import formats
from nonmember.reports.core.grid import FALSE, INTERVAL, INVALID, PAIR, Block, Cell, Number, Row
from nonmember.reports.core.numbers import Value, detail, number, number_in
from nonmember.reports.core.worlds import Scope
from nonmember.reports.render.blocks import filled, say_medians, say_missing
from nonmember.results.load import Run
from nonmember.results.result import AuditResult

BASE, FSD = "base", "fsd"
BOTH = ("base", "FSD")
BLIND, BLIND_LIMIT, UNEQUAL_LENGTHS = "blind (text alone)", 0.6, 0.1  # from .5
CHANCE = 0.5


@dataclass(frozen=True)
class Measure:
    """name: as printed.   key, low, high: in details.scores; without an interval low and high are empty."""

    name: str
    key: str
    low: str = ""
    high: str = ""


AUC = Measure("AUC", "auc", "auc_low", "auc_high")
TPR_BELOW = Measure("TPR at FPR < 5%, as the paper’s program counts", "tpr_below_5pct_fpr")
TPR = Measure("TPR at FPR ≤ 5%", "tpr_at_5pct_fpr", "tpr_low", "tpr_high")
HONEST = Measure("Balanced accuracy, threshold from other documents", "balanced_accuracy")
OPTIMISTIC = Measure("Best balanced accuracy, threshold from the same documents: optimistic", "best_balanced_accuracy")


@dataclass(frozen=True)
class Column:
    """name: as printed.   of: whether a result belongs in it.   kind: base, fsd, or both side by side."""

    name: str
    of: Callable[[Run], bool]
    kind: str = ""


@dataclass(frozen=True)
class Grid:
    """What a table goes over. sets: printed name -> its results.   scores: key -> printed name."""

    scope: Scope
    key: str
    sets: Mapping[str, Sequence[Run]]
    columns: Sequence[Column]
    scores: Mapping[str, str]

    @property
    def runs(self) -> list[Run]:
        return list({run.anchor: run for runs in self.sets.values() for run in runs}.values())


# ------------------------------------------------------------------------------------------ from a result


def detail_of(score: str, kind: str, key: str) -> Value:
    """A number that a result tells of a score: of base, of fsd, or of the gain."""
    return detail("scores", score, kind, key)


def measured(runs: Sequence[Run], world: str, score: str, kind: str, measure: Measure) -> Number:
    """With its interval as a note, and a mark where the target has read neither set and the AUC says otherwise."""
    made = number(runs, world, detail_of(score, kind, measure.key))
    if made.value is None or not runs:
        return made
    first = runs[0].result
    if any(run.verdict.decision == "invalid" for run in runs):
        made = replace(made, mark=INVALID)
    if len(runs) > 1 or not measure.low:
        return made
    low, high = (detail_of(score, kind, key)(first) for key in (measure.low, measure.high))
    if low is None or high is None:
        return made
    level = f"{1 - first.question.alpha:.0%} interval {formats.decimals(low)} to {formats.decimals(high)}"
    wrong = measure is AUC and first.question.truth == "non_member" and not low <= CHANCE <= high
    return replace(made, note=level, mark=FALSE if wrong and not made.mark else made.mark)


def both(runs: Sequence[Run], world: str, score: str, measure: Measure) -> tuple[Number, ...]:
    return tuple(measured(runs, world, score, kind, measure) for kind in (BASE, FSD))


def gain(runs: Sequence[Run], world: str, score: str) -> Cell:
    """AUC of FSD less AUC of base, with its interval over the same resamples."""
    values = (detail_of(score, "gain", key) for key in ("auc", "auc_low", "auc_high"))
    made = tuple(number(runs, world, value, formats.signed) for value in values)
    return Cell(made[:1]) if made[1].missing else Cell(made, (), INTERVAL)


def blind(runs: Sequence[Run], world: str) -> Number:
    """The largest AUC of classifiers that see the texts only."""
    made = number(runs, world, detail("auroc_blind"))
    kinds = runs[0].result.statistics.details.get("blind") if len(runs) == 1 else None
    if made.value is None or not isinstance(kinds, Mapping):
        return made
    told_kinds = [f"{kind} {formats.decimals(number_in(kinds, kind, 'auc'))}" for kind in kinds]
    return replace(made, note=", ".join(told_kinds))


# --------------------------------------------------------------------------------------------- one table


def table(grid: Grid, measure: Measure) -> Block | None:
    """A row per set and score, and per set one of the blind baseline."""
    world = grid.scope.world.name

    def cell(runs: Sequence[Run], score: str, column: Column) -> Cell:
        here = [run for run in runs if column.of(run)]
        if column.kind:
            return Cell((measured(here[:1] if column.kind == BASE else here, world, score, column.kind, measure),))
        return Cell(both(here, world, score, measure), (), PAIR)

    rows = []
    for name, runs in grid.sets.items():
        for score, printed in grid.scores.items():
            rows.append(Row(f"{name}, {printed}", tuple(cell(runs, score, column) for column in grid.columns)))
        if measure is AUC:
            cells = tuple(Cell((blind([run for run in runs if column.of(run)][: 1 if column.kind == BASE else None],
                                      world),)) for column in grid.columns)  # fmt: skip
            rows.append(Row(f"{name}, {BLIND}", cells))
    paired = not all(column.kind for column in grid.columns)
    return block(grid, "" if measure is AUC else measure.key, measure.name, rows, BOTH if paired else (measure.name,))


def gains(grid: Grid) -> Block | None:
    """FSD less base, with intervals: is it better at all?"""
    world = grid.scope.world.name
    columns = [column for column in grid.columns if column.kind != BASE]
    rows = [
        Row(f"{name}, {printed}", tuple(gain([run for run in runs if column.of(run)], world, score)
                                        for column in columns))
        for name, runs in grid.sets.items()
        for score, printed in grid.scores.items()
    ]  # fmt: skip
    return block(replace(grid, columns=columns), "gain", "Gain: AUC of FSD less AUC of base, with its interval", rows,
                 ("gain", "lower", "upper"))  # fmt: skip


def block(grid: Grid, part: str, what: str, rows: Sequence[Row], quantities: tuple[str, ...]) -> Block | None:
    """With everything that must be said under it; None where no result fills any cell."""
    scope = grid.scope
    key = "-".join(filter(None, (grid.key, part.replace("_", "-"), formats.slug(scope.world.name))))
    bare = Block(key, scope.world.name, f"{what}. {scope.world.title}", "set, score",
                 tuple(column.name for column in grid.columns), tuple(rows), quantities)  # fmt: skip
    return filled(bare, [say_targets(scope, grid.runs), say_medians(rows), say_missing_of(bare, grid.sets),
                         *say_differences(grid.sets)])  # fmt: skip


# ---------------------------------------------------------------------------------------- what is said


def say_targets(scope: Scope, runs: Sequence[Run]) -> str:
    """Which target, where there is one; and which has read neither set."""
    names = {str(run.question.target): scope.world.targets.get(str(run.question.target), str(run.question.target))
             for run in runs}  # fmt: skip
    if len(names) == 1:
        (name,) = names.values()
        control = ", which has read neither set: every AUC should be .5" if _neither(runs) else ""
        return f"Target: {name}{control}."
    controls = sorted({names[str(run.question.target)] for run in runs if run.question.truth == "non_member"})
    if not controls:
        return ""
    return f"Read neither set, so that every AUC should be .5: {formats.listed(controls)}."


def say_missing_of(block: Block, sets: Iterable[str]) -> str:
    """As `say_missing`, set by set where all scores of a set lack the same columns."""
    by_set = {name: {column for row, column in block.missing() if row.startswith(f"{name}, ")} for name in sets}
    short = [
        replace(row, name=name)
        for name in by_set
        for row in [next((row for row in block.rows if row.name.startswith(f"{name}, ")), None)]
        if row is not None
    ]
    told = replace(block, rows=tuple(short))
    rows_in = {name: sum(row.name.startswith(f"{name}, ") for row in block.rows) for name in by_set}
    whole = sum(len(columns) * rows_in[name] for name, columns in by_set.items()) == len(block.missing())
    if not short or not whole or not block.missing():
        return say_missing(block)
    total = f"{len(block.missing())} of {block.num_cells} cells"
    return say_missing(told).replace(f"{len(told.missing())} of {told.num_cells} cells", total)


def _neither(runs: Sequence[Run]) -> bool:
    return {run.question.truth for run in runs} == {"non_member"}


def say_differences(sets: Mapping[str, Sequence[Run]]) -> list[str]:
    """How the two classes differ otherwise than by membership, in text, date, length; leaks and idle tuning."""
    blinds = _largest(sets, detail("auroc_blind"), 0.0)
    years = _largest(sets, detail("blind", "years", "auc"), CHANCE)
    lengths = _largest(sets, detail("length_auc"), CHANCE)
    if not blinds and not years and not lengths:
        return ["Whether the two classes differ in text, date or length is not recorded."]
    notes = [
        _difference(blinds, lambda auc: auc > BLIND_LIMIT, "Text alone tells the classes apart",
                    "no AUC of these sets can be read as membership"),
        _difference(years, lambda auc: auc > BLIND_LIMIT, "The classes differ in the years they name",
                    "AUC of the years alone"),
        _difference(lengths, lambda auc: abs(auc - CHANCE) > UNEQUAL_LENGTHS, "The classes differ in length",
                    "AUC of the length alone"),
    ]  # fmt: skip
    if not any(notes):
        notes = [
            f"The classes differ little in text (blind AUC {_span(blinds)}), in the years they name (AUC "
            f"{_span(years)}) and in length (AUC {_span(lengths)})."
        ]
    runs = [run for several in sets.values() for run in several]
    leaked = _largest(sets, lambda result: sum(filter(None, (detail("num_leaked", one)(result)
                                                             for one in ("members", "nonmembers")))), 0.0)  # fmt: skip
    notes.append(_difference(leaked, lambda many: many > 0, "Leak: documents under test that are tuned on, or parts of "
                             "articles that are", "the paper’s protocol", formats.count))  # fmt: skip
    idle = sum(_is_idle(run.result) for run in runs)
    if idle:
        notes.append(f"In {idle} of {len(runs)} results tuning did not lower the loss on what it was tuned on: noise.")
    return [note for note in notes if note]


def _largest(sets: Mapping[str, Sequence[Run]], value: Value, centre: float) -> dict[str, float]:
    """Per set the value farthest from `centre` among its results."""
    found = {name: [v for run in runs if (v := value(run.result)) is not None] for name, runs in sets.items()}
    return {name: max(values, key=lambda v: abs(v - centre)) for name, values in found.items() if values}


def _difference(
    values: Mapping[str, float], is_large: Callable[[float], bool], what: str, then: str,
    form: Callable[[float], str] = lambda value: formats.decimals(value, 2),
) -> str:  # fmt: skip
    large = [f"{name} {form(value)}" for name, value in values.items() if is_large(value)]
    return f"{what}: {', '.join(large)} ({then})." if large else ""


def _span(values: Mapping[str, float]) -> str:
    if not values:
        return formats.DASH
    low, high = (formats.decimals(end, 2) for end in (min(values.values()), max(values.values())))
    return low if low == high else f"{low} to {high}"


def _is_idle(result: AuditResult) -> bool:
    base, tuned = (detail("nll_of_unseen", kind)(result) for kind in ("base", "tuned"))
    return base is not None and tuned is not None and tuned >= base


# ---------------------------------------------------------------------------- what the tables go over


def scores_of(scope: Scope, runs: Iterable[Run]) -> dict[str, str]:
    """Key -> printed name: the configured scores that results have, then others."""
    present = {str(key) for run in runs if isinstance(scores := run.statistics.details.get("scores"), Mapping)
               for key in scores}  # fmt: skip
    known = {key: name for key, name in scope.names["scores"].items() if key in present}
    return known | {key: key for key in sorted(present - set(known))}


def with_setting(name: str, value: Any) -> Callable[[Run], bool]:
    return lambda run: run.get(name) == value


def every(_: Run) -> bool:
    return True


def target_columns(scope: Scope, runs: Sequence[Run], key: str) -> list[Column]:
    present = {str(run.question.target) for run in runs}
    names = {label: name for label, name in scope.world.found("target", runs, key).items()
             if label in present or key in scope.world.targets_of}  # fmt: skip
    return [Column(name, with_setting("target", label)) for label, name in names.items()]


def setting_columns(runs: Sequence[Run], setting: str, form: Callable[[Any], str]) -> list[Column]:
    """Base, then FSD at each value of a setting."""
    values = sorted({value for run in runs if (value := run.get(setting)) is not None})
    return [Column("base", every, BASE), *(Column(form(value), with_setting(setting, value), FSD) for value in values)]
