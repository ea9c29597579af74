"""Data sets of the Hugging Face hub, or a folder with their files."""

from __future__ import annotations

import glob
import gzip
import hashlib
import logging
import re
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import date
from itertools import islice
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal
from urllib.parse import quote

from nonmember.artifacts import Builder
from nonmember.checks import Count, shown
from nonmember.corpora.sources.columns import IN_BRACES, FromRows, column_of, name_of, text_in, with_distinct_ids
from nonmember.corpora.sources.files import files_at, files_in
from nonmember.corpora.sources.rows import Row, json_value, kind_of, read_text, row_of
from nonmember.corpora.specs import Cursor, as_names, digest_files
from nonmember.records import Corpus, Document
from nonmember.runtime.hub import is_offline, why_out_of_reach
from nonmember.runtime.naming import path_of
from nonmember.runtime.progress import tracked

MOVING_REVISIONS = (None, "", "main", "master", "HEAD")
log = logging.getLogger(__name__)

Undated = Literal["drop", "keep"]


@dataclass(frozen=True)
class Hub(FromRows):
    """One document per row of a data set on the Hugging Face hub, at a pinned revision; or of a local folder
    of JSON-lines or Parquet files, for which the files themselves are the pin.

    A row whose text is null gets an empty text, which `Cleaned` counts and drops. No code of a data set is
    run. Adds to `Corpus.dropped`: <column>_missing, <column>_below, <column>_other, listed, too_long. Raises
    ValueError where the hub cannot be reached or lacks the data set, split, revision, file or column, and where
    no row has the values of `where`.

    Attributes:
        path: As of `datasets.load_dataset`, like `name` and `split`.
        revision: Commit hash or tag. A branch moves, and with it the data behind stored results: "main" is refused.
        text_field: Column with the text. A column's name in braces stands for its value in the row: Example_{Answer} is
            the column Example_B where Answer is B.
        id_field: Column with the id. None: "split:row", rows counted from 0; "domain:split:row" where `domain` is
            given, so that documents of several sources can be told apart.
        cluster_field: See `FromRows`, as for `title_field` and `author_field`.
        domain: Of all documents; empty: `name`, or else the last part of `path`.
        num_documents: The first so many rows; None: all.
        streaming: Read only what is asked for, instead of fetching and preparing the whole data set first; the
            documents are the same.
        data_files: File or pattern in the repository ("en/train-*.json.gz"), or a list of them: JSON lines, plain or
            gzipped, read one after the other as the split `split`, for repositories `load_dataset` cannot read whole. A
            line is an object with the columns, or a string: then it is the text itself. Blank lines are passed over.
        at_least: Column -> smallest value, compared as text ({created: "2021-02"}: ISO dates). Rows below it, or
            without a value, are dropped before rows are counted for `num_documents`.
        drop_ids: A text file with an id a line; the rows with these ids are dropped likewise.
        where: Column -> value, compared as text ({label: 1}). Rows with another value, or with none, are dropped
            likewise.
        cluster_words: Where there is no column with the cluster and texts may be parts of one article from its
            beginning: those that begin with the same so many words, whatever their case and punctuation, are a cluster
            (named by a hash of these words).
        max_characters: Rows with a longer text are dropped likewise.
        undated: Whether rows without a value of `at_least` are dropped, or kept, which is said.
    """

    path: str
    name: str | None
    split: str
    revision: str
    text_field: str
    id_field: str | None
    cluster_field: str | None = None
    domain: str = ""
    num_documents: Annotated[int | None, Count(1)] = None
    streaming: bool = True
    data_files: Annotated[str | tuple[str, ...] | None, as_names] = None
    at_least: Mapping[str, str] | tuple[tuple[str, str], ...] | None = None
    drop_ids: str | None = None
    where: Mapping[str, str | int] | tuple[tuple[str, str], ...] | None = None
    cluster_words: Annotated[int | None, Count(1)] = None
    title_field: str | None = None
    author_field: str | None = None
    max_characters: Annotated[int | None, Count(1)] = None
    undated: Undated = "drop"

    stored: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        names = (self.path, *(self.data_files or ()))
        if address := next((name for name in names if "://" in str(name) or "::" in str(name)), None):
            raise ValueError(f"Hub reads data sets of the hub by their names; got the address {address!r}. Name one.")
        if self._folder() is None and self.revision in MOVING_REVISIONS:
            raise ValueError(
                f"Hub data set {self.path!r} needs a pinned `revision`; got {shown(self.revision)}, which may mean "
                "other data tomorrow. Give the commit hash from the history of its files."
            )
        if self.data_files is not None and self.name is not None:
            raise ValueError(
                f"Hub reads either a configuration (`name`) or single files (`data_files`) of {self.path!r}; "
                "got both. Leave one out."
            )
        if self.at_least is not None:
            wanted = 'give columns their smallest values as text, as in {created: "2021-02"}'
            object.__setattr__(self, "at_least", _pairs(self.at_least, str, f"`at_least` of Hub must {wanted}"))
        if self.where is not None:
            wanted = "give columns the value that their rows are to have, as in {label: 1}"
            object.__setattr__(self, "where", _pairs(self.where, str | int, f"`where` of Hub must {wanted}"))
        if self.cluster_words is not None and self.cluster_field is not None:
            raise ValueError(
                "Hub finds clusters either in a column (`cluster_field`) or by the first words of the texts "
                "(`cluster_words`); got both. Leave one out."
            )
        if self.drop_ids is not None and self.id_field is None:
            raise ValueError("`drop_ids` of Hub names documents by the column `id_field`, but none is given; name it.")

    def build(self, builder: Builder) -> Corpus:
        dropped: Counter[str] = Counter()
        with hub_errors(self.path, self.revision):
            kept = islice(self._kept(self._rows(), dropped), self.num_documents)
            rows = tracked(kept, f"reading {self.path}", total=self.num_documents)
            documents = tuple(self._document(row, number) for number, row in rows)
        wanted = 1 if self.num_documents is None else self.num_documents
        if len(documents) < wanted:
            left_out = f" (dropped on the way: {dict(sorted(dropped.items()))})" if dropped else ""
            raise ValueError(
                f"Split {self.split!r} of {self.path} has {len(documents)} rows{left_out}, but {wanted} are needed; "
                "lower `num_documents`, correct `where`, or name another split."
            )
        return Corpus(with_distinct_ids(documents, self.path), dict(sorted(dropped.items())))

    def read(self, builder: Builder, dropped: Counter[str], cursor: Cursor) -> Iterator[Document]:
        with hub_errors(self.path, self.revision):
            for number, row in self._kept(self._rows(cursor), dropped):
                if self.num_documents is not None and cursor.documents >= self.num_documents:
                    return
                cursor.documents += 1
                yield self._document(row, number)

    def identity(self) -> dict[str, Any]:
        folder = self._folder()
        columns = ("text_field", "id_field", "cluster_field", "title_field", "author_field")
        options = ("name", "split", *columns, "num_documents", "data_files", "undated", "cluster_words")
        listed = "\n".join(sorted(self._listed_ids()))
        return {
            "kind": "hub",
            "path": self.path if folder is None else None,
            "revision": self.revision if folder is None else None,
            "files": None if folder is None else digest_files(self._local_files(folder)),
            "domain": self._domain(),
            "ids": "domain:split:row" if self.domain and self.id_field is None else None,
            "at_least": dict(self.at_least or ()),
            "where": dict(self.where or ()),
            "drop_ids": hashlib.sha256(listed.encode()).hexdigest() if self.drop_ids else None,
            "max_characters": self.max_characters,
            **{name: getattr(self, name) for name in options},
        }

    def _domain(self) -> str:
        return self.domain or self.name or Path(self.path).name

    def _folder(self) -> Path | None:
        folder = path_of(self.path)
        return folder if folder.is_dir() else None

    def _local_files(self, folder: Path) -> Iterable[tuple[str, Path]]:
        """The files of a local folder that are read, with their names in it."""
        if self.data_files is None:
            files = files_in(folder)
        else:
            files = files_at(f"{glob.escape(str(folder))}/{pattern}" for pattern in self.data_files)
        return [(path.relative_to(folder).as_posix(), path) for path in files]

    def _rows(self, cursor: Cursor | None = None) -> Iterator[tuple[int, Row]]:
        """The rows, numbered from 0 over all files; those behind a cursor where one is given."""
        cursor = cursor or Cursor()
        if self.data_files is not None:
            return self._json_lines(cursor)
        folder = self._folder()
        path, revision = (self.path, self.revision) if folder is None else (str(folder), None)
        return enumerate(self._load(cursor, path, self.name, revision=revision), start=cursor.rows)

    def _json_lines(self, cursor: Cursor) -> Iterator[tuple[int, Row]]:
        """By the builder for text: the one for JSON wants all lines of all files to have the same columns."""
        assert self.data_files is not None
        folder = self._folder()
        if folder is None:
            files = [f"hf://datasets/{self.path}@{quote(self.revision, safe='')}/{name}" for name in self.data_files]
        else:
            files = [str(path) for _, path in self._local_files(folder)]
        for number, line in enumerate(self._load(cursor, "text", data_files={self.split: files}), start=cursor.rows):
            if text := str(line["text"]).strip(" \t\r\n"):
                value = json_value(text.encode(), where := self._where(number))
                yield number, {self.text_field: value} if isinstance(value, str) else row_of(value, where)

    def _load(self, cursor: Cursor, *path: str | None, **settings: Any) -> Iterator[Row]:
        from datasets import load_dataset

        # Offline the library says no at once.
        if self._folder() is None and not is_offline() and (reason := why_out_of_reach("datasets", self.path)):
            raise OSError(reason)
        return cursor.follow(load_dataset(*path, split=self.split, streaming=self.streaming, **settings))

    def _kept(self, rows: Iterable[tuple[int, Row]], dropped: Counter[str]) -> Iterator[tuple[int, Row]]:
        """The rows that are left, numbered as they were; the others are counted. Says when it ends how many of those
        that are left have no date."""
        listed, dates = self._listed_ids(), dict(self.at_least or ())
        num_undated = 0
        try:
            for number, row in rows:
                where = self._where(number)
                reason = self._too_early(row, where) or self._another(row, where) or self._unwanted(row, where, listed)
                if reason is not None:
                    dropped[reason] += 1
                    continue
                num_undated += self.undated == "keep" and any(row.get(column) in (None, "") for column in dates)
                yield number, row
        finally:  # also where enough of them were read
            if num_undated:
                log.warning(
                    "%s: %s documents have no %s and are kept, since nothing shows that they are too early.",
                    self.path,
                    f"{num_undated:,}",
                    " or ".join(dates),
                )

    def _too_early(self, row: Row, where: str) -> str | None:
        for column, smallest in dict(self.at_least or ()).items():
            value = row.get(column)
            if value in (None, ""):
                if self.undated == "keep":
                    continue
                return f"{column}_missing"
            if isinstance(value, bool) or not isinstance(value, str | int | date):
                raise ValueError(
                    f"{where}: column {column!r} must hold text, a whole number or a date to be compared with "
                    f"{smallest!r} (`at_least`), but it holds {kind_of(value)}. Name another column."
                )
            if (value.isoformat() if isinstance(value, date) else str(value)) < smallest:
                return f"{column}_below"
        return None

    def _another(self, row: Row, where: str) -> str | None:
        for column, wanted in dict(self.where or ()).items():
            value = column_of(row, column, where)
            if value in (None, ""):
                return f"{column}_missing"
            if str(value) != wanted:
                return f"{column}_other"
        return None

    def _unwanted(self, row: Row, where: str, listed: frozenset[str]) -> str | None:
        if listed and self.id_field is not None and name_of(row, self.id_field, where) in listed:
            return "listed"
        return "too_long" if self.max_characters and len(self._text(row, where)) > self.max_characters else None

    def _listed_ids(self) -> frozenset[str]:
        if self.drop_ids is None:
            return frozenset()
        (path,) = files_at([self.drop_ids])
        return frozenset(line.strip() for line in read_text(path).split("\n") if line.strip())

    def _where(self, number: int) -> str:
        return f"Row {number} of split {self.split!r} of {self.path}"

    def _text(self, row: Row, where: str) -> str:
        return text_in(row, IN_BRACES.sub(lambda name: name_of(row, name[1], where), self.text_field), where)

    def _document(self, row: Row, number: int) -> Document:
        where = self._where(number)
        text = self._text(row, where)
        name = f"{self.domain}:{self.split}:{number}" if self.domain else f"{self.split}:{number}"
        made = self.document(row, where, text, id_field=self.id_field, name=name, domain=self._domain())
        return made if self.cluster_words is None else replace(made, cluster_id=beginning(text, self.cluster_words))


