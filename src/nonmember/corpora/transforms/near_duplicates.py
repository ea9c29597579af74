"""Near duplicates: the same documents with some words replaced."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from nonmember.artifacts import Builder
from nonmember.checks import require_number
from nonmember.corpora.specs import CorpusSpec, require_spec
from nonmember.corpora.transforms.splits import require_salt
from nonmember.records import Corpus


@dataclass(frozen=True)
class NearDuplicates(CorpusSpec):
    """The documents of `base` in each of which every word is, with the chance `share`, another of the corpus's words.

    Words are what stands between white space; the new one is drawn from all words of the corpus as often as they occur,
    whatever it replaces but not that itself. Ids, clusters, domains and white space stay. salt: another one, other
    exchanges. A document's depend on its id and the words of the corpus alone.
    """

    base: CorpusSpec
    share: float
    salt: str | int

    stored: ClassVar[bool] = False

    def __post_init__(self) -> None:
        require_spec(self.base, "`base` of NearDuplicates")
        require_number(self.share, "(0, 1]", "`share` of NearDuplicates")
        object.__setattr__(self, "salt", require_salt(self.salt, "NearDuplicates"))

    def build(self, builder: Builder) -> Corpus:
        base = builder.get(self.base)
        words = np.array(sorted(word for document in base.documents for word in document.text.split()), dtype=object)
        if len(set(words)) < 2:
            raise ValueError(
                "NearDuplicates exchanges words for others, but its base does not have two different ones."
            )
        documents = (
            replace(document, text=self._exchanged(document.text, words, self._rng(document.doc_id)))
            for document in base.documents
        )
        return replace(base, documents=tuple(documents))

    def _rng(self, doc_id: str) -> np.random.Generator:
        digest = hashlib.sha256(f"{self.salt}\0{doc_id}".encode()).digest()
        return np.random.default_rng(int.from_bytes(digest[:8], "big"))

    def _exchanged(self, text: str, words: Any, rng: np.random.Generator) -> str:
        def exchanged(word: re.Match[str]) -> str:
            return _another(word[0], words, rng) if rng.random() < self.share else word[0]

        return re.sub(r"\S+", exchanged, text)

    def identity(self) -> dict[str, Any]:
        return {"kind": "near_duplicates", "base": self.base.identity(), "share": float(self.share), "salt": self.salt}


def _another(word: str, words: Any, rng: np.random.Generator) -> str:
    while True:
        drawn = str(words[rng.integers(len(words))])
        if drawn != word:
            return drawn
