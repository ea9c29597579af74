"""Every number of a section as a line of CSV: value, as printed, and where it is from."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator

from nonmember.reports.core.grid import PUBLISHED, Block, Number, Row, Section

COLUMNS = (
    "world",
    "part",
    "row",
    "column",
    "quantity",
    "value",
    "printed",
    "holm_adjusted",
    "mark",
    "num_results",
    "note",
    "results",
)
OURS, CONTROL = "ours", "control"


def spreadsheet(section: Section, paths: dict[str, str]) -> str:
    """All blocks of a section, figures' numbers included. paths: anchor of a run -> its file."""
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(COLUMNS)
    blocks = [*section.blocks, *(figure.numbers for figure in section.figures if figure.numbers is not None)]
    for block in blocks:
        for line in _lines(block, paths):
            writer.writerow([safe(field) for field in line])
    return stream.getvalue()


def _lines(block: Block, paths: dict[str, str]) -> Iterator[tuple[str, ...]]:
    for part, rows in ((OURS, block.rows), (CONTROL, block.footer)):
        for row in rows:
            yield from _row(block, PUBLISHED if block.world == PUBLISHED else part, row, paths)


def _row(block: Block, part: str, row: Row, paths: dict[str, str]) -> Iterator[tuple[str, ...]]:
    for column, cell in zip(block.columns, row.cells, strict=True):
        for where, numbers in ((part, cell.ours), (PUBLISHED, cell.published)):
            for index, number in enumerate(numbers):
                quantity = block.quantities[index] if index < len(block.quantities) else block.quantities[-1]
                yield (block.world, where, row.name, column, quantity, *_number(number, paths))


def _number(number: Number, paths: dict[str, str]) -> tuple[str, ...]:
    value = "" if number.value is None else repr(number.value)
    results = " ".join(paths.get(anchor, anchor) for anchor in number.runs)
    return (value, number.text, number.adjusted, number.mark, str(len(number.runs)), number.note, results)


def safe(field: str) -> str:
    """A label that a spreadsheet would run as a formula is shown as text; numbers stay numbers."""
    if not field or field[0] not in "=+-@\t\r":
        return field
    try:
        float(field)
    except ValueError:
        return f"'{field}"
    return field
