"""`nonmember score`: membership scores of documents, as a Parquet table."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from omegaconf import DictConfig

from nonmember.config.roots import run_with_hydra
from nonmember.runtime.files import forget_refused
from nonmember.runtime.terminal import console_of, for_rich, say, visible

NUM_SHOWN = 5  # documents
LEAST_OF_ID = 24  # characters
ALONE = "No score says by itself that a document was used: compare with text that certainly was not (nonmember audit)."


def main() -> None:
    """Print the first rows and a summary; as the last line the path of the table, or of the folder of tables."""

    def run(config: DictConfig, folder: Path) -> None:
        from nonmember.config.runs import with_heldout

        try:
            path = score(config, folder)
            other = score(unread, folder / "heldout") if (unread := with_heldout(config)) else None
        except ValueError:
            forget_refused(folder)
            raise
        show(path, other)
        sys.stdout.write(f"{path}\n")

    run_with_hydra("score", run)


def score(config: DictConfig, folder: Path) -> Path:
    """Write the table of scores into the folder, or the tables of what is streamed (`write_scores`)."""
    from nonmember.config.runs import builder_of, scoring_of
    from nonmember.scoring.write import write_scores

    return write_scores(scoring_of(config), builder_of(config), folder, config.export)


def show(path: Path, unread: Path | None = None) -> None:
    """Print the documents that score highest, and a summary of each score; of a folder of tables, its first documents.

    unread: table of documents that certainly were not used; the AUC of each score against them is printed and drawn.
    """
    import pyarrow.parquet as pq

    console = console_of()
    if path.is_dir():
        import pyarrow.dataset  # which imports pandas: .4 s

        tables = pyarrow.dataset.dataset(path, format="parquet")
        table, number = tables.head(NUM_SHOWN), tables.count_rows()
    else:
        number = len(table := pq.ParquetFile(path).read())
    names = list(json.loads(table.schema.metadata[b"nonmember"])["scores"])
    if path.is_dir() or not names:
        _show_documents(console, table.slice(0, NUM_SHOWN).to_pylist(), f"of {number:,}", names)
        return
    highest = table.sort_by([(names[0], "descending")]).slice(0, NUM_SHOWN).to_pylist()
    _show_documents(console, highest, f"highest by {names[0]} of {number:,}", names)
    scores = {name: _defined(table[name]) for name in names}
    if unread is None:
        _show_summary(console, scores, {})
        say(console, ALONE)
        return
    from nonmember.reports.score_page import MEANING, aucs, write_page

    others = pq.ParquetFile(unread).read()
    title = f"How well each score tells {number:,} documents from {len(others):,} unread ones"
    of_unread = {name: _defined(others[name]) for name in names}
    _show_summary(console, scores, found := aucs(scores, of_unread))
    page = write_page(path.with_name("scores.html"), title, scores, of_unread, found)
    say(console, f"{MEANING} Histograms: {page}")


def _defined(column: Any) -> Any:
    """The values of a score as an array (Arrow's own to_numpy imports pandas), without those that are undefined."""
    import numpy as np

    values = np.from_dlpack(column.drop_null().combine_chunks())
    return values[~np.isnan(values)]


def _show_documents(console: Any, rows: list[dict[str, Any]], which: str, names: list[str]) -> None:
    """As many scores as fit into the width."""
    cells = {name: [_number(row[name]) for row in rows] for name in names}
    widths = {name: max(map(len, [name, *cells[name]])) + 2 for name in names}
    ids = [visible(row["doc_id"]) for row in rows]
    room = max(LEAST_OF_ID, console.width - sum(widths.values()) - len("tokens") - 6)
    ids = [item if len(item) <= room else f"…{item[1 - room :]}" for item in ids]  # their ends tell them apart
    fit, width = [], max(map(len, ["doc_id", *ids])) + 2 + len("tokens") + 4
    for name in names:
        if (width := width + widths[name]) > console.width:
            break
        fit.append(name)
    more = f"; {len(names) - len(fit)} more scores in the table" if len(fit) < len(names) else ""
    console.print(f"{len(rows)} {which} documents{more}; higher = more likely a member:", highlight=False)
    table = _table("doc_id", *fit, "tokens")
    for index, row in enumerate(rows):
        table.add_row(for_rich(ids[index]), *(cells[name][index] for name in fit), f"{row['num_tokens']:,}")
    console.print(table)


def _show_summary(console: Any, scores: Mapping[str, Any], aucs: Mapping[str, str]) -> None:
    import numpy as np

    console.print("All documents:")
    last = ["AUC [95%]"] if aucs else ["mean", "std. dev."]
    table = _table("score", "scored", "lowest", "median", "highest", *last)  # fits 80 columns
    for name, values in scores.items():
        found = (values.min(), np.median(values), values.max(), values.mean()) if len(values) else (None,) * 4
        numbers = [*map(_number, (*found, values.std(ddof=1) if len(values) > 1 else None))]
        table.add_row(name, f"{len(values):,}", *([*numbers[:3], aucs[name]] if aucs else numbers))
    console.print(table)


def _table(first: str, *others: str) -> Any:
    from rich import box
    from rich.table import Column, Table

    right = (Column(name, justify="right", no_wrap=True) for name in others)
    return Table(Column(first, no_wrap=True), *right, box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))


def _number(value: float | None) -> str:
    return "–" if value is None or value != value else f"{value:.4g}"
