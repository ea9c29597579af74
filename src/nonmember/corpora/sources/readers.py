"""Corpus sources: JSON Lines, text files, the Hugging Face hub.

A source reads and names; it changes no text. Making texts alike is the work of `Cleaned` alone.
"""

from __future__ import annotations

import glob
import gzip
import hashlib
import json
import re
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date
from itertools import islice
from pathlib import Path
from typing import Any, ClassVar
from urllib.parse import quote

from nonmember.artifacts import Builder
from nonmember.checks import require_text, shown
from nonmember.corpora.sources.compressed import DamagedFileError, opened
from nonmember.corpora.specs import (
    CorpusSpec,
    as_names,
    digest_file,
    digest_files,
    document,
    require_count,
)
from nonmember.records import Corpus, Document
from nonmember.runtime.progress import tracked

Row = Mapping[str, object]

LONGEST_LINE = 2**28  # bytes; what is longer is no line of JSON but something endless
MOST_BLANK_LINES = 10**6  # one after the other


def _name(row: Row, field: str, where: str) -> str:
    """An id or a cluster: text, or a whole number written as text."""
    value = _column(row, field, where)
    if isinstance(value, bool) or not isinstance(value, str | int) or value == "":
        raise ValueError(
            f"{where}: column {field!r} must hold a name or a whole number, but it holds {value!r}. "
            "Name another column, or fill it."
        )
    return str(value)


def _said(row: Row, field: str | None, where: str) -> str:
    """A title or an author: text, or nothing where the column is empty or none is named."""
    value = None if field is None else _column(row, field, where)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise ValueError(
            f"{where}: column {field!r} must hold text, but it holds {_kind(value)}. Name another column, or none."
        )
    return value.strip()


def _works(title_field: str | None, author_field: str | None) -> dict[str, str]:
    """Of an identity, only where they are used: corpora stored before there were such columns keep their names."""
    named = {"title_field": title_field, "author_field": author_field}
    return {name: field for name, field in named.items() if field is not None}


def _column(row: Row, field: str, where: str) -> object:
    if field not in row:
        raise ValueError(
            f"{where} has no column {field!r}; its columns are {', '.join(map(repr, row)) or 'none'}. "
            "Name one of them, or leave such lines out."
        )
    return row[field]


def _item(row: Row, field: str, where: str) -> object:
    """Of a column, or of the list in it: "paraphrases.0"."""
    name, dot, place = field.rpartition(".")
    if field in row or not (dot and place.isdecimal()):
        return _column(row, field, where)
    items = _column(row, name, where)
    if not isinstance(items, list) or int(place) >= len(items):
        raise ValueError(
            f"{where}: column {name!r} must hold a list of more than {place} texts, but it holds "
            f"{f'{len(items)} of them' if isinstance(items, list) else 'none'}. Name another, or leave such lines out."
        )
    return items[int(place)]


# ------------------------------------------------------------------------------------------------- JSON lines


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
        files = _files(self.path)
        return Corpus(tuple(tracked((doc for path in files for doc in self._read(path)), "reading JSON lines")))

    def identity(self) -> dict[str, Any]:
        return {
            "kind": "jsonl",
            # A file's stem is content only where ids or domains are made of it; where it lies never is.
            "files": [
                [_stem(path) if self.id_field is None or not self.domain else "", digest_file(path)]
                for path in _files(self.path)
            ],
            "id_field": self.id_field,
            "text_field": self.text_field,
            "cluster_field": self.cluster_field,
            "domain": self.domain,
        } | _works(self.title_field, self.author_field)

    def look(self) -> None:
        first = _files(self.path)[0]
        for number, row in _json_rows(first):
            where = f"{first}, line {number}"
            _item(row, self.text_field, where)
            for field in (self.id_field, self.cluster_field, self.title_field, self.author_field):
                if field is not None:
                    _column(row, field, where)
            return

    def _read(self, path: Path) -> list[Document]:
        stem = _stem(path)
        documents = []
        for number, row in _json_rows(path):
            where = f"{path}, line {number}"
            text = _item(row, self.text_field, where)
            if not isinstance(text, str):
                raise ValueError(
                    f"{where}: column {self.text_field!r} must hold text, but it holds {_kind(text)}. "
                    "Name the column with the text, or leave such lines out."
                )
            doc_id = f"{stem}:{number}" if self.id_field is None else _name(row, self.id_field, where)
            cluster_id = "" if self.cluster_field is None else _name(row, self.cluster_field, where)
            work = (_said(row, self.title_field, where), _said(row, self.author_field, where))
            documents.append(document(doc_id, text, cluster_id, self.domain or stem, *work))
        if not documents:
            raise ValueError(f"{path} has no documents; expected one JSON object a line. Check how it was written.")
        return documents


