"""Splits, samples and mixtures of corpora, decided by hashes of ids: independent of order and random state.

So a draw depends neither on the order of the documents nor on the machine, and two draws with different
salts are independent.
"""

from __future__ import annotations

import hashlib
import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any, ClassVar, Literal

from nonmember.artifacts import Builder
from nonmember.checks import require_kind, shown, wrong
from nonmember.corpora.bounds import Bound, HubBounds, least
from nonmember.corpora.specs import CorpusSpec, as_names, require_choice, require_count, require_spec
from nonmember.records import Corpus, Document
from nonmember.records.streams import Mixed, Stream, as_stream

REST = "rest"
Sizes = Mapping[str, int | float] | tuple[tuple[str, int | float], ...]


def position(salt: str, name: str) -> float:
    """sha256(salt + name) as a number in [0, 1): where a document or cluster stands in this salt's order."""
    digest = hashlib.sha256(f"{salt}{name}".encode()).digest()
    return int.from_bytes(digest[:8], "big") / 2**64


@dataclass(frozen=True)
class Part(CorpusSpec):
    """One of several disjoint parts of a corpus; documents in the corpus's order.

    Documents are dealt out in order of sha256(salt + id), earlier parts first. Recipes that differ in `take`
    only never share a document, and together, with "rest", they are the base.

    take: the part wanted, a name in `sizes`, or "rest" for what no part took.

    sizes: name -> size, in order, of one kind only. Whole numbers: exactly so many documents; adding
    documents to the base can move others. Fractions: the expected share, by the value of the hash; a document
    never moves when others are added.

    by: "document"; or "cluster": documents of one cluster stay together (a document without one is its own),
    in order of sha256(salt + "cluster:" + cluster_id). A cluster is never split: a part of whole-number size
    n takes clusters until it has *at least* n documents, and the next part starts with the next cluster. For
    exactly n, wrap the part in `Select`.

    per: "corpus"; or "domain": the sizes apply within each domain. domains: with "domain", only these are
    divided and all documents of others are "rest"; None: every domain is divided.

    `Corpus.dropped` of a part is empty: what cleaning dropped belongs to the base, not to one part.
    Raises ValueError, with numbers, for too few documents, and for clusters where there are none.
    """

    base: CorpusSpec
    _: KW_ONLY
    take: str
    sizes: Sizes
    by: Literal["document", "cluster"]
    per: Literal["corpus", "domain"]
    domains: tuple[str, ...] | None = None
    salt: str

    stored: ClassVar[bool] = False

    def __post_init__(self) -> None:
        require_spec(self.base, "`base` of Part")
        require_choice(self.by, ("document", "cluster"), "`by` of Part")
        require_choice(self.per, ("corpus", "domain"), "`per` of Part")
        require_kind(self.sizes, Mapping | tuple, "`sizes` of Part", "a mapping from names to sizes")
        sizes = dict(self.sizes)
        _check_sizes(sizes)
        require_choice(self.take, (*sizes, REST), "`take` of Part")
        if self.domains is not None and self.per == "corpus":
            raise ValueError("`domains` of Part has a meaning only with `per: domain`; set that, or leave it out.")
        domains = None if self.domains is None else as_names(self.domains, "`domains` of Part")
        object.__setattr__(self, "sizes", tuple(sizes.items()))
        object.__setattr__(self, "domains", domains)
        object.__setattr__(self, "salt", require_salt(self.salt, "Part"))

    def build(self, builder: Builder) -> Corpus:
        base = builder.get(self.base)
        groups = self._groups(base)
        taken: set[str] = set()
        for domain, documents in groups.items():
            name = self.base.readable
            where = f"domain {domain!r} of {name}" if self.per == "domain" else name
            taken |= self._taken(documents, where)
        if self.per == "domain" and self.take == REST:
            taken |= {document.doc_id for document in base.documents if document.domain not in groups}
        if not taken:
            raise ValueError(
                f"Part {self.take!r} of sizes {dict(self.sizes)} has no documents, out of {len(base)}; "
                "change the sizes, or use a larger corpus."
            )
        return Corpus(tuple(document for document in base.documents if document.doc_id in taken))

    def bound(self, hub: HubBounds) -> Bound:
        base = self.base.bound(hub)
        return Bound(self._most_of(base.documents), base.words)

    def _most_of(self, base: int | None) -> int | None:
        sizes, groups = dict(self.sizes), len(self.domains) if self.domains else 1
        if self.take in sizes:
            size = sizes[self.take]
            if isinstance(size, int):
                return size * groups
            return None if base is None else math.ceil(size * base)
        if base is None:
            return None
        taken = sum(size * groups if isinstance(size, int) else math.floor(size * base) for size in sizes.values())
        return max(0, base - taken)

    def identity(self) -> dict[str, Any]:
        return {
            "kind": "part",
            "base": self.base.identity(),
            "take": self.take,
            "sizes": [[name, size] for name, size in self._sizes],
            "by": self.by,
            "per": self.per,
            "domains": None if self.domains is None else sorted(self.domains),
            "salt": self.salt,
        }

    @property
    def _sizes(self) -> tuple[tuple[str, int | float], ...]:
        return tuple(dict(self.sizes).items())

    def _groups(self, base: Corpus) -> dict[str, list[Document]]:
        """The documents within which the sizes apply: by domain, or all under one name."""
        if self.by == "cluster":
            _check_clusters(base, self.per)
        if self.per == "corpus":
            return {"": list(base.documents)}
        groups = _by_domain(base)
        wanted = self.domains or tuple(groups)
        _check_domains(wanted, groups, "Part")
        return {domain: groups[domain] for domain in wanted}

    def _taken(self, documents: Sequence[Document], where: str) -> set[str]:
        """Ids of the documents of one group that belong to the part `take`."""
        units: defaultdict[str, list[str]] = defaultdict(list)
        for document in documents:
            units[_unit(document, self.by)].append(document.doc_id)
        place = {name: position(self.salt, name) for name in units}
        ordered = sorted(units, key=lambda name: (place[name], name))
        if all(isinstance(size, int) for _, size in self._sizes):
            part_of = self._by_count(ordered, {name: len(ids) for name, ids in units.items()}, where)
        else:
            part_of = self._by_share(place)
        return {doc_id for name in ordered if part_of[name] == self.take for doc_id in units[name]}

    def _by_share(self, place: Mapping[str, float]) -> dict[str, str]:
        bounds, total = [], 0.0
        for name, share in self._sizes:
            total += share
            bounds.append((total, name))
        return {unit: next((name for bound, name in bounds if at < bound), REST) for unit, at in place.items()}

    def _by_count(self, ordered: Sequence[str], counts: Mapping[str, int], where: str) -> dict[str, str]:
        part_of = dict.fromkeys(ordered, REST)
        units = iter(ordered)
        for name, size in self._sizes:
            num_taken = 0
            while num_taken < size:
                unit = next(units, None)
                if unit is None:
                    wanted = " + ".join(f"{number} ({part})" for part, number in self._sizes)
                    whole = " in whole clusters" if self.by == "cluster" else ""
                    raise ValueError(
                        f"{wanted} documents{whole} are needed of {where}, which has {sum(counts.values())}; give more "
                        f"of that text, or lower {name!r} in the `sizes` of this part."
                    )
                part_of[unit] = name
                num_taken += counts[unit]
        return part_of


