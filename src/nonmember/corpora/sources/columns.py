"""Values of a row by column: a document's id, text, cluster, title and author, checked; and which column is which."""

from __future__ import annotations

import logging
import math
import re
import statistics
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from nonmember.corpora.sources.rows import Row, kind_of
from nonmember.corpora.specs import CorpusSpec, document
from nonmember.records import Document

log = logging.getLogger(__name__)

# Columns that name documents; the second is what `nonmember score` writes, the third a frame's index that pandas wrote.
IDS = ("id", "doc_id", "__index_level_0__")
NUM_NAMED = 3  # ids that a message lists
NO_VALUE = ("NAType", "NaTType")  # of pandas
USUAL_NAMES = ("text", "content", "body", "document", "passage", "snippet", "article")  # of a column with texts
NUM_INSPECTED = 200  # rows
CLEARLY_LONGER = 4.0  # times the median length of the next
LONG = 40  # characters
IN_BRACES = re.compile(r"\{([^{}]+)\}")


class FromRows(CorpusSpec):
    """A source with a document per row, which names the columns of its parts.

    Attributes:
        text_field: The column with the text.
        id_field: The column with the id; None where documents are named by their row.
        cluster_field: The column with the cluster (book, thread), if there is one.
        title_field: The column with the work's title, or the name of what the text is about.
        author_field: The column with the work's author.
    """

    text_field: str | None
    id_field: str | None
    cluster_field: str | None
    title_field: str | None
    author_field: str | None

    def named_otherwise(self) -> list[str]:
        """The columns that are not the text."""
        named = (self.id_field, *IDS, self.cluster_field, self.title_field, self.author_field)
        return [column for column in named if column is not None]

    def document(self, row: Row, where: str, text: str, *, id_field: str | None, name: str, domain: str) -> Document:
        """The document of a row. Raises ValueError for a column that is missing or holds something else.

        Args:
            row: Its columns.
            where: File and row, for messages.
            text: Its text.
            id_field: The column with the id, where there is one; one that was found, not named, may be empty.
            name: Its id, where the row has none.
        """
        if id_field is not None and (self.id_field is not None or _is_name(row.get(id_field))):
            name = name_of(row, id_field, where)
        cluster_id = "" if self.cluster_field is None else name_of(row, self.cluster_field, where)
        titles = (optional_text_of(row, field, where) for field in (self.title_field, self.author_field))
        return document(name, text, cluster_id, domain, *titles)


# Values --------------------------------------------------------------------------------------------------------------


def name_of(row: Row, field: str, where: str) -> str:
    """An id or a cluster: text, or a whole number written as text, for which pandas may have put a float."""
    value = column_of(row, field, where)
    if not _is_name(value):
        raise ValueError(
            f"{where}: column {field!r} must hold a name or a whole number, but it holds {value!r}. "
            "Name another column, or fill it."
        )
    return str(int(value) if isinstance(value, float) else value)


def text_in(row: Row, field: str, where: str) -> str:
    """The text in a column, or in what it holds (`item_of`); a missing one is empty."""
    return _text(item_of(row, field, where), field, where)


def optional_text_of(row: Row, field: str | None, where: str) -> str:
    """A title or an author: text, or nothing where the column is empty or none is named."""
    return "" if field is None else _text(column_of(row, field, where), field, where).strip()


def _text(value: object, field: str, where: str) -> str:
    if is_missing(value):
        return ""
    if not isinstance(value, str):
        raise ValueError(
            f"{where}: column {field!r} must hold text, but it holds {kind_of(value)}. Name another column, or leave "
            "such rows out."
        )
    return value


def as_text(row: Row, field: str, where: str) -> str:
    """Text or a number as text, of a column or of what lies in it; nothing where there is none."""
    value = item_of(row, field, where)
    if isinstance(value, str):
        return value
    if is_missing(value):
        return ""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError(f"{where}: column {field!r} must hold text or a number, but it holds {kind_of(value)}.")
    return str(value)


class Pattern:
    """Text with columns in braces."""

    def __init__(self, pattern: str) -> None:
        self._pieces = IN_BRACES.split(pattern)  # text and names of columns in turn

    @property
    def columns(self) -> list[str]:
        return self._pieces[1::2]

    def filled(self, row: Row, where: str) -> str:
        return "".join(as_text(row, item, where) if index % 2 else item for index, item in enumerate(self._pieces))


def is_missing(value: object) -> bool:
    """Whether a row has no value: null, NaN, or what pandas has in its place."""
    return value is None or (isinstance(value, float) and math.isnan(value)) or type(value).__name__ in NO_VALUE


def column_of(row: Row, field: str, where: str) -> object:
    if field not in row:
        raise ValueError(
            f"{where} has no column {field!r}; its columns are {', '.join(map(repr, row)) or 'none'}. "
            "Name one of them, or leave such lines out."
        )
    return row[field]


def item_of(row: Row, field: str, where: str) -> object:
    """Of a column, or of what lies in it, through objects and lists: "doc.body.text", "paraphrases.0"."""
    if (column := next((name for name in paths_to(field) if name in row), None)) is None:
        return column_of(row, field, where)
    value = row[column]
    for name in field[len(column) :].split(".")[1:]:
        items: Any = value.tolist() if hasattr(value, "tolist") else value
        if isinstance(items, Mapping) and name in items:
            value = items[name]
        elif isinstance(items, list) and name.isdecimal() and int(name) < len(items):
            value = items[int(name)]
        else:
            there = f"a list of {len(items)}" if isinstance(items, list) else kind_of(value)
            raise ValueError(
                f"{where}: {field!r} leads to nothing: there is no {name!r} in column {column!r}, but {there}. Name "
                "another, or leave such lines out."
            )
    return value


