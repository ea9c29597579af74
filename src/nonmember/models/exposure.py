"""Exposure of models to a set of documents, known from their training recipes."""

from __future__ import annotations

import bisect
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from nonmember.artifacts import Builder
from nonmember.corpora import Component, CorpusSpec
from nonmember.corpora.planted import planted_share
from nonmember.models.base import ModelSpec
from nonmember.records import Corpus
from nonmember.records.exposure import NOT_READ, Exposure


@dataclass(frozen=True)
class Exposures:
    """Of models to one set. Each corpus is searched for its documents once."""

    builder: Builder
    documents: CorpusSpec
    _found: dict[str, Counter[str]] = field(default_factory=dict)

    def truth(self, model: ModelSpec) -> Literal["member", "non_member"] | None:
        """member where the recipe says that the model has read all the documents; non_member where it says all that
        the model has read, and none of them is among it or begins one that is; None elsewhere."""
        components, is_all = model.corpora_read()
        if all(self._times_D(components)):
            return "member"
        return "non_member" if is_all and self._is_unread(components) else None

    def exposure(self, model: ModelSpec) -> Exposure | None:
        """None where the recipe does not tell all that the model has read and names none of the documents, or where it
        has read some more often than others. The share is the one planted, where it was planted by one."""
        components, is_all = model.corpora_read()
        times_D = self._times_D(components)
        if not any(times_D):
            return NOT_READ if is_all and self._is_unread(components) else None
        exposures = {times for times in times_D if times}
        if len(exposures) > 1:
            return None
        return Exposure(self._share(components, times_D), exposures.pop())

    def _share(self, components: Sequence[Component], times_D: Sequence[int]) -> float:
        measured = sum(times > 0 for times in times_D) / len(times_D)
        sources = [one.corpus for one in components if self._occurrences(one.corpus)]
        whole, planted = planted_share(sources[0])
        was_planted = len(sources) == 1 and len(self._occurrences(whole)) == len(self._wanted())
        return planted if was_planted and measured < 1 else measured

    def _times_D(self, components: Sequence[Component]) -> list[int]:
        """[documents] how often each was read."""
        return [
            sum(one.exposures * self._occurrences(one.corpus)[document.text] for one in components)
            for document in self.builder.get(self.documents).documents
        ]

    def _is_unread(self, components: Sequence[Component]) -> bool:
        """No document was read, nor one that was cut to it."""
        return not any(self._times_D(components)) and not any(
            _begins_one(self._wanted(), self.builder.get(one.corpus)) for one in components
        )

    def _wanted(self) -> set[str]:
        return {document.text for document in self.builder.get(self.documents).documents}

    def _occurrences(self, corpus: CorpusSpec) -> Counter[str]:
        """How often the texts of the documents occur in a corpus."""
        found = self.builder.get(corpus)
        if found.fingerprint not in self._found:
            self._found[found.fingerprint] = _occurrences(self._wanted(), found)
        return self._found[found.fingerprint]


def _occurrences(wanted: set[str], corpus: Corpus) -> Counter[str]:
    """Among the corpus's texts and their lines: an ordered file is read as one document, its examples as lines."""
    return Counter(
        text
        for document in corpus.documents
        for text in {document.text, *document.text.splitlines()}
        if text in wanted
    )  # fmt: skip


def _begins_one(wanted: set[str], corpus: Corpus) -> bool:
    """Whether some wanted text is the beginning of a document."""
    texts = sorted(document.text for document in corpus.documents)
    places = ((text, bisect.bisect_left(texts, text)) for text in wanted)
    return any(place < len(texts) and texts[place].startswith(text) for text, place in places)


def truth_about(builder: Builder, model: ModelSpec, documents: CorpusSpec) -> Literal["member", "non_member"] | None:
    """See `Exposures.truth`."""
    return Exposures(builder, documents).truth(model)


def root_of(model: ModelSpec) -> ModelSpec:
    """The model that all continued training started from: the last one on the way back that has read anything."""
    base = model.continued_from()
    if base is None or base.corpora_read() == ((), True):
        return model
    return root_of(base)
