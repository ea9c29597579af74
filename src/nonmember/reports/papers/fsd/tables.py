"""The tables of FSD for one world: which results fill which cell, base and FSD side by side, text alone beside both."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from nonmember.reports.core.grid import FALSE, INTERVAL, INVALID, PAIR, Block, Cell, Number, Row
from nonmember.reports.core.numbers import Form, Value, detail, mean_of, number, number_in
from nonmember.reports.core.published import PublishedTable
from nonmember.reports.core.report import Filled, tables
from nonmember.reports.core.worlds import Scope, by_domain, one_target, select
from nonmember.reports.papers.fsd import published as published_fsd
from nonmember.reports.render import formats
from nonmember.reports.render.blocks import filled, published_number, say_medians, say_missing
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


# ------------------------------------------------------------------------------------------- the tables


def by_target(scope: Scope, key: str) -> Grid:
    runs = scope.of(key)
    return Grid(scope, key, by_domain(scope, key, runs), target_columns(scope, runs, key), scores_of(scope, runs))


def table_1(scope: Scope) -> Filled:
    grid = by_target(scope, "table1")
    return tables(table(grid, AUC), gains(grid))


def table_12(scope: Scope) -> Filled:
    grid = by_target(scope, "table12")
    return tables(table(grid, TPR_BELOW), table(grid, TPR))


def table_4(scope: Scope) -> Filled:
    grid = by_target(scope, "table4")
    return tables(table(grid, HONEST), table(grid, OPTIMISTIC))


def sizes(scope: Scope, key: str) -> Grid | None:
    """By size of the target; None where all that have read the documents are of one size."""
    runs = [run for run in scope.of(key) if run.question.truth != "non_member"]
    found = {str(run.question.target): size for run in runs if (size := _size(run)) is not None}
    if len(set(found.values())) < 2:
        return None
    columns = [Column(f"{scope.world.targets.get(target, target)} ({formats.count(found[target])})",
                      with_setting("target", target)) for target in sorted(found, key=found.__getitem__)]  # fmt: skip
    return Grid(scope, key, by_domain(scope, key, runs), columns, scores_of(scope, runs))


NO_SIZES = "no results with targets of several sizes."


def _size(run: Run) -> float | None:
    return number_in(run.result.health.capability, "target", "num_parameters")


def table_3(scope: Scope) -> Filled:
    grid = sizes(scope, "table3")
    return tables(table(grid, AUC), gains(grid)) if grid else tables(nothing=NO_SIZES)


def table_13(scope: Scope) -> Filled:
    grid = sizes(scope, "table13")
    return tables(table(grid, TPR_BELOW), table(grid, TPR)) if grid else tables(nothing=NO_SIZES)


def tables_2_and_15(scope: Scope) -> Filled:
    """A row per subset, the published numbers beside ours for the paper's model; their mean over subsets first."""
    runs = one_target(scope, [run for run in scope.of("table15") if run.get("read") in ("once", None)])
    sets, scores = by_domain(scope, "table15", runs), scores_of(scope, runs)
    world = scope.world.name
    target = scope.world.targets.get(str(runs[0].result.question.target)) if runs else None
    is_papers = scope.world.published and target == PAPERS_MODEL
    columns = [Column(name, every) for name in (*scores.values(), BLIND)]
    grid = Grid(scope, "table15", sets, columns, scores)

    def cells(name: str, here: Sequence[Run], measure: Measure) -> tuple[Cell, ...]:
        shown = [
            Cell(both(here, world, score, measure), beside(published_fsd.TABLE_15, name, printed, is_papers), PAIR)
            for score, printed in scores.items()
        ]
        return (*shown, Cell((blind(here, world),)))

    rows = [Row(name, cells(name, here, AUC)) for name, here in sets.items()]
    gain_rows = [Row(name, (*(gain(here, world, score) for score in scores), Cell((blind(here, world),))))
                 for name, here in sets.items()]  # fmt: skip
    full = block(grid, "", "Table 15: AUC", rows, BOTH)
    if full is None:
        return tables()
    more = block(grid, "gain", "Gain: AUC of FSD less AUC of base, with its interval", gain_rows,
                 ("gain", "lower", "upper"))  # fmt: skip
    filled = [row for row in rows if not all(cell.missing for cell in row.cells)]
    means = tuple(Row(printed, (mean_of([row.cells[place] for row in filled], world),))
                  for place, printed in enumerate(columns_of(scores)))  # fmt: skip
    key = f"table2-{formats.slug(world)}"
    title = f"Table 2: AUC, mean over sets. {scope.world.title}"
    mean = Block(key, world, title, "score", (f"mean of {len(filled)} sets",), means, BOTH, notes=full.notes[:1])
    return tables(mean, replace(full, corner="set"), more and replace(more, corner="set"))


PAPERS_MODEL = "Pythia-6.9B"


def columns_of(scores: Mapping[str, str]) -> tuple[str, ...]:
    return (*scores.values(), BLIND)


def beside(paper: PublishedTable, row: str, column: str, wanted: bool) -> tuple[Number, ...]:
    return tuple(published_number(text) for text in paper.get(row, column)) if wanted else ()


TUNING_SETS = {"both": "all", "members": "members", "nonmembers": "non-members"}


def table_5(scope: Scope) -> Filled:
    runs = one_target(scope, scope.of("table5"))
    columns = [Column("base", every, BASE),
               *(Column(name, with_setting("tuning", kind), FSD) for kind, name in TUNING_SETS.items())]  # fmt: skip
    grid = Grid(scope, "table5", by_domain(scope, "table5", runs), columns, scores_of(scope, runs))
    return tables(table(grid, AUC), gains(grid))


