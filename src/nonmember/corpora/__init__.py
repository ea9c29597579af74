"""Corpora as recipes: sources, cleaning, splits; and views of finished corpora."""

from nonmember.corpora.cleaning import Cleaned, normalise
from nonmember.corpora.library_docs import LibraryDocs
from nonmember.corpora.nested import NestedMixture
from nonmember.corpora.ordered import Joined, Sharded, Shuffled
from nonmember.corpora.sources import Hub, Jsonl, TextFiles
from nonmember.corpora.specs import CorpusSpec, Resolve
from nonmember.corpora.splits import Component, Mixture, Part, Select
from nonmember.corpora.titled import Titled
from nonmember.corpora.views import View, Viewed, apply_view

__all__ = [
    "Cleaned",
    "Component",
    "CorpusSpec",
    "Hub",
    "Joined",
    "Jsonl",
    "LibraryDocs",
    "Mixture",
    "NestedMixture",
    "Part",
    "Resolve",
    "Select",
    "Sharded",
    "Shuffled",
    "TextFiles",
    "Titled",
    "View",
    "Viewed",
    "apply_view",
    "normalise",
]
