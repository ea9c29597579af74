"""Cleaning before any split: white-space normalisation, word limits, deduplication.

Every text of a study goes through the same cleaning *once*, and the cleaned corpus is split afterwards. If
suspect documents are laid out differently from the general text a model is trained on, the model learns the
layout: in a trial, raw docstrings in training against whitespace-normalised suspects let rank agreement fall
for documents nobody had read, and every p was 1. It looked like a perfect result. Likewise a duplicate across
two parts is a member posing as held-out, so duplicates go before the parts exist.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib import metadata
from typing import Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt

from nonmember.artifacts import Builder
from nonmember.checks import require_number
from nonmember.corpora.bounds import Bound, HubBounds, least
from nonmember.corpora.specs import CorpusSpec, require_choice, require_count, require_spec
from nonmember.corpora.white_space import normalise
from nonmember.records import Corpus, Document
from nonmember.runtime.progress import tracked

SHINGLE_WORDS = 5
PERMUTATION_SEED = 1
MOST_PERMUTATIONS = 65_536
# Candidates are compared exactly, so a false one only costs time, while a missed one is a duplicate that
# stays: look for them well below the threshold.
CANDIDATE_MARGIN = 0.8
BAND_WEIGHTS = (0.1, 0.9)  # of false and of missed candidates

Shingles = npt.NDArray[np.uint64]


@dataclass(frozen=True)
class Cleaned(CorpusSpec):
    """Documents of like layout and length, each only once; in the order of the source, ids unchanged.

    In this order: `normalise`; drop fewer than `min_words` words; with more than `max_words`, keep the first
    `max_words` ("cut") or drop ("drop"); drop texts seen before; drop near duplicates of a text kept before,
    that is, Jaccard similarity of the sets of word 5-grams >= `near_duplicate_threshold` (None: keep them).
    The first of equals stays. Candidates come from MinHash LSH with `num_perm` permutations of a fixed seed
    (Broder 1997; datasketch) and are then compared exactly, so nothing below the threshold goes; just above
    it a few may be missed.

    Adds to `Corpus.dropped`: empty, too_short, too_long, exact_duplicate, near_duplicate.
    Raises ValueError, with these numbers, if nothing is left.
    """

    source: CorpusSpec
    min_words: int
    max_words: int
    long_documents: Literal["cut", "drop"]
    near_duplicate_threshold: float | None
    num_perm: int

    stored: ClassVar[bool] = True

    def __post_init__(self) -> None:
        require_spec(self.source, "`source` of Cleaned")
        require_count(self.min_words, 1, "`min_words` of Cleaned")
        require_count(self.max_words, self.min_words, "`max_words` of Cleaned (no less than `min_words`)")
        require_choice(self.long_documents, ("cut", "drop"), "`long_documents` of Cleaned")
        require_count(self.num_perm, 16, "`num_perm` of Cleaned", at_most=MOST_PERMUTATIONS)
        require_number(
            self.near_duplicate_threshold,
            "[0.1, 1]",
            "`near_duplicate_threshold` of Cleaned",
            or_null=True,
            hint="null keeps near duplicates.",
        )

    def build(self, builder: Builder) -> Corpus:
        source = builder.get(self.source)
        dropped: Counter[str] = Counter()
        documents = self._within_limits(source.documents, dropped)
        documents = without_exact_duplicates(documents, dropped)
        if self.near_duplicate_threshold is not None:
            repeated = near_duplicates([d.text for d in documents], self.near_duplicate_threshold, self.num_perm)
            dropped["near_duplicate"] += int(repeated.sum())
            documents = [d for d, is_repeated in zip(documents, repeated, strict=True) if not is_repeated]
        if not documents:
            counts = ", ".join(f"{reason} {number}" for reason, number in sorted(dropped.items()) if number)
            raise ValueError(
                f"Cleaning to {self.min_words}-{self.max_words} words left none of {len(source)} documents "
                f"({counts or 'the source is empty'}). Change the word limits, set `long_documents: cut`, "
                "or name another source."
            )
        total = Counter(source.dropped) + dropped
        return Corpus(tuple(documents), dict(sorted(total.items())))

    def bound(self, hub: HubBounds) -> Bound:
        base = self.source.bound(hub)
        return Bound(base.documents, least(base.words, self.max_words))

    def identity(self) -> dict[str, Any]:
        threshold = self.near_duplicate_threshold
        return {
            "kind": "cleaned",
            "rules": 1,
            "source": self.source.identity(),
            "min_words": self.min_words,
            "max_words": self.max_words,
            "long_documents": self.long_documents,
            "near_duplicate_threshold": threshold,
            # Which candidates LSH finds depends on the permutations, and these on datasketch's major version.
            "num_perm": None if threshold is None else self.num_perm,
            "datasketch": None if threshold is None else _datasketch(),
        }

    def _within_limits(self, documents: Sequence[Document], dropped: Counter[str]) -> list[Document]:
        kept = []
        for document in tracked(documents, "cleaning"):
            words = normalise(document.text).split()
            if len(words) < self.min_words:
                dropped["too_short" if words else "empty"] += 1
            elif len(words) > self.max_words and self.long_documents == "drop":
                dropped["too_long"] += 1
            else:
                kept.append(replace(document, text=" ".join(words[: self.max_words])))
        return kept


def without_exact_duplicates(documents: Sequence[Document], dropped: Counter[str]) -> list[Document]:
    first: dict[str, Document] = {}
    for document in documents:
        first.setdefault(document.text, document)
    dropped["exact_duplicate"] += len(documents) - len(first)
    return list(first.values())


def near_duplicates(texts: Sequence[str], threshold: float, num_perm: int) -> npt.NDArray[np.bool_]:
    """[texts] True where a text repeats an earlier one that is itself kept (see `Cleaned`)."""
    from datasketch import MinHash, MinHashLSH

    shingles = list(_shingles(texts))
    index = MinHashLSH(CANDIDATE_MARGIN * threshold, num_perm, weights=BAND_WEIGHTS)
    # MinHash permutes 32 bits; the upper half of ours. The exact comparison uses all 64.
    values = ((codes >> np.uint64(32)).tolist() for codes in shingles)
    sketches = MinHash.generator(values, num_perm=num_perm, seed=PERMUTATION_SEED, hashfunc=int)
    repeated = np.zeros(len(texts), dtype=bool)
    for number, sketch in enumerate(tracked(sketches, "finding near duplicates", total=len(texts))):
        candidates = index.query(sketch)
        if any(_jaccard(shingles[number], shingles[other]) >= threshold for other in candidates):
            repeated[number] = True
        else:
            index.insert(number, sketch, check_duplication=False)
    return repeated


def _shingles(texts: Sequence[str]) -> Iterator[Shingles]:
    """Per text, the sorted set of 64-bit hashes of its word 5-grams (of all its words, if it has fewer)."""
    codes: dict[str, int] = {}

    def code(word: str) -> int:
        if word not in codes:
            codes[word] = int.from_bytes(hashlib.blake2b(word.encode(), digest_size=8).digest(), "little")
        return codes[word]

    # A polynomial in an odd number modulo 2^64, then splitmix64's finaliser: upper bits must depend on all.
    multiplier = 0x9E3779B97F4A7C15
    for text in texts:
        words = np.array([code(word) for word in text.split()], dtype=np.uint64)
        num_shingles = max(len(words) - SHINGLE_WORDS + 1, 1)
        hashes = np.zeros(num_shingles, dtype=np.uint64)
        for offset in range(min(SHINGLE_WORDS, len(words))):
            hashes = hashes * np.uint64(multiplier) + words[offset : offset + num_shingles]
        hashes = (hashes ^ (hashes >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        hashes = (hashes ^ (hashes >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        yield np.unique(hashes ^ (hashes >> np.uint64(31)))


def _jaccard(first: Shingles, second: Shingles) -> float:
    shared = len(np.intersect1d(first, second, assume_unique=True))
    return shared / (len(first) + len(second) - shared)


@cache  # asked for with every key that has to do with the corpus; slow to look up
def _datasketch() -> str:
    return metadata.version("datasketch").split(".")[0]
