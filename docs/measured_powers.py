"""Collects what the kept reports measured of each method, for `nonmember advise`.

Run from the top of the repository: `python docs/measured_powers.py`. It reads docs/results and the study of canaries,
and writes src/nonmember/advice/measured.json, which ships with the package.
"""

from __future__ import annotations

import csv
import hashlib
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from nonmember.stats.canaries import rank_sum_cdf

ROOT = Path(__file__).parents[1]
FILE = ROOT / "src" / "nonmember" / "advice" / "measured.json"
VERSION = 2  # raise it when the meaning of a field changes
ARENA, DOSE, CALIBRATION, ORDER = (
    "docs/results/arena/report.md",
    "docs/results/dose/report.md",
    "docs/results/calibration/report.md",
    "docs/results/order/tables/duplication.csv",
)
COUNT = re.compile(r"(\d+)†? of (\d+)(?: \\\[([\d.]+)%, ([\d.]+)%\\\])?")
SIZES = (50, 150, 500)
DEFAULT = "docs/results/default_score/report.md"
POWER = "docs/results/prism_power/report.md"
CANARIES = "docs/studies/canaries.json"
CONDITION, VARIANTS, CANARIES_OF_A_SET = ("random", 12), 50, 8  # of that study
# Readings -> pairs found of all, of SmolLM2 and Gemma; models of a million parameters write next to nothing of what
# they read (1 of 24 sets read once, none of 36 read more often), and a user asks about real models.
WRITTEN = {0: (1, 13), 1: (4, 6), 2: (2, 2), 4: (2, 2), 8: (2, 2)}
READINGS = {"nothing": 0, "1x": 1, "2x": 2, "4x": 4, "8x": 8, "12x": 12}
MICRO = "models of about a million parameters, docstrings of libraries"
MADE = {
    "own base": f"dose study, reported half, second protocol: sets of 100 texts, {MICRO}",
    "another base": f"dose study, targets of other bases: sets of 100 texts, {MICRO}",
    "arena": f"the arena: sets of 100 texts, {MICRO}",
    "sizes": f"the arena by number of documents: sets of {{}} texts, {MICRO}",
    "calibration": f"study of calibrated clearance, reported half: sets of 100 texts (power also of 500), {MICRO}",
    "default": f"choice of the default score, reported sets: {{}} texts of four kinds, {MICRO} and Pile text",
    "power": f"PRISM's power: sets of 150 texts, a sibling as the reference, four targets, {MICRO}",
    "written": "SmolLM2-135M and Gemma 3 270M, continued with sets of {} texts of 60 words (models of about a million "
    "parameters write next to nothing of what they read)",
    "canaries": "study of canaries: {0} canaries of 12 random words and 50 variants (unread: 3 of 8 words and 20 "
    "variants), models of .7 million parameters, docstrings of libraries",
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
    method: str, setting: str, says: str, dose: int, text: str, made: str, where: str, documents: int | None = 100
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
            "study": MADE[made].format(documents or CANARIES_OF_A_SET),
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
    for reading, dose in READINGS.items():
        where = f"{CALIBRATION}, {name}: PRISM, {reading}"
        yield from cell("prism", "", "non_membership", dose, cleared[reading]["PRISM"], "calibration", where)

    verdicts = table(ARENA, "Verdicts by what was read", "LLM-DI: read")["LLM-DI: read"]
    for reading, text in verdicts.items():
        where = f"{ARENA}, Verdicts by what was read: LLM-DI, {reading}"
        yield from cell("llm_di", "", "membership", READINGS[reading], text, "arena", where)
    for dose, (count, of) in WRITTEN.items():
        text, where = f"{count} of {of}", "docs/methods/sampled_completion.md, SmolLM2 and Gemma 3 270M by dose"
        yield from cell("sampled_completion", "", "membership", dose, text, "written", where, 60)
    title = "Verdicts by what was read and number of documents"
    sizes = table(ARENA, title, "LLM-DI: read, 50")
    rows = ("llm_di", "membership", "LLM-DI: read"), ("prism", "non_membership", "PRISM: not read")
    for method, says, name in rows:
        for documents in SIZES:
            for reading, text in sizes[f"{name}, {documents}"].items():
                where = f"{ARENA}, {title}: {name}, {documents}, {reading}"
                yield from cell(method, "", says, READINGS[reading], text, "sizes", where, documents)

    # All scores of the difference in differences from the same sets, so that they are ranked by what can be compared.
    chosen = table(DEFAULT, "Flagged, reported sets", "WBC, 50")
    for setting, name in {"wbc(2-40)": "WBC", "loss": "loss"}.items():
        for documents in (50, 100, 150, 500):
            for reading, text in chosen[f"{name}, {documents}"].items():
                if reading in READINGS:
                    where = f"{DEFAULT}, Flagged, reported sets: {name}, {documents}, {reading}"
                    key = ("difference_in_differences", setting, "membership")
                    yield from cell(*key, READINGS[reading], text, "default", where, documents)

    ranked = {
        "fsd": "FSD",
        "kds": "KDS",
        "score": "Min-K%++",
        "score with a reference": "Min-K%++ less reference",
        "score with held-out text": "loss less held-out",
        "score with a reference and held-out text": "loss less reference and held-out",
    }
    for method, name in ranked.items():
        for reading, text in table(ARENA, "Found at 5% false positives", name)[name].items():
            where = f"{ARENA}, Found at 5% false positives: {name}, {reading}"
            yield from cell(method, "", "ranking", READINGS[reading], text, "arena", where)
    yield from _order()
    title, row = "Cleared, four targets. Micro world", "losses, sibling"
    for dose, column in enumerate(("never read", "read once")):
        text, where = table(POWER, title, row)[row][column], f"{POWER}, {title}: {row}, {column}"
        yield from cell("prism", "loss", "non_membership", dose, text, "power", where, 150)
    yield from _canaries()


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


def _canaries() -> Iterator[dict[str, Any]]:
    """By copies; the canaries of a cell, in their order, cut into sets."""
    study = json.loads((ROOT / CANARIES).read_text(encoding="utf-8"))
    p_values = {0: [p for model in study["null"].values() for p in model["p_values"]]}
    for row in study["found"]:
        if (row["kind"], row["length"]) == CONDITION:
            starts = range(0, len(row["ranks"]), CANARIES_OF_A_SET)
            sums = [sum(row["ranks"][start : start + CANARIES_OF_A_SET]) for start in starts]
            p_values[row["copies"]] = [rank_sum_cdf(total, [VARIANTS] * CANARIES_OF_A_SET) for total in sums]
    for copies, values in p_values.items():
        text, where = f"{sum(p < 0.05 for p in values)} of {len(values)}", f"{CANARIES}: {copies} copies"
        yield from cell("canary", "", "membership", copies, text, "canaries", where, None)


def made() -> str:
    """What the file holds."""
    sources = {
        path: hashlib.sha256((ROOT / path).read_bytes()).hexdigest()
        for path in (ARENA, DOSE, CALIBRATION, ORDER, DEFAULT, POWER, CANARIES)
    }
    head = json.dumps({"version": VERSION, "made_from": sources})[:-1]
    cells = ",\n  ".join(json.dumps(one) for one in collected())
    return f'{head}, "cells": [\n  {cells}\n]}}\n'


if __name__ == "__main__":
    FILE.write_text(made(), encoding="utf-8")
