"""Adds title and author to documents, taken from the name of their cluster."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from nonmember.artifacts import Builder
from nonmember.corpora.specs import CorpusSpec, require_spec
from nonmember.records import Corpus, Document


@dataclass(frozen=True)
class Works(CorpusSpec):
    """pattern: a regular expression that fits a whole cluster id, with a group `title` and perhaps one `author`, as in
    "(?P<title>.+)_-_(?P<author>.+)". Underscores in them become blanks.

    Raises ValueError for a cluster id that the pattern does not fit.
    """

    base: CorpusSpec
    pattern: str

    stored: ClassVar[bool] = False

    def __post_init__(self) -> None:
        require_spec(self.base, "`base` of Works")
        try:
            groups = re.compile(self.pattern).groupindex
        except re.error as error:
            raise ValueError(
                f"`pattern` of Works must be a regular expression, but {error}: {self.pattern!r}."
            ) from error
        if "title" not in groups:
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
        said = {name: (value or "").replace("_", " ") for name, value in found.groupdict().items()}
        return replace(document, title=said["title"], author=said.get("author", ""))

    def identity(self) -> dict[str, Any]:
        return {"kind": "works", "base": self.base.identity(), "pattern": self.pattern}
