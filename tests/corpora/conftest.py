"""A corpus given outright, a resolver without a store, and a writer of JSON lines."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import pytest

import tiny
from nonmember.artifacts import Builder
from nonmember.corpora import CorpusSpec
from nonmember.records import Corpus, Document


@dataclass(frozen=True)
class Given(CorpusSpec):
    """The documents themselves, for tests."""

    documents: tuple[Document, ...]

    stored: ClassVar[bool] = False

    def build(self, builder: Builder) -> Corpus:
        return Corpus(self.documents)

    def identity(self) -> dict[str, Any]:
        return {"kind": "given", "fingerprint": Corpus(self.documents).fingerprint}


@pytest.fixture
def build() -> Callable[[CorpusSpec], Corpus]:
    return tiny.build


@pytest.fixture
def given() -> Callable[..., Given]:
    """given("a text", "another") or given(Document(...), ...)."""

    def make(*documents: str | Document) -> Given:
        return Given(tuple(d if isinstance(d, Document) else Document(f"d{i}", d) for i, d in enumerate(documents)))

    return make


@pytest.fixture
def write_lines(tmp_path: Path) -> Callable[..., Path]:
    """write_lines("name.jsonl.gz", row, ...): rows as JSON, strings as they are."""

    def write(name: str, *rows: Any) -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        text = "".join((row if isinstance(row, str) else json.dumps(row)) + "\n" for row in rows)
        path.write_bytes(gzip.compress(text.encode()) if name.endswith(".gz") else text.encode())
        return path

    return write
