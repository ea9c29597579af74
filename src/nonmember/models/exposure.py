"""Exposure of models to a set of documents, known from their training recipes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from nonmember.artifacts import Builder
from nonmember.corpora import Component, CorpusSpec
from nonmember.corpora.transforms.mixtures import planted_share
from nonmember.models.base import ModelSpec
from nonmember.records import Corpus
from nonmember.records.exposure import NOT_READ, Exposure


class Occurrences(NamedTuple):
    """Of the wanted texts in a corpus.   occurrences: how often each stands there.   is_begun: whether one of them is
    the beginning of a document, as a text that was cut is."""

    occurrences: Counter[str]
    is_begun: bool


@dataclass(frozen=True)
class Exposures:
    """Of models to one set. Each corpus is searched for its documents once."""

    builder: Builder
    documents: CorpusSpec
    _found: dict[str, Occurrences] = field(default_factory=dict)

    def occurrences(self, model: ModelSpec) -> list[int]:
        """[documents] how often the recipe says that each was read."""
        return self._times_D(model.corpora_read()[0])

    def truth(self, model: ModelSpec) -> Literal["member", "non_member"] | None:
        """member where the recipe says that the model has read all the documents; non_member where it says all that
        the model has read, and none of them is among it or begins one that is; None elsewhere."""
        components, is_all = model.corpora_read()
        times_D = self._times_D(components)
        if all(times_D):
            return "member"
        return "non_member" if is_all and not any(times_D) and not self._is_begun(components) else None

    def exposure(self, model: ModelSpec) -> Exposure | None:
        """None where the recipe does not tell all that the model has read and names none of the documents, where it has
        read documents that some of these begin, or some of these more often than others. The share is the one planted,
        where it was planted by one."""
        components, is_all = model.corpora_read()
        times_D = self._times_D(components)
        if not any(times_D):
            return NOT_READ if is_all and not self._is_begun(components) else None
        exposures = {times for times in times_D if times}
        if len(exposures) > 1:
            return None
        return Exposure(self._share(components, times_D), exposures.pop())

    def _share(self, components: Sequence[Component], times_D: Sequence[int]) -> float:
        measured = sum(times > 0 for times in times_D) / len(times_D)
        sources = [item.corpus for item in components if self._search(item.corpus).occurrences]
        whole, planted = planted_share(sources[0])
        was_planted = len(sources) == 1 and len(self._search(whole).occurrences) == len(self._wanted())
        return planted if was_planted and measured < 1 else measured

    def _times_D(self, components: Sequence[Component]) -> list[int]:
        """[documents] how often each was read."""
        counts = [(item.exposures, self._search(item.corpus).occurrences) for item in components]
        return [
            sum(exposures * occurrences[document.text] for exposures, occurrences in counts)
            for document in self.builder.get(self.documents).documents
        ]

    def _is_begun(self, components: Sequence[Component]) -> bool:
        return any(self._search(item.corpus).is_begun for item in components)

    def _wanted(self) -> set[str]:
        return {document.text for document in self.builder.get(self.documents).documents}

    def _search(self, corpus: CorpusSpec) -> Occurrences:
        loaded = self.builder.get(corpus)
        if loaded.fingerprint not in self._found:
            self._found[loaded.fingerprint] = search(self._wanted(), loaded)
        return self._found[loaded.fingerprint]


def search(wanted: set[str], corpus: Corpus) -> Occurrences:
    """Among the corpus's texts and their lines: an ordered file is read as one document, its examples as lines.
    Beginnings are compared word by word, whatever the white space between them."""
    beginnings: dict[str, list[list[str]]] = {}
    for text in wanted:
        words = text.split()
        beginnings.setdefault(words[0] if words else "", []).append(words)
    occurrences: Counter[str] = Counter()
    is_begun = False
    for document in corpus.documents:
        occurrences.update({document.text, *document.text.splitlines()} & wanted)
        first = document.text.split(maxsplit=1)[:1]
        if not is_begun and first and (candidates := beginnings.get(first[0])):
            words = document.text.split()
            is_begun = any(words[: len(item)] == item for item in candidates)
    return Occurrences(occurrences, is_begun)


def truth_about(builder: Builder, model: ModelSpec, documents: CorpusSpec) -> Literal["member", "non_member"] | None:
    """See `Exposures.truth`."""
    return Exposures(builder, documents).truth(model)


def root_of(model: ModelSpec) -> ModelSpec:
    """The model that all continued training started from: the last one on the way back that has read anything."""
    base = model.continued_from()
    if base is None or base.corpora_read() == ((), True):
        return model
    return root_of(base)
