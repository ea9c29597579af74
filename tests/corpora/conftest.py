"""A corpus given outright, a resolver without a store, and a writer of JSON lines."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import tiny
from nonmember.corpora import CorpusSpec
from nonmember.records import Corpus, Document


@pytest.fixture
def build() -> Callable[[CorpusSpec], Corpus]:
    return tiny.build


@pytest.fixture
def given() -> Callable[..., tiny.Texts]:
    """given("a text", "another") or given(Document(...), ...)."""

    def make(*documents: str | Document) -> tiny.Texts:
        return tiny.Texts(
            tuple(d if isinstance(d, Document) else Document(f"d{i}", d) for i, d in enumerate(documents))
        )

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
