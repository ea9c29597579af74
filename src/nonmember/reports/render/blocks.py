"""From a rule for one cell to a block: rows, Holm's adjustment, and what must be said under it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from nonmember.reports.core import formats
from nonmember.reports.core.grid import (
    FALSE,
    INVALID,
    MISSED,
    UNLEARNED,
    WHY_UNLEARNED,
    Block,
    Numeral,
    TableCell,
    TableRow,
)
from nonmember.reports.core.worlds import Scope
from nonmember.stats.multiplicity import holm

LISTED_MISSING = 12
OfRow = TypeVar("OfRow")
OfColumn = TypeVar("OfColumn")


def filled(block: Block, notes: Iterable[str]) -> Block | None:
    """With what must be said under it; None where no result fills any cell."""
    if all(cell.missing for row in block.rows for cell in row.cells):
        return None
    return replace(block, notes=tuple(note for note in notes if note))


def of_figure(block: Block | None) -> Block | None:
    """The numbers that a figure shows: rows without any are left out, medians and what is missing are said."""
    if block is None:
        return None
    rows = tuple(row for row in block.rows if any(not cell.missing for cell in row.cells))
    shown = replace(block, key="", rows=rows)
    return filled(shown, [say_medians(rows), say_missing(shown)])


def block_of(
    scope: Scope,
    key: str,
    title: str,
    corner: str,
    columns: Iterable[str],
    rows: Mapping[str, Iterable[TableCell]],
    quantities: Sequence[str],
    notes: Iterable[str] = (),
    *,
    dash_is_missing: bool = True,
) -> Block | None:
    """A table of one world whose cells were computed; None where no result fills any cell.

    Args:
        scope: The world, whose name and title follow on `key` and `title`; no key: that of the figure it belongs to.
        key, title, corner, columns, quantities: As in `Block`.
        rows: Name -> its cells.
        notes: Said before it is said what is missing.
        dash_is_missing: Whether a dash is a result that there is not; else nothing is said of it.
    """
    world = scope.world
    block = Block(
        f"{key}-{formats.slug(world.name)}" if key else "",
        world.name,
        f"{title}. {world.title}" if title else world.title,
        corner,
        tuple(columns),
        tuple(TableRow(name, tuple(cells)) for name, cells in rows.items()),
        tuple(quantities),
    )
    return filled(block, [*notes, say_missing(block) if dash_is_missing else ""])


def cross_table(
    key: str,
    world: str,
    title: str,
    corner: str,
    rows: Mapping[str, OfRow],
    columns: Mapping[str, OfColumn],
    quantities: Sequence[str],
    notes: Iterable[str] = (),
    cell: Callable[[OfRow, OfColumn], TableCell] | None = None,
) -> Block | None:
    """A row and a column for each name; None where no result fills any cell. cell: where columns are not what makes a
    cell of a row."""

    def make(row: Any, column: Any) -> TableCell:
        return cell(row, column) if cell else column(row)

    made = tuple(TableRow(name, tuple(make(row, column) for column in columns.values())) for name, row in rows.items())
    return filled(Block(key, world, title, corner, tuple(columns), made, tuple(quantities)), notes)


def adjusted(rows: Sequence[TableRow]) -> tuple[TableRow, ...]:
    """Holm-adjusted values beside all p-values of ours in these rows, as one family."""
    family = [number.value for number in _ours(rows) if number.value is not None]
    values = iter(holm(family))

    def with_adjusted(number: Numeral) -> Numeral:
        return number if number.value is None else replace(number, adjusted=formats.p_value(next(values)))

    return tuple(
        replace(row, cells=tuple(replace(cell, ours=tuple(map(with_adjusted, cell.ours))) for cell in row.cells))
        for row in rows
    )


def _ours(rows: Sequence[TableRow]) -> Iterator[Numeral]:
    return (number for row in rows for cell in row.cells for number in cell.ours)


def say_missing(block: Block) -> str:
    """How many cells have no number, and which."""
    missing = block.missing()
    if not missing:
        return "The one cell is filled." if block.num_cells == 1 else f"All {block.num_cells} cells are filled."
    by_row: dict[str, list[str]] = {}
    for row, column in missing:
        by_row.setdefault(row, []).append(column)
    if len(by_row) == len(block.rows) > 1 and len({tuple(columns) for columns in by_row.values()}) == 1:
        by_row = {"all rows": by_row[block.rows[0].name]}
    listed = "; ".join(
        f"{row}: {'all' if len(columns) == len(block.columns) else ', '.join(columns)}"
        for row, columns in list(by_row.items())[:LISTED_MISSING]
    )
    more = f"; and {len(by_row) - LISTED_MISSING} further rows" if len(by_row) > LISTED_MISSING else ""
    return f"Missing: {len(missing)} of {block.num_cells} cells ({listed}{more})."


def say_tests(rows: Sequence[TableRow], *, is_truth_known: bool) -> str:
    """How many p-values the table tests, and how they stand against the truth."""
    numbers = [number for number in _ours(rows) if number.value is not None]
    if not numbers:
        return ""
    false, missed, invalid = (sum(number.mark == mark for number in numbers) for mark in (FALSE, MISSED, INVALID))
    errors = f"Against the known truth {false} false {FALSE} and {missed} missed {MISSED}" if is_truth_known else ""
    unlearned = sum(number.mark == UNLEARNED for number in numbers)
    marked = {f"{invalid} invalid {INVALID}": invalid, f"{unlearned} {UNLEARNED} ({WHY_UNLEARNED})": unlearned}
    counts = ", ".join(filter(None, [errors, *(text for text, number in marked.items() if number)]))
    text = f"{len(numbers)} p-value{'s' * (len(numbers) > 1)}, Holm-adjusted as one family."
    return f"{text} {counts}." if counts else text


def say_medians(rows: Sequence[TableRow]) -> str:
    """How many cells rest on several results."""
    several = [number for number in _ours(rows) if number.note.startswith("median")]
    if not several:
        return ""
    counts = sorted({len(number.runs) for number in several})
    span = str(counts[0]) if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"
    notes = {number.note[number.note.find("(") + 1 :].rstrip(")") for number in several}
    what = f" ({notes.pop()})" if len(notes) == 1 else ""
    return f"{len(several)} numbers are medians of {span} results{what}."