def beginning(text: str, num_words: int) -> str:
    """A name for how a text begins: a hash of its first words, in small letters and without punctuation.

    So a text that was cut behind more words than these has the name of the whole. Empty for a text without words.
    """
    words = [word[0] for word in islice(re.finditer(r"\w+", text.casefold()), num_words)]
    return hashlib.sha256(" ".join(words).encode("utf-8", "replace")).hexdigest()[:16] if words else ""


def _pairs(values: object, kind: Any, wanted: str) -> tuple[tuple[str, str], ...]:
    """The pairs of a column and its value, as text, in order."""
    pairs = dict(values) if isinstance(values, Mapping | tuple) else {}
    named = all(isinstance(column, str) and column for column in pairs)
    if not pairs or not named or not all(isinstance(value, kind) and value != "" for value in pairs.values()):
        raise ValueError(f"{wanted}; got {shown(values)}.")
    return tuple(sorted((column, str(value)) for column, value in pairs.items()))


@contextmanager
def hub_errors(path: str, revision: str) -> Iterator[None]:
    """Raises ValueError for the many ways in which the hub says no."""
    from datasets.exceptions import DatasetsError
    from huggingface_hub.errors import HfHubHTTPError

    broken = (DatasetsError, UnicodeDecodeError, EOFError, gzip.BadGzipFile, zlib.error)
    # OSError, and the base of whichever HTTP client this version of the hub's library speaks through; what a data set
    # that is a program meets is a RuntimeError.
    refused: tuple[Any, ...] = (OSError, RuntimeError, *HfHubHTTPError.__bases__)
    try:
        yield
    except (*broken, *refused) as error:
        raise ValueError(
            f"Cannot read {path!r} at revision {revision!r} from the Hugging Face hub ({error}). Check name, revision "
            "and network (and HF_HUB_OFFLINE), and that its files are complete and of one kind; if it is gated, accept "
            f"its terms on https://huggingface.co/datasets/{path} and set HF_TOKEN."
        ) from error
