"""JSON Lines."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from nonmember.artifacts import Builder
from nonmember.corpora.sources.files import files_at
from nonmember.corpora.sources.rows import (
    column_of,
    item_of,
    json_rows,
    kind_of,
    name_of,
    optional_text_of,
    stem,
    work_fields,
)
from nonmember.corpora.specs import CorpusSpec, as_names, digest_file, document
from nonmember.records import Corpus, Document
from nonmember.runtime.progress import tracked


@dataclass(frozen=True)
class Jsonl(CorpusSpec):
    """One document per line of one or more JSON-lines files, plain or gzipped (by their suffix .gz).

    path: file, pattern ("data/*.jsonl.gz") or a list of them; in order of the list, within a pattern of name.
    id_field: column with the id, unique over all files. None: "stem:line", lines counted from 1; such ids
    change when a line is inserted.
    text_field, cluster_field: columns with the text and with the cluster (book, thread), if there is one. Where a
    column "paraphrases" holds a list of texts, "paraphrases.0" names the first of each.
    title_field, author_field: columns with the work's title or the name of what the text is about, and with its author.
    domain: the domain of all documents; empty: the stem of each document's file ("wikipedia" of
    wikipedia.jsonl.gz).

    Blank lines are passed over. Raises ValueError, with file and line, for everything else that is not a
    document.
    """

    path: str | tuple[str, ...]
    id_field: str | None
    text_field: str
    cluster_field: str | None = None
    domain: str = ""
    title_field: str | None = None
    author_field: str | None = None

    stored: ClassVar[bool] = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "path", as_names(self.path, "`path` of Jsonl"))

    def build(self, builder: Builder) -> Corpus:
        files = files_at(self.path)
        return Corpus(tuple(tracked((doc for path in files for doc in self._read(path)), "reading JSON lines")))

    def identity(self) -> dict[str, Any]:
        return {
            "kind": "jsonl",
            # A file's stem is content only where ids or domains are made of it; where it lies never is.
            "files": [
                [stem(path) if self.id_field is None or not self.domain else "", digest_file(path)]
                for path in files_at(self.path)
            ],
            "id_field": self.id_field,
            "text_field": self.text_field,
            "cluster_field": self.cluster_field,
            "domain": self.domain,
        } | work_fields(self.title_field, self.author_field)

    def validate(self) -> None:
        first = files_at(self.path)[0]
        for number, row in json_rows(first):
            where = f"{first}, line {number}"
            item_of(row, self.text_field, where)
            for field in (self.id_field, self.cluster_field, self.title_field, self.author_field):
                if field is not None:
                    column_of(row, field, where)
            return

    def _read(self, path: Path) -> list[Document]:
        file_stem = stem(path)
        documents = []
        for number, row in json_rows(path):
            where = f"{path}, line {number}"
            text = item_of(row, self.text_field, where)
            if not isinstance(text, str):
                raise ValueError(
                    f"{where}: column {self.text_field!r} must hold text, but it holds {kind_of(text)}. "
                    "Name the column with the text, or leave such lines out."
                )
            doc_id = f"{file_stem}:{number}" if self.id_field is None else name_of(row, self.id_field, where)
            cluster_id = "" if self.cluster_field is None else name_of(row, self.cluster_field, where)
            work = (optional_text_of(row, self.title_field, where), optional_text_of(row, self.author_field, where))
            documents.append(document(doc_id, text, cluster_id, self.domain or file_stem, *work))
        if not documents:
            raise ValueError(f"{path} has no documents; expected one JSON object a line. Check how it was written.")
        return documents
