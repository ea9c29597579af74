"""`nonmember score`: a table of what is in memory, a folder of tables of what is streamed."""

from __future__ import annotations

from pathlib import Path

from nonmember.artifacts import Builder
from nonmember.audits.parts import write_parts
from nonmember.audits.score_table import write_table
from nonmember.audits.scoring import Scoring
from nonmember.records import Stream


def write_scores(scoring: Scoring, builder: Builder, folder: Path) -> Path:
    """The table, or the folder of tables."""
    write = write_parts if isinstance(builder.get(scoring.corpus), Stream) else write_table
    return write(scoring, builder, folder)
