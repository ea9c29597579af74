"""Documents in the rows of a table: CSV, JSON lines or Parquet, the first two plain or gzipped (by their suffix .gz).

For data sets that are tables of something else (answers, lists of paraphrases) and have documents in them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any, ClassVar

from nonmember.artifacts import Builder
from nonmember.corpora.sources.files import files_at
from nonmember.corpora.sources.formats import form_of, rows_of
from nonmember.corpora.sources.rows import Row, column_of, is_missing, kind_of
from nonmember.corpora.specs import CorpusSpec, as_names, digest_file, document
from nonmember.records import Corpus, Document

ITEM, NUMBER = "item", "number"
KINDS = (".csv", ".jsonl", ".parquet")


@dataclass(frozen=True)
class Table(CorpusSpec):
    """One document per row, or per item of a list that a row holds.

    path: a file of `KINDS`, a pattern ("passages-*.jsonl.gz"), or a list of them.
    doc_id, text, cluster_id, title, author: patterns in which a column's name in braces stands for its value in the
    row, as in "{book}, passage {passage}". A text that is empty is one that is not at hand.
    items: a column with a list; each of its items is a document, in patterns {item}, and {number} its place from 1.
    where: column -> value, compared as text ({label: 1}); other rows are passed over, which is not counted.
    filled: a column; rows in which it is empty are passed over likewise.

    Rows that give the very same document give it once. Raises ValueError, with file and row, for a column that is not
    there or holds neither text nor a number, for two different documents of one id, and where no row is chosen.
    """

    path: str | tuple[str, ...]
    doc_id: str
    text: str
    cluster_id: str = ""
    title: str = ""
    author: str = ""
    items: str | None = None
    where: Mapping[str, str | int] | None = None
    domain: str = ""
    filled: str | None = None

    stored: ClassVar[bool] = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "path", as_names(self.path, "`path` of Table"))

    def build(self, builder: Builder) -> Corpus:
        patterns = [Pattern(item) for item in (self.doc_id, self.text, self.cluster_id, self.title, self.author)]
        found: dict[str, Document] = {}
        for where, row in self._rows():
            doc_id, text, cluster_id, title, author = (pattern.filled(row, where) for pattern in patterns)
            made = document(doc_id, text, cluster_id, self.domain, title, author)
            if found.setdefault(made.doc_id, made) != made:
                raise ValueError(
                    f"{where} gives another document of the id {made.doc_id!r} than a row before it. Put what tells "
                    "them apart into the pattern `doc_id`."
                )
        if not found:
            raise ValueError(
                f"No row of {', '.join(self.path)} is chosen by `where` ({dict(self.where or {})}); correct the value."
            )
        return Corpus(tuple(found.values()))

    def validate(self) -> None:
        table_files(self.path)

    def _rows(self) -> Iterator[tuple[str, Row]]:
        wanted = [(column, str(value)) for column, value in (self.where or {}).items()]
        for where, row in chain.from_iterable(table_rows(path) for path in table_files(self.path)):
            if any(as_text(row, column, where) != value for column, value in wanted):
                continue
            if self.filled and not as_text(row, self.filled, where).strip():
                continue
            if self.items is None:
                yield where, row
                continue
            items = column_of(row, self.items, where)
            if not isinstance(items, list):
                raise ValueError(f"{where}: column {self.items!r} must hold a list, but it holds {kind_of(items)}.")
            for number, item in enumerate(items, start=1):
                yield where, {**row, ITEM: item, NUMBER: number}

    def identity(self) -> dict[str, Any]:
        names = ("doc_id", "text", "cluster_id", "title", "author", "items", "domain")
        return {
            "kind": "table",
            "files": [digest_file(path) for path in table_files(self.path)],
            "where": {column: str(value) for column, value in (self.where or {}).items()},
            **({"filled": self.filled} if self.filled else {}),
            **{name: getattr(self, name) for name in names},
        }


class Pattern:
    """Text with columns in braces."""

    def __init__(self, pattern: str) -> None:
        self._pieces = re.split(r"\{([^{}]+)\}", pattern)  # text and names of columns in turn

    def filled(self, row: Row, where: str) -> str:
        parts = list(self._pieces)
        for index in range(1, len(parts), 2):
            parts[index] = as_text(row, parts[index], where)
        return "".join(parts)


def as_text(row: Row, column: str, where: str) -> str:
    """A value as text; nothing where there is none."""
    value = row.get(column)
    if isinstance(value, str):
        return value
    if is_missing(value := column_of(row, column, where)):
        return ""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError(f"{where}: column {column!r} must hold text or a number, but it holds {kind_of(value)}.")
    return str(value)


def table_files(patterns: Iterable[str]) -> list[Path]:
    """Files of paths or patterns, of a kind that can be read."""
    files = files_at(patterns)
    for path in files:
        if _suffix(path) not in KINDS:
            raise ValueError(f"{path} must be a table, one of *{', *'.join(KINDS)} (the first two also with .gz).")
    return files


def table_rows(path: Path) -> Iterator[tuple[str, Row]]:
    """(file and row, row). Rows of CSV are all text, and are counted with the line of names as the first."""
    return ((item.where, item.row) for item in rows_of(path, form_of(path), split=None))


def _suffix(path: Path) -> str:
    return Path(path.name.removesuffix(".gz")).suffix