def _files(patterns: Iterable[str]) -> list[Path]:
    paths: list[Path] = []
    for pattern in patterns:
        expanded = str(Path(pattern).expanduser())
        found = [Path(expanded)] if Path(expanded).is_file() else []
        found = found or sorted(filter(Path.is_file, map(Path, glob.glob(expanded, recursive=True))))
        if not found:
            what = "a folder is there" if Path(expanded).is_dir() else "nothing is there"
            raise ValueError(
                f"Expected a file, or a pattern that matches files, at {pattern}, but {what}; "
                f"correct the path (relative ones start at {Path.cwd()})."
            )
        paths += found
    return list(dict.fromkeys(paths))


def _stem(path: Path) -> str:
    return path.name.removesuffix(".gz").removesuffix(".jsonl").removesuffix(".json")


def _kind(value: object) -> str:
    kinds = {dict: "an object", list: "a list", bool: "true or false", int: "a number", float: "a number"}
    return "null" if value is None else kinds.get(type(value), type(value).__name__)


def _json_rows(path: Path) -> Iterator[tuple[int, Row]]:
    for number, line in _json_lines(path):
        yield number, _json_row(line, f"{path}, line {number}")


def _json_lines(path: Path) -> Iterator[tuple[int, bytes]]:
    """The lines that are not blank, with their numbers from 1."""
    number = num_blank = 0
    try:
        with opened(path) as file:
            while line := file.readline(LONGEST_LINE + 1):
                number += 1
                if len(line) > LONGEST_LINE:
                    raise ValueError(
                        f"{path}, line {number} must have at most {LONGEST_LINE:,} bytes; it has more. Write one JSON "
                        "object a line."
                    )
                num_blank = 0 if (content := line.strip(b" \t\r\n")) else num_blank + 1
                require_few_blank_lines(num_blank, number, path)
                if content:
                    yield number, content
    except DamagedFileError as error:
        raise DamagedFileError(path, error.compression, error.reason, f" after line {number}") from error


def require_few_blank_lines(num_blank: int, number: int, path: Path) -> None:
    """num_blank: lines one after the other, up to line `number`."""
    if num_blank > MOST_BLANK_LINES:
        raise ValueError(
            f"{path} has more than {MOST_BLANK_LINES:,} blank lines one after the other, up to line {number}. Check "
            "how it was written."
        )


def _json_row(line: bytes, where: str) -> Row:
    row = _json_value(line, where)
    if not isinstance(row, dict):
        raise ValueError(f"{where} must be one JSON object, but it is {_kind(row)}. Write one object a line.")
    return row


