"""Third-party text for the gates: documents that share nothing with the suspect set."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass, replace
from typing import Annotated, ClassVar

from nonmember.artifacts import Builder
from nonmember.checks import Count, OneOf
from nonmember.corpora.specs import CorpusSpec, Transform, require_count
from nonmember.corpora.transforms.cleaning import normalise
from nonmember.corpora.transforms.splits import in_order, position
from nonmember.records import Corpus, Document

WINDOW = 50  # characters; any shared stretch of twice this length is found
SPARE = 50  # candidates beyond twice as many as are wanted, for those that are left out
SALT = "neutral text"


@dataclass(frozen=True)
class Neutral(Transform):
    """Documents of a general text that share no passage with another corpus, cut short, otherwise as they are.

    Raises ValueError where no document is left.

    Attributes:
        base: The general text.
        apart_from: The suspect set. A document is left out if what would be read of it equals, contains, lies in or
            overlaps a suspect document by 100 characters or more, white space aside.
        half: "third" or "practice"; the two never share a document.
        num_documents: At most so many, in order of a hash; None: at most as many as the suspect set has.
        min_characters: Shorter documents are left out.
        max_characters: Longer ones are cut, between words where possible.
    """

    base: CorpusSpec
    apart_from: CorpusSpec
    _: KW_ONLY
    half: Annotated[str, OneOf(("third", "practice"))]
    num_documents: Annotated[int | None, Count(1)]
    min_characters: Annotated[int, Count(1)]
    max_characters: int

    name: ClassVar[str] = "neutral"

    def __post_init__(self) -> None:
        super().__post_init__()
        require_count(self.max_characters, self.min_characters, "`max_characters` of Neutral")

    def build(self, builder: Builder) -> Corpus:
        suspect = builder.get(self.apart_from)
        number = self.num_documents or len(suspect)
        candidates = self._candidates(builder.get(self.base), 2 * number + SPARE)
        shared = _shared(candidates, suspect)
        chosen = [document for index, document in enumerate(candidates) if index not in shared]
        if not chosen:
            shared_by_all = f"each of the {len(candidates)} examined shares a passage or contains a whole document"
            why = shared_by_all if candidates else "all are shorter"
            raise ValueError(
                f"No document of the general text has {self.min_characters} characters or more and shares nothing with "
                f"the suspect set ({why}); the gates need such text. Give more of it (general=...)."
            )
        return Corpus(tuple(chosen[:number]))

    def _candidates(self, base: Corpus, number: int) -> list[Document]:
        """Of this half, in the order of the draw, each text once."""
        long = (item for item in base.documents if len(item.text) >= self.min_characters)
        first = self.half == "third"
        ours = [item for item in long if (position(f"{SALT}, halves", item.doc_id) < 0.5) == first]
        by_text: dict[str, Document] = {}
        for document in in_order(ours, SALT):
            text = _cut(document.text, self.max_characters)
            by_text.setdefault(text, replace(document, text=text))
            if len(by_text) == number:
                break
        return list(by_text.values())


def _shared(candidates: list[Document], suspect: Corpus) -> set[int]:
    """Indices of the candidates that share a stretch of text with a suspect document."""
    texts = [normalise(document.text) for document in candidates]
    having: defaultdict[str, set[int]] = defaultdict(set)
    for index, text in enumerate(texts):
        for window in _windows(text, WINDOW):
            having[window].add(index)
    shared: set[int] = set()
    for document in suspect.documents:
        text = normalise(document.text)
        for window in _windows(text, 1):
            shared |= having.get(window, set())
        if len(text) < 2 * WINDOW:  # so short that it may lie between two windows
            shared |= {index for index, candidate in enumerate(texts) if text in candidate}
    return shared


def _windows(text: str, stride: int) -> Iterator[str]:
    return (text[start : start + WINDOW] for start in range(0, max(len(text) - WINDOW + 1, 1), stride))


def _cut(text: str, max_characters: int) -> str:
    if len(text) <= max_characters:
        return text
    kept = text[: max_characters + 1]
    if kept[-1].isspace():
        return kept.rstrip()
    return kept.rsplit(None, 1)[0] if len(kept.split(None, 1)) > 1 else kept[:-1]
