"""Mixtures to train on, with how often each document is read, and sets with a given share of members."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar

from nonmember.artifacts import Builder
from nonmember.checks import Checked, Count, Number, wrong
from nonmember.corpora.specs import CorpusSpec, Transform, as_float, as_salt, require_spec
from nonmember.corpora.transforms.splits import Part, in_order
from nonmember.records import Corpus, Document
from nonmember.records.exposure import Exposure
from nonmember.records.streams import Mixed, Stream, as_stream

SHARE, SALT = "read", "reading"  # of the part of a set that a model is to read


@dataclass(frozen=True)
class Component(Checked):
    """One corpus of a mixture and how often each of its documents is read."""

    corpus: Annotated[CorpusSpec, require_spec]
    exposures: Annotated[int, Count(0)]

    fields_called = "`{field}` of a mixture's component"


@dataclass(frozen=True)
class Mixture(CorpusSpec):
    """A corpus to *train* on: the components one after another, each repeated `exposures` times.

    One epoch over the mixture reads each document of a component `exposures` times: the dose of a member.
    Exposures of 0 leave the component out, and the mixture is then the same (also in identity) as one that
    never named it: the control of a sweep over doses. The order says nothing; training shuffles.

    The second copy of document "id" is named "id#2", the third "id#3", also where copies come from different
    components. Observe and score the components, not the mixture. With a component that is streamed the mixture is a
    stream too, in which copies have one name.
    Raises ValueError for an id that names two different texts, and if nothing is left.
    """

    components: tuple[Component, ...]

    stored: ClassVar[bool] = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if isinstance(self.components, str | Mapping) or not isinstance(self.components, Iterable):
            raise ValueError(wrong("`components` of Mixture", "a list", self.components))
        components = tuple(
            Component(**item) if isinstance(item, Mapping) and set(item) == {"corpus", "exposures"} else item
            for item in self.components
        )
        if not all(isinstance(item, Component) for item in components):
            raise ValueError("`components` of Mixture must each have a `corpus` and its `exposures`, and nothing else.")
        if not any(item.exposures for item in components):
            raise ValueError("A Mixture needs at least one component with `exposures` of 1 or more, but has none.")
        object.__setattr__(self, "components", components)

    def build(self, builder: Builder) -> Corpus:
        corpora: list[Corpus | Stream] = [builder.get(item.corpus) for item in self._used()]
        if any(isinstance(corpus, Stream) for corpus in corpora):
            parts = zip(map(as_stream, corpora), (item.exposures for item in self._used()), strict=True)
            return Mixed(tuple(parts))  # type: ignore[return-value]  # whoever trains on it reads both
        texts: dict[str, str] = {}
        copies: Counter[str] = Counter()
        documents = []
        for component in self._used():
            for document in builder.get(component.corpus).documents * component.exposures:
                if texts.setdefault(document.doc_id, document.text) != document.text:
                    raise ValueError(
                        f"Document id {document.doc_id!r} names two different texts in a mixture; "
                        "give the sources ids that tell their documents apart."
                    )
                copies[document.doc_id] += 1
                copy = copies[document.doc_id]
                documents.append(document if copy == 1 else replace(document, doc_id=f"{document.doc_id}#{copy}"))
        return Corpus(tuple(documents))

    def identity(self) -> dict[str, Any]:
        return {"kind": "mixture", "components": [[item.corpus.identity(), item.exposures] for item in self._used()]}

    def _used(self) -> list[Component]:
        return [item for item in self.components if item.exposures]


def components_of(corpus: CorpusSpec) -> list[Component]:
    """A corpus as what is mixed in it, to the bottom; as itself, once, where it is no mixture."""
    if not isinstance(corpus, Mixture):
        return [Component(corpus, 1)]
    return [
        Component(inner.corpus, inner.exposures * outer.exposures)
        for outer in corpus.components
        if outer.exposures
        for inner in components_of(outer.corpus)
    ]


def planted_part(corpus: CorpusSpec, exposure: Exposure) -> Component:
    """What is read of a set, as a component of a mixture. Documents are chosen by hash, so that a smaller share is part
    of a larger one."""
    if exposure.share < 1:
        sizes = {SHARE: exposure.share}
        corpus = Part(corpus, take=SHARE, sizes=sizes, by="document", per="corpus", salt=SALT)
    return Component(corpus, exposure.exposures)


def planted_share(corpus: CorpusSpec) -> tuple[CorpusSpec, float]:
    """The set that a corpus was planted from, and the share of it that it is: what `planted_part` was given."""
    if isinstance(corpus, Part) and (corpus.salt, corpus.take) == (SALT, SHARE):
        return corpus.base, float(dict(corpus.sizes)[SHARE])
    return corpus, 1.0


def number_seen(num_documents: int, rate: float) -> int:
    """How many of so many documents are seen ones at a rate: the nearest whole number, halves upwards.

    int(700 * 0.35) is 244 and int(700 * 0.7) is 489; here it is 245 and 490.
    """
    return math.floor(round(num_documents * rate, 9) + 0.5)


@dataclass(frozen=True)
class NestedMixture(Transform):
    """`num_documents` documents, of which a share of `rate` is from `seen` and the rest from `unseen`.

    Of each side the first so many in order of sha256(salt + id), and all together in that order too. So mixtures of one
    salt are nested: from one rate to a higher one seen documents join, unseen ones leave, and nothing else moves.
    Mixtures of another salt are another draw.

    Raises ValueError, with numbers, where a side has too few documents, or both have the same one.
    """

    seen: CorpusSpec
    unseen: CorpusSpec
    num_documents: Annotated[int, Count(1)]
    rate: Annotated[float, Number("[0, 1]"), as_float]
    salt: Annotated[str | int, as_salt]

    name: ClassVar[str] = "nested_mixture"

    def build(self, builder: Builder) -> Corpus:
        sides = {"seen": builder.get(self.seen), "unseen": builder.get(self.unseen)}
        if both := set(sides["seen"].doc_ids) & set(sides["unseen"].doc_ids):
            raise ValueError(
                f"{len(both)} documents are both seen and unseen in a NestedMixture, first {min(both)!r}; "
                "give two corpora that share none."
            )
        num_seen = number_seen(self.num_documents, self.rate)
        wanted = {"seen": num_seen, "unseen": self.num_documents - num_seen}
        chosen: list[Document] = []
        for side, corpus in sides.items():
            if len(corpus) < wanted[side]:
                raise ValueError(
                    f"NestedMixture needs {wanted[side]} {side} documents ({self.num_documents} at a rate of "
                    f"{self.rate}), but there are {len(corpus)}; lower `num_documents`, or use a larger corpus."
                )
            chosen += in_order(corpus.documents, str(self.salt))[: wanted[side]]
        return Corpus(tuple(in_order(chosen, str(self.salt))))
