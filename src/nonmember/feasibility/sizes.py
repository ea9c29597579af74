"""How many documents a corpus can have, told from its recipe: nothing is read."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from nonmember.corpora import (
    Cleaned,
    CorpusSpec,
    Hub,
    Mixture,
    NestedMixture,
    Part,
    Prepared,
    Select,
    Sharded,
    Streamed,
)
from nonmember.feasibility.descriptions import hub_datasets

TOKENS_PER_WORD = 1.6  # a bound for English prose in vocabularies of 32,000 entries and more


@dataclass(frozen=True)
class Bound:
    """Most documents, and most words of each; None where the recipe does not tell."""

    documents: int | None
    words: int | None = None

    def tokens(self, most: int | None = None) -> int | None:
        """Of all documents, of at most so many tokens each; None where nothing bounds them."""
        of_words = None if self.words is None else math.ceil(self.words * TOKENS_PER_WORD)
        each = min((one for one in (most, of_words) if one is not None), default=None)
        return None if self.documents is None or each is None else self.documents * each


def bound_of(corpus: CorpusSpec) -> Bound:
    match corpus:
        case Hub():
            described = hub_datasets().get(corpus.path)
            names = (corpus.name, corpus.split, *(corpus.data_files or ()), *dict(corpus.where or ()).values())
            most = described.most_documents(*names) if described else None
            files = max(1, len(corpus.data_files or ())) if corpus.num_documents is None else 1
            longest = described.most_words(*names) if described else None
            return Bound(_least(corpus.num_documents, None if most is None else most * files), longest)
        case Cleaned():
            base = bound_of(corpus.source)
            return Bound(base.documents, _least(base.words, corpus.max_words))
        case Prepared() | Streamed():
            base = bound_of(corpus.source)
            return Bound(base.documents, _least(base.words, corpus.cleaning.max_words))
        case Part():
            base = bound_of(corpus.base)
            return Bound(_of_part(corpus, base.documents), base.words)
        case Select():
            base = bound_of(corpus.base)
            return Bound(_least(base.documents, corpus.num_documents), base.words)
        case Sharded():
            base = bound_of(corpus.base)
            return Bound(_least(base.documents, corpus.max_examples), base.words)
        case NestedMixture():
            sides = [bound_of(corpus.seen).words, bound_of(corpus.unseen).words]
            return Bound(corpus.num_documents, None if None in sides else max(filter(None, sides)))
        case Mixture():
            parts = [(bound_of(one.corpus), one.exposures) for one in corpus.components]
            counts = [None if one.documents is None else one.documents * times for one, times in parts]
            words = [one.words for one, times in parts if times]
            return Bound(
                None if None in counts else sum(filter(None, counts)),
                None if None in words else max(filter(None, words), default=None),
            )
    inner: Any = getattr(corpus, "base", None) or getattr(corpus, "source", None) or getattr(corpus, "questions", None)
    return bound_of(inner) if isinstance(inner, CorpusSpec) else Bound(None)


def words_in(corpus: CorpusSpec) -> int | None:
    """Most words of all documents together, each as long as it may be; of mixtures by their parts."""
    if isinstance(corpus, Mixture):
        parts = [words_in(one.corpus) for one in corpus.components if one.exposures]
        times = [one.exposures for one in corpus.components if one.exposures]
        return None if None in parts else sum(n * k for n, k in zip(filter(None, parts), times, strict=True))
    if isinstance(corpus, Streamed) and corpus.num_words is not None:
        return corpus.num_words
    bound = bound_of(corpus)
    return None if bound.documents is None or bound.words is None else bound.documents * bound.words


def _of_part(part: Part, base: int | None) -> int | None:
    sizes = dict(part.sizes)
    groups = len(part.domains) if part.domains else 1
    if part.take in sizes:
        size = sizes[part.take]
        if isinstance(size, int):
            return size * groups
        return None if base is None else math.ceil(size * base)
    if base is None:
        return None
    taken = sum(size * groups if isinstance(size, int) else math.floor(size * base) for size in sizes.values())
    return max(0, base - taken)


def _least(*numbers: int | None) -> int | None:
    return min((one for one in numbers if one is not None), default=None)
