"""Several lengths of each document in one set, as WikiMIA has of each article."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

from nonmember.artifacts import Builder
from nonmember.checks import wrong
from nonmember.corpora.specs import CorpusSpec, require_count, require_spec
from nonmember.records import Corpus


@dataclass(frozen=True)
class Prefixes(CorpusSpec):
    """Of every document its first so many words, one document per length: ids "id/32", the document as their cluster.

    So a split by cluster keeps the lengths of one document together, and a split by document does not. Words are joined
    by one space. A document shorter than a length has none of it.
    Raises ValueError if no document is as long as the shortest.
    """

    base: CorpusSpec
    lengths: tuple[int, ...]

    stored: ClassVar[bool] = False

    def __post_init__(self) -> None:
        require_spec(self.base, "`base` of Prefixes")
        lengths = tuple(self.lengths)
        for length in lengths:
            require_count(length, 1, "each of `lengths` of Prefixes")
        if not lengths or len(set(lengths)) < len(lengths):
            raise ValueError(wrong("`lengths` of Prefixes", "different numbers of words", self.lengths))
        object.__setattr__(self, "lengths", tuple(sorted(lengths)))

    def build(self, builder: Builder) -> Corpus:
        documents = []
        for document in builder.get(self.base).documents:
            words = document.text.split()
            documents += [
                replace(
                    document,
                    doc_id=f"{document.doc_id}/{length}",
                    text=" ".join(words[:length]),
                    cluster_id=document.doc_id,
                )
                for length in self.lengths
                if length <= len(words)
            ]
        if not documents:
            raise ValueError(f"Prefixes needs documents of {self.lengths[0]} words or more, but there are none.")
        return Corpus(tuple(documents))

    def identity(self) -> dict[str, Any]:
        return {"kind": "prefixes", "base": self.base.identity(), "lengths": list(self.lengths)}
