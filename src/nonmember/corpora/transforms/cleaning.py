"""What is done to texts before any split or model: white space, limits of words, duplicates; blank ones left out.

Every text of a study goes through the same cleaning *once*, and the cleaned corpus is split afterwards. If
suspect documents are laid out differently from the general text a model is trained on, the model learns the
layout: in a trial, raw docstrings in training against whitespace-normalised suspects let rank agreement fall
for documents nobody had read, and every p was 1. It looked like a perfect result. Likewise a duplicate across
two parts is a member posing as held-out, so duplicates go before the parts exist.
"""

from __future__ import annotations

import hashlib
import logging
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cache
from importlib import metadata
from itertools import islice
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt

from nonmember.artifacts import Builder
from nonmember.checks import Checked, Count, Number, first_few, require_kind
from nonmember.corpora.specs import CorpusSpec, Transform, require_count
from nonmember.corpora.transforms.splits import Select
from nonmember.records import Corpus, Document, Stream
from nonmember.records.spans import split_words
from nonmember.runtime.progress import tracked

log = logging.getLogger(__name__)

SHINGLE_WORDS = 5
PERMUTATION_SEED = 1
MOST_PERMUTATIONS = 65_536
# Candidates are compared exactly, so a false one only costs time, while a missed one is a duplicate that
# stays: look for them well below the threshold.
CANDIDATE_MARGIN = 0.8
BAND_WEIGHTS = (0.1, 0.9)  # of false and of missed candidates
# White space, controls, and what Unicode calls default-ignorable: zero-width marks, fillers, variation selectors.
BLANK = re.compile(
    "[\\s\\x00-\\x1f\\x7f-\\xa0\\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e"
    "\u2060-\u206f\u2800\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\U000e0000-\U000e0fff]*"
)

Shingles = npt.NDArray[np.uint64]
WhiteSpace = Literal["as_is", "normalised"]
Long = Literal["cut", "drop"]


def is_blank(text: str) -> bool:
    """Whether there is nothing to see in it."""
    return BLANK.fullmatch(text) is not None


def normalise(text: str) -> str:
    """Words, whatever whitespace separates them, joined by one space: no line breaks or indentation.

    Nothing else: case, punctuation, markup and Unicode form stay, as the scores look at exactly these.
    """
    return " ".join(text.split())


Threshold = Annotated[float | None, Number("[0.1, 1]", hint="null keeps near duplicates.")]


@dataclass(frozen=True)
class Cleaning(Checked):
    """What is done to every text of an audit alike. See `Cleaned` for each step.

    Attributes:
        white_space: As it is, or normalised to one space between words.
        min_words: None for no limit, as in `max_words`.
        long_documents: Whether those of more words are cut, or dropped.
        duplicates: Whether to keep them, or drop the later of equal texts.
        near_duplicate_threshold: None keeps near duplicates.
        num_perm: Permutations to find these.
        name: Of the config.
    """

    white_space: WhiteSpace
    min_words: Annotated[int | None, Count(1)]
    max_words: int | None
    long_documents: Long
    duplicates: Literal["keep", "drop"]
    near_duplicate_threshold: Threshold
    num_perm: int
    name: str = ""

    fields_called = "cleaning.{field}"

    def __post_init__(self) -> None:
        super().__post_init__()
        require_count(self.max_words, self.min_words or 1, "cleaning.max_words (no less than min_words)", or_null=True)

    @property
    def changes_nothing(self) -> bool:
        limits = (self.min_words, self.max_words, self.near_duplicate_threshold)
        return self.white_space == "as_is" and self.duplicates == "keep" and not any(limits)

    def cleaned(self, document: Document, dropped: Counter[str]) -> Document | None:
        """White space and limits of words of one document; None where it is dropped, which is counted."""
        text = normalise(document.text) if self.white_space == "normalised" else document.text
        num_words = len(text.split())
        if num_words < (self.min_words or 0):
            dropped["too_short" if num_words else "empty"] += 1
            return None
        if self.max_words is None or num_words <= self.max_words:
            return replace(document, text=text)
        if self.long_documents == "drop":
            dropped["too_long"] += 1
            return None
        return replace(document, text=_first_words(text, self.max_words))

    def of(self, source: Corpus, dropped: Counter[str], without: Iterable[str] = ()) -> Corpus:
        """The documents that are left, and those of the source that are not, by reason.

        Args:
            source: All documents.
            dropped: Of these, what is left out for other reasons.
            without: Their ids.

        Raises:
            ValueError: With these numbers, if nothing is left.
        """
        left_out = set(without)
        documents = (item for item in tracked(source.documents, "cleaning") if item.doc_id not in left_out)
        kept = [item for document in documents if (item := self.cleaned(document, dropped)) is not None]
        if self.duplicates == "drop":
            first: dict[str, Document] = {}
            for document in kept:
                first.setdefault(document.text, document)
            dropped["exact_duplicate"] += len(kept) - len(first)
            kept = list(first.values())
        if self.near_duplicate_threshold is not None:
            repeated = near_duplicates([item.text for item in kept], self.near_duplicate_threshold, self.num_perm)
            dropped["near_duplicate"] += int(repeated.sum())
            kept = [item for item, is_repeated in zip(kept, repeated, strict=True) if not is_repeated]
        if not kept:
            counts = ", ".join(f"{reason} {number}" for reason, number in sorted(dropped.items()) if number)
            raise ValueError(
                f"Cleaning left none of {len(source)} documents ({counts or 'the source is empty'}). Change the word "
                "limits, set `long_documents: cut`, or give other documents."
            )
        return Corpus(tuple(kept), dict(sorted((Counter(source.dropped) + dropped).items())))


