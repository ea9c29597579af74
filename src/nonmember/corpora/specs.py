"""What every corpus recipe can do, and the small checks they share.

A recipe is a frozen dataclass of plain values and other recipes. Hydra builds it from `_target_`; use
`_convert_: all`, so that lists and mappings arrive as Python's own.
"""

from __future__ import annotations

import hashlib
import json
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from functools import lru_cache
from pathlib import Path
from typing import Any, ClassVar, TypeVar

from rich.console import Console
from rich.progress import track

from nonmember.records import Corpus, Document

T = TypeVar("T")


class CorpusSpec(ABC):
    """A recipe for a corpus: what it is made of, not the documents themselves.

    `stored`: making it takes long enough that whoever evaluates recipes should keep the result on disk.
    """

    stored: ClassVar[bool]

    @abstractmethod
    def build(self, resolve: Resolve) -> Corpus:
        """Make the corpus; `resolve` evaluates the recipes inside this one, or finds them in a store."""

    @abstractmethod
    def identity(self) -> dict[str, Any]:
        """Everything that determines the documents, as JSON values: equal identities mean equal corpora."""


Resolve = Callable[[CorpusSpec], Corpus]


def require_spec(value: object, where: str) -> None:
    if not isinstance(value, CorpusSpec):
        raise ValueError(
            f"{where} must be a corpus recipe, but a {type(value).__name__} came; "
            "is its `_target_` missing, or `_convert_: all` on the outermost node?"
        )


def require_choice(value: object, choices: tuple[str, ...], where: str) -> None:
    if value not in choices:
        raise ValueError(f"{where} must be one of {', '.join(map(repr, choices))}, but {value!r} came.")


def require_count(value: object, minimum: int, where: str) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or value < minimum:
        raise ValueError(f"{where} must be a whole number of at least {minimum}, but {value!r} came.")


def as_names(value: str | Iterable[str], where: str) -> tuple[str, ...]:
    """One name or several, as a tuple without repetition."""
    names = (value,) if isinstance(value, str) else tuple(value)
    if not names or not all(isinstance(name, str) and name for name in names):
        raise ValueError(f"{where} must be a name or a list of names, but {value!r} came.")
    if len(set(names)) < len(names):
        raise ValueError(f"{where} names something twice: {', '.join(names)}. Remove the repetition.")
    return names


def document(doc_id: str, text: str, cluster_id: str, domain: str, title: str = "", author: str = "") -> Document:
    """Lone surrogates, which JSON and Python literals can write but UTF-8 cannot, become question marks."""
    parts = (doc_id, text, cluster_id, domain, title, author)
    return Document(*(part.encode("utf-8", "replace").decode() for part in parts))


def digest_files(files: Iterable[tuple[str, Path]]) -> str:
    """One sha256 of the names and bytes of several files, whatever their order and wherever they lie."""
    digests = sorted((name, digest_file(path)) for name, path in files)
    return hashlib.sha256(json.dumps(digests).encode()).hexdigest()


def digest_file(path: Path) -> str:
    """sha256 of a file's bytes, read again only when its size or time of change moves."""
    status = path.stat()
    return _digest_file(path, status.st_mtime_ns, status.st_size)


@lru_cache(maxsize=65536)
def _digest_file(path: Path, modified: int, size: int) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def progress(items: Iterable[T], description: str, total: int | None = None) -> Iterable[T]:
    """A progress bar on a terminal; nothing at all in a log file."""
    if not sys.stderr.isatty():
        return items
    return track(items, description, total=total, console=Console(stderr=True), transient=True)
