"""The closing table: a row per audit. Also `nonmember table FOLDER`, for results made earlier or elsewhere."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table

from nonmember.records import AuditResult

RESULT = "result.json"
COLUMNS = ("cell", "n", "rho_RT", "rho_DT", "Delta [95% interval]", "p", "verdict", "truth")


def main() -> None:
    """Entry of `nonmember table`."""
    parser = argparse.ArgumentParser(prog="nonmember table", description="The results below a folder in one table.")
    parser.add_argument("folder", type=Path, help="for example outputs/audits/demo")
    folder = parser.parse_args().folder
    paths = sorted(folder.rglob(RESULT))
    if not paths:
        raise ValueError(f"There is no {RESULT} below {folder}. Run an audit first, or name the folder of one.")
    show([AuditResult.load(path) for path in paths])


def show(cells: Sequence[AuditResult | str]) -> None:
    """Print results as a table, failures below it, and what had to be made."""
    console = Console()
    results = [cell for cell in cells if isinstance(cell, AuditResult)]
    failures = [cell for cell in cells if isinstance(cell, str)]
    if results:
        # A log file has no width of its own; a table cut to 80 columns could not be read.
        width = None if console.is_terminal else 150
        Console(width=width).print(table_of(results))
        made = {name: sum(result.made[name] for result in results) for name in results[0].made}
        console.print(", ".join(f"{name.replace('_', ' ')}: {value:,}" for name, value in made.items()))
    for failure in failures:
        console.print(f"failed  {failure}", style="red", markup=False)


def table_of(results: Sequence[AuditResult]) -> Table:
    """Rows in the order of the cells; a dash where a number does not exist."""
    table = Table(*COLUMNS, header_style="bold")
    for name in ("n", "rho_RT", "rho_DT", "p"):
        table.columns[COLUMNS.index(name)].justify = "right"
    for result in results:
        table.add_row(*row_of(result))
    return table


def row_of(result: AuditResult) -> tuple[str, ...]:
    return (
        f"{result.corpus} under {result.target}",
        str(result.num_documents),
        _decimals(result.rho_reference_target),
        _decimals(result.rho_distilled_target),
        f"{_decimals(result.statistic, '+.3f')} [{_decimals(result.ci_low, '+.3f')}, {_decimals(result.ci_high, '+.3f')}]",
        _decimals(result.p_value, ".4f"),
        result.verdict,
        result.truth or "unknown",
    )


def _decimals(value: float | None, form: str = ".3f") -> str:
    return "-" if value is None else format(value, form)