@dataclass(frozen=True)
class Select(CorpusSpec):
    """Only some domains, or only some documents, of a corpus, in the corpus's order.

    domains: None: all. num_documents: the first so many in order of sha256(salt + id), None: all. So the
    choice does not depend on the order of the base, and a smaller sample is a subset of a larger one of the
    same salt. salt: needed with `num_documents`.

    `Corpus.dropped` is the base's; empty where domains are chosen, as it says not which domain lost them.
    Raises ValueError, with numbers, for an unknown domain and for too few documents.
    """

    base: CorpusSpec
    _: KW_ONLY
    domains: tuple[str, ...] | None = None
    num_documents: int | None = None
    salt: str | None = None

    stored: ClassVar[bool] = False

    def __post_init__(self) -> None:
        require_spec(self.base, "`base` of Select")
        if self.num_documents is not None:
            require_count(self.num_documents, 1, "`num_documents` of Select")
            object.__setattr__(self, "salt", require_salt(self.salt, "Select"))
        domains = None if self.domains is None else as_names(self.domains, "`domains` of Select")
        object.__setattr__(self, "domains", domains)

    def build(self, builder: Builder) -> Corpus:
        base = builder.get(self.base)
        documents: Sequence[Document] = base.documents
        if self.domains is not None:
            _check_domains(self.domains, _by_domain(base), "Select")
            documents = [document for document in documents if document.domain in self.domains]
        if self.num_documents is not None:
            if len(documents) < self.num_documents:
                among = "" if self.domains is None else f" in {', '.join(self.domains)}"
                raise ValueError(
                    f"Select needs {self.num_documents} documents, but there are {len(documents)}{among}; "
                    "lower `num_documents`, or use a larger corpus."
                )
            salt = str(self.salt)
            ids = sorted((d.doc_id for d in documents), key=lambda name: (position(salt, name), name))
            chosen = set(ids[: self.num_documents])
            documents = [document for document in documents if document.doc_id in chosen]
        return Corpus(tuple(documents), base.dropped if self.domains is None else {})

    def bound(self, hub: HubBounds) -> Bound:
        base = self.base.bound(hub)
        return Bound(least(base.documents, self.num_documents), base.words)

    def identity(self) -> dict[str, Any]:
        return {
            "kind": "select",
            "base": self.base.identity(),
            "domains": None if self.domains is None else sorted(self.domains),
            "num_documents": self.num_documents,
            "salt": self.salt if self.num_documents is not None else None,
        }


