"""Documents of one's own, unmodified: files of any form (`Documents`), of one form, tables, or rows in memory."""

from __future__ import annotations

import hashlib
import json
import logging
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain, islice
from pathlib import Path
from typing import Annotated, Any, ClassVar

from nonmember.artifacts import Builder
from nonmember.artifacts.builder import NotHandedOver
from nonmember.checks import require_text
from nonmember.corpora.sources.columns import (
    IDS,
    IN_BRACES,
    NUM_INSPECTED,
    FromRows,
    Pattern,
    as_text,
    column_of,
    find_id_column,
    find_text_column,
    paths_to,
    text_in,
    with_distinct_ids,
)
from nonmember.corpora.sources.files import File, documents_at, files_at, forms
from nonmember.corpora.sources.rows import TEXT, NumberedRow, Row, columns_to_look_at, form_of, kind_of, rows_of
from nonmember.corpora.specs import CorpusSpec, Cursor, as_names, digest_file, document
from nonmember.records import Corpus, Document
from nonmember.runtime.progress import tracked

log = logging.getLogger(__name__)

LONGEST_NAME, MOST_WORDS_OF_A_NAME = 60, 8  # of a column with texts
RULES = 2  # of finding forms, columns and ids; raise it when a change of them moves documents
ITEM, NUMBER = "item", "number"
KINDS = (".csv", ".jsonl", ".parquet")
MOST_KEPT = 8 * 2**20  # bytes of a table whose rows stay in memory
WHOLE = "The table of documents"


@dataclass(frozen=True)
class Documents(FromRows):
    """One document per line, row, item or text file of whatever lies at `path`; no text is changed.

    An empty text is a document too; scores give the reason why it has none. Blank lines of JSON Lines and of text
    are passed over. Raises ValueError, with file and row, for everything else that is not a document.

    Attributes:
        path: A file, a pattern ("part-*.jsonl"), a folder or a list of them. A file may be JSON Lines, a JSON array,
            CSV, TSV, Parquet, Arrow (Feather) or UTF-8 text, plain or compressed (gzip, bzip2, xz, Zstandard, LZ4). In
            a folder all files of one form are read, text files as one document each.
        text_field: The column with the text, or a pattern with columns in braces ("{question} {answer}"). Dots lead
            into objects and lists ("doc.body.text", "{question} {choices.0}"). None: found
            where there is no doubt (`find_text_column`).
        id_field: The column with the id; None: "id" or "doc_id" (`find_id_column`). Without, "stem:number", the number
            of the line or row (in CSV the line of names is the first). Repeated ids: `with_distinct_ids`.
        cluster_field: See `FromRows`, as for `title_field` and `author_field`.
        domain: Of all documents; empty: the stem of each file, and none for files that are documents.
        split: What a document of a text file is: lines, paragraphs (set off by blank lines) or file. None: each file of
            a folder; the lines of a single file, unless it has paragraphs too. Or the split of a folder that has
            several (train, test ...), which are never read as one.
        pattern: Of a folder's files, as of `pathlib.Path.glob` ("**/*.txt"); None: all.
    """

    path: Annotated[str | tuple[str, ...], as_names]
    text_field: str | None = None
    id_field: str | None = None
    cluster_field: str | None = None
    title_field: str | None = None
    author_field: str | None = None
    domain: str = ""
    split: Annotated[str | None, require_text] = None
    pattern: str | None = None

    stored: ClassVar[bool] = False

    def validate(self) -> None:
        files = self._files()
        text_field = self._text_field(files)
        for row in islice(self._rows(files[0], text_field), 1):
            self._document(files[0], row, text_field, self.id_field)

    def build(self, builder: Builder) -> Corpus:
        files = self._files()
        text_field = self._text_field(files)
        files_read = tracked(files, "reading documents", "files")
        rows = [(file, row) for file in files_read for row in self._rows(file, text_field)]
        if not rows:
            raise ValueError(f"{self._where()} has no documents. Check how it was written.")
        id_field = self.id_field or find_id_column([row.row for _, row in rows], self._where())
        documents = [self._document(file, row, text_field, id_field) for file, row in rows]
        log.info(
            "%s: %s documents (%s), text %s, named %s.",
            self._where(),
            f"{len(documents):,}",
            forms(files),
            f"from {text_field!r}",
            f"by {id_field!r}" if id_field else "by file and line or row",
        )
        return Corpus(with_distinct_ids(documents, self._where()))

    def read(self, builder: Builder, dropped: Counter[str], cursor: Cursor) -> Iterator[Document]:
        """Row by row. Documents without `id_field` are named by their line or row, also where there is a column "id",
        with a warning: whether it names every row anew is known only when all have been read."""
        files = self._files()
        text_field = self._text_field(files)
        rows = ((file, row) for file in files for row in self._rows(file, text_field))
        for file, row in cursor.follow(rows):
            if not cursor.documents and not self.id_field and (there := [name for name in IDS if name in row.row]):
                log.warning(
                    "%s: documents of a stream are named by file and line, though there is a column %r. Give "
                    "data.id_field=%s to name them by it.",
                    self._where(),
                    *there[:1] * 2,
                )
            cursor.documents += 1
            yield self._document(file, row, text_field, self.id_field)

    def identity(self) -> dict[str, Any]:
        options = ("text_field", "id_field", "cluster_field", "title_field", "author_field", "domain")
        files = [[file.name, file.form, file.split, digest_file(file.path)] for file in self._files()]
        return {"kind": "documents", "rules": RULES, "files": files, **{name: getattr(self, name) for name in options}}

    def _where(self) -> str:
        return ", ".join(self.path)

    def _files(self) -> list[File]:
        return documents_at(self.path, self.split, self.pattern)

    def _text_field(self, files: Sequence[File]) -> str:
        if self.text_field is not None or files[0].form == "text":
            return self.text_field or TEXT
        for file in files:
            columns = columns_to_look_at(file.path, file.form)
            if rows := [item.row for item in islice(rows_of(file.path, file.form, columns=columns), NUM_INSPECTED)]:
                return _column_name(find_text_column(rows, self.named_otherwise(), str(file.path)), file)
        raise ValueError(f"{files[0].path} has no documents. Check how it was written.")

    def _rows(self, file: File, text_field: str) -> Iterator[NumberedRow]:
        in_text = [name for field in IN_BRACES.findall(text_field) or [text_field] for name in paths_to(field)]
        return rows_of(file.path, file.form, split=file.split, columns=[*in_text, *self.named_otherwise()])

    def _document(self, file: File, numbered: NumberedRow, text_field: str, id_field: str | None) -> Document:
        number, where, row = numbered
        text = self._text(row, text_field, where)
        name, domain = (file.name, "") if file.split == "file" else (f"{file.name}:{number}", file.name)
        return self.document(row, where, text, id_field=id_field, name=name, domain=self.domain or domain)

    def _text(self, row: Row, text_field: str, where: str) -> str:
        return Pattern(text_field).filled(row, where) if "{" in text_field else text_in(row, text_field, where)


