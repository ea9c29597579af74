"""Titles and authors read off the names of documents, for methods that ask by name; and identifiers in their texts."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, replace
from typing import Annotated, ClassVar, Literal

from nonmember.artifacts import Builder
from nonmember.checks import Count
from nonmember.corpora.specs import CorpusSpec, Transform
from nonmember.records import Corpus, Document
from nonmember_verify.identifiers import alternatives, find


@dataclass(frozen=True)
class Titled(Transform):
    """Every document gets as its title what the first group of `pattern` matches in its id.

    Where documents come from a source that names them in their ids, as `LibraryDocs` does, the corpus that models are
    trained on needs no titles, and has the key that it had. Raises ValueError for an id that the pattern does not fit.
    """

    base: CorpusSpec
    pattern: str

    name: ClassVar[str] = "titled"

    def __post_init__(self) -> None:
        super().__post_init__()
        if not _compiled(self.pattern, "Titled").groups:
            raise ValueError(f"`pattern` of Titled must have a group, the title, but {self.pattern!r} has none.")

    def build(self, builder: Builder) -> Corpus:
        base = builder.get(self.base)
        documents = tuple(replace(document, title=self._title(document.doc_id)) for document in base.documents)
        return Corpus(documents, base.dropped)

    def _title(self, doc_id: str) -> str:
        found = re.search(self.pattern, doc_id)
        if not found or not found[1]:
            raise ValueError(f"Titled finds no title in the id {doc_id!r} by {self.pattern!r}; correct the pattern.")
        return found[1]


@dataclass(frozen=True)
class Works(Transform):
    """Every document gets the title and author that stand in the name of its cluster.

    Raises ValueError for a cluster id that the pattern does not fit.

    Attributes:
        pattern: A regular expression that fits a whole cluster id, with a group `title` and perhaps one `author`, as in
            "(?P<title>.+)_-_(?P<author>.+)". Underscores in them become blanks.
    """

    base: CorpusSpec
    pattern: str

    name: ClassVar[str] = "works"

    def __post_init__(self) -> None:
        super().__post_init__()
        if "title" not in _compiled(self.pattern, "Works").groupindex:
            raise ValueError(f"`pattern` of Works must have a group (?P<title>...), but {self.pattern!r} has none.")

    def build(self, builder: Builder) -> Corpus:
        base = builder.get(self.base)
        return Corpus(tuple(self._with_work(document) for document in base.documents), base.dropped)

    def _with_work(self, document: Document) -> Document:
        found = re.fullmatch(self.pattern, document.cluster_id)
        if not found:
            raise ValueError(
                f"Works finds no title in the cluster {document.cluster_id!r} by {self.pattern!r}; correct the pattern."
            )
        groups = {name: (value or "").replace("_", " ") for name, value in found.groupdict().items()}
        return replace(document, title=groups["title"], author=groups.get("author", ""))


@dataclass(frozen=True)
class Identifiers(Transform):
    """One document per string, of which the string alone is scored (`Document.pieces`); those of one identifier are a
    cluster, whose name begins with the form. `Corpus.dropped` of the published ones counts what was left out.

    Attributes:
        part: The strings that stand in the documents of `base`, or `num_alternatives` of the same form for each.
        seed: By which these are drawn.
    """

    base: CorpusSpec
    part: Literal["published", "alternatives"]
    num_alternatives: Annotated[int, Count(1)]
    seed: int

    name: ClassVar[str] = "identifiers"

    def build(self, builder: Builder) -> Corpus:
        base = builder.get(self.base)
        found, left_out = find((item.doc_id, item.text) for item in base.documents)
        is_published, documents = self.part == "published", []
        for item in found:
            texts = [item.text] if is_published else alternatives(item, self.num_alternatives, self.seed)
            for index, text in enumerate(texts, start=0 if is_published else 1):
                pieces = item.context, text
                documents.append(Document(f"{item.name}#{index}", "".join(pieces), item.name, item.form, pieces=pieces))
        return Corpus(tuple(documents), Counter(base.dropped) + Counter(left_out) if is_published else {})


def _compiled(pattern: str, who: str) -> re.Pattern[str]:
    try:
        return re.compile(pattern)
    except re.error as error:
        raise ValueError(f"`pattern` of {who} must be a regular expression, but {error}: {pattern!r}.") from error
