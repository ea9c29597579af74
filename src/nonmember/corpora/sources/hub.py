"""Data sets of the Hugging Face hub, or a folder with their files."""

from __future__ import annotations

import glob
import hashlib
import logging
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import date
from itertools import islice
from pathlib import Path
from typing import Any, ClassVar, Literal, get_args
from urllib.parse import quote

from nonmember.artifacts import Builder
from nonmember.checks import shown
from nonmember.corpora.bounds import Bound, HubBounds, least
from nonmember.corpora.sources.files import files_at, files_in
from nonmember.corpora.sources.formats import read_text
from nonmember.corpora.sources.hub_errors import hub_errors
from nonmember.corpora.sources.place import Place
from nonmember.corpora.sources.rows import Row, column_of, json_value, kind_of, name_of, optional_text_of, work_fields
from nonmember.corpora.specs import CorpusSpec, as_names, digest_files, document, require_choice, require_count
from nonmember.records import Corpus, Document
from nonmember.runtime.naming import path_of
from nonmember.runtime.progress import tracked

MOVING_REVISIONS = (None, "", "main", "master", "HEAD")
MOST_VALUES = 5  # that a message lists
log = logging.getLogger(__name__)

Undated = Literal["drop", "keep"]


@dataclass(frozen=True)
class Hub(CorpusSpec):
    """One document per row of a data set on the Hugging Face hub, at a pinned revision; or of a local folder
    of JSON-lines or Parquet files, for which the files themselves are the pin.

    path, name, split: as of `datasets.load_dataset`.
    revision: commit hash or tag. A branch moves, and with it the data behind stored results: "main" is
    refused.
    text_field: column with the text. A column's name in braces stands for its value in the row: Example_{Answer} is the
    column Example_B where Answer is B.
    cluster_field: column with the cluster, if there is one. cluster_words: where there is none and texts may be parts
    of one article from its beginning: those that begin with the same so many words, whatever their case and
    punctuation, are a cluster (named by a hash of these words).
    title_field, author_field: as of `Jsonl`.
    id_field: column with the id. None: "split:row", rows counted from 0; "domain:split:row" where `domain` is
    given, so that documents of several sources can be told apart.
    domain: the domain of all documents; empty: `name`, or else the last part of `path`.
    num_documents: the first so many rows; None: all.
    streaming: read only what is asked for, instead of fetching and preparing the whole data set first; the
    documents are the same.
    data_files: file or pattern in the repository ("en/train-*.json.gz"), or a list of them: JSON lines, plain or
    gzipped, read one after the other as the split `split`, for repositories `load_dataset` cannot read whole. A line
    is an object with the columns, or a string: then it is the text itself. Blank lines are passed over.
    at_least: column -> smallest value, compared as text ({created: "2021-02"}: ISO dates). Rows below it, or without
    a value, are dropped before rows are counted for `num_documents`.
    undated: whether such rows without a value are dropped, or kept, which is said.
    where: column -> value, compared as text ({label: 1}). Rows with another value, or with none, are dropped likewise.
    drop_ids: a text file with an id a line; the rows with these ids are dropped likewise.
    max_characters: rows with a longer text are dropped likewise.

    A row whose text is null gets an empty text, which `Cleaned` counts and drops. No code of a data set is
    run. Adds to `Corpus.dropped`: <column>_missing, <column>_below, <column>_other, listed, too_long. Raises
    ValueError where the hub cannot be reached or lacks the data set, split, revision, file or column, and where
    no row has the values of `where`.
    """

    path: str
    name: str | None
    split: str
    revision: str
    text_field: str
    id_field: str | None
    cluster_field: str | None = None
    domain: str = ""
    num_documents: int | None = None
    streaming: bool = True
    data_files: str | tuple[str, ...] | None = None
    at_least: Mapping[str, str] | tuple[tuple[str, str], ...] | None = None
    drop_ids: str | None = None
    where: Mapping[str, str | int] | tuple[tuple[str, str], ...] | None = None
    cluster_words: int | None = None
    title_field: str | None = None
    author_field: str | None = None
    max_characters: int | None = None
    undated: Undated = "drop"

    stored: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if self.num_documents is not None:
            require_count(self.num_documents, 1, "`num_documents` of Hub")
        names = (self.path, *([self.data_files] if isinstance(self.data_files, str) else self.data_files or ()))
        if address := next((name for name in names if "://" in str(name) or "::" in str(name)), None):
            raise ValueError(f"Hub reads data sets of the hub by their names; got the address {address!r}. Name one.")
        if self._folder() is None and self.revision in MOVING_REVISIONS:
            raise ValueError(
                f"Hub data set {self.path!r} needs a pinned `revision`; got {shown(self.revision)}, which may mean "
                "other data tomorrow. Give the commit hash from the history of its files."
            )
        if self.data_files is not None:
            object.__setattr__(self, "data_files", as_names(self.data_files, "`data_files` of Hub"))
            if self.name is not None:
                raise ValueError(
                    f"Hub reads either a configuration (`name`) or single files (`data_files`) of {self.path!r}; "
                    "got both. Leave one out."
                )
        if self.at_least is not None:
            object.__setattr__(self, "at_least", smallest_values(self.at_least))
        if self.where is not None:
            object.__setattr__(self, "where", wanted_values(self.where))
        require_choice(self.undated, get_args(Undated), "`undated` of Hub")
        if self.cluster_words is not None:
            require_count(self.cluster_words, 1, "`cluster_words` of Hub")
            if self.cluster_field is not None:
                raise ValueError(
                    "Hub finds clusters either in a column (`cluster_field`) or by the first words of the texts "
                    "(`cluster_words`); got both. Leave one out."
                )
        require_count(self.max_characters, 1, "`max_characters` of Hub", or_null=True)
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
            if not documents and any(f"{column}_other" in dropped for column in dict(self.where or ())):
                raise ValueError(
                    f"No row of split {self.split!r} of {self.path} is chosen by `where`: {self._what_there_is()}"
                    f"{left_out}. Correct the value, or name another column."
                )
            raise ValueError(
                f"Split {self.split!r} of {self.path} has {len(documents)} rows{left_out}, but {wanted} are needed; "
                "lower `num_documents`, or name another split."
            )
        return Corpus(documents, dict(sorted(dropped.items())))

    def read(self, builder: Builder, dropped: Counter[str], place: Place) -> Iterator[Document]:
        with hub_errors(self.path, self.revision):
            for number, row in self._kept(self._rows(place), dropped):
                if self.num_documents is not None and place.documents >= self.num_documents:
                    return
                place.documents += 1
                yield self._document(row, number)

    def bound(self, hub: HubBounds) -> Bound:
        names = (self.name, self.split, *(self.data_files or ()), *dict(self.where or ()).values())
        described = hub(self.path, names)
        files = max(1, len(self.data_files or ())) if self.num_documents is None else 1
        most = None if described.documents is None else described.documents * files
        return Bound(least(self.num_documents, most), described.words)

    def identity(self) -> dict[str, Any]:
        folder = self._folder()
        identity: dict[str, Any] = {
            "kind": "hub",
            "path": self.path if folder is None else None,
            "revision": self.revision if folder is None else None,
            "files": None if folder is None else digest_files(self._local_files(folder)),
            "name": self.name,
            "split": self.split,
            "text_field": self.text_field,
            "id_field": self.id_field,
            "cluster_field": self.cluster_field,
            "domain": self._domain(),
            "num_documents": self.num_documents,
        } | work_fields(self.title_field, self.author_field)
        # Only where they are used: corpora stored before these options existed keep their names.
        if self.domain and self.id_field is None:
            identity["ids"] = "domain:split:row"
        if self.data_files is not None:
            identity["data_files"] = list(self.data_files)
        if self.at_least is not None:
            identity["at_least"] = dict(self.at_least)
            if self.undated != "drop":
                identity["undated"] = self.undated
        if self.where is not None:
            identity["where"] = dict(self.where)
        if self.cluster_words is not None:
            identity["cluster_words"] = self.cluster_words
        if self.max_characters is not None:
            identity["max_characters"] = self.max_characters
        if self.drop_ids is not None:
            identity["drop_ids"] = hashlib.sha256("\n".join(sorted(self._listed_ids())).encode()).hexdigest()
        return identity

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

    def _rows(self, place: Place | None = None) -> Iterator[tuple[int, Row]]:
        """The rows, numbered from 0 over all files; those from a place on where one is given."""
        place = place or Place()
        if self.data_files is not None:
            return self._json_lines(place)
        folder = self._folder()
        rows = self._load(
            place,
            self.path if folder is None else str(folder),
            self.name,
            revision=self.revision if folder is None else None,
        )
        return enumerate(rows, start=place.rows)

    def _json_lines(self, place: Place) -> Iterator[tuple[int, Row]]:
        """By the builder for text: the one for JSON wants all lines of all files to have the same columns."""
        assert self.data_files is not None
        folder = self._folder()
        if folder is None:
            files = [f"hf://datasets/{self.path}@{quote(self.revision, safe='')}/{name}" for name in self.data_files]
        else:
            files = [str(path) for _, path in self._local_files(folder)]
        for number, line in enumerate(self._load(place, "text", data_files={self.split: files}), start=place.rows):
            if text := str(line["text"]).strip(" \t\r\n"):
                value = json_value(text.encode(), where := self._where(number))
                if not isinstance(value, str | dict):
                    raise ValueError(
                        f"{where} must be one JSON object, or a string that is the text itself, but it is "
                        f"{kind_of(value)}. Name other `data_files`."
                    )
                yield number, {self.text_field: value} if isinstance(value, str) else value

    def _load(self, place: Place, *path: str | None, **settings: Any) -> Iterator[Row]:
        from datasets import load_dataset

        return place.follow(load_dataset(*path, split=self.split, streaming=self.streaming, **settings))

    def _kept(self, rows: Iterator[tuple[int, Row]], dropped: Counter[str]) -> Iterator[tuple[int, Row]]:
        at_least, where = tuple(dict(self.at_least or ()).items()), tuple(dict(self.where or ()).items())
        chosen = Filter(self.path, at_least, self.undated, where, self.id_field, self._listed_ids())  # type: ignore[arg-type]
        for number, row in chosen.kept(rows, self.split, dropped):
            if (
                self.max_characters is not None
                and len(self._text(row, self._where(number)) or "") > self.max_characters
            ):
                dropped["too_long"] += 1
            else:
                yield number, row

    def _what_there_is(self) -> str:
        """Of each column of `where` the value that is wanted and the first few there are."""
        parts = []
        for column, wanted in dict(self.where or ()).items():
            with hub_errors(self.path, self.revision):
                found = list(dict.fromkeys(str(row.get(column)) for _, row in self._rows()))[:MOST_VALUES]
            parts.append(f"{column} is to be {wanted!r}, and is {' or '.join(map(repr, found))}")
        return "; ".join(parts)

    def _listed_ids(self) -> frozenset[str]:
        if self.drop_ids is None:
            return frozenset()
        (path,) = files_at([self.drop_ids])
        return frozenset(line.strip() for line in read_text(path).split("\n") if line.strip())

    def _where(self, number: int) -> str:
        return f"Row {number} of split {self.split!r} of {self.path}"

    def _text(self, row: Row, where: str) -> str | None:
        column = re.sub(r"\{([^{}]+)\}", lambda name: name_of(row, name[1], where), self.text_field)
        text = column_of(row, column, where)
        if text is not None and not isinstance(text, str):
            raise ValueError(
                f"{where}: column {column!r} must hold text, but it holds {kind_of(text)}. "
                "Name the column with the text."
            )
        return text

    def _document(self, row: Row, number: int) -> Document:
        where = self._where(number)
        text = self._text(row, where)
        by_row = f"{self.domain}:{self.split}:{number}" if self.domain else f"{self.split}:{number}"
        doc_id = by_row if self.id_field is None else name_of(row, self.id_field, where)
        cluster_id = "" if self.cluster_field is None else name_of(row, self.cluster_field, where)
        if self.cluster_words is not None:
            cluster_id = beginning(text or "", self.cluster_words)
        work = (optional_text_of(row, self.title_field, where), optional_text_of(row, self.author_field, where))
        return document(doc_id, text or "", cluster_id, self._domain(), *work)


