"""Sets with a given share of members: the contamination levels of a controlled experiment."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

from nonmember.artifacts import Builder
from nonmember.checks import require_number
from nonmember.corpora.bounds import Bound, HubBounds
from nonmember.corpora.specs import CorpusSpec, require_count, require_spec
from nonmember.corpora.transforms.splits import position, require_salt
from nonmember.records import Corpus, Document


def number_seen(num_documents: int, rate: float) -> int:
    """How many of so many documents are seen ones at a rate: the nearest whole number, halves upwards.

    int(700 * 0.35) is 244 and int(700 * 0.7) is 489; here it is 245 and 490.
    """
    return math.floor(round(num_documents * rate, 9) + 0.5)


@dataclass(frozen=True)
class NestedMixture(CorpusSpec):
    """`num_documents` documents, of which a share of `rate` is from `seen` and the rest from `unseen`.

    Of each side the first so many in order of sha256(salt + id), and all together in that order too. So mixtures of one
    salt are nested: from one rate to a higher one seen documents join, unseen ones leave, and nothing else moves.
    Mixtures of another salt are another draw.

    Raises ValueError, with numbers, where a side has too few documents, or both have the same one.
    """

    seen: CorpusSpec
    unseen: CorpusSpec
    num_documents: int
    rate: float
    salt: str | int

    stored: ClassVar[bool] = False

    def __post_init__(self) -> None:
        for name in ("seen", "unseen"):
            require_spec(getattr(self, name), f"`{name}` of NestedMixture")
        require_count(self.num_documents, 1, "`num_documents` of NestedMixture")
        require_number(self.rate, "[0, 1]", "`rate` of NestedMixture")
        require_salt(self.salt, "NestedMixture")

    def build(self, builder: Builder) -> Corpus:
        sides = {"seen": builder.get(self.seen), "unseen": builder.get(self.unseen)}
        if both := set(sides["seen"].doc_ids) & set(sides["unseen"].doc_ids):
            raise ValueError(
                f"{len(both)} documents are both seen and unseen in a NestedMixture, first {min(both)!r}; "
                "give two corpora that share none."
            )
        num_seen = number_seen(self.num_documents, self.rate)
        wanted = {"seen": num_seen, "unseen": self.num_documents - num_seen}
        return Corpus(tuple(self._in_order([item for side in sides for item in self._first(side, sides, wanted)])))

    def _first(self, side: str, sides: dict[str, Corpus], wanted: dict[str, int]) -> list[Document]:
        if len(sides[side]) < wanted[side]:
            raise ValueError(
                f"NestedMixture needs {wanted[side]} {side} documents ({self.num_documents} at a rate of {self.rate}), "
                f"but there are {len(sides[side])}; lower `num_documents`, or use a larger corpus."
            )
        return self._in_order(sides[side].documents)[: wanted[side]]

    def _in_order(self, documents: list[Document] | tuple[Document, ...]) -> list[Document]:
        salt = str(self.salt)
        return sorted(documents, key=lambda item: (position(salt, item.doc_id), item.doc_id))

    def bound(self, hub: HubBounds) -> Bound:
        sides = [self.seen.bound(hub).words, self.unseen.bound(hub).words]
        return Bound(self.num_documents, None if None in sides else max(filter(None, sides)))

    def identity(self) -> dict[str, Any]:
        return {
            "kind": "nested_mixture",
            "seen": self.seen.identity(),
            "unseen": self.unseen.identity(),
            "num_documents": self.num_documents,
            "rate": float(self.rate),
            "salt": str(self.salt),
        }
