"""Ordered files: shuffled once, joined for training, cut into shards.

Sources keep the order of what they read, and `Part`, `Select` and `Cleaned` that of their base. An example is a line:
its text and a newline.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, ClassVar

import numpy as np
import numpy.typing as npt

from nonmember.artifacts import Builder
from nonmember.checks import Count
from nonmember.corpora.specs import CorpusSpec, Transform, as_salt, require_count
from nonmember.corpora.transforms.splits import in_order
from nonmember.records import Corpus, Document

Examples = tuple[Document, ...]


def line(text: str) -> str:
    """The text with one newline at its end, as it would stand in a file."""
    return text if text.endswith("\n") else f"{text}\n"


@dataclass(frozen=True)
class Shuffled(Transform):
    """The documents in order of sha256(salt + id): a random order that is always the same, and so exchangeable
    whatever the documents are."""

    base: CorpusSpec
    salt: Annotated[str, as_salt]

    name: ClassVar[str] = "shuffled"

    def build(self, builder: Builder) -> Corpus:
        base = builder.get(self.base)
        return replace(base, documents=tuple(in_order(base.documents, self.salt)))


@dataclass(frozen=True)
class Joined(Transform):
    """A corpus to *train* on: consecutive examples joined to one document, a line each, so that their order survives a
    training that shuffles documents.

    A document is named after its first example, with how many others it has. Training that cuts documents
    (`max_tokens`) would lose most of it; `Pretraining` does not.
    Raises ValueError for examples of several lines, which could not be separated again.

    Attributes:
        examples_per_document: So many; the last may have fewer. None: all in one.
    """

    base: CorpusSpec
    examples_per_document: Annotated[int | None, Count(1)]

    name: ClassVar[str] = "joined"

    def build(self, builder: Builder) -> Corpus:
        examples = builder.get(self.base).documents
        for item in examples:
            if len(item.text.splitlines()) > 1:
                raise ValueError(
                    f"Joined puts one example on a line, but {item.doc_id!r} has {len(item.text.splitlines())} lines. "
                    "Clean the corpus before (`Cleaned` makes white space the same)."
                )
        size = self.examples_per_document or max(1, len(examples))
        joined = (examples[start : start + size] for start in range(0, len(examples), size))
        return Corpus(tuple(_document(f"{part[0].doc_id}+{len(part) - 1}", part) for part in joined))


@dataclass(frozen=True)
class Sharded(Transform):
    """The first examples of an ordered file in consecutive shards, each a document: its lines.

    Examples of nothing but white space are dropped before, and counted.
    Raises ValueError where a shard would have fewer than two examples, and so no order.

    Attributes:
        num_shards: Their sizes differ by at most one, larger ones first.
        max_examples: So many of the file are used.
    """

    base: CorpusSpec
    num_shards: Annotated[int, Count(2)]
    max_examples: int

    name: ClassVar[str] = "sharded"

    def __post_init__(self) -> None:
        super().__post_init__()
        require_count(self.max_examples, 2 * self.num_shards, "`max_examples` of Sharded (two a shard)")

    def build(self, builder: Builder) -> Corpus:
        base = builder.get(self.base)
        shards = self.shards(base)
        num_blank = sum(not item.text.strip() for item in base.documents)
        dropped = dict(base.dropped) | ({"blank": num_blank} if num_blank else {})
        return Corpus(tuple(_document(name, examples) for name, examples in shards.items()), dropped)

    def shards(self, base: Corpus) -> dict[str, Examples]:
        """Their examples, by the names of the shards."""
        used = [item for item in base.documents if item.text.strip()][: self.max_examples]
        size, num_larger = divmod(len(used), self.num_shards)
        if size < 2:
            raise ValueError(
                f"{self.num_shards} shards of at least 2 examples need {2 * self.num_shards} examples, and the file "
                f"has {len(used)}. Give a longer one, or lower num_shards."
            )
        sizes = [size + (index < num_larger) for index in range(self.num_shards)]
        ends = np.cumsum(sizes).tolist()
        return {
            f"shard-{index:03d}": tuple(used[end - number : end])
            for index, (end, number) in enumerate(zip(ends, sizes, strict=True))
        }


@dataclass(frozen=True)
class Orders:
    """The orders of one shard that are looked at, each once."""

    indices_KE: npt.NDArray[np.int64]  # of examples, the shard's own order first
    draws_K: npt.NDArray[np.int64]  # how many of the random orders are this one; for the first often 0


def random_orders(examples: Sequence[Document], num_orders: int, seed: int) -> Orders:
    """`num_orders` uniform draws from all orders, with the own one among them. Their chance comes from the seed and
    from the texts, so a shard's orders depend neither on the other shards nor on when it is looked at."""
    digest = hashlib.sha256(_text(examples).encode("utf-8", "surrogatepass")).digest()
    rng = np.random.default_rng([seed, int.from_bytes(digest[:8])])
    own_E = np.arange(len(examples))
    drawn_ME = rng.permuted(np.tile(own_E, (num_orders, 1)), axis=1)
    indices_KE, draws_K = np.unique(drawn_ME, axis=0, return_counts=True)  # sorted, so the own order stands first
    if not np.array_equal(indices_KE[0], own_E):
        indices_KE, draws_K = np.vstack([own_E, indices_KE]), np.concatenate([[0], draws_K])
    return Orders(indices_KE, draws_K)


def _text(examples: Iterable[Document]) -> str:
    return "".join(line(item.text) for item in examples)


def _document(name: str, examples: Examples) -> Document:
    """Examples as one, of their domain where all have the same."""
    domains = {item.domain for item in examples}
    return Document(name, _text(examples), "", domains.pop() if len(domains) == 1 else "")