def beginning(text: str, num_words: int) -> str:
    """A name for how a text begins: a hash of its first words, in small letters and without punctuation.

    So a text that was cut behind more words than these has the name of the whole. Empty for a text without words.
    """
    words = [word[0] for word in islice(re.finditer(r"\w+", text.casefold()), num_words)]
    return hashlib.sha256(" ".join(words).encode("utf-8", "replace")).hexdigest()[:16] if words else ""


@dataclass(frozen=True)
class Filter:
    """at_least, where: pairs of a column and its smallest or its only value.   undated: what becomes of rows without a
    value of `at_least`.   id_field, listed: rows with these ids are dropped."""

    path: str
    at_least: tuple[tuple[str, str], ...]
    undated: Undated
    where: tuple[tuple[str, str], ...]
    id_field: str | None
    listed: frozenset[str]

    def kept(self, rows: Iterable[tuple[int, Row]], split: str, dropped: Counter[str]) -> Iterator[tuple[int, Row]]:
        """The rows that are left, numbered as they were; the others are counted. Says when it ends how many of those
        that are left have no date."""
        num_undated = 0
        try:
            for number, row in rows:
                where = f"Row {number} of split {split!r} of {self.path}"
                reason = self._too_early(row, where) or self._another(row, where)
                if reason is not None:
                    dropped[reason] += 1
                    continue
                num_undated += self.undated == "keep" and any(_is_empty(row.get(column)) for column, _ in self.at_least)
                yield number, row
        finally:  # also where enough of them were read
            if num_undated:
                log.warning(
                    "%s: %s documents have no %s and are kept, as nothing says that they are too early.",
                    self.path,
                    f"{num_undated:,}",
                    " or ".join(column for column, _ in self.at_least),
                )

    def _too_early(self, row: Row, where: str) -> str | None:
        for column, smallest in self.at_least:
            value = row.get(column)
            if _is_empty(value):
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
        for column, wanted in self.where:
            value = column_of(row, column, where)
            if _is_empty(value):
                return f"{column}_missing"
            if str(value) != wanted:
                return f"{column}_other"
        if self.listed and self.id_field is not None and name_of(row, self.id_field, where) in self.listed:
            return "listed"
        return None


def _is_empty(value: object) -> bool:
    return value is None or value == ""


def wanted_values(values: object) -> tuple[tuple[str, str], ...]:
    pairs = dict(values) if isinstance(values, Mapping | tuple) else {}
    named = all(isinstance(column, str) and column for column in pairs)
    if not pairs or not named or not all(isinstance(value, str | int) and value != "" for value in pairs.values()):
        raise ValueError(
            "`where` of Hub must give columns the value that their rows are to have, as in {label: 1}; "
            f"got {shown(values)}."
        )
    return tuple(sorted((column, str(value)) for column, value in pairs.items()))


def smallest_values(values: object) -> tuple[tuple[str, str], ...]:
    pairs = dict(values) if isinstance(values, Mapping | tuple) else {}
    if not pairs or not all(isinstance(part, str) and part for pair in pairs.items() for part in pair):
        raise ValueError(
            '`at_least` of Hub must give columns their smallest values as text, as in {created: "2021-02"}; '
            f"got {shown(values)}."
        )
    return tuple(sorted(pairs.items()))