def require_cleaning(value: object, name: str) -> None:
    require_kind(value, Cleaning, name, "a Cleaning")


AS_IS = Cleaning("as_is", None, None, "cut", "keep", None, 64)


@dataclass(frozen=True)
class Cleaned(Transform):
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
    min_words: Annotated[int, Count(1)]
    max_words: int
    long_documents: Long
    near_duplicate_threshold: Threshold
    num_perm: Annotated[int, Count(16, MOST_PERMUTATIONS)]

    name: ClassVar[str] = "cleaned"
    stored: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        require_count(self.max_words, self.min_words, "`max_words` of Cleaned (no less than `min_words`)")

    def build(self, builder: Builder) -> Corpus:
        limits = (self.min_words, self.max_words, self.long_documents)
        cleaning = Cleaning("normalised", *limits, "drop", self.near_duplicate_threshold, self.num_perm)
        return cleaning.of(builder.get(self.source), Counter())

    def identity(self) -> dict[str, Any]:
        # Which candidates LSH finds depends on the permutations, and these on datasketch's major version.
        of_none = {"num_perm": None, "datasketch": None}
        found_by = of_none if self.near_duplicate_threshold is None else {"datasketch": _datasketch()}
        return super().identity() | {"rules": 1, **found_by}


@dataclass(frozen=True)
class Prepared(CorpusSpec):
    """The documents of `source` that have a visible character, after `cleaning`: all of an audit's texts before any
    model reads them.

    Where the cleaning does just what `Cleaned` does, it is that. Else, in this order: white space, limits of words (a
    text that is cut keeps its layout up to the last word kept), equal texts, near duplicates. Adds to `Corpus.dropped`
    as `Cleaned` does, and the number of blank documents. Raises ValueError, with these numbers, if nothing is left.

    Attributes:
        cleaning: By default none.
        blank: Whether documents without a visible character are dropped, or kept where the cleaning leaves them, so
            that scores can say why they have none.
    """

    source: CorpusSpec
    cleaning: Annotated[Cleaning, require_cleaning] = AS_IS
    blank: Literal["drop", "keep"] = "drop"

    stored: ClassVar[bool] = False

    def build(self, builder: Builder) -> Corpus:
        if (same := self._same()) is not None:
            return builder.get(same)
        source, dropped = builder.get(self.source), Counter[str]()
        if blank := self.blank_ids(builder):
            log.warning("Blank documents are left out (%s of %s): %s.", len(blank), len(source), first_few(blank))
            dropped["blank"] += len(blank)
        elif self.cleaning.changes_nothing:
            return source
        return self.cleaning.of(source, dropped, without=blank)

    def blank_ids(self, builder: Builder) -> list[str]:
        """The documents that are dropped since they have no visible character; of a stream none is looked for."""
        source = builder.get(self.source)
        if self.blank == "keep" or isinstance(source, Stream):
            return []
        return [document.doc_id for document in source.documents if is_blank(document.text)]

    def identity(self) -> dict[str, Any]:
        if (same := self._same()) is not None:
            return same.identity()
        if self.cleaning.changes_nothing:
            return self.source.identity() | {"blank": self.blank}
        blank = {} if self.blank == "drop" else {"blank": self.blank}
        cleaning = asdict(self.cleaning) | {"name": ""}
        return {"kind": "prepared", "source": self.source.identity(), "cleaning": cleaning} | blank

    def _same(self) -> CorpusSpec | None:
        """The recipe that makes the same documents, where there is one."""
        how = self.cleaning
        if how.changes_nothing and self.blank == "keep":
            return self.source
        if how.white_space == "normalised" and how.duplicates == "drop" and how.min_words and how.max_words:
            limits = (how.min_words, how.max_words, how.long_documents)
            return Cleaned(self.source, *limits, how.near_duplicate_threshold, how.num_perm)
        return None


def with_blank(spec: CorpusSpec) -> CorpusSpec:
    """The same corpus with the blank documents that `Prepared` drops."""
    if isinstance(spec, Prepared):
        return replace(spec, blank="keep")
    return replace(spec, base=with_blank(spec.base)) if isinstance(spec, Select) else spec


def _first_words(text: str, number: int) -> str:
    """The text up to the end of so many of its words, its white space as it is."""
    last = next(islice(re.finditer(r"\S+", text), number - 1, None))
    return text[: last.end()]


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
        words = np.array([code(word) for word in split_words(text)], dtype=np.uint64)
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
