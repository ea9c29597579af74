"""The tables of the order test for one world: p and t by what was read, and how the file was cut; what reading cost."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from scipy import stats

from nonmember.reports.core import formats
from nonmember.reports.core.grid import RANGE, Block, Cell, Number, Row, dash
from nonmember.reports.core.numbers import P_VALUE, STATISTIC, counted, detail, number, over_draws, p_number
from nonmember.reports.core.report import Filled, tables
from nonmember.reports.core.worlds import Scope, by_domain, select
from nonmember.reports.render.blocks import adjusted, filled, say_medians, say_missing, say_tests
from nonmember.results.load import Run

DUPLICATION, CHUNK, DRAW, SHARDS, ORDERS = (
    "duplication", "examples_per_document", "draw", "num_shards", "num_orders",
)  # fmt: skip
TOKENS_READ, TOKENS = detail("num_tokens_read"), detail("num_tokens_of_file")

Cells = Callable[[Sequence[Run]], Cell]


# ------------------------------------------------------------------------------------------------ tables


def duplication(scope: Scope) -> Filled:
    """A row per set and draw, a column per number of times that the file was read."""
    key, corner = "duplication", "set; times read"
    runs = scope.of(key)
    rows = {f"{name}, draw {draw}": select(here, draw=draw)
            for name, here in by_domain(scope, key, runs).items() for draw in values_of(runs, DRAW)}  # fmt: skip
    columns = columns_of(runs, DUPLICATION, str)
    return tables(
        p_block(scope, key, corner, rows, columns, say_cost(runs)),
        block(scope, key, "t", "t", corner, rows, columns, t_cell(scope), ("t",)),
    )


def shards(scope: Scope) -> Filled:
    """A row per set and number of shards, a column per number of orders."""
    key = "shards"
    runs = scope.of(key)
    rows = {f"{name}, {num} shards": select(here, num_shards=num)
            for name, here in by_domain(scope, key, runs).items() for num in values_of(runs, SHARDS)}  # fmt: skip
    columns = columns_of(runs, ORDERS, lambda num: f"{num} orders")
    return tables(
        p_block(scope, key, "set, shards", rows, columns),
        block(scope, key, "t", "t", "set, shards", rows, columns, t_cell(scope), ("t",)),
        block(scope, key, "cost", "Tokens read, and how many times the file", "set, shards", rows, columns,
              cost_cell(scope), ("tokens read", "times the file")),
    )  # fmt: skip


def chunks(scope: Scope) -> Filled:
    """Over draws, as the chunks are."""
    key = "chunks"
    runs = scope.of(key)
    rows, columns = by_domain(scope, key, runs), columns_of(runs, CHUNK, chunk_name)
    world = scope.world.name

    def spread(value: Callable[[Any], float | None], form: Callable[[float | None], str]) -> Cells:
        return lambda here: Cell(over_draws(here, world, value, form), (), RANGE)

    quantities = ("median", "lowest", "highest")
    return tables(
        block(scope, key, "", "p", "set", rows, columns, spread(P_VALUE, formats.p_value), quantities),
        block(scope, key, "t", "t", "set", rows, columns, spread(STATISTIC, signed_t), quantities),
    )


def chunk_name(size: int | None) -> str:
    return "whole file" if size is None else f"{size} example{'s' * (size > 1)}"


def clean(scope: Scope) -> Filled:
    """Whether p-values of files that nobody has read are uniform."""
    key, world = "clean", scope.world.name
    sets = {name: here for name, here in by_domain(scope, key, scope.of(key)).items() if here}
    columns = ("results", "p < .05", "smallest", "median", "p of uniformity")

    def cells(here: Sequence[Run]) -> tuple[Cell, ...]:
        found = sorted(p for run in here if (p := P_VALUE(run.result)) is not None)
        if not found:
            return (Cell((dash(world),)),) * len(columns)
        values = (found[0], float(stats.scoreatpercentile(found, 50)), float(stats.kstest(found, "uniform").pvalue))
        alpha = here[0].result.question.alpha
        anchors = tuple(run.anchor for run in here)
        return (
            Cell((Number(str(len(found)), float(len(found)), world, anchors),)),
            counted(sum(p < alpha for p in found), len(found), world),
            *(Cell((Number(formats.p_value(value), value, world),)) for value in values),
        )

    rows = tuple(Row(name, cells(here)) for name, here in sets.items())
    bare = Block(f"{key}-{formats.slug(world)}", world, f"p-values where nothing was read. {scope.world.title}", "set",
                 columns, rows, ("number",))  # fmt: skip
    return tables(filled(bare, [UNIFORM]))


UNIFORM = "p of uniformity: Kolmogorov and Smirnov. The orders are of the same examples under the same target."


# ------------------------------------------------------------------------------------------- their pieces


Columns = Mapping[str, tuple[str, Any]]  # printed name -> what a result says of itself, and the value wanted


def columns_of(runs: Sequence[Run], setting: str, name: Callable[[Any], str]) -> Columns:
    return {name(value): (setting, value) for value in values_of(runs, setting)}


def values_of(runs: Sequence[Run], setting: str) -> list[Any]:
    """Ascending; nothing given, which is a whole file, comes last."""
    return sorted({run.get(setting) for run in runs}, key=lambda value: (value is None, value or 0))


def p_block(
    scope: Scope, key: str, corner: str, rows: Mapping[str, Sequence[Run]], columns: Columns, note: str = ""
) -> Block | None:  # fmt: skip
    """Holm-adjusted, marked where it contradicts the truth."""
    world = scope.world.name
    made = adjusted(_rows(rows, columns, lambda here: Cell((p_number(here, world),))))
    bare = _bare(scope, key, "", "p", corner, columns, made, ("p",))
    return filled(bare, [say_tests(made), say_medians(made), note, say_missing(bare)])


def block(
    scope: Scope, key: str, part: str, what: str, corner: str, rows: Mapping[str, Sequence[Run]], columns: Columns,
    cells: Cells, quantities: tuple[str, ...],
) -> Block | None:  # fmt: skip
    made = _rows(rows, columns, cells)
    bare = _bare(scope, key, part, what, corner, columns, made, quantities)
    return filled(bare, [say_medians(made), say_missing(bare)])


def _rows(rows: Mapping[str, Sequence[Run]], columns: Columns, cells: Cells) -> tuple[Row, ...]:
    return tuple(
        Row(name, tuple(cells([run for run in here if run.get(setting) == value])
                        for setting, value in columns.values()))
        for name, here in rows.items()
    )  # fmt: skip


def _bare(
    scope: Scope, key: str, part: str, what: str, corner: str, columns: Columns, rows: tuple[Row, ...],
    quantities: tuple[str, ...],
) -> Block:  # fmt: skip
    world = scope.world
    name = "-".join(filter(None, (key, part, formats.slug(world.name))))
    return Block(name, world.name, f"{what}. {world.title}", corner, tuple(columns), rows, quantities)


def say_cost(runs: Sequence[Run]) -> str:
    read = [tokens for run in runs if (tokens := TOKENS_READ(run.result)) is not None]
    return f"A test reads {formats.counts(read)} tokens." if read else ""


def signed_t(value: float | None) -> str:
    return formats.decimals(value, 2, signed=True)


def t_cell(scope: Scope) -> Cells:
    return lambda here: Cell((number(here, scope.world.name, STATISTIC, signed_t),))


def cost_cell(scope: Scope) -> Cells:
    world = scope.world.name

    def times(result: Any) -> float | None:
        read, file = TOKENS_READ(result), TOKENS(result)
        return read / file if read is not None and file else None

    return lambda here: Cell(
        (number(here, world, TOKENS_READ, formats.count),
         number(here, world, times, lambda value: formats.decimals(value, 1))), (), "{} (× {})",
    )  # fmt: skip
