"""Neighbours of texts by random words, as the library mimir makes them where it has no masked model."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from nonmember.artifacts import Builder
from nonmember.corpora.bounds import Bound, HubBounds
from nonmember.corpora.specs import CorpusSpec, require_count, require_spec
from nonmember.records import Corpus, Document
from nonmember.records.neighbours import name_of_neighbour

TRIES = 1000  # to place a span: mimir tries for ever, which a text without room for it would need


@dataclass(frozen=True)
class RandomNeighbours(CorpusSpec):
    """`number` versions of each document of `base`, in which `share` of the words is masked in spans of `span` words,
    with `buffer` words between, and each span is filled with random words of the corpus.

    As in mimir, share * span / (span + 2 buffer) of the words change in effect. A text gets one span at least, where
    mimir leaves texts of a dozen words as they are. The draws come from a hash of the text.
    """

    base: CorpusSpec
    number: int
    share: float
    span: int
    buffer: int

    stored: ClassVar[bool] = False

    def __post_init__(self) -> None:
        require_spec(self.base, "`base` of RandomNeighbours")
        require_count(self.number, 1, "`number` of RandomNeighbours")

    def build(self, builder: Builder) -> Corpus:
        documents = builder.get(self.base).documents
        words = sorted({word for document in documents for word in document.text.split()})
        return Corpus(
            tuple(
                Document(name_of_neighbour(document.doc_id, number), self._changed(document.text, words, number))
                for document in documents
                for number in range(self.number)
            )
        )

    def bound(self, hub: HubBounds) -> Bound:
        base = self.base.bound(hub)
        return Bound(None if base.documents is None else base.documents * self.number, base.words)

    def identity(self) -> dict[str, Any]:
        settings = {name: getattr(self, name) for name in ("number", "share", "span", "buffer")}
        return {"kind": "random neighbours", "base": self.base.identity(), **settings}

    def _changed(self, text: str, words: Sequence[str], number: int) -> str:
        seed = hashlib.sha256(f"neighbour {number}\0{text}".encode("utf-8", "surrogatepass")).digest()[:8]
        rng = np.random.default_rng(int.from_bytes(seed))
        parts: list[str | None] = list(text.split(" "))
        span = max(1, min(int(self.share * len(parts)), self.span))
        num_spans = max(1, int(self.share * len(parts) / (span + 2 * self.buffer)))
        placed = 0
        for _ in range(TRIES):
            if placed == num_spans or len(parts) <= 1:
                break
            start = int(rng.integers(max(1, len(parts) - span)))
            if None not in parts[max(0, start - self.buffer) : start + span + self.buffer]:
                parts[start : start + span] = [None]
                placed += 1
        drawn = (rng.choice(words, self.span, replace=len(words) < self.span) for _ in range(placed))
        return " ".join(" ".join(next(drawn)) if part is None else part for part in parts)
