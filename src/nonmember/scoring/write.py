"""`nonmember score`: a table of what is in memory, a folder of tables of what is streamed."""

from __future__ import annotations

import logging
from pathlib import Path

from nonmember.artifacts import Builder
from nonmember.records import Stream
from nonmember.scoring.parts import write_parts
from nonmember.scoring.question import Scoring
from nonmember.scoring.table import write_table

log = logging.getLogger(__name__)


def write_scores(scoring: Scoring, builder: Builder, folder: Path) -> Path:
    """The table, or the folder of tables."""
    if costs := scoring.costs():
        log.info("%s.", costs)
    write = write_parts if isinstance(builder.get(scoring.corpus), Stream) else write_table
    return write(scoring, builder, folder)
