"""The same documents in another dress: same ids, other texts."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal, get_args

from nonmember.corpora.specs import require_choice
from nonmember.records import Corpus

View = Literal["original", "lowercase"]


def lowercase(corpus: Corpus) -> Corpus:
    """Every text through `str.lower()`, as the lowercase score of Carlini et al. (2021) reads it."""
    return replace(corpus, documents=tuple(replace(doc, text=doc.text.lower()) for doc in corpus.documents))


def apply_view(corpus: Corpus, view: View) -> Corpus:
    require_choice(view, get_args(View), "A view")
    return lowercase(corpus) if view == "lowercase" else corpus