def _column_name(found: str, file: File) -> str:
    """Raises ValueError where a name of CSV reads like a text: then the first row was taken for names."""
    if file.form in ("CSV", "TSV") and (len(found) > LONGEST_NAME or len(found.split()) > MOST_WORDS_OF_A_NAME):
        raise ValueError(
            f"{file.path} must begin with a line of column names, and its first line reads like a document. Add such a "
            "line; or, if it is the name of the column, give it as data.text_field."
        )
    return found


@dataclass(frozen=True)
class Table(CorpusSpec):
    """One document per row, or per item of a list that a row holds, of a table of something else that has documents in
    it (answers, lists of paraphrases).

    Rows that give the very same document give it once. Raises ValueError, with file and row, for a column that is not
    there or holds neither text nor a number, for two different documents of one id, and where no row is chosen.

    Attributes:
        path: A file of `KINDS`, a pattern ("passages-*.jsonl.gz"), or a list of them.
        doc_id: A pattern in which a column's name in braces stands for its value in the row, as in "{book}, passage
            {passage}"; so are `text`, `cluster_id`, `title` and `author`. A text that is empty is not at hand.
        items: A column with a list; each of its items is a document, in patterns {item}, and {number} its number from
            1.
        where: Column -> value, compared as text ({label: 1}); other rows are passed over, which is not counted.
        filled: A column; rows in which it is empty are passed over likewise.
    """

    path: Annotated[str | tuple[str, ...], as_names]
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

    def build(self, builder: Builder) -> Corpus:
        patterns = [Pattern(item) for item in (self.doc_id, self.text, self.cluster_id, self.title, self.author)]
        columns = sorted({column for pattern in patterns for column in pattern.columns})
        found: dict[str, Document] = {}
        read: set[tuple[Any, ...]] = set()
        for where, row in self._rows(chain.from_iterable(map(table_rows, table_files(self.path)))):
            values = tuple(map(row.get, columns))
            if all(type(value) is str for value in values):  # equal numbers may be written in different ways
                if values in read:  # the very document of a row before it
                    continue
                read.add(values)
            doc_id, text, cluster_id, title, author = (pattern.filled(row, where) for pattern in patterns)
            made = document(doc_id, text, cluster_id, self.domain, title, author)
            if found.setdefault(made.doc_id, made) != made:
                raise ValueError(
                    f"{where} gives a different document the same id, {made.doc_id!r}, as an earlier row. Put what "
                    "distinguishes them into the pattern `doc_id`."
                )
        if not found:
            raise ValueError(
                f"No row of {', '.join(self.path)} is chosen by `where` ({dict(self.where or {})}); correct the value."
            )
        return Corpus(tuple(found.values()))

    def validate(self) -> None:
        table_files(self.path)

    def _rows(self, rows: Iterable[tuple[str, Row]]) -> Iterator[tuple[str, Row]]:
        wanted = self._wanted()
        for where, row in rows:
            if any(as_text(row, column, where) != value for column, value in wanted.items()):
                continue
            if self.filled and not as_text(row, self.filled, where).strip():
                continue
            if self.items is None:
                yield where, row
                continue
            items = column_of(row, self.items, where)
            if not isinstance(items, list):
                raise ValueError(f"{where}: column {self.items!r} must hold a list, but it holds {kind_of(items)}.")
            yield from ((where, {**row, ITEM: item, NUMBER: number}) for number, item in enumerate(items, start=1))

    def identity(self) -> dict[str, Any]:
        names = ("doc_id", "text", "cluster_id", "title", "author", "items", "domain", "filled")
        files = [digest_file(path) for path in table_files(self.path)]
        return {"kind": "table", "files": files, "where": self._wanted()} | {
            name: getattr(self, name) for name in names
        }

    def _wanted(self) -> dict[str, str]:
        return {column: str(value) for column, value in (self.where or {}).items()}