@dataclass(frozen=True)
class Component:
    """One corpus of a mixture and how often each of its documents is read."""

    corpus: CorpusSpec
    exposures: int

    def __post_init__(self) -> None:
        require_spec(self.corpus, "`corpus` of a mixture's component")
        require_count(self.exposures, 0, "`exposures` of a mixture's component")


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
        components = tuple(
            Component(**item) if isinstance(item, Mapping) and set(item) == {"corpus", "exposures"} else item
            for item in _listed(self.components)
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

    def bound(self, hub: HubBounds) -> Bound:
        parts = [(item.corpus.bound(hub), item.exposures) for item in self.components]
        counts = [None if item.documents is None else item.documents * times for item, times in parts]
        words = [item.words for item, times in parts if times]
        return Bound(
            None if None in counts else sum(filter(None, counts)),
            None if None in words else max(filter(None, words), default=None),
        )

    def most_words(self, hub: HubBounds) -> int | None:
        parts = [(item.corpus.most_words(hub), item.exposures) for item in self._used()]
        return None if any(words is None for words, _ in parts) else sum((words or 0) * times for words, times in parts)

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


def require_salt(value: object, who: str) -> str:
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise ValueError(wrong(f"`salt` of {who}", "any text or whole number, the name of this draw", value))
    return str(value)


def _listed(value: object) -> Iterable[Any]:
    if isinstance(value, str | Mapping) or not isinstance(value, Iterable):
        raise ValueError(wrong("`components` of Mixture", "a list", value))
    return value


def _check_sizes(sizes: Mapping[str, int | float]) -> None:
    values = list(sizes.values())
    counts = [size for size in values if isinstance(size, int) and not isinstance(size, bool) and size > 0]
    shares = [size for size in values if isinstance(size, float) and 0 < size < 1]
    if not values or REST in sizes or len(values) not in (len(counts), len(shares)):
        raise ValueError(
            "`sizes` of Part must give each part a whole number of documents, or each a fraction between "
            f"0 and 1, and none may be called {REST!r}; got {shown(dict(sizes))}."
        )
    if shares and sum(shares) > 1 + 1e-9:
        raise ValueError(f"Fractions in `sizes` of Part must sum to at most 1, but {dict(sizes)} sum to {sum(shares)}.")


def _check_domains(wanted: Sequence[str], present: Iterable[str], who: str) -> None:
    missing = [domain for domain in wanted if domain not in set(present)]
    if missing:
        raise ValueError(
            f"{who} names domains that the corpus does not have: {', '.join(missing)}. "
            f"It has: {', '.join(map(repr, sorted(present)))}."
        )


def _check_clusters(base: Corpus, per: str) -> None:
    domains: defaultdict[str, set[str]] = defaultdict(set)
    for document in base.documents:
        if document.cluster_id:
            domains[document.cluster_id].add(document.domain)
    if not domains:
        raise ValueError(
            "Part was asked to keep clusters together, but no document has a cluster; name the source's "
            "`cluster_field`, or use `by: document`."
        )
    wide = sorted(cluster for cluster, names in domains.items() if len(names) > 1)
    if wide and per == "domain":
        raise ValueError(
            f"Part cannot keep clusters together within domains, as {len(wide)} clusters (first {wide[0]!r}) "
            "lie in several; use `per: corpus`."
        )


def _by_domain(corpus: Corpus) -> dict[str, list[Document]]:
    groups: defaultdict[str, list[Document]] = defaultdict(list)
    for document in corpus.documents:
        groups[document.domain].append(document)
    return dict(groups)


def _unit(document: Document, by: str) -> str:
    """What moves as one. A document without a cluster is named apart from any cluster of the same name."""
    if by == "document":
        return document.doc_id
    return f"cluster:{document.cluster_id}" if document.cluster_id else f"document:{document.doc_id}"
