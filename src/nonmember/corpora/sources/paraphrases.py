"""Several paraphrases of each document: written by a model in one response, or columns of a published data set.

The paraphrases of the document d are the documents d#1, d#2, ...
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from nonmember.artifacts import Builder
from nonmember.corpora.specs import CorpusSpec, Transform, require_spec
from nonmember.corpora.transforms.cleaning import normalise
from nonmember.records import Corpus, Document

LETTERS = "BCD"
_CUE = re.compile(r"[\s*#\-]*Example\s+([A-D])\s*[*)]*\s*:[\s*]*", re.IGNORECASE)


def paraphrase_id(doc_id: str, number: int) -> str:
    """number: from 1."""
    return f"{doc_id}#{number}"


def _numbered(document: Document, texts: Sequence[str]) -> list[Document]:
    ids = (paraphrase_id(document.doc_id, number) for number in range(1, len(texts) + 1))
    return [replace(document, doc_id=doc_id, text=text) for doc_id, text in zip(ids, texts, strict=True)]


def parsed(text: str) -> list[str] | None:
    """The three texts behind "Example B:", "Example C:" and "Example D:"; None where these cues do not stand there once
    each and in this order. What stands before the first is passed over, and angle brackets around a text, which the
    prompt puts around its placeholders, go."""
    pieces = _CUE.split(text)
    cues, texts = "".join(pieces[1::2]).upper(), pieces[2::2]
    if cues not in (LETTERS, f"A{LETTERS}"):  # some repeat the original first
        return None
    return [_without_brackets(normalise(item)) for item in texts[-len(LETTERS) :]]


def _without_brackets(text: str) -> str:
    return text[1:-1].strip() if text.startswith("<") and text.endswith(">") else text


@dataclass(frozen=True)
class Paraphrases(Transform):
    """The usable paraphrases in what a model wrote (`texts`, with the ids of the documents of `base`), three each.

    Dropped, by reason and counted per document: no text, not in the form that was asked for, a paraphrase that is
    empty, equal to the original or to another one. Raises ValueError where none is left.
    """

    base: CorpusSpec
    texts: CorpusSpec

    name: ClassVar[str] = "paraphrases"

    def key(self, builder: Builder) -> dict[str, Any]:
        return {"paraphrased": self.base.fingerprint(builder), "texts": self.texts.key(builder)}

    def build(self, builder: Builder) -> Corpus:
        written = {document.doc_id: document.text for document in builder.get(self.texts).documents}
        dropped: Counter[str] = Counter()
        kept: list[Document] = []
        originals = builder.get(self.base).documents
        for document in originals:
            text = written.get(document.doc_id, "")
            found = parsed(text)
            if (reason := _unusable(document, text, found)) is not None:
                dropped[reason] += 1
                continue
            assert found is not None
            kept += _numbered(document, found)
        if not kept:
            reasons = ", ".join(f"{reason}: {number}" for reason, number in sorted(dropped.items()))
            raise ValueError(
                f"None of {len(originals)} documents has paraphrases that can be used ({reasons}). Choose a model that "
                "follows instructions (method.paraphraser), or give paraphrases (method.paraphrases)."
            )
        return Corpus(tuple(kept), dict(sorted(dropped.items())))


def _unusable(document: Document, text: str, found: list[str] | None) -> str | None:
    if not text.strip():
        return "no paraphrases written"
    if found is None:
        return "paraphrases not in the form asked for"
    if not all(found):
        return "empty paraphrase"
    if normalise(document.text) in found:
        return "paraphrase equal to the original"
    return None if len(set(found)) == len(found) else "two equal paraphrases"


@dataclass(frozen=True)
class OtherTexts(Transform):
    """Of each document the texts of the same id in `texts` that are not its own, in the order of `texts`: its
    paraphrases, where a data set has original and paraphrases in columns that are mixed.

    Documents that have no other text there are passed over.
    """

    base: CorpusSpec
    texts: Sequence[CorpusSpec]

    name: ClassVar[str] = "other_texts"

    def __post_init__(self) -> None:
        super().__post_init__()
        for text in self.texts:
            require_spec(text, "each of `texts` of OtherTexts")
        object.__setattr__(self, "texts", tuple(self.texts))

    def build(self, builder: Builder) -> Corpus:
        columns = [{item.doc_id: item.text for item in builder.get(texts).documents} for texts in self.texts]
        made = []
        for document in builder.get(self.base).documents:
            there = [normalise(column.get(document.doc_id, "")) for column in columns]
            made += _numbered(document, [item for item in there if item and item != normalise(document.text)])
        return Corpus(tuple(made))