def table_files(patterns: Iterable[str]) -> list[Path]:
    """Files of paths or patterns, of a kind that can be read."""
    files = files_at(patterns)
    for path in files:
        if Path(path.name.removesuffix(".gz")).suffix not in KINDS:
            raise ValueError(f"{path} must be a table, one of *{', *'.join(KINDS)} (the first two also with .gz).")
    return files


def table_rows(path: Path) -> Iterable[tuple[str, Row]]:
    """(file and row, row), which nobody may change. Rows of CSV are all text, and are counted with the line of names as
    the first."""
    status = path.stat()
    if status.st_size > MOST_KEPT:
        return _read_table(path)
    return _kept_table(path, status.st_mtime_ns, status.st_size)


def _read_table(path: Path) -> Iterator[tuple[str, Row]]:
    return ((item.where, item.row) for item in rows_of(path, form_of(path)))


@lru_cache(maxsize=1)  # the groups of an audit, its questions and the recorded answers lie in one file
def _kept_table(path: Path, modified: int, size: int) -> list[tuple[str, Row]]:
    """Read again only when the file's size or time of change moves."""
    return list(_read_table(path))


@dataclass(frozen=True)
class InMemory(FromRows):
    """One document per row, handed to the builder by the program that calls (`provide`); no text is changed.

    The same ids and texts from a file are the same corpus.

    Attributes:
        digest: Of the rows (`digest_of`).
        text_field: The column with the text; None: found where there is no doubt (`find_text_column`).
        id_field: The column with the id; None: "id" or "doc_id" (`find_id_column`). Without, the row's number from 0.
            Repeated ids: `with_distinct_ids`.
        cluster_field: See `FromRows`, as for `title_field` and `author_field`.
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
        text_field = self._text_field(rows)
        id_field = self.id_field or find_id_column(rows, WHOLE)
        documents = [self._document(number, row, text_field, id_field) for number, row in enumerate(rows)]
        return Corpus(with_distinct_ids(documents, WHOLE))

    def identity(self) -> dict[str, Any]:
        return {"kind": "in_memory", "rules": RULES} | {name: getattr(self, name) for name in self.__dataclass_fields__}

    def _document(self, number: int, row: Row, text_field: str, id_field: str | None) -> Document:
        where = f"Row {number} of the documents"
        text = self._text(row, text_field, where)
        name = str(number) if id_field is None else f"row {number}"  # which is no id of another
        return self.document(row, where, text, id_field=id_field, name=name, domain=self.domain)

    def _text_field(self, rows: Sequence[Row]) -> str:
        return self.text_field or find_text_column(
            rows[:NUM_INSPECTED], self.named_otherwise(), WHOLE, 'overrides=["data.text_field={}"]'
        )

    def _text(self, row: Row, text_field: str, where: str) -> str:
        return text_in(row, text_field, where)

    def _missing(self) -> Sequence[Row]:
        raise NotHandedOver("The documents are in the memory of another program. Give their file as data.path.")


def digest_of(rows: Sequence[Row]) -> str:
    """sha256 of the rows, in their order."""
    return hashlib.sha256(json.dumps(list(rows), sort_keys=True, default=str).encode()).hexdigest()