def _json_value(line: bytes, where: str) -> object:
    try:
        return json.loads(line.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise ValueError(f"{where} must be UTF-8, but it is not ({error.reason}). Convert the file.") from error
    except RecursionError as error:
        raise ValueError(f"{where} must be one JSON object; it is nested too deeply to be read. Flatten it.") from error
    except json.JSONDecodeError as error:
        raise ValueError(
            f"{where} must be one JSON object, but it cannot be read ({error.msg}, column {error.colno}). "
            "Is the line cut, or the file something other than JSON lines?"
        ) from error


# ------------------------------------------------------------------------------------------------- text files


@dataclass(frozen=True)
class TextFiles(CorpusSpec):
    """One document per UTF-8 file below a folder; doc_id is its path relative to the folder.

    pattern: as of `pathlib.Path.glob`: "*.txt" in the folder itself, "**/*.txt" also in those below it.
    domain: the domain of all documents. Documents have no clusters: each file stands for itself.
    """

    path: str
    pattern: str
    domain: str = ""

    stored: ClassVar[bool] = False

    def __post_init__(self) -> None:
        require_text(self.path, "`path` of TextFiles")
        require_text(self.pattern, "`pattern` of TextFiles", hint='It is relative to the folder, as in "**/*.txt".')
        if Path(self.pattern).is_absolute() or self.pattern.startswith("~") or ".." in Path(self.pattern).parts:
            raise ValueError(
                f"`pattern` of TextFiles must be relative and lead below `path`; got {self.pattern!r}. Give the folder "
                'as `path`, and what is wanted of it as `pattern`, such as "**/*.txt".'
            )

    def build(self, builder: Builder) -> Corpus:
        files = tracked(self._files(), "reading text files", "files")
        return Corpus(tuple(document(name, _read_text(path), "", self.domain) for name, path in files))

    def identity(self) -> dict[str, Any]:
        return {"kind": "text_files", "files": digest_files(self._files()), "domain": self.domain}

    def look(self) -> None:
        self._files()

    def _files(self) -> list[tuple[str, Path]]:
        folder = Path(self.path).expanduser()
        if not folder.is_dir():
            raise ValueError(
                f"Expected a folder of text files at {self.path}, but there is none; "
                f"correct the path (relative ones start at {Path.cwd()})."
            )
        files = sorted((p.relative_to(folder).as_posix(), p) for p in folder.glob(self.pattern) if p.is_file())
        if not files:
            raise ValueError(f"No file below {self.path} matches {self.pattern!r}; correct the pattern or the path.")
        return files


def _read_text(path: Path) -> str:
    try:
        return path.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ValueError(
            f"{path} must be UTF-8, but byte {error.start} is not ({error.reason}). Convert the file or leave it out."
        ) from error


# ------------------------------------------------------------------------------------------- Hugging Face hub

MOVING_REVISIONS = (None, "", "main", "master", "HEAD")
MOST_VALUES = 5  # that a message lists


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
    where: column -> value, compared as text ({label: 1}). Rows with another value, or with none, are dropped likewise.
    drop_ids: a text file with an id a line; the rows with these ids are dropped likewise.

    A row whose text is null gets an empty text, which `Cleaned` counts and drops. No code of a data set is
    run. Adds to `Corpus.dropped`: <column>_missing, <column>_below, <column>_other, listed. Raises ValueError where the
    hub cannot be reached or lacks the data set, split, revision, file or column, and where no row has the values of
    `where`.
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

    stored: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if self.num_documents is not None:
            require_count(self.num_documents, 1, "`num_documents` of Hub")
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
            object.__setattr__(self, "at_least", _smallest_values(self.at_least))
        if self.where is not None:
            object.__setattr__(self, "where", _wanted_values(self.where))
        if self.cluster_words is not None:
            require_count(self.cluster_words, 1, "`cluster_words` of Hub")
            if self.cluster_field is not None:
                raise ValueError(
                    "Hub finds clusters either in a column (`cluster_field`) or by the first words of the texts "
                    "(`cluster_words`); got both. Leave one out."
                )
        if self.drop_ids is not None and self.id_field is None:
            raise ValueError("`drop_ids` of Hub names documents by the column `id_field`, but none is given; name it.")

    def build(self, builder: Builder) -> Corpus:
        dropped: Counter[str] = Counter()
        with _hub_errors(self.path, self.revision):
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
        } | _works(self.title_field, self.author_field)
        # Only where they are used: corpora stored before these options existed keep their names.
        if self.domain and self.id_field is None:
            identity["ids"] = "domain:split:row"
        if self.data_files is not None:
            identity["data_files"] = list(self.data_files)
        if self.at_least is not None:
            identity["at_least"] = dict(self.at_least)
        if self.where is not None:
            identity["where"] = dict(self.where)
        if self.cluster_words is not None:
            identity["cluster_words"] = self.cluster_words
        if self.drop_ids is not None:
            identity["drop_ids"] = hashlib.sha256("\n".join(sorted(self._listed_ids())).encode()).hexdigest()
        return identity

    def _domain(self) -> str:
        return self.domain or self.name or Path(self.path).name

    def _folder(self) -> Path | None:
        folder = Path(self.path).expanduser()
        return folder if folder.is_dir() else None

    def _local_files(self, folder: Path) -> Iterable[tuple[str, Path]]:
        """The files of a local folder that are read, with their names in it."""
        if self.data_files is None:
            return _visible_files(folder)
        files = _files(f"{glob.escape(str(folder))}/{pattern}" for pattern in self.data_files)
        return [(path.relative_to(folder).as_posix(), path) for path in files]

    def _rows(self) -> Iterator[tuple[int, Row]]:
        """The rows, numbered from 0 over all files."""
        if self.data_files is not None:
            return self._json_lines()
        folder = self._folder()
        return enumerate(
            self._load(
                self.path if folder is None else str(folder),
                self.name,
                revision=self.revision if folder is None else None,
            )
        )

    def _json_lines(self) -> Iterator[tuple[int, Row]]:
        """By the builder for text: the one for JSON wants all lines of all files to have the same columns."""
        assert self.data_files is not None
        folder = self._folder()
        if folder is None:
            files = [f"hf://datasets/{self.path}@{quote(self.revision, safe='')}/{name}" for name in self.data_files]
        else:
            files = [str(path) for _, path in self._local_files(folder)]
        for number, line in enumerate(self._load("text", data_files={self.split: files})):
            if text := str(line["text"]).strip(" \t\r\n"):
                value = _json_value(text.encode(), where := self._where(number))
                if not isinstance(value, str | dict):
                    raise ValueError(
                        f"{where} must be one JSON object, or a string that is the text itself, but it is "
                        f"{_kind(value)}. Name other `data_files`."
                    )
                yield number, {self.text_field: value} if isinstance(value, str) else value

    def _load(self, *path: str | None, **settings: Any) -> Iterator[Row]:
        from datasets import load_dataset

        return iter(load_dataset(*path, split=self.split, streaming=self.streaming, **settings))

    def _kept(self, rows: Iterator[tuple[int, Row]], dropped: Counter[str]) -> Iterator[tuple[int, Row]]:
        listed = self._listed_ids()
        for number, row in rows:
            reason = self._reason_to_drop(row, number, listed)
            if reason is None:
                yield number, row
            else:
                dropped[reason] += 1

    def _reason_to_drop(self, row: Row, number: int, listed: frozenset[str]) -> str | None:
        for column, smallest in dict(self.at_least or ()).items():
            value = row.get(column)
            if value is None or value == "":
                return f"{column}_missing"
            if isinstance(value, bool) or not isinstance(value, str | int | date):
                raise ValueError(
                    f"{self._where(number)}: column {column!r} must hold text, a whole number or a date to be compared "
                    f"with {smallest!r} (`at_least`), but it holds {_kind(value)}. Name another column."
                )
            if (value.isoformat() if isinstance(value, date) else str(value)) < smallest:
                return f"{column}_below"
        for column, wanted in dict(self.where or ()).items():
            value = _column(row, column, self._where(number))
            if value is None or value == "":
                return f"{column}_missing"
            if str(value) != wanted:
                return f"{column}_other"
        if listed and self.id_field is not None and _name(row, self.id_field, self._where(number)) in listed:
            return "listed"
        return None

    def _what_there_is(self) -> str:
        """Of each column of `where` the value that is wanted and the first few there are."""
        parts = []
        for column, wanted in dict(self.where or ()).items():
            with _hub_errors(self.path, self.revision):
                found = list(dict.fromkeys(str(row.get(column)) for _, row in self._rows()))[:MOST_VALUES]
            parts.append(f"{column} is to be {wanted!r}, and is {' or '.join(map(repr, found))}")
        return "; ".join(parts)

    def _listed_ids(self) -> frozenset[str]:
        if self.drop_ids is None:
            return frozenset()
        (path,) = _files([self.drop_ids])
        return frozenset(line.strip() for line in _read_text(path).splitlines() if line.strip())

    def _where(self, number: int) -> str:
        return f"Row {number} of split {self.split!r} of {self.path}"

    def _document(self, row: Row, number: int) -> Document:
        where = self._where(number)
        column = re.sub(r"\{([^{}]+)\}", lambda name: _name(row, name[1], where), self.text_field)
        text = _column(row, column, where)
        if text is not None and not isinstance(text, str):
            raise ValueError(
                f"{where}: column {column!r} must hold text, but it holds {_kind(text)}. Name the column with the text."
            )
        by_row = f"{self.domain}:{self.split}:{number}" if self.domain else f"{self.split}:{number}"
        doc_id = by_row if self.id_field is None else _name(row, self.id_field, where)
        cluster_id = "" if self.cluster_field is None else _name(row, self.cluster_field, where)
        if self.cluster_words is not None:
            cluster_id = beginning(text or "", self.cluster_words)
        work = (_said(row, self.title_field, where), _said(row, self.author_field, where))
        return document(doc_id, text or "", cluster_id, self._domain(), *work)


