"""Checked cells as one table: cells that need the same are one row."""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date
from itertools import groupby

from nonmember.feasibility.descriptions import HUB
from nonmember.feasibility.jobs import LOOKING_UP, Job
from nonmember.feasibility.memory import Machine
from nonmember.feasibility.verdict import CheckResult
from nonmember.runtime.terminal import console_of, for_rich, say

ASKED = ("asking", LOOKING_UP)
TRAINED, READ = ("training", "distilling", "tuning"), ("observing", "writing", "asking")
COLUMNS = (
    "sweep",
    "cells",
    "status",
    "models and data",
    "GPUs",
    "GiB each",
    "tuned",
    "trained on",
    "read",
    "requests",
    "hours",
)


@dataclass(frozen=True)
class CheckedCell:
    """words: what is given for it beside the other cells of the sweep."""

    sweep: str
    overrides: str
    checked: CheckResult


@dataclass(frozen=True)
class Row:
    """Cells of a sweep that need the same. hours: of all of them, work that they share counted once; None where a
    number of tokens is not known."""

    sweep: str
    num_cells: int
    checked: CheckResult
    jobs: tuple[Job, ...]

    def texts(self, machine: Machine) -> tuple[str, ...]:
        item = self.checked
        amounts = tokens(self.jobs, TRAINED), tokens(self.jobs, READ), requests(self.jobs)
        return (
            self.sweep,
            f"{self.num_cells:,}",
            item.status,
            ", ".join(name.rpartition("/")[2] for name in item.hub),
            "" if item.num_gpus is None or not item.jobs else str(item.num_gpus),
            "" if not item.gib else f"{item.gib:.0f}" if item.gib >= 10 else f"{item.gib:.1f}",
            short(item.num_tuned or 0),
            *("" if item.lacks and number is None else short(number) for number in amounts),
            hours_text(self.jobs, machine, item.lacks),
        )


def rows_of(cells: Sequence[CheckedCell]) -> list[Row]:
    def same(cell: CheckedCell) -> tuple[object, ...]:
        item = cell.checked
        return cell.sweep, item.status, item.asks, item.hub, item.num_gpus, item.num_tuned

    rows = []
    order = {same(cell): None for cell in cells}
    for key in order:
        group = [cell for cell in cells if same(cell) == key]
        jobs = {job.identity: job for cell in group for job in cell.checked.jobs}
        largest = max(group, key=lambda cell: cell.checked.gib or 0).checked
        rows.append(Row(group[0].sweep, len(group), largest, tuple(jobs.values())))
    return rows


def tokens(jobs: Iterable[Job], kinds: Sequence[str]) -> int | None:
    """Most tokens of the jobs of these kinds; None where one is not bounded."""
    counts = [job.tokens for job in jobs if job.kind in kinds]
    return None if None in counts else sum(item for item in counts if item is not None)


def requests(jobs: Iterable[Job]) -> int | None:
    asked = [job.requests for job in jobs if job.kind in ASKED]
    return None if None in asked else sum(item for item in asked if item is not None)


def hours(jobs: Iterable[Job], machine: Machine) -> float | None:
    """On one device of the machine, and of asking services."""
    operations = seconds = 0.0
    for job in jobs:
        if job.seconds is None or (job.operations is None and job.kind not in ASKED):
            return None
        seconds += job.seconds
        operations += (job.operations or 0.0) / machine.utilisation + job.token_by_token / machine.writing
    return (operations / (machine.tflops * 1e12) + seconds) / 3600


def hours_text(jobs: Sequence[Job], machine: Machine, lacks: Sequence[str] = ()) -> str:
    """lacks: what must be given before they are known."""
    if not jobs:
        return ""
    value = hours(jobs, machine)
    if value is None:
        return f"needs {', '.join(lacks)}" if lacks else "?"
    return "<0.1" if 0 < value < 0.1 else f"{value:,.0f}" if value >= 10 else f"{value:.1f}"


def short(number: int | None) -> str:
    """1.2 M of 1,234,567; nothing of nothing, ? of what is not known."""
    if number is None:
        return "?"
    for size, unit in ((1e9, "B"), (1e6, "M"), (1e3, "k")):
        if number >= size:
            return f"{number / size:.3g} {unit}"
    return str(number) if number else ""


def summary(cells: Sequence[CheckedCell]) -> str:
    counts = Counter(cell.checked.status for cell in cells)
    return f"{len(cells):,} cells: " + ", ".join(f"{number:,} {status}" for status, number in counts.most_common())


