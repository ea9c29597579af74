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
    import pyarrow.dataset

    console = console_of()
    tables = pyarrow.dataset.dataset(path, format="parquet")
    names = list(json.loads(tables.schema.metadata[b"nonmember"])["scores"])
    if path.is_file() and names:
        table = tables.to_table()
        highest = table.sort_by([(names[0], "descending")]).slice(0, NUM_SHOWN).to_pylist()
        _show_documents(console, highest, f"highest by {names[0]} of {len(table):,}", names)
        scores = table.select(names).to_pandas()
        if unread is None:
            _show_summary(console, scores, {})
            say(console, ALONE)
            return
        from nonmember.reports.score_page import MEANING, aucs, write_page

        others = pyarrow.dataset.dataset(unread, format="parquet").to_table(columns=names).to_pandas()
        _show_summary(console, scores, found := aucs(scores, others))
        say(console, f"{MEANING} Histograms: {write_page(path.with_name('scores.html'), scores, others, found)}")
    else:
        _show_documents(console, tables.head(NUM_SHOWN).to_pylist(), f"of {tables.count_rows():,}", names)


def _show_documents(console: Any, rows: list[dict[str, Any]], which: str, names: list[str]) -> None:
    """As many scores as fit into the width."""
    from rich import box
    from rich.table import Table

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
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    table.add_column("doc_id", no_wrap=True)
    for name in (*fit, "tokens"):
        table.add_column(name, justify="right", no_wrap=True)
    for index, row in enumerate(rows):
        table.add_row(for_rich(ids[index]), *(cells[name][index] for name in fit), f"{row['num_tokens']:,}")
    console.print(table)


def _show_summary(console: Any, scores: Any, aucs: Mapping[str, str]) -> None:
    from rich import box
    from rich.table import Table

    console.print("All documents:")
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))  # fits 80 columns
    table.add_column("score", no_wrap=True)
    for name in ("scored", "lowest", "median", "highest", *(["AUC [95%]"] if aucs else ["mean", "std. dev."])):
        table.add_column(name, justify="right", no_wrap=True)
    for name, values in scores.items():
        found = values.dropna()
        numbers = [*map(_number, (found.min(), found.median(), found.max(), found.mean(), found.std()))]
        table.add_row(name, f"{len(found):,}", *([*numbers[:3], aucs[name]] if aucs else numbers))
    console.print(table)


def _number(value: float | None) -> str:
    return "–" if value is None or value != value else f"{value:.4g}"
