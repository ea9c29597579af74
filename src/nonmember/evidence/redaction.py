"""Takes out of a bundle what names documents or holds their text, and makes sure of it before anything is written."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from nonmember.records import Corpus
from nonmember.results.answers import without_examples

RUN = 8  # words in a row that count as text of a document
TELLING = 20  # characters that they have at least: rows of digits are no text
SHORT_ID = 4  # ids of fewer characters are words and numbers that mean other things elsewhere
PATH_LEFT_OUT, DOCUMENT_LEFT_OUT = "[path left out]", "[document left out]"


@dataclass(frozen=True)
class Redaction:
    names: Mapping[str, str]  # ids of documents and clusters -> what stands in their place

    @classmethod
    def of(cls, corpora: Mapping[str, Corpus], committed: Mapping[str, Mapping[str, str]]) -> Redaction:
        names: dict[str, str] = {}
        clusters = sorted({item.cluster_id for corpus in corpora.values() for item in corpus.documents} - {""})
        for number, cluster in enumerate(clusters):
            names |= {cluster: f"unit-{number}", f"cluster:{cluster}": f"unit-{number}"}
        for group in reversed(list(corpora)):  # of two documents with one id the suspect one is meant, which is first
            for item in corpora[group].documents:
                name = committed[group][item.doc_id]
                names |= dict.fromkeys((item.doc_id, f"{group}/{item.doc_id}", f"document:{group}/{item.doc_id}"), name)
        return cls({name: item for name, item in names.items() if len(name) >= SHORT_ID and not name.isdecimal()})

    def of_json(self, value: Any) -> Any:
        if isinstance(value, Mapping):
            if {"doc_id", "text"} <= value.keys():  # a recipe that names its documents one by one
                return DOCUMENT_LEFT_OUT
            return {self.names.get(name, name): self.of_json(item) for name, item in value.items()}
        if isinstance(value, list | tuple):
            return [self.of_json(item) for item in value]
        return self._of_text(value) if isinstance(value, str) else value

    def _of_text(self, text: str) -> str:
        if text in self.names:
            return self.names[text]
        if re.match(r"(/|~/|[A-Za-z]:\\)", text):
            return PATH_LEFT_OUT
        return without_examples(text)


def require_no_text(files: Mapping[str, bytes], texts: Iterable[str]) -> None:
    """Refuse files in which eight words of a document stand in a row, or the whole of a shorter one.

    Raises ValueError with the name of the file, and not with the text.
    """
    runs, short = set(), set()
    for text in texts:
        words = _words(text)
        runs |= {run for run in _runs(words) if len(run) >= TELLING}
        if 3 <= len(words) < RUN and len(whole := " ".join(words)) >= TELLING:
            short.add(whole)
    for name, content in files.items():
        words = _words(_strings(content) if name.endswith(".parquet") else content.decode("utf-8", "replace"))
        joined = f" {' '.join(words)} "
        if any(run in runs for run in _runs(words)) or any(f" {item} " in joined for item in short):
            raise ValueError(
                f"{name} would hold text of the documents, which it must not. This is a fault of the program, or "
                "a setting or label of the audit quotes a document; rename it."
            )


def _strings(content: bytes) -> str:
    """Of a Parquet table, the names of its columns and all that is text in it."""
    table = pq.read_table(pa.BufferReader(content))
    texts = [*table.column_names]
    for column in table.columns:
        if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
            texts += [str(item) for item in column.unique().to_pylist()]
    return "\n".join(texts)


def _words(text: str) -> list[str]:
    return re.findall(r"\w+", text.lower())


def _runs(words: list[str]) -> Iterator[str]:
    return (" ".join(words[index : index + RUN]) for index in range(len(words) - RUN + 1))