def paths_to(field: str) -> list[str]:
    """The columns in which a field may lie, the longest name first: a.b.c, a.b, a."""
    parts = field.split(".")
    return [".".join(parts[:end]) for end in range(len(parts), 0, -1)]


# Which column is which -----------------------------------------------------------------------------------------------


def find_id_column(rows: Sequence[Row], where: str) -> str | None:
    """The first column of IDS that names every row anew, else the first that names any.

    Warns of rows without a name in such a column, so that no ids are lost unnoticed.

    Args:
        rows: All of them.
        where: The files, for messages.
    """
    named = {column: [str(row[column]) for row in rows if _is_name(row.get(column))] for column in IDS}
    whole = [column for column, names in named.items() if rows and len(set(names)) == len(rows)]
    found = next(iter([*whole, *(column for column, names in named.items() if names)]), None)
    given = found or next((column for column in IDS if any(not is_missing(row.get(column)) for row in rows)), None)
    if given is not None and (num_unnamed := len(rows) - len(named[given])):
        log.warning(
            "%s: column %r holds no name or whole number in %s of %s rows. These documents are named by line or row. "
            "Correct the ids, or name another column (data.id_field).",
            where,
            given,
            f"{num_unnamed:,}",
            f"{len(rows):,}",
        )
    return found


def with_distinct_ids(documents: Sequence[Document], where: str) -> tuple[Document, ...]:
    """The documents, each with another id: the first of an id keeps it, the next are "id~2", "id~3". Warns of these.

    where: the files, for messages.
    """
    repeated = repeated_in(item.doc_id for item in documents)
    if not repeated:
        return tuple(documents)
    taken = {item.doc_id for item in documents}
    num_seen: Counter[str] = Counter()
    distinct = []
    for item in documents:
        num_seen[item.doc_id] += 1
        if num_seen[item.doc_id] > 1:
            while (name := f"{item.doc_id}~{num_seen[item.doc_id]}") in taken:
                num_seen[item.doc_id] += 1
            taken.add(name)
            item = replace(item, doc_id=name)
        distinct.append(item)
    log.warning(
        "%s: ids given more than once: %s. The first document of each keeps its id, the next are called %r and so on. "
        "Correct the ids, or name another column (data.id_field).",
        where,
        repeated,
        next(new.doc_id for old, new in zip(documents, distinct, strict=True) if old != new),
    )
    return tuple(distinct)


def repeated_in(names: Iterable[str]) -> str:
    """The names that occur more than once, the first few in words; empty where none does."""
    repeated = [(name, number) for name, number in Counter(names).items() if number > 1]
    first = ", ".join(f"{name!r} ({number} rows)" for name, number in repeated[:NUM_NAMED])
    return first + (f" and {len(repeated) - NUM_NAMED:,} more" if len(repeated) > NUM_NAMED else "")


def _is_name(value: object) -> bool:
    if isinstance(value, float):
        return value.is_integer()
    return isinstance(value, str | int) and not isinstance(value, bool) and value != ""


def find_text_column(
    rows: Sequence[Row], named_otherwise: Collection[str], where: str, setting: str = "data.text_field={}"
) -> str:
    """The only column of strings; or the only one with a usual name; or one whose texts are clearly the longest.

    Args:
        rows: The first few.
        named_otherwise: Columns that are ids, clusters, titles or authors.
        where: The file, for messages.
        setting: How the caller names a column.

    Raises:
        ValueError: With all columns, where none or several could be it.
    """
    lengths = {
        name: statistics.median(len(value) for row in rows if isinstance(value := row.get(name), str))
        for name in dict.fromkeys(name for row in rows for name in row)
        if name not in named_otherwise and _holds_strings([row.get(name) for row in rows])
    }
    if len(lengths) == 1:
        return next(iter(lengths))
    if len(usual := [name for name in lengths if name.lower() in USUAL_NAMES]) == 1:
        return usual[0]
    ordered = sorted(lengths, key=lambda name: -lengths[name])
    if ordered and lengths[ordered[0]] >= max(LONG, CLEARLY_LONGER * lengths[ordered[1]]):
        return ordered[0]
    columns = ", ".join(repr(name) for row in rows[:1] for name in row) or "none"
    if not lengths and any(isinstance(value, list) for row in rows for value in row.values()):
        setting += ". If these are conversations: data=chat"
    what = f"{len(lengths)} of them may be the text ({', '.join(map(repr, ordered))})" if lengths else "none holds text"
    raise ValueError(
        f"{where} must have one column that is the text; its columns are {columns}, and {what}. Name it: "
        f"{setting.format(ordered[0] if ordered else 'COLUMN')}."
    )


def _holds_strings(values: Sequence[object]) -> bool:
    """Mostly: a row that holds something else is refused when it is read, with its place."""
    there = [value for value in values if not is_missing(value)]
    return 2 * sum(isinstance(value, str) for value in there) >= max(1, len(there))
