"""Documents of a span of time, told by the years that they name."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from nonmember.artifacts import Builder
from nonmember.corpora.specs import CorpusSpec, require_count, require_spec
from nonmember.corpora.views import YEAR
from nonmember.records import Corpus

FIRST_YEAR, LAST_YEAR = 1900, 2099  # that `YEAR` finds


@dataclass(frozen=True)
class Dated(CorpusSpec):
    """The documents whose latest named year lies from `first` to `last`; those that name none are left out.

    Adds to `Corpus.dropped`: other_years, no_year. Raises ValueError if none is left.
    """

    base: CorpusSpec
    first: int = FIRST_YEAR
    last: int = LAST_YEAR

    stored: ClassVar[bool] = False

    def __post_init__(self) -> None:
        require_spec(self.base, "`base` of Dated")
        require_count(self.first, FIRST_YEAR, "`first` of Dated", at_most=LAST_YEAR)
        require_count(self.last, self.first, "`last` of Dated (no earlier than `first`)", at_most=LAST_YEAR)

    def build(self, builder: Builder) -> Corpus:
        base = builder.get(self.base)
        latest = [max(map(int, YEAR.findall(document.text)), default=None) for document in base.documents]
        documents = tuple(
            document
            for document, year in zip(base.documents, latest, strict=True)
            if year is not None and self.first <= year <= self.last
        )
        if not documents:
            raise ValueError(
                f"Dated finds no document whose latest year is from {self.first} to {self.last} among {len(base)}; "
                "widen the span, or use a larger corpus."
            )
        without = latest.count(None)
        left_out = {"other_years": len(base) - without - len(documents), "no_year": without}
        return Corpus(documents, dict(base.dropped) | {name: number for name, number in left_out.items() if number})

    def identity(self) -> dict[str, Any]:
        return {"kind": "dated", "base": self.base.identity(), "first": self.first, "last": self.last}