def beginning(text: str, num_words: int) -> str:
    """A name for how a text begins: a hash of its first words, in small letters and without punctuation.

    So a text that was cut behind more words than these has the name of the whole. Empty for a text without words.
    """
    words = [word[0] for word in islice(re.finditer(r"\w+", text.casefold()), num_words)]
    return hashlib.sha256(" ".join(words).encode("utf-8", "replace")).hexdigest()[:16] if words else ""


def _wanted_values(values: object) -> tuple[tuple[str, str], ...]:
    pairs = dict(values) if isinstance(values, Mapping | tuple) else {}
    named = all(isinstance(column, str) and column for column in pairs)
    if not pairs or not named or not all(isinstance(value, str | int) and value != "" for value in pairs.values()):
        raise ValueError(
            "`where` of Hub must give columns the value that their rows are to have, as in {label: 1}; "
            f"got {shown(values)}."
        )
    return tuple(sorted((column, str(value)) for column, value in pairs.items()))


def _smallest_values(values: object) -> tuple[tuple[str, str], ...]:
    pairs = dict(values) if isinstance(values, Mapping | tuple) else {}
    if not pairs or not all(isinstance(part, str) and part for pair in pairs.items() for part in pair):
        raise ValueError(
            '`at_least` of Hub must give columns their smallest values as text, as in {created: "2021-02"}; '
            f"got {shown(values)}."
        )
    return tuple(sorted(pairs.items()))


