"""Documents and corpora."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

CORPUS_SCHEMA = pa.schema(
    [("doc_id", pa.string()), ("text", pa.string()), ("cluster_id", pa.string()), ("domain", pa.string())]
)
# Only where a document has them.
WORK_SCHEMA = pa.schema([("title", pa.string()), ("author", pa.string())])
PIECES_SCHEMA = pa.schema([("pieces", pa.list_(pa.string()))])


@dataclass(frozen=True, slots=True)
class Document:
    """One text with a stable id.

    Attributes:
        cluster_id: What it was taken from (book, thread, module); documents of one cluster are not independent.
        domain: The kind of text (a library, a Pile subset).
        title: Of the work it is from, or the name of what it is about, for methods that ask models by name.
        author: Of the work it is from.
        pieces: Of a conversation: its text in pieces, of which the second, fourth ... are the assistant's. These alone
            are scored and trained on; the others are what they are read behind. Empty: all of the text is.
    """

    doc_id: str
    text: str
    cluster_id: str = ""
    domain: str = ""
    title: str = ""
    author: str = ""
    pieces: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.pieces and "".join(self.pieces) != self.text:
            raise ValueError(
                f"The document {self.doc_id!r} is a conversation, and what is asked for puts another text in its "
                "place, of which nobody knows what the assistant said. Use scores and methods that leave texts as they "
                "are, or give plain documents (data=documents)."
            )

    @property
    def scored_text(self) -> str:
        """What is scored of the text: all of it, or what the assistant said."""
        return "".join(self.pieces[1::2]) if self.pieces else self.text

    def changed(self, change: Callable[[str], str]) -> Document:
        """With another text; of a conversation only what the assistant said is changed."""
        if not self.pieces:
            return replace(self, text=change(self.text))
        pieces = tuple(change(piece) if index % 2 else piece for index, piece in enumerate(self.pieces))
        return replace(self, text="".join(pieces), pieces=pieces)


@dataclass(frozen=True)
class Corpus:
    """An ordered list of documents with unique ids, and what was left out on the way.

    Attributes:
        dropped: reason -> number.
    """

    documents: tuple[Document, ...]
    dropped: Mapping[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        seen: set[str] = set()
        for document in self.documents:
            if document.doc_id in seen:
                raise ValueError(
                    f"Document ids must be unique, but {document.doc_id!r} occurs more than once. "
                    "Name another id column, or remove the repeated lines."
                )
            seen.add(document.doc_id)

    def __len__(self) -> int:
        return len(self.documents)

    @property
    def doc_ids(self) -> tuple[str, ...]:
        return tuple(document.doc_id for document in self.documents)

    @cached_property
    def fingerprint(self) -> str:
        """Hash of the ordered ids and texts, with titles, authors and pieces where there are any.

        Two corpora with equal fingerprints are the same data.
        """
        digest = hashlib.sha256()
        for document in self.documents:
            work = (document.title, document.author) if document.title or document.author else ()
            for part in (document.doc_id, document.text, *work, *document.pieces):
                encoded = part.encode("utf-8", "surrogatepass")
                digest.update(len(encoded).to_bytes(8, "little"))
                digest.update(encoded)
        return digest.hexdigest()

    def save(self, path: Path) -> None:
        schema = CORPUS_SCHEMA
        if any(document.title or document.author for document in self.documents):
            schema = pa.schema([*schema, *WORK_SCHEMA])
        if any(document.pieces for document in self.documents):
            schema = pa.schema([*schema, *PIECES_SCHEMA])
        columns = {name: [getattr(document, name) for document in self.documents] for name in schema.names}
        pq.write_table(pa.table(columns, schema=schema), path)

    @classmethod
    def load(cls, path: Path, dropped: Mapping[str, int] | None = None) -> Corpus:
        rows = pq.ParquetFile(path).read().to_pylist()  # its read_table imports pandas
        documents = (Document(**row | {"pieces": tuple(row.get("pieces", ()))}) for row in rows)
        return cls(tuple(documents), dict(dropped or {}))

    @property
    def has_conversations(self) -> bool:
        return any(document.pieces for document in self.documents)