def costs(cells: Sequence[CheckedCell], machine: Machine) -> str:
    """Hours of each sweep and of all of them, shared work counted once; ? where texts are not known."""

    def jobs_of(sweep: str) -> dict[str, Job]:
        return {job.identity: job for cell in cells if cell.sweep == sweep for job in cell.checked.jobs}

    def lacks_of(sweep: str) -> list[str]:
        return list(dict.fromkeys(name for cell in cells if cell.sweep == sweep for name in cell.checked.lacks))

    jobs = {sweep: found for sweep in dict.fromkeys(cell.sweep for cell in cells) if (found := jobs_of(sweep))}
    texts = {sweep: hours_text([*found.values()], machine, lacks_of(sweep)) for sweep, found in jobs.items()}
    is_known = {sweep: hours(found.values(), machine) is not None for sweep, found in jobs.items()}
    known = {name: job for sweep, found in jobs.items() if is_known[sweep] for name, job in found.items()}
    least = "" if all(is_known.values()) else "at least "
    together = f"; together {least}{hours_text(list(known.values()), machine)}" if len(texts) > 1 and known else ""
    return f"Hours: {', '.join(f'{sweep} {text}' for sweep, text in texts.items())}{together}." if texts else ""


def sentences(rows: Sequence[Row]) -> dict[str, list[str]]:
    """What the user must do or supply -> the sweeps that ask for it."""
    names_of: dict[str, list[str]] = {}
    for row in rows:
        for sentence in row.checked.asks:
            names = names_of.setdefault(sentence, [])
            names += [row.sweep] if row.sweep not in names else []
    return names_of


def show(cells: Sequence[CheckedCell], machine: Machine) -> None:
    """Print the table, what is asked for, and how many cells are how far."""
    from rich.table import Table

    console = console_of(190)
    if not cells:
        console.print("There are no cells to show.")
        return
    rows, table = rows_of(cells), Table(*_columns(machine), header_style="bold")
    for row in rows:
        table.add_row(*map(for_rich, _without_unknown(row.texts(machine), row)))
    console.print(table)
    for sentence, names in sentences(rows).items():
        say(console, f"{_some(names)}: {sentence}.")
    if hours_of_each := costs(cells, machine):
        say(console, hours_of_each)
    bounds = f"Memory, tokens and hours are bounds, hours on one {machine.device} of {machine.tflops:.3g} TFLOP/s"
    text = f"{summary(cells)}. {bounds} at {machine.utilisation:.0%}, with {machine.gib:.3g} GiB of memory."
    say(console, text)


def _columns(machine: Machine) -> list[str]:
    return [f"{machine.device}s" if name == "GPUs" else name for name in COLUMNS]


def markdown(cells: Sequence[CheckedCell], machine: Machine, today: date, command: str) -> str:
    """command: what made it."""
    rows = rows_of(cells)
    lines = [f"| {' | '.join(COLUMNS)} |", f"|{'---|' * len(COLUMNS)}"]
    for _, group in groupby(rows, key=lambda row: row.sweep):
        lines += [f"| {' | '.join(_without_unknown(row.texts(machine), row))} |" for row in group]
    asked = [f"- {_some(names)}: {sentence}." for sentence, names in sentences(rows).items()]
    settings = {
        "command": command,
        "tflops": machine.tflops,
        "utilisation": machine.utilisation,
        "writing": machine.writing,
    }
    summarised = f"{summary(cells)}, on {today} with GPUs of {machine.gib:g} GiB."
    return "\n".join(
        [
            (HUB / "introduction.md").read_text(encoding="utf-8").format(**settings),
            summarised,
            "",
            costs(cells, machine),
            "",
            *lines,
            "",
            *asked,
            "",
        ]
    )


def to_csv(cells: Sequence[CheckedCell], machine: Machine) -> str:
    """A row per cell; numbers whole."""
    file = io.StringIO()
    writer = csv.writer(file)
    names = (
        "sweep",
        "cell",
        "status",
        "asks",
        "from_the_hub",
        "num_gpus",
        "gib_each",
        "num_tuned",
        "tokens_trained",
        "tokens_read",
        "requests",
        "hours",
    )
    writer.writerow(names)
    for cell in cells:
        item = cell.checked
        jobs = item.jobs
        amounts = (
            (tokens(jobs, TRAINED), tokens(jobs, READ), requests(jobs), hours(jobs, machine)) if jobs else [None] * 4
        )
        writer.writerow(
            [
                cell.sweep,
                cell.overrides,
                item.status,
                "; ".join(item.asks),
                " ".join(item.hub),
                item.num_gpus,
                item.gib,
                item.num_tuned,
                *amounts,
            ]
        )
    return file.getvalue()


def _without_unknown(texts: tuple[str, ...], row: Row) -> tuple[str, ...]:
    """Where there is no work to speak of, nothing is not known of it."""
    return texts if row.jobs else (*texts[:6], *("" for _ in texts[6:]))


def _some(names: Sequence[str]) -> str:
    return ", ".join(names[:6]) + (f" and {len(names) - 6} more" if len(names) > 6 else "")
