"""Corpora as specs: sources, transforms, and text perturbations (views)."""

from nonmember.corpora.sources.canaries import Canaries
from nonmember.corpora.sources.documents import Documents
from nonmember.corpora.sources.hub import Hub
from nonmember.corpora.sources.in_memory import InMemory
from nonmember.corpora.sources.jsonl import Jsonl
from nonmember.corpora.sources.library_docs import LibraryDocs
from nonmember.corpora.sources.paraphrases import OtherTexts
from nonmember.corpora.sources.release_docs import ReleaseDocs
from nonmember.corpora.sources.tables import Table
from nonmember.corpora.sources.text_files import TextFiles
from nonmember.corpora.sources.works import Works
from nonmember.corpora.specs import CorpusSpec
from nonmember.corpora.transforms.cleaning import Cleaned, normalise
from nonmember.corpora.transforms.dated import Dated
from nonmember.corpora.transforms.near_duplicates import NearDuplicates
from nonmember.corpora.transforms.nested import NestedMixture
from nonmember.corpora.transforms.neutral import Neutral
from nonmember.corpora.transforms.ordered import Joined, Sharded, Shuffled
from nonmember.corpora.transforms.prefixes import Prefixes
from nonmember.corpora.transforms.prepared import Cleaning, Prepared
from nonmember.corpora.transforms.splits import Component, Mixture, Part, Select
from nonmember.corpora.transforms.streamed import Chunks, Streamed
from nonmember.corpora.transforms.titled import Titled
from nonmember.corpora.views import View, Viewed, apply_view

__all__ = [
    "Canaries",
    "Chunks",
    "Cleaned",
    "Cleaning",
    "Component",
    "CorpusSpec",
    "Dated",
    "Documents",
    "Hub",
    "InMemory",
    "Joined",
    "Jsonl",
    "LibraryDocs",
    "Mixture",
    "NearDuplicates",
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
    "TextFiles",
    "Titled",
    "View",
    "Viewed",
    "Works",
    "apply_view",
    "normalise",
]
