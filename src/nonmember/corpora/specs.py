"""The base classes of corpus specs, and what they share: bounds, how far one was read, checks, hashes of files.

A recipe is a frozen dataclass of plain values and other recipes. Hydra builds it from `_target_`; use
`_convert_: all`, so that lists and mappings arrive as Python's own.
"""

from __future__ import annotations

import hashlib
import json
import logging
from abc import abstractmethod
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import Any, ClassVar

from nonmember.artifacts import Builder, Spec
from nonmember.artifacts.store import Entry
from nonmember.checks import Checked, require_kind, wrong
from nonmember.checks import require_choice as require_choice
from nonmember.checks import require_count as require_count
from nonmember.records import Corpus, Document

log = logging.getLogger(__name__)

FORMAT = 2  # raise it when a change of code moves what corpora hold: older entries are then left alone
DOCUMENTS = "documents.parquet"


@dataclass
class Cursor:
    """How far a source has been read, so that another process can go on there."""

    rows: int = 0  # that lie behind
    documents: int = 0  # that lie behind
    reader: dict[str, Any] | None = None  # the state of the reader of `datasets`, where it keeps one
    _dataset: Any = field(default=None, repr=False)

    def follow(self, dataset: Any) -> Iterator[Any]:
        """The rows of a data set from here on, each counted when it is given."""
        if hasattr(dataset, "load_state_dict"):
            if self.reader is not None:
                dataset.load_state_dict(self.reader)
            self._dataset, rows = dataset, iter(dataset)
        else:
            rows = islice(iter(dataset), self.rows, None)
        for row in rows:
            self.rows += 1
            yield row

    def state(self) -> dict[str, Any]:
        """As JSON, what `Cursor(**state)` goes on from."""
        reader = None if self._dataset is None else self._dataset.state_dict()
        return {"rows": self.rows, "documents": self.documents, "reader": reader}


class CorpusSpec(Checked, Spec[Corpus]):
    """A recipe for a corpus: what it is made of, not the documents themselves.

    `stored`: making it takes long enough to keep the result on disk.
    """

    fields_called = "`{field}` of {kind}"
    kind = "corpora"
    pool = "corpora"
    gives = ("Corpus", "Stream")
    stored: ClassVar[bool]
    is_secret: ClassVar[bool] = False  # whether its texts must not leave the machine

    def __post_init__(self) -> None:
        for item in fields(self):  # type: ignore[arg-type]  # each kind is a dataclass
            if item.type in ("CorpusSpec", CorpusSpec):
                require_spec(getattr(self, item.name), f"`{item.name}` of {type(self).__name__}")
        super().__post_init__()

    @abstractmethod
    def build(self, builder: Builder) -> Corpus:
        """Make the corpus; `builder.get` gives the corpora that it is made of."""

    @abstractmethod
    def identity(self) -> dict[str, Any]:
        """Everything that determines the documents, as JSON values: equal identities mean equal corpora."""

    def read(self, builder: Builder, dropped: Counter[str], cursor: Cursor) -> Iterator[Document]:
        """The documents from `cursor` on, one by one, for a corpus that is streamed.

        A source that need not be in memory for that says how. What is left out on the way is counted in `dropped`.
        """
        corpus = builder.get(self)
        if not cursor.documents:
            dropped.update(corpus.dropped)
        for document in corpus.documents[cursor.documents :]:
            cursor.documents += 1
            yield document

    def lookup_key(self, builder: Builder) -> dict[str, Any]:
        return {"format": FORMAT, "corpus": self.identity()}

    def key(self, builder: Builder) -> Mapping[str, Any]:
        """By content, unless a model would have to write it for that."""
        return {"fingerprint": self.fingerprint(builder)}

    def content(self, builder: Builder) -> str | Mapping[str, Any]:
        """The content as it stands in the keys of what a model writes about it."""
        return self.fingerprint(builder)

    def fingerprint(self, builder: Builder) -> str:
        return builder.get(self).fingerprint

    def make(self, builder: Builder, folder: Path) -> dict[str, Any]:
        log.info("Preparing documents: %s.", self.readable)
        corpus = self.build(builder)
        corpus.save(folder / DOCUMENTS)
        return {"num_documents": len(corpus), "dropped": dict(corpus.dropped), "fingerprint": corpus.fingerprint}

    def load(self, builder: Builder, entry: Entry) -> Corpus:
        return Corpus.load(entry.path / DOCUMENTS, entry.facts["dropped"])


