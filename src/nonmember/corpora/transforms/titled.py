"""Adds titles taken from document ids, for methods that prompt with a name."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from nonmember.artifacts import Builder
from nonmember.corpora.specs import CorpusSpec, require_spec
from nonmember.records import Corpus


@dataclass(frozen=True)
class Titled(CorpusSpec):
    """Every document gets as its title what the first group of `pattern` matches in its id.

    Where documents come from a source that names them in their ids, as `LibraryDocs` does, the corpus that models are
    trained on needs no titles, and has the key that it had. Raises ValueError for an id that the pattern does not fit.
    """

    base: CorpusSpec
    pattern: str

    stored: ClassVar[bool] = False

    def __post_init__(self) -> None:
        require_spec(self.base, "`base` of Titled")
        try:
            num_groups = re.compile(self.pattern).groups
        except re.error as error:
            raise ValueError(
                f"`pattern` of Titled must be a regular expression, but {error}: {self.pattern!r}."
            ) from error
        if num_groups < 1:
            raise ValueError(
                f"`pattern` of Titled must have a group, which is the title, but {self.pattern!r} has none."
            )

    def build(self, builder: Builder) -> Corpus:
        base = builder.get(self.base)
        documents = tuple(replace(document, title=self._title(document.doc_id)) for document in base.documents)
        return Corpus(documents, base.dropped)

    def _title(self, doc_id: str) -> str:
        found = re.search(self.pattern, doc_id)
        if not found or not found[1]:
            raise ValueError(f"Titled finds no title in the id {doc_id!r} by {self.pattern!r}; correct the pattern.")
        return found[1]

    def identity(self) -> dict[str, Any]:
        return {"kind": "titled", "base": self.base.identity(), "pattern": self.pattern}
