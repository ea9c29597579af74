"""`nonmember score`: a table of what is in memory, a folder of tables of what is streamed."""

from __future__ import annotations

import logging
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from nonmember.artifacts import Builder
from nonmember.records import Stream
from nonmember.runtime.files import replacing
from nonmember.runtime.naming import path_of
from nonmember.scoring.parts import write_parts
from nonmember.scoring.question import Scoring
from nonmember.scoring.table import write_table

if TYPE_CHECKING:
    import pandas as pd

log = logging.getLogger(__name__)

FORMS = (".csv", ".tsv", ".jsonl", ".parquet")


def write_scores(scoring: Scoring, builder: Builder, folder: Path, export: str | None = None) -> Path:
    """The table, or the folder of tables.

    export: a new file in which the table is written too, in the form that its name ends in.

    Raises ValueError where that file is there, or where documents are streamed, whose scores are many tables.
    """
    copy = None if export is None else new_table(export)
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


def new_table(export: str) -> Path:
    """Raises ValueError where that is no new file of a known form."""
    path = path_of(export).absolute()
    if path.suffix.lower() not in FORMS:
        raise ValueError(f"export must be a file that ends in {', '.join(FORMS)}; got {path.name}.")
    if path.exists():
        raise ValueError(f"{path} already exists; name a new file in export=...")
    return path


def _write_copy(path: Path, copy: Path) -> None:
    if copy.suffix.lower() == ".parquet":
        copy.parent.mkdir(parents=True, exist_ok=True)
        with replacing(copy) as temporary:
            shutil.copyfile(path, temporary)
        return
    import pandas as pd

    write_frame(pd.read_parquet(path), copy)


def write_frame(frame: pd.DataFrame, path: Path) -> None:
    """In the form that the name ends in, with numbers in full; undefined ones are left empty."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as temporary:
        match path.suffix.lower():
            case ".parquet":
                frame.to_parquet(temporary, index=False)
            case ".jsonl":
                frame.to_json(temporary, orient="records", lines=True, double_precision=15, force_ascii=False)
            case suffix:
                frame.to_csv(temporary, index=False, sep="," if suffix == ".csv" else "\t")
