"""User documents in any supported format, unmodified."""

from __future__ import annotations

import logging
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, get_args

from nonmember.artifacts import Builder
from nonmember.checks import require_text
from nonmember.corpora.sources.files import files_at, files_in, of_one_split, require_all_shards, without_caches
from nonmember.corpora.sources.formats import (
    BY_SUFFIX,
    TEXT,
    Form,
    NumberedRow,
    Split,
    form_of,
    plain_suffix,
    rows_of,
    stem_of,
)
from nonmember.corpora.sources.hub import Hub
from nonmember.corpora.sources.hub_errors import hub_errors
from nonmember.corpora.sources.place import Place
from nonmember.corpora.sources.rows import Row, is_missing, item_of, kind_of, name_of, optional_text_of
from nonmember.corpora.sources.tables import Pattern
from nonmember.corpora.sources.text_column import NUM_LOOKED_AT, find_text_column
from nonmember.corpora.specs import CorpusSpec, as_names, digest_file, document, require_choice
from nonmember.records import Corpus, Document
from nonmember.runtime.naming import path_of
from nonmember.runtime.progress import tracked

log = logging.getLogger(__name__)

ID = "id"
HUB_NAME = re.compile(r"[\w.-]+/[\w.-]+|[\w-]+")
LONGEST_NAME, MOST_WORDS_OF_A_NAME = 60, 8  # of a column with texts
RULES = 1  # of finding forms, columns and ids; raise it when a change of them moves documents
# What stands beside the files of a data set and holds no documents.
NOT_DOCUMENTS = re.compile(
    r"(readme|license|licence|notice|changelog)(\..*)?|(dataset_infos?|dataset_dict|state)\.json", re.I
)


class File(NamedTuple):
    """name: what ids without an id column begin with.   split: what a document of it is, where it is text."""

    name: str
    path: Path
    form: Form
    split: Split | None


