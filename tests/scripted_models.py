"""Models that are asked, played by a function: a probe asks it, and what it says is read as it always is."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence

from nonmember.audits.measuring import join
from nonmember.endpoints import Completion, Probe, Questions, Request
from nonmember.endpoints.asked import parsed_answers
from nonmember.methods import ScoredDocuments
from nonmember.records import Corpus, Document

Player = Callable[[Request], Completion]

REFUSED = Completion("", "refused")
EMPTY = Completion("", "empty")
FAILED = Completion("", "failed", reason="too long")


def says(text: str) -> Completion:
    return Completion(text, "answered")


def corpus_of(texts: Sequence[str], clusters: Sequence[str] = (), **more: str) -> Corpus:
    clusters = clusters or [""] * len(texts)
    pairs = zip(texts, clusters, strict=True)
    return Corpus(tuple(Document(f"d{n}", text, cluster, **more) for n, (text, cluster) in enumerate(pairs)))


class _Same:
    """A corpus by its place in memory: hashing its texts costs more than the questions."""

    def __init__(self, corpus: Corpus) -> None:
        self.corpus = corpus

    def __hash__(self) -> int:
        return id(self.corpus)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and self.corpus is other.corpus


@functools.lru_cache(maxsize=64)
def _asked(probe: Probe, same: _Same) -> Questions:
    return probe.ask(same.corpus, {})


def played(corpus: Corpus, measured: Mapping[str, tuple[Probe, Player]]) -> ScoredDocuments:
    """A group's documents, each measurement a probe and who answers it."""
    found = {}
    for name, (probe, player) in measured.items():
        questions = _asked(probe, _Same(corpus))
        completions = [player(request) for request in questions.requests]
        found[name] = parsed_answers(probe, corpus.doc_ids, questions, completions)
    return join(corpus, found)
