"""Identifiers in documents, each behind the text before it, and what chance might have put in their place."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

from nonmember.artifacts import Builder
from nonmember.checks import Count
from nonmember.corpora.specs import CorpusSpec, Transform
from nonmember.records import Corpus, Document
from nonmember_verify.identifiers import alternatives, find


@dataclass(frozen=True)
class Identifiers(Transform):
    """One document per string, of which the string alone is scored (`Document.pieces`); those of one identifier are a
    cluster, whose name begins with the form. `Corpus.dropped` of the published ones counts what was left out.

    Attributes:
        part: The strings that stand in the documents of `base`, or `num_alternatives` of the same form for each.
        seed: By which these are drawn.
    """

    base: CorpusSpec
    part: Literal["published", "alternatives"]
    num_alternatives: Annotated[int, Count(1)]
    seed: int

    name: ClassVar[str] = "identifiers"

    def build(self, builder: Builder) -> Corpus:
        base = builder.get(self.base)
        found, left_out = find((item.doc_id, item.text) for item in base.documents)
        is_published, documents = self.part == "published", []
        for item in found:
            texts = [item.text] if is_published else alternatives(item, self.num_alternatives, self.seed)
            for index, text in enumerate(texts, start=0 if is_published else 1):
                pieces = item.context, text
                documents.append(Document(f"{item.name}#{index}", "".join(pieces), item.name, item.form, pieces=pieces))
        return Corpus(tuple(documents), Counter(base.dropped) + Counter(left_out) if is_published else {})
