"""`nonmember score`: a table of what is in memory, a folder of tables of what is streamed."""

from __future__ import annotations

import logging
import shutil
from pathlib import Path

from nonmember.artifacts import Builder
from nonmember.records import Stream
from nonmember.runtime.files import replacing
from nonmember.runtime.naming import path_of
from nonmember.scoring.parts import write_parts
from nonmember.scoring.question import Scoring
from nonmember.scoring.table import write_table

log = logging.getLogger(__name__)

FORMS = (".csv", ".tsv", ".jsonl", ".parquet")


def write_scores(scoring: Scoring, builder: Builder, folder: Path, export: str | None = None) -> Path:
    """The table, or the folder of tables.

    export: a new file in which the table is written too, in the form that its name ends in.

    Raises ValueError for another form, where that file is there, and where documents are streamed, whose scores are
    many tables.
    """
    copy = None if export is None else path_of(export).absolute()
    if copy is not None and copy.suffix.lower() not in FORMS:
        raise ValueError(f"export must be a file that ends in {', '.join(FORMS)}; got {copy.name}.")
    if copy is not None and copy.exists():
        raise ValueError(f"{copy} already exists; name a new file in export=...")
    is_streamed = isinstance(builder.get(scoring.corpus), Stream)
    if copy is not None and is_streamed:
        raise ValueError(
            "export is for documents in memory; those that are streamed give a folder of Parquet files, which "
            "nm.load_scores(FOLDER) reads as one. Leave export out."
        )
    if costs := scoring.costs():
        log.info("%s.", costs)
    path = (write_parts if is_streamed else write_table)(scoring, builder, folder)
    if copy is not None:
        _write_copy(path, copy)
        log.info("The table is in %s too.", copy)
    return path


def _write_copy(path: Path, copy: Path) -> None:
    """In the form that the name ends in, with numbers in full; undefined ones are left empty."""
    import pandas as pd

    copy.parent.mkdir(parents=True, exist_ok=True)
    with replacing(copy) as temporary:
        match copy.suffix.lower():
            case ".parquet":
                shutil.copyfile(path, temporary)
            case ".jsonl":
                pd.read_parquet(path).to_json(
                    temporary, orient="records", lines=True, double_precision=15, force_ascii=False
                )
            case suffix:
                pd.read_parquet(path).to_csv(temporary, index=False, sep="," if suffix == ".csv" else "\t")
