"""The closing table: a row per audit. Also `nonmember table FOLDER`, for results made before or elsewhere."""

from __future__ import annotations

import argparse
import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table

from nonmember.records import AuditResult

RESULT, ERROR = "result.json", "error.json"
COLUMNS = ("cell", "n", "rho_RT", "rho_DT", "Delta [95% interval]", "p", "verdict", "truth")
WIDTH_OF_FILES = 150  # a log file has no width of its own; a table cut to 80 columns could not be read


@dataclass(frozen=True)
class Failure:
    """An audit without a result. cell: the name of its folder.   kind: the class of the error."""

    cell: str
    error: str
    kind: str


Cell = AuditResult | Failure


def main() -> None:
    """Entry of `nonmember table`."""
    parser = argparse.ArgumentParser(prog="nonmember table", description="The results below a folder in one table.")
    parser.add_argument("folder", type=Path, help="for example outputs/audits/demo")
    folder = parser.parse_args().folder
    paths = sorted([*folder.rglob(RESULT), *folder.rglob(ERROR)])
    if not paths:
        raise ValueError(f"There is no {RESULT} below {folder}. Run an audit first, or name the folder of one.")
    show([_load(path) for path in paths])


def _load(path: Path) -> Cell:
    if path.name == RESULT:
        return AuditResult.load(path)
    try:
        return Failure(**json.loads(path.read_text(encoding="utf-8")))
    except (ValueError, TypeError) as error:
        raise ValueError(f"{path} cannot be read ({error}). Remove it, or run that audit again.") from error


def show(cells: Sequence[Cell]) -> None:
    """Print a row per cell, what had to be made, and why cells failed."""
    console = Console()
    wide = console if console.is_terminal else Console(width=WIDTH_OF_FILES)
    wide.print(table_of(cells))
    if results := [cell for cell in cells if isinstance(cell, AuditResult)]:
        made = {name: sum(result.made[name] for result in results) for name in results[0].made}
        said = (f"{name.replace('_', ' ')}: {value:,}" for name, value in made.items())
        console.print(", ".join(said), soft_wrap=True)
        if len(results) == 1:
            console.print(results[0].allowed_claim, soft_wrap=True)
        for warning, number in Counter(text for result in results for text in result.warnings).items():
            console.print(f"warning ({number} of {len(results)}): {warning}", soft_wrap=True, markup=False)
    for cell in cells:
        if isinstance(cell, Failure):
            console.print(f"failed  {cell.cell}: {cell.error}", style="red", markup=False, soft_wrap=True)


def table_of(cells: Sequence[Cell]) -> Table:
    """Rows in the order of the cells; a dash where a number does not exist."""
    table = Table(*COLUMNS, header_style="bold")
    for name in ("n", "rho_RT", "rho_DT", "p"):
        table.columns[COLUMNS.index(name)].justify = "right"
    for cell in cells:
        table.add_row(*row_of(cell))
    return table


def row_of(cell: Cell) -> tuple[str, ...]:
    if isinstance(cell, Failure):
        return (cell.cell, *"-----", "failed", "-")
    low, high = (_decimals(bound, "+.3f") for bound in (cell.ci_low, cell.ci_high))
    return (
        f"{cell.corpus} under {cell.target}",
        str(cell.num_documents),
        _decimals(cell.rho_reference_target),
        _decimals(cell.rho_distilled_target),
        f"{_decimals(cell.statistic, '+.3f')} [{low}, {high}]",
        _decimals(cell.p_value, ".4f"),
        cell.verdict,
        cell.truth or "unknown",
    )


def _decimals(value: float | None, form: str = ".3f") -> str:
    return "-" if value is None else format(value, form)
