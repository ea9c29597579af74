"""Collects what the kept reports measured of each method, for `nonmember advise`.

Run from the top of the repository: `python docs/measured_powers.py`. It reads docs/results and nothing else, and
writes src/nonmember/advice/measured.json, which ships with the package.
"""

from __future__ import annotations

import csv
import hashlib
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
FILE = ROOT / "src" / "nonmember" / "advice" / "measured.json"
VERSION = 1  # raise it when the meaning of a field changes
ARENA, DOSE, CALIBRATION, ORDER = (
    "docs/results/arena/report.md",
    "docs/results/dose/report.md",
    "docs/results/calibration/report.md",
    "docs/results/order/tables/duplication.csv",
)
COUNT = re.compile(r"(\d+)†? of (\d+)(?: \\\[([\d.]+)%, ([\d.]+)%\\\])?")
SIZES = (50, 150, 500)
DEFAULT = "docs/results/default_score/report.md"
READINGS = {"nothing": 0, "1x": 1, "2x": 2, "4x": 4, "8x": 8, "12x": 12}
MICRO = "models of about a million parameters, docstrings of libraries"
MADE = {
    "own base": f"dose study, reported half, second protocol: sets of 100 texts, {MICRO}",
    "another base": f"dose study, targets of other bases: sets of 100 texts, {MICRO}",
    "arena": f"the arena: sets of 100 texts, {MICRO}",
    "sizes": f"the arena by number of documents: sets of {{}} texts, {MICRO}",
    "calibration": f"study of calibrated clearance, reported half: sets of 100 texts (power also of 500), {MICRO}",
    "default": f"choice of the default score, reported sets: {{}} texts of four kinds, {MICRO} and Pile text",
    "order": f"order test in the micro world: files of at most 300 lines of 20 words, 50 orders, {MICRO}",
}


def table(report: str, title: str, row: str) -> dict[str, dict[str, str]]:
    """Row -> column -> cell, of the table of a report with this title that has this row."""
    lines = (ROOT / report).read_text(encoding="utf-8").splitlines()
    starts = [place for place, line in enumerate(lines) if line.startswith(f"**{title}** (")]
    for start in starts:
        first = next(place for place in range(start, len(lines)) if lines[place].startswith("|"))
        block = [line for line in lines[first:] if line]
        rows = [[cell.strip() for cell in line.strip("|").split(" | ")] for line in _leading(block)]
        names = [name.strip() for name in rows[0][1:]]
        found = {cells[0].strip(): dict(zip(names, cells[1:], strict=True)) for cells in rows[2:]}
        if row in found:
            return found
    raise ValueError(f"{report} has no table {title!r} with a row {row!r}; its titles may have changed.")


def _leading(lines: list[str]) -> Iterator[str]:
    for line in lines:
        if not line.startswith("|"):
            return
        yield line


def cell(
    method: str, setting: str, says: str, dose: int, text: str, made: str, where: str, documents: int = 100
) -> Iterator[dict[str, Any]]:
    """A measured share, where the cell of the report has one."""
    if match := COUNT.match(text):
        count, of, low, high = match.groups()
        yield {
            "method": method,
            "setting": setting,
            "says": says,
            "dose": dose,
            "count": int(count),
            "of": int(of),
            "low": round(float(low) / 100, 4) if low else None,
            "high": round(float(high) / 100, 4) if high else None,
            "num_documents": documents,
            "study": MADE[made].format(documents),
            "cell": where,
        }


