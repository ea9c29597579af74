"""Corpora as recipes: sources, cleaning, splits; and views of finished corpora."""

from nonmember.corpora.cleaning import Cleaned, normalise
from nonmember.corpora.documents import Documents
from nonmember.corpora.library_docs import LibraryDocs
from nonmember.corpora.near_duplicates import NearDuplicates
from nonmember.corpora.nested import NestedMixture
from nonmember.corpora.neutral import Neutral
from nonmember.corpora.ordered import Joined, Sharded, Shuffled
from nonmember.corpora.paraphrases import OtherTexts
from nonmember.corpora.prepared import Cleaning, Prepared
from nonmember.corpora.sources import Hub, Jsonl, TextFiles
from nonmember.corpora.specs import CorpusSpec
from nonmember.corpora.splits import Component, Mixture, Part, Select
from nonmember.corpora.tables import Table
from nonmember.corpora.titled import Titled
from nonmember.corpora.views import View, Viewed, apply_view
from nonmember.corpora.works import Works

__all__ = [
    "Cleaned",
    "Cleaning",
    "Component",
    "CorpusSpec",
    "Documents",
    "Hub",
    "Joined",
    "Jsonl",
    "LibraryDocs",
    "Mixture",
    "NearDuplicates",
    "NestedMixture",
    "Neutral",
    "OtherTexts",
    "Part",
    "Prepared",
    "Select",
    "Sharded",
    "Shuffled",
    "Table",
    "TextFiles",
    "Titled",
    "View",
    "Viewed",
    "Works",
    "apply_view",
    "normalise",
]
