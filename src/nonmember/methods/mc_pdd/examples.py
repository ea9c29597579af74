"""Questions of MC-PDD with their answers, as texts to train on: they teach a small model to answer with ten words.

A model without a chat form goes on with the question; one that has read many such texts goes on with a list. What is in
the list it has to know or to guess.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from nonmember.artifacts import Builder
from nonmember.corpora import CorpusSpec
from nonmember.methods.mc_pdd.prompts import NUM_CANDIDATES, MaskedWords
from nonmember.records import Corpus, Document


@dataclass(frozen=True)
class AnsweredQuestions(CorpusSpec):
    """A text for each of so many words of each document: the question, then a list of ten with the masked word first.
    The others are masked words of other documents of the domain, drawn by the seed.

    show_name: whether the question tells the document's title.
    """

    base: CorpusSpec
    num_words: int
    show_name: bool
    seed: int

    stored: ClassVar[bool] = False

    def build(self, builder: Builder) -> Corpus:
        base = builder.get(self.base)
        domains = {document.doc_id: document.domain for document in base.documents}
        requests = self._probe().ask(base, {}).requests
        words: dict[str, list[str]] = {}
        for request in requests:
            words.setdefault(domains[request.doc_id], []).append(request.expected)
        rng = np.random.default_rng(self.seed)
        documents = []
        for request in requests:
            domain = domains[request.doc_id]
            others = [word for word in rng.choice(words[domain], size=NUM_CANDIDATES) if word != request.expected]
            answer = [request.expected, *others][:NUM_CANDIDATES]
            listed = "\n".join(f"{index}. {word}" for index, word in enumerate(answer, 1))
            text = f"{request.as_text}\n{listed}"
            documents.append(Document(f"{request.doc_id}/{request.name}", text, request.doc_id, domain))
        return Corpus(tuple(documents))

    def identity(self) -> dict[str, Any]:
        return {
            "kind": "answered_questions",
            "rules": 1,
            "base": self.base.identity(),
            "num_words": self.num_words,
            "show_name": self.show_name,
            "seed": self.seed,
        }

    def _probe(self) -> MaskedWords:
        return MaskedWords(
            strategy="max",
            num_words=self.num_words,
            show_name=self.show_name,
            pooled=None,
            letters_only=False,
            stop_words=(),
            match="whole_word",
            max_new_tokens=1,
            temperature=0.0,
            seed=self.seed,
        )
