"""What a report prints, as one hash a section: any change of a number, a note, a mark or their order shows.

`NONMEMBER_GOLDEN=write python -m pytest tests/reporting -n0 -m ""` writes tests/golden/reports.json anew.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from nonmember.reports.core.grid import Block, ReportDocument, Section, TableCell, TableRow
from nonmember.results.load import Run

FILE = Path(__file__).parents[1] / "golden" / "reports.json"
REPORTS = {path.stem for path in (Path(__file__).parents[2] / "conf" / "report").glob("*.yaml")}
IS_WRITING = os.environ.get("NONMEMBER_GOLDEN") == "write"


def hashes(document: ReportDocument) -> dict[str, str]:
    """Key of a section -> hash of all it prints; pictures by their numbers, and as drawn where they were rendered."""
    parts: dict[str, Any] = {section.key: _section(section) for section in document.sections}
    head = (document.name, document.title, document.subtitle, document.worlds, document.notes)
    glance = document.glance and _block(document.glance)
    parts["document"] = [*head, dict(document.marks), glance]
    figures = [figure for section in document.sections for figure in section.figures if figure.png]
    return {key: _hash(part) for key, part in (parts | {item.name + ".svg": item.svg for item in figures}).items()}


def _section(section: Section) -> list[Any]:
    figures = [
        [item.name, item.world, item.title, item.alt, item.numbers and _block(item.numbers)] for item in section.figures
    ]
    return [
        section.title,
        section.lead,
        section.paper,
        section.notes,
        section.commands,
        section.is_empty,
        [_block(item) for item in section.blocks],
        figures,
    ]


def _block(block: Block) -> list[Any]:
    return [
        block.key,
        block.world,
        block.title,
        block.corner,
        block.columns,
        block.quantities,
        block.notes,
        *([_row(row) for row in rows] for rows in (block.rows, block.footer)),
    ]


def _row(row: TableRow) -> list[Any]:
    return [row.name, [_cell(cell) for cell in row.cells]]


def _cell(cell: TableCell) -> list[Any]:
    return [
        cell.template,
        [[dataclasses.astuple(number) for number in numbers] for numbers in (cell.ours, cell.published)],
    ]


def _without_answer(run: Run) -> str:
    """The result, but for the words that repeat it and the time of day."""
    values = json.loads(run.result.to_json())
    del values["answer"]
    if not values["question"].get("swept"):
        values["question"].pop("swept", None)
    return json.dumps(values, indent=1, ensure_ascii=False) + "\n"


def check(document: ReportDocument, runs: Sequence[Run]) -> None:
    """Known by report and results, whichever test builds it; what was never written down fails."""
    if document.name not in REPORTS:  # of an extension, on results made here
        return
    key = f"{document.name} {_hash([(run.path, _without_answer(run), *_beside(run)) for run in runs])}"
    found, known = hashes(document), json.loads(FILE.read_text())
    if IS_WRITING:
        FILE.write_text(json.dumps(known | {key: known.get(key, {}) | found}, indent=0, sort_keys=True) + "\n")
        return
    changed = [part for part in found if known.get(key, {}).get(part) != found[part]]
    assert not changed, (
        f"{document.name} prints something else than before in {sorted(changed)}, or these results are new: "
        'write them with NONMEMBER_GOLDEN=write python -m pytest tests/reporting -n0 -m ""'
    )


def _beside(run: Run) -> list[Any]:
    """The tables beside a result, which histograms are drawn of."""
    tables = []
    for file in sorted(run.folder.glob("*.parquet")) if run.folder else ():
        try:
            tables.append(pq.read_table(file).to_pydict())
        except (pa.ArrowInvalid, OSError):
            tables.append(f"damaged: {file.name}")
    return tables


def _hash(part: Any) -> str:
    return hashlib.sha256(json.dumps(_rounded(part), default=str).encode()).hexdigest()[:16]


def _rounded(part: Any) -> Any:
    """Nine digits of each number: the last ones differ from processor to processor."""
    match part:
        case float():
            return float(f"{part:.9g}")
        case dict():
            return {key: _rounded(value) for key, value in part.items()}
        case list() | tuple():
            return [_rounded(value) for value in part]
    return part