@dataclass(frozen=True)
class Documents(CorpusSpec):
    """One document per line, row, item or text file of whatever lies at `path`; no text is changed.

    path: a file, a pattern ("part-*.jsonl"), a folder or a list of them; or the name of a data set on the Hugging Face
    hub. A file may be JSON Lines, a JSON array, CSV, TSV, Parquet, Arrow (Feather) or UTF-8 text, plain or compressed
    (gzip, bzip2, xz, Zstandard, LZ4). In a folder all files of one form are read, text files as one document each.
    text_field: the column with the text, or a pattern with columns in braces ("{question} {answer}"). None: found
    where there is no doubt (`find_text_column`).
    id_field: the column with the id, unique over all files. None: "id" where every row has another; else
    "stem:number", the number of the line or row (in CSV the line of names is the first).
    cluster_field, title_field, author_field: columns, if there are any; see `Jsonl`.
    domain: of all documents; empty: the stem of each file, and none for files that are documents.
    split: what a document of a text file is: lines, paragraphs (set off by blank lines) or file. None: each file of a
    folder; the lines of a single file, unless it has paragraphs too. Or the split of a folder that has several (train,
    test ...), which are never read as one.
    pattern: of a folder's files, as of `pathlib.Path.glob` ("**/*.txt"); None: all.
    revision, name, hub_split: of a data set on the hub; see `Hub`.

    An empty text is a document too; scores give the reason why it has none. Blank lines of JSON Lines and of text
    are passed over. Raises ValueError, with file and place, for everything else that is not a document.
    """

    path: str | tuple[str, ...]
    text_field: str | None = None
    id_field: str | None = None
    cluster_field: str | None = None
    title_field: str | None = None
    author_field: str | None = None
    domain: str = ""
    split: str | None = None
    pattern: str | None = None
    revision: str | None = None
    name: str | None = None
    hub_split: str = "train"

    stored: ClassVar[bool] = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "path", as_names(self.path, "`path` of Documents"))
        require_text(self.split, "`split` of Documents", or_null=True)

    def validate(self) -> None:
        if self._is_on_hub():
            return
        files = self._files()
        text_field = self.text_field or self._text_column(files)
        for row in self._rows(files[0], text_field):
            self._document(files[0], row, text_field, self.id_field)
            return

    def build(self, builder: Builder) -> Corpus:
        if self._is_on_hub():
            return builder.get(self._hub())
        files = self._files()
        text_field = self.text_field or self._text_column(files)
        files_read = tracked(files, "reading documents", "files")
        rows = [(file, row) for file in files_read for row in self._rows(file, text_field)]
        if not rows:
            raise ValueError(f"{self._where()} has no documents. Check how it was written.")
        id_field = self.id_field or self._id_column(rows)
        documents = tuple(self._document(file, row, text_field, id_field) for file, row in rows)
        log.info(
            "%s: %s documents (%s), text %s, named %s.",
            self._where(),
            f"{len(documents):,}",
            _forms(files),
            f"from {text_field!r}",
            f"by {id_field!r}" if id_field else "by file and line or row",
        )
        return Corpus(documents)

    def read(self, builder: Builder, dropped: Counter[str], place: Place) -> Iterator[Document]:
        """Row by row. Documents without `id_field` are named by their line or row, also where there is a column "id":
        whether it names every row anew is known only when all have been read."""
        if self._is_on_hub():
            yield from self._hub().read(builder, dropped, place)
            return
        files = self._files()
        text_field = self.text_field or self._text_column(files)
        rows = ((file, row) for file in files for row in self._rows(file, text_field))
        for file, row in place.follow(rows):
            place.documents += 1
            yield self._document(file, row, text_field, self.id_field)

    def identity(self) -> dict[str, Any]:
        options = {
            "text_field": self.text_field,
            "id_field": self.id_field,
            "cluster_field": self.cluster_field,
            "title_field": self.title_field,
            "author_field": self.author_field,
            "domain": self.domain,
        }
        where: dict[str, Any] = (
            {"hub": self.path[0], "revision": self.revision, "name": self.name, "split": self.hub_split}
            if self._is_on_hub()
            else {"files": [[file.name, file.form, file.split, digest_file(file.path)] for file in self._files()]}
        )
        return {"kind": "documents", "rules": RULES, **where, **options}

    # Where it lies --------------------------------------------------------------------------------------------------

    def _where(self) -> str:
        return ", ".join(self.path)

    def _is_on_hub(self) -> bool:
        """A name that is nothing here, with a revision."""
        path = self.path[0]
        if len(self.path) > 1 or path_of(path).exists() or not HUB_NAME.fullmatch(path):
            return False
        if plain_suffix(Path(path)) in BY_SUFFIX:
            return False
        if self.revision is None:
            raise ValueError(
                f"Nothing is at {path} (relative paths start at {Path.cwd()}). Correct data.path; if it is a data set "
                "on the Hugging Face hub, give data.revision=COMMIT from the history of its files."
            )
        return True

    def _hub(self) -> Hub:
        path, revision = self.path[0], str(self.revision)

        def hub(text_field: str) -> Hub:
            return Hub(
                path,
                self.name,
                self.hub_split,
                revision,
                text_field,
                self.id_field,
                self.cluster_field,
                self.domain,
                title_field=self.title_field,
                author_field=self.author_field,
            )

        if self.text_field is not None and "{" in self.text_field:
            raise ValueError(
                f"data.text_field must be one column for a data set on the hub; got {self.text_field!r}. Download its "
                "files and give their folder as data.path to join columns."
            )
        if self.text_field is None:
            with hub_errors(path, revision):
                rows = [row for _, row in islice(hub("")._rows(), NUM_LOOKED_AT)]
            return hub(find_text_column(rows, self._named_otherwise(), path))
        return hub(self.text_field)

    def _files(self) -> list[File]:
        folder = path_of(self.path[0])
        of_text: Split | None = next((item for item in get_args(Split) if item == self.split), None)
        if len(self.path) == 1 and folder.is_dir():
            paths = _files_of_folder(folder, self.pattern, None if of_text else self.split)
            names = {path: path.relative_to(folder).as_posix() for path in paths}
        else:
            require_choice(self.split or "lines", get_args(Split), "data.split", hint="Only folders have other splits.")
            paths = files_at(self.path)
            names = _told_apart(paths)
        files = []
        for path in paths:
            form = form_of(path)
            alone = len(paths) == 1 and not folder.is_dir()
            split = (of_text or (None if alone else "file")) if form == "text" else None
            files.append(File(names[path] if split == "file" else stem_of(names[path]), path, form, split))
        _require_one_form(files, self._where())
        return files

    # What it says -------------------------------------------------------------------------------------------------

    def _named_otherwise(self) -> set[str]:
        named = (self.id_field or ID, self.cluster_field, self.title_field, self.author_field)
        return {name for name in named if name is not None}

    def _text_column(self, files: Sequence[File]) -> str:
        first = files[0]
        if first.form == "text":
            return TEXT
        for file in files:
            if rows := [item.row for item in islice(rows_of(file.path, file.form, split=None), NUM_LOOKED_AT)]:
                return _column_name(find_text_column(rows, self._named_otherwise(), str(file.path)), file)
        raise ValueError(f"{first.path} has no documents. Check how it was written.")

    def _rows(self, file: File, text_field: str) -> Iterator[NumberedRow]:
        in_text = re.findall(r"\{([^{}]+)\}", text_field) or [text_field, text_field.rpartition(".")[0]]
        return rows_of(file.path, file.form, split=file.split, columns=[*in_text, *self._named_otherwise()])

    def _id_column(self, rows: Sequence[tuple[File, NumberedRow]]) -> str | None:
        """The column "id", if it is one: in every row, and never twice the same."""
        if names_every_row([item.row for _, item in rows]):
            return ID
        if any(item.row.get(ID) is not None for _, item in rows):
            log.warning(
                "%s: the column %r is empty in places or names rows twice; documents are named by their line or row.",
                self._where(),
                ID,
            )
        return None

    def _document(self, file: File, one: NumberedRow, text_field: str, id_field: str | None) -> Document:
        row, where = one.row, one.where
        text = Pattern(text_field).filled(row, where) if "{" in text_field else text_in(row, text_field, where)
        by_place = file.name if file.split == "file" else f"{file.name}:{one.number}"
        doc_id = by_place if id_field is None else name_of(row, id_field, where)
        cluster_id = "" if self.cluster_field is None else name_of(row, self.cluster_field, where)
        work = (optional_text_of(row, self.title_field, where), optional_text_of(row, self.author_field, where))
        domain = self.domain or ("" if file.split == "file" else file.name)
        return document(doc_id, text, cluster_id, domain, *work)


