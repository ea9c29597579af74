"""Splits and samples of corpora, decided by hashes of ids (independent of order and random state) or by years.

So a draw depends neither on the order of the documents nor on the machine, and two draws with different
salts are independent.
"""

from __future__ import annotations

import hashlib
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Annotated, ClassVar, Literal

from nonmember.artifacts import Builder
from nonmember.checks import Count, require_kind, shown
from nonmember.corpora.specs import CorpusSpec, Transform, as_salt, as_sorted_names, require_choice, require_count
from nonmember.records import Corpus, Document

REST = "rest"
YEAR = re.compile(r"(?<!\d)(?:19|20)\d\d(?!\d)")  # what the blind baseline's classifier of years sees
FIRST_YEAR, LAST_YEAR = 1900, 2099  # that `YEAR` finds
Sizes = Mapping[str, int | float] | tuple[tuple[str, int | float], ...]


def position(salt: str, name: str) -> float:
    """sha256(salt + name) as a number in [0, 1): where a document or cluster stands in this salt's order."""
    digest = hashlib.sha256(f"{salt}{name}".encode()).digest()
    return int.from_bytes(digest[:8], "big") / 2**64


def in_order(documents: Iterable[Document], salt: str) -> list[Document]:
    """In order of sha256(salt + id)."""
    return sorted(documents, key=lambda item: (position(salt, item.doc_id), item.doc_id))


@dataclass(frozen=True)
class Part(Transform):
    """One of several disjoint parts of a corpus; documents in the corpus's order.

    Documents are dealt out in order of sha256(salt + id), earlier parts first. Recipes that differ in `take`
    only never share a document, and together, with "rest", they are the base.

    A cluster is never split: a part of whole-number size n takes clusters until it has *at least* n documents, and the
    next part starts with the next cluster. For exactly n, wrap the part in `Select`.

    `Corpus.dropped` of a part is empty: what cleaning dropped belongs to the base, not to one part.
    Raises ValueError, with numbers, for too few documents, and for clusters where there are none.

    Attributes:
        take: The part wanted, a name in `sizes`, or "rest" for what no part took.
        sizes: Name -> size, in order, of one kind only. Whole numbers: exactly so many documents; adding documents to
            the base can move others. Fractions: the expected share, by the value of the hash; a document never moves
            when others are added.
        by: "document"; or "cluster": documents of one cluster stay together (a document without one is its own), in
            order of sha256(salt + "cluster:" + cluster_id).
        per: "corpus"; or "domain": the sizes apply within each domain.
        domains: With "domain", only these are divided and all documents of others are "rest"; None: every domain is
            divided.
    """

    base: CorpusSpec
    _: KW_ONLY
    take: str
    sizes: Sizes
    by: Literal["document", "cluster"]
    per: Literal["corpus", "domain"]
    domains: Annotated[tuple[str, ...] | None, as_sorted_names] = None
    salt: Annotated[str, as_salt]

    name: ClassVar[str] = "part"

    def __post_init__(self) -> None:
        super().__post_init__()
        require_kind(self.sizes, Mapping | tuple, "`sizes` of Part", "a mapping from names to sizes")
        sizes = dict(self.sizes)
        _check_sizes(sizes)
        require_choice(self.take, (*sizes, REST), "`take` of Part")
        if self.domains is not None and self.per == "corpus":
            raise ValueError("`domains` of Part has a meaning only with `per: domain`; set that, or leave it out.")
        object.__setattr__(self, "sizes", tuple(sizes.items()))

    def build(self, builder: Builder) -> Corpus:
        base = builder.get(self.base)
        groups = self._groups(base)
        taken: set[str] = set()
        for domain, documents in groups.items():
            of_domain = f"domain {domain!r} of " if self.per == "domain" else ""
            taken |= self._taken(documents, of_domain + self.base.readable)
        if self.per == "domain" and self.take == REST:
            taken |= {document.doc_id for document in base.documents if document.domain not in groups}
        if not taken:
            raise ValueError(
                f"Part {self.take!r} of sizes {dict(self.sizes)} has no documents, out of {len(base)}; "
                "change the sizes, or use a larger corpus."
            )
        return Corpus(tuple(document for document in base.documents if document.doc_id in taken))

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
        positions = {name: position(self.salt, name) for name in units}
        ordered = sorted(units, key=lambda name: (positions[name], name))
        if all(isinstance(size, int) for size in dict(self.sizes).values()):
            part_of = self._by_count(ordered, {name: len(ids) for name, ids in units.items()}, where)
        else:
            part_of = self._by_share(positions)
        return {doc_id for name in ordered if part_of[name] == self.take for doc_id in units[name]}

    def _by_share(self, positions: Mapping[str, float]) -> dict[str, str]:
        bounds, total = [], 0.0
        for name, share in dict(self.sizes).items():
            total += share
            bounds.append((total, name))
        return {unit: next((name for bound, name in bounds if at < bound), REST) for unit, at in positions.items()}

    def _by_count(self, ordered: Sequence[str], counts: Mapping[str, int], where: str) -> dict[str, str]:
        part_of = dict.fromkeys(ordered, REST)
        units = iter(ordered)
        for name, size in dict(self.sizes).items():
            num_taken = 0
            while num_taken < size:
                unit = next(units, None)
                if unit is None:
                    wanted = " + ".join(f"{number} ({part})" for part, number in dict(self.sizes).items())
                    whole = " in whole clusters" if self.by == "cluster" else ""
                    raise ValueError(
                        f"{wanted} documents{whole} are needed of {where}, which has {sum(counts.values())}; give more "
                        f"of that text, or lower {name!r} in the `sizes` of this part."
                    )
                part_of[unit] = name
                num_taken += counts[unit]
        return part_of


@dataclass(frozen=True)
class Select(Transform):
    """Only some domains, or only some documents, of a corpus, in the corpus's order.

    The choice does not depend on the order of the base, and a smaller sample is a subset of a larger one of the same
    salt. `Corpus.dropped` is the base's; empty where domains are chosen, as it says not which domain lost them.
    Raises ValueError, with numbers, for an unknown domain and for too few documents.

    Attributes:
        domains: None: all.
        num_documents: The first so many in order of sha256(salt + id); None: all.
        salt: The name of the draw, needed with `num_documents`.
    """

    base: CorpusSpec
    _: KW_ONLY
    domains: Annotated[tuple[str, ...] | None, as_sorted_names] = None
    num_documents: Annotated[int | None, Count(1)] = None
    salt: str | None = None

    name: ClassVar[str] = "select"

    def __post_init__(self) -> None:
        super().__post_init__()
        salt = None if self.num_documents is None else as_salt(self.salt, "`salt` of Select")
        object.__setattr__(self, "salt", salt)

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
            chosen = {item.doc_id for item in in_order(documents, str(self.salt))[: self.num_documents]}
            documents = [document for document in documents if document.doc_id in chosen]
        return Corpus(tuple(documents), base.dropped if self.domains is None else {})


@dataclass(frozen=True)
class Dated(Transform):
    """The documents whose latest named year lies from `first` to `last`; those that name none are left out.

    Adds to `Corpus.dropped`: other_years, no_year. Raises ValueError if none is left.
    """

    base: CorpusSpec
    first: Annotated[int, Count(FIRST_YEAR, LAST_YEAR)] = FIRST_YEAR
    last: int = LAST_YEAR

    name: ClassVar[str] = "dated"

    def __post_init__(self) -> None:
        super().__post_init__()
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
