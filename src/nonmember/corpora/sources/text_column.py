"""Detects the text column of a table; asks for it where that is ambiguous."""

from __future__ import annotations

import statistics
from collections.abc import Collection, Sequence

from nonmember.corpora.sources.rows import Row, is_missing

NAMES = ("text", "content", "body", "document", "passage", "snippet", "article")
NUM_LOOKED_AT = 200  # rows
CLEARLY_LONGER = 4.0  # times the median length of the next
LONG = 40  # characters


def find_text_column(rows: Sequence[Row], named_otherwise: Collection[str], where: str) -> str:
    """The only column of strings; or the only one with a usual name; or one whose texts are clearly the longest.

    rows: the first few.   named_otherwise: columns that are ids, clusters, titles or authors.
    Raises ValueError, with all columns, where none or several could be it.
    """
    lengths = {
        name: statistics.median(len(value) for row in rows if isinstance(value := row.get(name), str))
        for name in dict.fromkeys(name for row in rows for name in row)
        if name not in named_otherwise and _holds_strings([row.get(name) for row in rows])
    }
    if len(lengths) == 1:
        return next(iter(lengths))
    if len(usual := [name for name in lengths if name.lower() in NAMES]) == 1:
        return usual[0]
    ordered = sorted(lengths, key=lambda name: -lengths[name])
    if ordered and lengths[ordered[0]] >= max(LONG, CLEARLY_LONGER * lengths[ordered[1]]):
        return ordered[0]
    columns = ", ".join(repr(name) for row in rows[:1] for name in row) or "none"
    what = f"{len(lengths)} of them may be the text ({', '.join(map(repr, ordered))})" if lengths else "none holds text"
    raise ValueError(
        f"{where} must have one column that is the text; its columns are {columns}, and {what}. Name it: "
        f"data.text_field={ordered[0] if ordered else 'COLUMN'}."
    )


def _holds_strings(values: Sequence[object]) -> bool:
    """Mostly: a row that holds something else is refused when it is read, with its place."""
    there = [value for value in values if not is_missing(value)]
    return 2 * sum(isinstance(value, str) for value in there) >= max(1, len(there))