def _column_name(found: str, file: File) -> str:
    """Raises ValueError where a name of CSV reads like a text: then the first row was taken for names."""
    if file.form in ("CSV", "TSV") and (len(found) > LONGEST_NAME or len(found.split()) > MOST_WORDS_OF_A_NAME):
        raise ValueError(
            f"{file.path} must begin with a line of column names, and its first line reads like a document. Add such a "
            "line; or, if it is the name of the column, give it as data.text_field."
        )
    return found


def names_every_row(rows: Sequence[Row]) -> bool:
    """Whether the column "id" has text or a whole number in every row, and never twice the same."""
    values = [row.get(ID) for row in rows]
    named = all(isinstance(value, str | int) and not isinstance(value, bool) and value != "" for value in values)
    return named and len(set(map(str, values))) == len(values)


def text_in(row: Row, field: str, where: str) -> str:
    """The text of a row; empty where there is none."""
    value = item_of(row, field, where)
    if is_missing(value):
        return ""
    if not isinstance(value, str):
        raise ValueError(
            f"{where}: column {field!r} must hold text; it holds {kind_of(value)}. Name the column with the text: "
            "data.text_field=COLUMN."
        )
    return value


def _files_of_folder(folder: Path, pattern: str | None, split: str | None) -> list[Path]:
    """Those of the pattern; else those of a known form, or else all, of one split. In order of their names."""
    files = files_in(folder, pattern)
    if pattern is not None:
        if not files:
            raise ValueError(f"No file below {folder} matches {pattern!r}. Correct data.pattern or data.path.")
        return files
    if not files:
        raise ValueError(f"The folder {folder} has no files. Correct data.path.")
    documents = without_caches(files)
    known = [path for path in documents if plain_suffix(path) in BY_SUFFIX and not NOT_DOCUMENTS.fullmatch(path.name)]
    chosen = of_one_split(folder, files, known or documents, split)
    require_all_shards(chosen)
    return chosen


def _told_apart(paths: Sequence[Path]) -> dict[Path, str]:
    """The files' names; with their folders where two have the same."""
    names = {path: path.name for path in paths}
    return (
        names if len({stem_of(name) for name in names.values()}) == len(names) else {path: str(path) for path in paths}
    )


def _require_one_form(files: Sequence[File], where: str) -> None:
    if len({file.form.partition(" ")[0] for file in files}) > 1:
        raise ValueError(
            f"{where} has files of several forms ({_forms(files)}); the documents' format is ambiguous. Give "
            f"data.pattern='**/*{plain_suffix(files[0].path)}'."
        )


def _forms(files: Sequence[File]) -> str:
    counts = Counter(file.form for file in files)
    return ", ".join(f"{number} files of {form}" if number > 1 else form for form, number in counts.items())
