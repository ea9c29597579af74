"""Documents that the calling program has in memory."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from nonmember.artifacts import Builder
from nonmember.artifacts.builder import NotHandedOver
from nonmember.corpora.sources.documents import ID, names_every_row, text_in
from nonmember.corpora.sources.rows import Row, name_of, optional_text_of
from nonmember.corpora.sources.text_column import NUM_LOOKED_AT, find_text_column
from nonmember.corpora.specs import CorpusSpec, document
from nonmember.records import Corpus, Document


@dataclass(frozen=True)
class InMemory(CorpusSpec):
    """One document per row, handed to the builder by the program that calls (`provide`); no text is changed.

    digest: of the rows (`digest_of`).   text_field: the column with the text; None: found where there is no
    doubt (`find_text_column`).   id_field: the column with the id. None: "id" where every row has another; else the
    row's number from 0.   cluster_field, title_field, author_field: columns, if there are any; see `Jsonl`.
    domain: of all documents.

    The same ids and texts from a file are the same corpus.
    """

    digest: str
    text_field: str | None = None
    id_field: str | None = None
    cluster_field: str | None = None
    title_field: str | None = None
    author_field: str | None = None
    domain: str = ""

    stored: ClassVar[bool] = False

    def provide(self, builder: Builder, rows: Sequence[Row]) -> None:
        builder.resource(("documents", self.digest), lambda: rows)

    def build(self, builder: Builder) -> Corpus:
        rows = builder.resource(("documents", self.digest), self._missing)
        columns = (self.id_field or ID, self.cluster_field, self.title_field, self.author_field)
        named = [column for column in columns if column is not None]
        text_field = self.text_field or find_text_column(rows[:NUM_LOOKED_AT], named, "The table of documents")
        id_field = self.id_field or (ID if names_every_row(rows) else None)
        return Corpus(tuple(self._document(number, row, text_field, id_field) for number, row in enumerate(rows)))

    def identity(self) -> dict[str, Any]:
        columns = {name: getattr(self, name) for name in self.__dataclass_fields__}
        return {"kind": "in_memory", **columns}

    def _document(self, number: int, row: Row, text_field: str, id_field: str | None) -> Document:
        where = f"Row {number} of the documents"
        doc_id = str(number) if id_field is None else name_of(row, id_field, where)
        cluster_id = "" if self.cluster_field is None else name_of(row, self.cluster_field, where)
        work = (optional_text_of(row, self.title_field, where), optional_text_of(row, self.author_field, where))
        return document(doc_id, text_in(row, text_field, where), cluster_id, self.domain, *work)

    def _missing(self) -> Sequence[Row]:
        raise NotHandedOver("The documents are in the memory of another program. Give their file as data.path.")


def digest_of(rows: Sequence[Row]) -> str:
    """sha256 of the rows, in their order."""
    return hashlib.sha256(json.dumps(list(rows), sort_keys=True, default=str).encode()).hexdigest()
