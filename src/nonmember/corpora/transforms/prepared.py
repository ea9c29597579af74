"""Preparation of all of an audit's texts before any model reads them; by default none."""

from __future__ import annotations

import logging
import re
from collections import Counter
from dataclasses import asdict, dataclass, replace
from itertools import islice
from typing import Any, ClassVar, Literal, get_args

from nonmember.artifacts import Builder
from nonmember.checks import first_few
from nonmember.corpora.bounds import Bound, HubBounds, least
from nonmember.corpora.specs import CorpusSpec, require_choice, require_count, require_spec
from nonmember.corpora.transforms.cleaning import Cleaned, near_duplicates, normalise, without_exact_duplicates
from nonmember.corpora.transforms.splits import Select
from nonmember.corpora.white_space import is_blank
from nonmember.records import Corpus, Document, Stream

log = logging.getLogger(__name__)

WhiteSpace = Literal["as_is", "normalised"]


@dataclass(frozen=True)
class Cleaning:
    """What is done to every text of an audit alike. See `Cleaned` for each step.

    name: of the config.   white_space: as_is, or normalised to one space between words.   min_words, max_words: None
    for no limit.   duplicates: keep them, or drop the later of equal texts.   near_duplicate_threshold: None keeps near
    duplicates.
    """

    white_space: WhiteSpace
    min_words: int | None
    max_words: int | None
    long_documents: Literal["cut", "drop"]
    duplicates: Literal["keep", "drop"]
    near_duplicate_threshold: float | None
    num_perm: int
    name: str = ""

    def __post_init__(self) -> None:
        require_choice(self.white_space, get_args(WhiteSpace), "cleaning.white_space")
        require_choice(self.duplicates, ("keep", "drop"), "cleaning.duplicates")
        require_choice(self.long_documents, ("cut", "drop"), "cleaning.long_documents")
        if self.min_words is not None:
            require_count(self.min_words, 1, "cleaning.min_words")
        if self.max_words is not None:
            require_count(self.max_words, self.min_words or 1, "cleaning.max_words (no less than min_words)")
        threshold = self.near_duplicate_threshold
        if threshold is not None and not 0.1 <= threshold <= 1:
            raise ValueError(f"cleaning.near_duplicate_threshold must lie in [0.1, 1], or be null; got {threshold!r}.")

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


AS_IS = Cleaning("as_is", None, None, "cut", "keep", None, 64)


@dataclass(frozen=True)
class Prepared(CorpusSpec):
    """The documents of `source` that have a visible character, after `cleaning`.

    Where that does just what `Cleaned` does, it is that. Else, in this order: white space, limits of words (a text that
    is cut keeps its layout up to the last word kept), equal texts, near duplicates. Adds to `Corpus.dropped` as
    `Cleaned` does, and the number of blank documents. blank: whether these are dropped, or kept where the cleaning
    leaves them, so that scores can say why they have none. Raises ValueError, with these numbers, if nothing is left.
    """

    source: CorpusSpec
    cleaning: Cleaning = AS_IS
    blank: Literal["drop", "keep"] = "drop"

    stored: ClassVar[bool] = False

    def __post_init__(self) -> None:
        require_spec(self.source, "`source` of Prepared")
        require_choice(self.blank, ("drop", "keep"), "`blank` of Prepared")
        if not isinstance(self.cleaning, Cleaning):
            raise ValueError(f"`cleaning` of Prepared must be a Cleaning; got {type(self.cleaning).__name__}.")

    def build(self, builder: Builder) -> Corpus:
        if (same := self._same()) is not None:
            return builder.get(same)
        source, dropped = builder.get(self.source), Counter[str]()
        if blank := self.blank_ids(builder):
            log.warning("Blank documents are left out (%s of %s): %s.", len(blank), len(source), first_few(blank))
            dropped["blank"] += len(blank)
        elif self.cleaning.changes_nothing:
            return source
        left_out = set(blank)
        cleaned = (self.cleaning.cleaned(item, dropped) for item in source.documents if item.doc_id not in left_out)
        documents = [document for document in cleaned if document is not None]
        if self.cleaning.duplicates == "drop":
            documents = without_exact_duplicates(documents, dropped)
        if (threshold := self.cleaning.near_duplicate_threshold) is not None:
            repeated = near_duplicates([item.text for item in documents], threshold, self.cleaning.num_perm)
            dropped["near_duplicate"] += int(repeated.sum())
            documents = [item for item, is_repeated in zip(documents, repeated, strict=True) if not is_repeated]
        if not documents:
            raise ValueError(
                f"Cleaning left none of {len(source)} documents ({dict(dropped)}). Give other documents or limits."
            )
        return Corpus(tuple(documents), dict(sorted((Counter(source.dropped) + dropped).items())))

    def blank_ids(self, builder: Builder) -> list[str]:
        """The documents that are dropped since they have no visible character; of a stream none is looked for."""
        source = builder.get(self.source)
        if self.blank == "keep" or isinstance(source, Stream):
            return []
        return [document.doc_id for document in source.documents if is_blank(document.text)]

    def bound(self, hub: HubBounds) -> Bound:
        base = self.source.bound(hub)
        return Bound(base.documents, least(base.words, self.cleaning.max_words))

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
            return Cleaned(
                self.source,
                how.min_words,
                how.max_words,
                how.long_documents,
                how.near_duplicate_threshold,
                how.num_perm,
            )
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