def collected() -> Iterator[dict[str, Any]]:
    own = table(DOSE, "Errors and power, own base", "power, without related reading")
    column, where = "the reported half, second protocol", f"{DOSE}, Errors and power, own base"
    rows = {
        "non_membership": {0: "power, without related reading", 1: "false clearance, read once"},
        "membership": {0: "false membership, without related reading"}
        | {dose: f"membership found, read {dose}x" for dose in (1, 2, 4, 8, 12)},
    }
    for says, by_dose in rows.items():
        for dose, name in by_dose.items():
            yield from cell("dose", "own base", says, dose, own[name][column], "own base", f"{where}: {name}")

    others = table(DOSE, "Verdicts on targets of other bases", "all of these, nothing")
    for says, column in (("non_membership", "not read"), ("membership", "read")):
        for name, dose in READINGS.items():
            text, where = others[f"all of these, {name}"][column], f"{DOSE}, Verdicts on targets of other bases"
            yield from cell("dose", "another base", says, dose, text, "another base", f"{where}: all, {name}")

    name = "Cleared, by what was read. The reported half"
    cleared = table(CALIBRATION, name, "nothing")
    columns = {
        ("prism", ""): "PRISM",
        ("clearance", "another base"): "clearance of 8x",
        ("clearance", "own base"): "clearance of 8x, own base",
    }
    for (method, setting), column in columns.items():
        for reading, dose in READINGS.items():
            where = f"{CALIBRATION}, {name}: {column}, {reading}"
            yield from cell(method, setting, "non_membership", dose, cleared[reading][column], "calibration", where)

    verdicts = table(ARENA, "Verdicts by what was read", "LLM-DI: read")
    rows = {
        ("llm_di", ""): "LLM-DI",
        ("difference_in_differences", "minkpp(0.2)"): "difference in differences, Min-K%++",
        ("difference_in_differences", "loss"): "difference in differences, loss",
    }
    for (method, setting), name in rows.items():
        for reading, text in verdicts[f"{name}: read"].items():
            where = f"{ARENA}, Verdicts by what was read: {name}, {reading}"
            yield from cell(method, setting, "membership", READINGS[reading], text, "arena", where)
    title = "Verdicts by what was read and number of documents"
    sizes = table(ARENA, title, "LLM-DI: read, 50")
    named = {(*key, "membership"): f"{name}: read" for key, name in rows.items()}
    for (method, setting, says), name in {**named, ("prism", "", "non_membership"): "PRISM: not read"}.items():
        for documents in SIZES:
            for reading, text in sizes[f"{name}, {documents}"].items():
                where = f"{ARENA}, {title}: {name}, {documents}, {reading}"
                yield from cell(method, setting, says, READINGS[reading], text, "sizes", where, documents)

    chosen = table(DEFAULT, "Flagged, reported sets", "WBC, 50")
    for documents in (50, 100, 150, 500):
        for reading, text in chosen[f"WBC, {documents}"].items():
            if reading in READINGS:
                where = f"{DEFAULT}, Flagged, reported sets: WBC, {documents}, {reading}"
                key = ("difference_in_differences", "wbc(2-40)", "membership")
                yield from cell(*key, READINGS[reading], text, "default", where, documents)

    ranked = {
        "fsd": "FSD",
        "kds": "KDS",
        "score": "Min-K%++",
        "score with a reference": "Min-K%++ less reference",
        "score with held-out text": "loss less held-out",
        "score with a reference and held-out text": "loss less reference and held-out",
    }
    apart = table(ARENA, "Found at 5% false positives", "FSD")
    for method, name in ranked.items():
        for reading, text in apart[name].items():
            where = f"{ARENA}, Found at 5% false positives: {name}, {reading}"
            yield from cell(method, "", "ranking", READINGS[reading], text, "arena", where)
    yield from _order()


def _order() -> Iterator[dict[str, Any]]:
    with (ROOT / ORDER).open(encoding="utf-8", newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["part"] == "ours" and ", draw " in row["row"]]
    p_values: dict[int, list[float]] = {}
    for row in rows:
        if row["quantity"] == "p":
            p_values.setdefault(int(row["column"]), []).append(float(row["value"]))
    for dose, values in sorted(p_values.items()):
        text, where = f"{sum(p < 0.05 for p in values)} of {len(values)}", f"{ORDER}: read {dose} times"
        yield from cell("order", "", "membership", dose, text, "order", where, 300)


def made() -> str:
    """What the file holds."""
    sources = {
        path: hashlib.sha256((ROOT / path).read_bytes()).hexdigest()
        for path in (ARENA, DOSE, CALIBRATION, ORDER, DEFAULT)
    }
    head = json.dumps({"version": VERSION, "made_from": sources})[:-1]
    cells = ",\n  ".join(json.dumps(one) for one in collected())
    return f'{head}, "cells": [\n  {cells}\n]}}\n'


if __name__ == "__main__":
    FILE.write_text(made(), encoding="utf-8")
