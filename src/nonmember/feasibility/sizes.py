"""How many documents and words a corpus can have, with what is known of the hub: nothing is read."""

from __future__ import annotations

from collections.abc import Sequence

from nonmember.corpora import CorpusSpec
from nonmember.corpora.specs import Bound
from nonmember.feasibility.descriptions import hub_datasets


def bound_of(corpus: CorpusSpec) -> Bound:
    return corpus.bound(_of_the_hub)


def words_in(corpus: CorpusSpec) -> int | None:
    """Most words of all documents together, each as long as it may be."""
    return corpus.most_words(_of_the_hub)


def _of_the_hub(path: str, names: Sequence[str | None]) -> Bound:
    described = hub_datasets().get(path)
    return Bound(None) if described is None else Bound(described.most_documents(*names), described.most_words(*names))
