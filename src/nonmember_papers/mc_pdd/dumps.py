"""MC-PDD's sets from dumps that the user has: games of Steam of 2014 and 2024, arXiv abstracts of three Februaries.

SteamMIA and the arXiv sets themselves were not published; these have the same recipe: dated before and after the end of
the models' training. A dump is one file: CSV with a header, JSON Lines, or one JSON object of id -> record.
"""

from __future__ import annotations

import csv
import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nonmember.runtime.files import write_text_atomically
from nonmember.runtime.progress import tracked

LARGEST_FIELD = 10_000_000  # characters of a column of CSV
YEAR = re.compile(r"\b(19|20)\d\d\b")
MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
MONTH = re.compile(rf"\b({'|'.join(MONTHS)})[a-z]*\b", re.IGNORECASE)


@dataclass(frozen=True)
class Dump:
    """Columns by the names that known dumps give them, the first that is there."""

    id: tuple[str, ...]
    name: tuple[str, ...]
    date: tuple[str, ...]
    text: tuple[str, ...]
    periods: Mapping[str, str]  # what is kept, by the name of its file; a year, or a year and a month


STEAM = Dump(
    ("AppID", "appid", "steam_appid", "app_id", "id"),
    ("Name", "name", "title"),
    ("Release date", "release_date", "date"),
    ("About the game", "about_the_game", "detailed_description", "description", "short_description"),
    {"games_2014": "2014", "games_2024": "2024"},
)
# As of OLMo, whose training text ends in March 2023. versions: of arXiv's own dump, the first with its date.
ARXIV = Dump(
    ("id",),
    ("title",),
    ("versions", "created", "date", "update_date"),
    ("abstract",),
    {"arxiv_2017_02": "2017-02", "arxiv_2018_02": "2018-02", "arxiv_2025_02": "2025-02"},
)


def steam(dump: Path, to: Path) -> list[Path]:
    """Games of 2014 and of 2024 as JSON Lines of id, name and description. Raises ValueError as `_convert`."""
    return _convert(dump, to, STEAM)


def arxiv(dump: Path, to: Path) -> list[Path]:
    """Papers first sent in February 2017, 2018 and 2025, with title and abstract. Raises ValueError as `_convert`."""
    return _convert(dump, to, ARXIV)


def _convert(dump: Path, to: Path, known: Dump) -> list[Path]:
    """Raises ValueError for a file that is not there or lacks a column, and where a period has no text."""
    lines: dict[str, list[str]] = {name: [] for name in known.periods}
    seen, skipped = set[str](), Counter[str]()
    for row in tracked(_rows(dump), f"reading {dump.name}"):
        doc_id, name, text = (_value(row, columns, dump) for columns in (known.id, known.name, known.text))
        period = _period(_value(row, known.date, dump))
        names = [file for file, wanted in known.periods.items() if period.startswith(wanted)]
        if not names or not text.strip() or doc_id in seen:
            skipped["another date" if not names else "no text" if not text.strip() else "met before"] += 1
            continue
        seen.add(doc_id)
        lines[names[0]].append(json.dumps({"id": doc_id, "name": name, "description": text}, ensure_ascii=False))
    if empty := [known.periods[name] for name, found in lines.items() if not found]:
        raise ValueError(
            f"{dump} has nothing of {' and '.join(empty)} (left out: {dict(skipped)}). Give a dump that reaches so far."
        )
    to.mkdir(parents=True, exist_ok=True)
    paths = [to / f"{name}.jsonl" for name in lines]
    for path, found in zip(paths, lines.values(), strict=True):
        write_text_atomically(path, "\n".join(found) + "\n")
    return paths


def _rows(dump: Path) -> Iterator[Mapping[str, Any]]:
    if not dump.is_file():
        raise ValueError(f"Expected a dump, a file of CSV or JSON, at {dump}, but nothing is there; correct the path.")
    if dump.suffix == ".csv":
        csv.field_size_limit(LARGEST_FIELD)
        with dump.open(encoding="utf-8", newline="") as file:
            yield from csv.DictReader(file)
        return
    with dump.open(encoding="utf-8") as file:
        if dump.suffix == ".json" and file.readline().strip() == "{":
            file.seek(0)
            yield from ({"id": key, **record} for key, record in json.load(file).items())
            return
        file.seek(0)
        yield from (json.loads(line) for line in file if line.strip())


def _value(row: Mapping[str, Any], columns: tuple[str, ...], dump: Path) -> str:
    found = next((row[column] for column in columns if column in row), None)
    if found is None and not any(column in row for column in columns):
        raise ValueError(f"{dump} must have one of the columns {', '.join(columns)}; it has {', '.join(row)}.")
    if isinstance(found, list):  # of versions, the first
        found = found[0].get("created", "") if found else ""
    return "" if found is None else str(found)


def _period(date: str) -> str:
    """2014-11 of 2014-11-07, of "Nov 7, 2014" and of "Fri, 7 Nov 2014 08:00:00 GMT"; a year that stands alone."""
    if re.match(r"\d{4}(-\d\d)?", date):
        return date[:7]
    year, month = YEAR.search(date), MONTH.search(date)
    if year is None:
        return ""
    return year[0] if month is None else f"{year[0]}-{MONTHS.index(month[1].lower()) + 1:02d}"
