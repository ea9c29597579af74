"""The tables of FSD for one world: which results fill which cell, base and FSD side by side, text alone beside both."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from nonmember.reports.core import formats
from nonmember.reports.core.grid import PAIR, Block, Cell, Number, Row
from nonmember.reports.core.numbers import Form, Value, detail, mean_of, number, number_in
from nonmember.reports.core.published import PublishedTable
from nonmember.reports.core.report import Filled, tables
from nonmember.reports.core.worlds import Scope, by_domain, one_target, select
from nonmember.reports.papers.fsd import published as published_fsd
from nonmember.reports.papers.fsd.grids import (
    AUC,
    BASE,
    BLIND,
    BOTH,
    FSD,
    HONEST,
    OPTIMISTIC,
    TPR,
    TPR_BELOW,
    Column,
    Grid,
    Measure,
    blind,
    block,
    both,
    every,
    gain,
    gains,
    say_differences,
    scores_of,
    setting_columns,
    table,
    target_columns,
    with_setting,
)
from nonmember.reports.render.blocks import filled, published_number, say_missing
from nonmember.results.load import Run

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
