"""A report on disk: page, Markdown, CSV, pictures and manifest. What an earlier report left and this one lacks goes."""

from __future__ import annotations

import csv
import io
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path

from nonmember import __version__
from nonmember.reports.core.formats import listed
from nonmember.reports.core.grid import PUBLISHED, Block, Numeral, ReportDocument, Section, TableRow
from nonmember.reports.render.manifest import MANIFEST, manifest, written
from nonmember.reports.render.markdown import markdown
from nonmember.reports.render.page import page
from nonmember.results.load import Collection
from nonmember.runtime.files import json_object, write_text_atomically

PAGE, TEXT = "report.html", "report.md"
FORMATS = ("html", "md", "csv", "svg", "png")


def write_report(
    document: ReportDocument, collection: Collection, folder: Path, now: datetime, formats: Sequence[str] = FORMATS
) -> Path:
    """Write a report into `folder` and return its page, or what comes closest of the formats.

    formats: of the files that are written.

    Raises ValueError for an unknown format, for md without svg, which report.md shows, and where somebody else's file
    would be replaced.
    """
    check_formats(formats)
    made = now.isoformat(timespec="seconds")
    every = files_of(document, collection, facts_of(document, collection, now))
    files = {name: content for name, content in every.items() if name.rpartition(".")[2] in formats}
    used: dict[str, list[str]] = defaultdict(list)
    for section in document.sections:
        for anchor in section.used():
            used[anchor].append(section.key)
    read = {
        path: sha256
        for section in document.sections
        for figure in section.figures
        for path, sha256 in figure.read.items()
    }
    listing = manifest(collection, used, read, __version__, made) | {"files": sorted([*files, MANIFEST])}
    earlier = earlier_files(folder)
    if others := [name for name in (MANIFEST, *files) if (folder / name).exists() and name not in earlier]:
        raise ValueError(
            f"{folder / others[0]} must be free, or of an earlier report, which is replaced; got another file. Name "
            "another folder: folder=FOLDER."
        )
    folder.mkdir(parents=True, exist_ok=True)
    planned = listing | {"files": sorted({*earlier, *listing["files"]})}
    write_text_atomically(folder / MANIFEST, written(planned))  # first: what a kill leaves can be replaced
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(content, str):
            write_text_atomically(path, content)
        else:
            path.write_bytes(content)
    for name in earlier - set(files) - {MANIFEST}:
        (folder / name).unlink(missing_ok=True)
    write_text_atomically(folder / MANIFEST, written(listing))
    return folder / next((name for name in (PAGE, TEXT) if name in files), MANIFEST)


def check_formats(formats: Sequence[str]) -> None:
    """Raises ValueError for formats that cannot be."""
    if unknown := [name for name in formats if name not in FORMATS]:
        raise ValueError(f"formats must be some of {', '.join(FORMATS)}; got {', '.join(unknown)}.")
    if "md" in formats and "svg" not in formats:
        raise ValueError(f"formats must have svg beside md, which shows it; got {', '.join(formats)}. Add svg.")


def facts_of(document: ReportDocument, collection: Collection, now: datetime) -> dict[str, str]:
    """What a reader wants to know first."""
    sweeps = {run.question.sweep for run in collection.runs}
    facts = {
        "Made": f"{now:%-d %B %Y, %H:%M} {now.tzname() or ''}".strip(),
        "Version": f"nonmember {__version__}",
        "Results": f"{len(collection.runs):,} from {len(sweeps)} sweep{'s' * (len(sweeps) != 1)}",
    }
    if document.worlds:
        facts["Worlds"] = listed(list(document.worlds))
    if not collection.runs:
        facts = {name: facts[name] for name in ("Made", "Version")} | {"Results": "none; published numbers alone"}
    if collection.unreadable:
        facts["Left out"] = f"{len(collection.unreadable)} unreadable (manifest.json says which)"
    return facts


def files_of(document: ReportDocument, collection: Collection, facts: Mapping[str, str]) -> dict[str, str | bytes]:
    """Name -> content."""
    paths = {run.anchor: run.path for run in collection.runs}
    text = markdown(document, facts)
    files: dict[str, str | bytes] = {PAGE: page(document, text), TEXT: text}
    for section in document.sections:
        if section.blocks or section.figures:
            files[f"tables/{section.key}.csv"] = spreadsheet(section, paths)
        for figure in section.figures:
            files[f"figures/{figure.name}.svg"] = figure.svg
            files[f"figures/{figure.name}.png"] = figure.png
    return files


def earlier_files(folder: Path) -> set[str]:
    """What an earlier report in this folder says it wrote; only plain names below the folder are believed."""
    try:
        names = list(json_object(folder / MANIFEST)["files"])
    except (OSError, ValueError, KeyError, TypeError):
        return set()
    known = (PAGE, TEXT, MANIFEST)
    return {
        name
        for name in names
        if isinstance(name, str) and ".." not in name and (name in known or name.startswith(("tables/", "figures/")))
    }


# Every number of a section as a line of CSV: value, as printed, and where it is from ----------------------------------

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
        for part, row in (*((OURS, row) for row in block.rows), *((CONTROL, row) for row in block.footer)):
            lines = _row(block, PUBLISHED if block.world == PUBLISHED else part, row, paths)
            writer.writerows([safe(field) for field in line] for line in lines)
    return stream.getvalue()


def _row(block: Block, part: str, row: TableRow, paths: dict[str, str]) -> Iterator[tuple[str, ...]]:
    for column, cell in zip(block.columns, row.cells, strict=True):
        for where, numbers in ((part, cell.ours), (PUBLISHED, cell.published)):
            for index, number in enumerate(numbers):
                quantity = block.quantities[index] if index < len(block.quantities) else block.quantities[-1]
                yield (block.world, where, row.name, column, quantity, *_number(number, paths))


def _number(number: Numeral, paths: dict[str, str]) -> tuple[str, ...]:
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
