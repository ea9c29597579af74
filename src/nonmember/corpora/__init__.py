"""Corpora as specs: sources, transforms, and text perturbations (views)."""

from nonmember.corpora.sources.canaries import Canaries, Drawn
from nonmember.corpora.sources.conversations import Conversations, ConversationsInMemory, Dialogues
from nonmember.corpora.sources.docstrings import LibraryDocs, ReleaseDocs
from nonmember.corpora.sources.documents import Documents, InMemory, Table
from nonmember.corpora.sources.hub import Hub
from nonmember.corpora.sources.paraphrases import OtherTexts
from nonmember.corpora.specs import CorpusSpec
from nonmember.corpora.transforms.cleaning import Cleaned, Cleaning, Prepared, normalise
from nonmember.corpora.transforms.mixtures import Component, Mixture, NestedMixture
from nonmember.corpora.transforms.neutral import Neutral
from nonmember.corpora.transforms.ordered import Joined, Sharded, Shuffled
from nonmember.corpora.transforms.splits import Dated, Part, Select
from nonmember.corpora.transforms.streamed import Chunks, Streamed
from nonmember.corpora.transforms.titled import Identifiers, Titled, Works
from nonmember.corpora.views import Prefixes, View, Viewed, apply_view

__all__ = [
    "Canaries",
    "Chunks",
    "Cleaned",
    "Cleaning",
    "Component",
    "Conversations",
    "ConversationsInMemory",
    "CorpusSpec",
    "Dated",
    "Dialogues",
    "Documents",
    "Drawn",
    "Hub",
    "Identifiers",
    "InMemory",
    "Joined",
    "LibraryDocs",
    "Mixture",
    "NestedMixture",
    "Neutral",
    "OtherTexts",
    "Part",
    "Prefixes",
    "Prepared",
    "ReleaseDocs",
    "Select",
    "Sharded",
    "Shuffled",
    "Streamed",
    "Table",
    "Titled",
    "View",
    "Viewed",
    "Works",
    "apply_view",
    "normalise",
]
