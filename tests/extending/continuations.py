"""A corpus that a model writes: its `build` gets the model's answers from the builder, which keeps them."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from nonmember.artifacts import Builder
from nonmember.corpora import CorpusSpec
from nonmember.endpoints import Request
from nonmember.endpoints.asked import complete
from nonmember.models import ModelSpec
from nonmember.records import Corpus


@dataclass(frozen=True)
class Continuations(CorpusSpec):
    """Each document of `base` with what `model` writes next; documents to which it adds nothing are dropped."""

    base: CorpusSpec
    model: ModelSpec
    max_new_tokens: int

    stored: ClassVar[bool] = False

    def build(self, builder: Builder) -> Corpus:
        base = builder.get(self.base)
        requests = [
            Request(item.doc_id, "continue", item.text, self.max_new_tokens, 0.0, 0, plain=item.text)
            for item in base.documents
        ]
        answers = complete(builder, self.model, requests)
        written = [
            replace(document, text=document.text + answer.text)
            for document, answer in zip(base.documents, answers, strict=True)
            if answer.outcome == "answered"
        ]
        return Corpus(tuple(written), {"not continued": len(base) - len(written)})

    def key(self, builder: Builder) -> Mapping[str, Any]:
        """By what it is made of: nothing has to be written to know it."""
        model = self.model.key(builder)
        return {"continued": self.base.content(builder), "model": model, "max_new_tokens": self.max_new_tokens}

    def identity(self) -> dict[str, Any]:
        base, model = self.base.identity(), self.model.recipe()
        return {"kind": "continuations", "base": base, "model": model, "max_new_tokens": self.max_new_tokens}
