"""Corpora for MC-PDD, and a chat model that has read some of them: what it guesses is known."""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Mapping, Sequence

import numpy as np

import tiny
from nonmember.audits.measuring import join
from nonmember.corpora import CorpusSpec
from nonmember.endpoints import Completion, Questions, Request
from nonmember.endpoints.asked import parsed_answers
from nonmember.methods import DocumentGroup, ScoredDocuments
from nonmember.methods.mc_pdd.mc_pdd import HITS, McPdd
from nonmember.methods.mc_pdd.questions import MaskedWords
from nonmember.records import Corpus, Document

Answerer = Callable[[Sequence[Request]], list[Completion]]

SETTINGS = {
    "reference": "non_member",
    "strategy": "max",
    "num_words": 1,
    "show_name": True,
    "idf_corpus": "own",
    "letters_only": False,
    "stop_words": None,
    "match": "whole_word",
    "max_new_tokens": 200,
    "temperature": 0.1,
    "control": True,
    "max_invalid": 0.05,
    "num_resamples": 999,
    "sizes": [50],
    "alpha": 0.05,
    "max_tokens": 512,
}


def entities(number: int, name: str, *, per_cluster: int = 0) -> tiny.Texts:
    """Introductions of common words, in which a word of their own comes twice; it is the one to be masked."""
    rng = np.random.default_rng(len(name) + sum(map(ord, name)))
    documents = []
    for index in range(number):
        words = [*rng.choice(tiny.WORDS, size=20), f"{name}word{index}", f"{name}word{index}"]
        rng.shuffle(words)
        cluster = f"{name}{index // per_cluster}" if per_cluster else ""
        documents.append(Document(f"{name}-{index}", " ".join(words), cluster, title=f"Entity {index} of {name}"))
    return tiny.Texts(tuple(documents))


def chat_model(
    read: Collection[str],
    rng: np.random.Generator,
    *,
    knows: float = 0.6,
    guesses: float = 0.3,
    common: float = 0.5,
    refuses: float = 0.0,
) -> Answerer:
    """knows, guesses: how often it finds the specific word of a document it has read, or has not; common: any other."""

    def answer(request: Request) -> Completion:
        if rng.random() < refuses:
            return Completion("I'm sorry, but I can't help with that.", "answered")
        rate = common if request.expected in tiny.WORDS else knows if request.doc_id in read else guesses
        words = [f"filler{index}" for index in range(9)]
        words.insert(rng.integers(10), request.expected if rng.random() < rate else "nothing")
        return Completion("\n".join(f"{index}. {word}" for index, word in enumerate(words, 1)), "answered")

    return lambda requests: [answer(request) for request in requests]


@functools.cache
def asked_about(probe: MaskedWords, corpus: CorpusSpec) -> Questions:
    return probe.ask(corpus.build(None), {other: spec.build(None) for other, spec in probe.corpora.items()})


def measured(groups: Mapping[str, DocumentGroup], answerer: Answerer) -> dict[str, ScoredDocuments]:
    """What the pipeline would give to the test of the method."""
    found = {}
    for name, group in groups.items():
        corpus, probe = group.corpus.build(None), group.measured[HITS].probe
        questions = asked_about(probe, group.corpus)
        asked = parsed_answers(probe, corpus.doc_ids, questions, answerer(questions.requests))
        found[name] = join(corpus, {HITS: asked})
    return found


def outcome(method: McPdd, roles, answerer: Answerer, seed: int = 0):
    return method.test(measured(method.groups(roles), answerer), np.random.default_rng(seed))


def ids(spec: tiny.Texts) -> tuple[str, ...]:
    return Corpus(spec.documents).doc_ids
