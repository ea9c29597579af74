"""The closing table: a row per audit. Also `nonmember table FOLDER`, for results made before or elsewhere."""

from __future__ import annotations

import argparse
import re
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table

from nonmember.outcomes import NO_SEAL, num_without_seal, outcome_paths, read_outcome
from nonmember.records import AuditResult, Failure
from nonmember.reporting.families import ALL, EACH, SCREENING, Family, families
from nonmember.terminal import for_rich

COLUMNS = ("cell", "n", "rho_RT", "rho_DT", "Delta [95% interval]", "p", "verdict", "truth")
LISTED = 4  # names of sets in a cell
ALWAYS_SAID = ("models_trained", "models_found", "tokens_observed", "observations_found")
WIDTH_OF_FILES = 150  # a log file has no width of its own; a table cut to 80 columns could not be read


Cell = AuditResult | Failure


def main() -> None:
    """Entry of `nonmember table`."""
    parser = argparse.ArgumentParser(prog="nonmember table", description="The results below a folder in one table.")
    parser.add_argument("folder", type=Path, help="for example outputs/audits/demo")
    parser.add_argument("--together", action="store_true", help="also what may be said of several sets together")
    given = parser.parse_args()
    paths = outcome_paths(given.folder)
    cells: list[Cell] = []
    problems: list[str] = []
    for path in paths:
        try:
            cells.append(read_outcome(path))
        except ValueError as error:  # which does not hide the others
            problems.append(str(error))
            cells.append(Failure(path.parent.name, str(error), "unusable"))
    if len(problems) < len(cells):
        show(cells, together=given.together)
    if without := num_without_seal(paths):
        sys.stdout.write(f"{without} of {len(paths)} results have {NO_SEAL}.\n")
    if problems:
        raise ValueError(f"{len(problems)} of {len(paths)} results cannot be used. The first: {problems[0]}")


def show(cells: Sequence[Cell], *, together: bool = False) -> None:
    """Print a row per cell, what had to be made, and why cells failed.

    together: what may be said of several sets under one target; of calibrated clearance this is told in any case.
    """
    console = Console()
    wide = console if console.is_terminal else Console(width=WIDTH_OF_FILES)
    wide.print(table_of(cells))
    if results := [cell for cell in cells if isinstance(cell, AuditResult)]:
        names = dict.fromkeys(name for result in results for name in result.made)
        made = {name: sum(result.made.get(name, 0) for result in results) for name in names}
        said = (f"{name.replace('_', ' ')}: {value:,}" for name, value in made.items() if value or name in ALWAYS_SAID)
        console.print(", ".join(said), soft_wrap=True)
        if len(results) == 1:
            console.print(for_rich(results[0].allowed_claim), soft_wrap=True)
        for name, result in zip(_names(cells), cells, strict=True):
            if isinstance(result, AuditResult) and (words := result.details.get("in_words")):
                console.print(for_rich(f"{name}: {words}"), soft_wrap=True, highlight=False)
        _show_warnings(console, results)
        _show_together(wide, results if together else [one for one in results if one.method == "clearance"])
    for cell in cells:
        if isinstance(cell, Failure):
            console.print(for_rich(f"failed  {cell.cell}: {cell.error}"), style="red", soft_wrap=True)


def _show_together(console: Console, results: Sequence[AuditResult]) -> None:
    found = families(results)
    if not found:
        return
    console.print(table_of_families(found))
    for sentence in (EACH, ALL, SCREENING):
        console.print(sentence, soft_wrap=True)


def table_of_families(found: Sequence[Family]) -> Table:
    """A row per target with several sets."""
    table = Table("several sets together", "sets", "each (Holm)", "all", "screening (BH)", header_style="bold")
    for family in found:
        every = f"{'yes' if family.all_together else 'no'} (p {_decimals(family.largest, '.3g')})"
        cells = (family.name(found), len(family.sets), _listed(family.each, family), every,
                 _listed(family.screened, family))  # fmt: skip
        table.add_row(*map(for_rich, cells))
    return table


def _listed(names: Sequence[str], family: Family) -> str:
    """The first few by name."""
    if not names or len(names) == len(family.sets):
        return "all" if names else "none"
    more = f" and {len(names) - LISTED} more" if len(names) > LISTED else ""
    return f"{len(names)}: {', '.join(names[:LISTED])}{more}"


def _show_warnings(console: Console, results: Sequence[AuditResult]) -> None:
    """Each kind once: those that differ in their numbers alone are one kind."""
    kinds: dict[str, list[str]] = {}
    for text in (text for result in results for text in result.warnings):
        kinds.setdefault(re.sub(r"[\d.,]+", "#", text), []).append(text)
    for texts in kinds.values():
        such = "" if len(set(texts)) == 1 else " such as"
        told = f"warning ({len(texts)} of {len(results)}){such}: {texts[0]}"
        console.print(for_rich(told), soft_wrap=True, highlight=False)


def table_of(cells: Sequence[Cell]) -> Table:
    """Rows in the order of the cells; a dash where a number does not exist."""
    methods = {cell.method for cell in cells if isinstance(cell, AuditResult)}
    columns = COLUMNS if methods <= {"prism"} else [name.replace("Delta", "statistic") for name in COLUMNS]
    table = Table(*columns, header_style="bold")
    for name in ("n", "rho_RT", "rho_DT", "p"):
        table.columns[COLUMNS.index(name)].justify = "right"
    for cell, name in zip(cells, _names(cells), strict=True):
        table.add_row(*map(for_rich, (name, *_numbers(cell))))
    return table


def _names(cells: Sequence[Cell]) -> list[str]:
    """What each audit is about; where that does not tell them apart, what was given for it, in short."""
    given = [_given(cell.cell) for cell in cells]
    everywhere = set.intersection(*map(set, given)) if len(given) > 1 else set()
    differing = [" ".join(part for part in parts if part not in everywhere) for parts in given]
    subjects = [_subject(cell) or short for cell, short in zip(cells, differing, strict=True)]
    repeated = {name for name, number in Counter(subjects).items() if number > 1}
    return [short if name in repeated else name for name, short in zip(subjects, differing, strict=True)]


def _subject(cell: Cell) -> str:
    if isinstance(cell, Failure):
        return ""
    return f"{cell.corpus} under {cell.target}" if cell.target else cell.corpus


def _given(folder: str) -> list[str]:
    """["domain=scipy", "lambda=0.1"] of the folder data.domain=scipy,method.distillation.lambda_=0.1"""
    return [re.sub(r"^[^=]*[.@/]([^=.@/]+=)", r"\1", part).replace("_=", "=") for part in folder.split(",")]


def _numbers(cell: Cell) -> tuple[str, ...]:
    if isinstance(cell, Failure):
        return (*"-----", "failed", "-")
    low, high = (_decimals(bound, "+.3f") for bound in (cell.ci_low, cell.ci_high))
    return (
        str(cell.num_documents),
        _decimals(cell.rho_reference_target),
        _decimals(cell.rho_distilled_target),
        f"{_decimals(cell.statistic, '+.3f')} [{low}, {high}]",
        _decimals(cell.p_value, ".4f" if cell.p_value is None or cell.p_value >= 5e-5 else ".1e"),
        cell.verdict,
        cell.truth or "unknown",
    )


def _decimals(value: float | None, form: str = ".3f") -> str:
    return "-" if value is None else format(value, form)