VIEWS = {"original": "as it is", "years_deleted": "Deletion", "years_replaced": "Replacement"}


def tables_6_and_14(scope: Scope) -> Filled:
    runs = one_target(scope, scope.of("table6"))
    columns = [Column(name, with_setting("view", view)) for view, name in VIEWS.items()]
    grid = Grid(scope, "table6", by_domain(scope, "table6", runs), columns, scores_of(scope, runs))
    return tables(table(grid, AUC), table(grid, TPR_BELOW), gains(grid))


ADAPTERS = {"adalora": "AdaLoRA", "ia3": "IA3", "lora": "LoRA"}


def table_7(scope: Scope) -> Filled:
    runs = one_target(scope, scope.of("table7"))
    columns = [
        Column("base", every, BASE),
        *(Column(name, with_setting("training.adapter.kind", kind), FSD) for kind, name in ADAPTERS.items()),
    ]
    grid = Grid(scope, "table7", by_domain(scope, "table7", runs), columns, scores_of(scope, runs))
    return tables(table(grid, AUC), table(grid, TPR_BELOW), gains(grid))


def table_16(scope: Scope) -> Filled:
    runs = one_target(scope, scope.of("table16"))
    domains = scope.world.found("domain", runs, "table16")
    tuned = dict.fromkeys([*domains, *sorted(str(run.get("tuning_domain")) for run in runs)])
    columns = [Column("base", every, BASE)]
    for domain in tuned:
        if select(runs, tuning_domain=domain) or domain in domains:
            name = domains.get(domain, domain)
            columns.append(Column(f"tuned on {name}", with_setting("tuning_domain", domain), FSD))
    grid = Grid(scope, "table16", by_domain(scope, "table16", runs), columns, scores_of(scope, runs))
    return tables(table(grid, AUC), gains(grid))


TABLE_17 = {
    "table17lr": ("training.optimization.learning_rate", lambda value: f"rate {value:g}"),
    "table17rank": ("training.adapter.rank", lambda value: f"rank {value:g}"),
    "table17epochs": ("training.optimization.epochs", lambda value: f"{value:g} epoch{'s' * (value != 1)}"),
}


def table_17(scope: Scope) -> Filled:
    blocks: list[Block | None] = []
    for key, (setting, form) in TABLE_17.items():
        runs = one_target(scope, scope.of(key))
        columns = setting_columns(runs, setting, form)
        grid = Grid(scope, key, by_domain(scope, key, runs), columns, scores_of(scope, runs))
        blocks += [table(grid, AUC), gains(grid)]
    return tables(*blocks)


def shifts(scope: Scope) -> Filled:
    """A row per domain of the members and of the non-members: across it what membership adds to the shift."""
    runs = scope.of("shift")
    domains = scope.world.found("domain", runs, "shift")
    others = domains | {other: other for run in runs if (other := str(run.get("nonmember_domain"))) not in domains}
    sets = {
        f"{name} against {of}": here
        for domain, name in domains.items()
        for other, of in others.items()
        if (here := select(runs, domain=domain, nonmember_domain=other))
    }
    grid = Grid(scope, "shift", sets, target_columns(scope, runs, "shift"), scores_of(scope, runs))
    return tables(table(grid, AUC), gains(grid))


SET_COLUMNS: dict[str, tuple[Value, Form]] = {
    "tuned on": (detail("num_unseen"), formats.count),
    "members": (detail("num_members"), formats.count),
    "non-members": (detail("num_nonmembers"), formats.count),
    "leaked members": (detail("num_leaked", "members"), formats.count),
    "leaked non-members": (detail("num_leaked", "nonmembers"), formats.count),
    "characters, members": (detail("texts", "members", "mean_characters"), formats.count),
    "characters, non-members": (detail("texts", "nonmembers", "mean_characters"), formats.count),
    "AUC of length": (detail("length_auc"), formats.decimals),
    "AUC of years": (detail("blind", "years", "auc"), formats.decimals),
    "AUC of words": (detail("blind", "words", "auc"), formats.decimals),
}  # fmt: skip


def tables_8_to_10(scope: Scope) -> Filled:
    """Of the first result of each set: all targets are shown the same documents."""
    keys = {scope.sweep_of(key): key for key in ("table15", "table8")}  # table 15 may be of the same sweep
    return tables(*(_sets(scope, key) for key in reversed(keys.values())), _tuned_on(scope))


def _sets(scope: Scope, key: str) -> Block | None:
    world = scope.world
    sets = by_domain(scope, key, scope.of(key))
    rows = tuple(
        Row(name, tuple(Cell((number(here[:1], world.name, value, form),)) for value, form in SET_COLUMNS.values()))
        for name, here in sets.items()
    )
    bare = Block(f"sets-{key}-{formats.slug(world.name)}", world.name,
                 f"Sets of {scope.sweep_of(key)}. {world.title}", "set", tuple(SET_COLUMNS), rows,
                 ("number",))  # fmt: skip
    return filled(bare, [say_missing(bare), *say_differences(sets)])


def _tuned_on(scope: Scope) -> Block | None:
    """Table 10."""
    world = scope.world
    sets = by_domain(scope, "table5", one_target(scope, scope.of("table5")))
    rows = tuple(
        Row(name, tuple(Cell((number(select(here, tuning=kind)[:1], world.name, detail("num_unseen"), formats.count),))
                        for kind in TUNING_SETS))
        for name, here in sets.items()
    )  # fmt: skip
    bare = Block(f"table10-{formats.slug(world.name)}", world.name, f"Documents tuned on in table 5. {world.title}",
                 "set", tuple(TUNING_SETS.values()), rows, ("documents",))  # fmt: skip
    return filled(bare, [])