class Transform(CorpusSpec):
    """A corpus made of others by settings alone: what it is called (`name`) and all its fields are its identity."""

    name: ClassVar[str]
    stored: ClassVar[bool] = False

    def identity(self) -> dict[str, Any]:
        return {"kind": self.name} | {item.name: _plain(getattr(self, item.name)) for item in fields(self)}  # type: ignore[arg-type]


def _plain(value: Any) -> Any:
    if isinstance(value, CorpusSpec):
        return value.identity()
    return [_plain(item) for item in value] if isinstance(value, tuple) else value


def require_spec(value: object, where: str) -> None:
    hint = "Is its `_target_` missing, or `_convert_: all` on the outermost node?"
    require_kind(value, CorpusSpec, where, "a corpus recipe", hint=hint)


def as_names(value: object, where: str, *, or_null: bool = False) -> tuple[str, ...]:
    """One name or several, as a tuple without repetition."""
    names = (value,) if isinstance(value, str) else tuple(value) if isinstance(value, list | tuple) else ()
    if not names or not all(isinstance(name, str) and name for name in names):
        raise ValueError(wrong(where, "a name or a list of names", value))
    if len(set(names)) < len(names):
        raise ValueError(f"{where} names something twice: {', '.join(names)}. Remove the repetition.")
    return names


def as_sorted_names(value: object, where: str, *, or_null: bool = False) -> tuple[str, ...]:
    """In alphabetical order: which are chosen matters, and not in which order they are named."""
    return tuple(sorted(as_names(value, where)))


def as_float(value: float, where: str) -> float:
    return float(value)


def as_salt(value: object, where: str) -> str:
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise ValueError(wrong(where, "any text or whole number, the name of this draw", value))
    return str(value)


def document(doc_id: str, text: str, cluster_id: str, domain: str, title: str = "", author: str = "") -> Document:
    """Raises ValueError for half a character (a lone surrogate), which JSON, Python and names of files can hold, and
    which no tokenizer reads."""
    made = Document(doc_id, text, cluster_id, domain, title, author)
    for name in ("doc_id", "text", "cluster_id", "domain", "title", "author"):
        try:
            getattr(made, name).encode()
        except UnicodeEncodeError as error:
            raise ValueError(
                f"The document {doc_id!r} must be valid Unicode; its {name} holds half a character (a lone surrogate) "
                f"at place {error.start + 1}. Replace it."
            ) from None
    return made


def digest_files(files: Iterable[tuple[str, Path]]) -> str:
    """One sha256 of the names and bytes of several files, whatever their order and wherever they lie."""
    digests = sorted((name, digest_file(path)) for name, path in files)
    return hashlib.sha256(json.dumps(digests).encode()).hexdigest()


def digest_file(*pieces: Path) -> str:
    """sha256 of a file's bytes, read again only when its size or time of change moves. Of a file in several pieces: of
    the whole."""
    return _digest_file(*((path, status.st_mtime_ns, status.st_size) for path in pieces if (status := path.stat())))


@lru_cache(maxsize=65536)
def _digest_file(*pieces: tuple[Path, int, int]) -> str:
    digest = hashlib.sha256()
    for path, _, _ in pieces:
        with path.open("rb") as file:
            hashlib.file_digest(file, lambda: digest)
    return digest.hexdigest()
