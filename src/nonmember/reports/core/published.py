"""Published numbers, with the digits that a paper prints, from a file of tables.

    [table1] What they are.
               PubMed     HN
    410m-CPT | 0.82/0.45  .

A line of columns, then a line per row, whose name ends at the bar. Cells hold one or more numbers separated by a slash;
a dot alone is a cell that the paper does not have, a question mark behind a number says that it is probably a slip.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from itertools import chain
from pathlib import Path

from nonmember.checks import require_choice
from nonmember.reports.core import formats
from nonmember.reports.core.grid import DOUBTED, PUBLISHED, Numeral

ALPHA = 0.05
PAPERS = Path(__file__).parents[3] / "nonmember_papers"
HEADER = re.compile(r"^\[(?P<key>[\w.-]+)\].*$", re.MULTILINE)


@dataclass(frozen=True)
class PublishedTable:
    columns: tuple[str, ...]
    rows: dict[str, dict[str, tuple[str, ...]]]  # row name -> column name -> the numbers of the cell, as printed
    source: str = "a table"  # file and key, for messages

    def get(self, row: str, column: str) -> tuple[str, ...]:
        return self.rows.get(row, {}).get(column, ())

    def __or__(self, other: PublishedTable) -> PublishedTable:
        """Two tables of the same rows as one."""
        for row in self.rows:
            require_choice(row, other.rows, f"A row of {other.source} beside {self.source}")
        rows = {row: cells | other.rows[row] for row, cells in self.rows.items()}
        return PublishedTable(self.columns + other.columns, rows, self.source)

    def fitting(self, row: str, column: str, template: str) -> tuple[str, ...]:
        """As `get`. Raises ValueError where the template has not one {} for each number."""
        texts = self.get(row, column)
        if texts and len(texts) != template.count("{}"):
            raise ValueError(
                f"{self.source}, row {row!r}, column {column!r} has {len(texts)} numbers ({'/'.join(texts)}), where "
                f"{template!r} is for {template.count('{}')}: the report's cell or template must have one for each."
            )
        return texts

    def cells(self) -> Iterator[tuple[str, str, tuple[str, ...]]]:
        for row, cells in self.rows.items():
            for column, texts in cells.items():
                yield row, column, texts


def number(text: str) -> float:
    """The value of a printed number: 1.0e-4, .354, 154,387."""
    return float(text.replace(",", "").rstrip("?"))


def published_number(text: str, mark: str = "") -> Numeral:
    """As printed, with the digits of the paper."""
    text, mark = (text.rstrip("?"), DOUBTED) if text.endswith("?") else (text, mark)
    shown = text.replace("-", formats.MINUS) if text.startswith("-") else text
    return Numeral(shown, number(text), PUBLISHED, mark=mark)


def read(text: str, source: str) -> PublishedTable:
    """A table from its lines. Raises ValueError, with the row, for a row of another length and what is no number."""
    head, *lines = [line.strip() for line in text.strip().splitlines()]
    columns = tuple(head.split())
    rows = {}
    for line in lines:
        name, _, cells = line.partition("|")
        texts = [tuple(cell.split("/")) if cell != "." else () for cell in cells.split()]
        row = f"{source}, row {name.strip()!r}"
        if len(texts) != len(columns):
            raise ValueError(
                f"{row} must have a cell for each of the {len(columns)} columns ({', '.join(columns)}) after the bar; "
                f"got {len(texts)}. A dot alone is a cell that the paper does not have."
            )
        for printed in chain.from_iterable(texts):
            try:
                number(printed)
            except ValueError:
                raise ValueError(
                    f"{row}: {printed!r} is no number; between several of a cell stands a slash."
                ) from None
        rows[name.strip()] = dict(zip(columns, texts, strict=True))
    return PublishedTable(columns, rows, source)


@cache
def published_tables(path: Path) -> Mapping[str, PublishedTable]:
    """Key -> table, of a file; none where there is no such file."""
    if not path.is_file():
        return {}
    _, *parts = HEADER.split(path.read_text(encoding="utf-8"))
    return {key: read(text, f"{path}, [{key}]") for key, text in zip(parts[::2], parts[1::2], strict=True)}