def _visible_files(folder: Path) -> Iterator[tuple[str, Path]]:
    for path in folder.rglob("*"):
        inner = path.relative_to(folder)
        if path.is_file() and not any(part.startswith(".") for part in inner.parts):
            yield inner.as_posix(), path


@contextmanager
def _hub_errors(path: str, revision: str) -> Iterator[None]:
    """The many ways in which the hub says no, as one sentence."""
    from datasets.exceptions import DatasetNotFoundError, DatasetsError
    from huggingface_hub.errors import HfHubHTTPError

    broken = (DatasetsError, UnicodeDecodeError, EOFError, gzip.BadGzipFile, zlib.error)
    # OSError, and the base of whichever HTTP client this version of the hub's library speaks through.
    unreachable: tuple[Any, ...] = (OSError, *HfHubHTTPError.__bases__)
    try:
        yield
    except RuntimeError as error:
        if "scripts are no longer supported" not in str(error):
            raise
        raise ValueError(
            f"{path!r} is a data set script, a program that would have to be run; data sets must be files (Parquet, "
            "JSON Lines, CSV, text). Take a revision with Parquet files, such as that of refs/convert/parquet, or name "
            "the files in `data_files`."
        ) from error
    except (*broken, *unreachable) as error:
        if _is_gated(error):
            raise ValueError(
                f"{path!r} is a gated data set: accept its terms on https://huggingface.co/datasets/{path}, then set "
                "HF_TOKEN to an access token of the same account."
            ) from error
        if isinstance(error, DatasetNotFoundError):
            raise ValueError(
                f"The hub has no data set {path!r} at revision {revision!r} that you may read ({error}). "
                "Check name and revision, or log in if access is restricted."
            ) from error
        if isinstance(error, broken):
            raise ValueError(
                f"Cannot make rows of {path!r} ({error}). Are its files complete, and of one kind?"
            ) from error
        raise ValueError(
            f"Cannot read {path!r} from the Hugging Face hub ({error}). Check the network (and "
            "HF_HUB_OFFLINE), or download it elsewhere and give the folder as `path`."
        ) from error


def _is_gated(error: BaseException | None) -> bool:
    """Whether the hub refused because its terms were not accepted; each library in between wraps that anew."""
    from huggingface_hub.errors import GatedRepoError

    while error is not None:
        if isinstance(error, GatedRepoError) or "is a gated dataset" in str(error):
            return True
        error = error.__cause__ or error.__context__
    return False
