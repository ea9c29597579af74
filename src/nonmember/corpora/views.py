"""Other versions of texts: perturbations that keep ids (views), and prefixes.

The perturbations are those whose features LLM-DI uses, at its strengths. Their chance comes from a hash of the
document's text, so a view is the same wherever it is made. Synonym substitution, its sixth, needs a thesaurus and is
left out. Years are deleted and replaced as FSD does to see what of a difference is its date. Lines are broken and
indented as they are in a file, to see what another preparation does.
"""

from __future__ import annotations

import hashlib
import re
import textwrap
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Annotated, ClassVar, Literal, get_args

import numpy as np

from nonmember.artifacts import Builder
from nonmember.checks import Count, Distinct, OneOf
from nonmember.corpora.specs import CorpusSpec, Transform, require_choice
from nonmember.corpora.transforms.splits import YEAR
from nonmember.records import Corpus

View = Literal[
    "original",
    "lowercase",
    "butter_fingers",
    "random_deletion",
    "change_char_case",
    "whitespace_perturbation",
    "underscore_trick",
    "years_deleted",
    "years_replaced",
    "wrapped",
    "prepend_eos",
]

BEHIND_END_OF_TEXT: View = "prepend_eos"  # the text itself, read behind the model's end-of-text token

ONE_YEAR = "2023"  # that all are replaced by
LINE_WIDTH, INDENTATION = 60, "    "
TRIES = 1000  # to place a span: mimir tries for ever, which a text without room for it would need

# Keys beside each other on a QWERTY keyboard.
ROWS = ("qwertyuiop", "asdfghjkl", "zxcvbnm")
NEIGHBOURS = {
    key: row[max(0, index - 1) : index] + row[index + 1 : index + 2] for row in ROWS for index, key in enumerate(row)
}


def apply_view(corpus: Corpus, view: str) -> Corpus:
    """The same documents, their texts changed by a view of `View`; raises ValueError for any other."""
    require_choice(view, get_args(View), "A view")
    if view in ("original", BEHIND_END_OF_TEXT):
        return corpus
    documents = (doc.changed(lambda text: VIEWS[view](text, _rng(view, text))) for doc in corpus.documents)
    return replace(corpus, documents=tuple(documents))


def _rng(name: object, text: str) -> np.random.Generator:
    """The chance in what is named so and done to the text (or to the document of that id)."""
    digest = hashlib.sha256(f"{name}\0{text}".encode("utf-8", "surrogatepass")).digest()
    return np.random.default_rng(int.from_bytes(digest[:8]))


@dataclass(frozen=True)
class Viewed(Transform):
    """A view as a corpus of its own, to train on and to compare texts of; ids, clusters and domains are the base's."""

    base: CorpusSpec
    view: Annotated[str, OneOf(("original", *VIEWS))]

    name: ClassVar[str] = "viewed"

    def build(self, builder: Builder) -> Corpus:
        return apply_view(builder.get(self.base), self.view)


def lowercase(text: str, rng: np.random.Generator) -> str:
    """Through `str.lower()`, as the lowercase score of Carlini et al. (2021) reads it."""
    return text.lower()


def butter_fingers(text: str, rng: np.random.Generator) -> str:
    """Each letter is a neighbouring key with probability .1."""
    hits = rng.random(len(text)) < 0.1
    return "".join(_neighbour(letter, rng) if hit else letter for letter, hit in zip(text, hits, strict=True))


def _neighbour(letter: str, rng: np.random.Generator) -> str:
    near = NEIGHBOURS.get(letter.lower(), letter.lower())
    key = near[int(rng.integers(len(near)))] if near else letter
    return key.upper() if letter.isupper() else key if letter.lower() in NEIGHBOURS else letter


def random_deletion(text: str, rng: np.random.Generator) -> str:
    """Each word is dropped with probability .25; one is always kept."""
    words = text.split(" ")
    kept = [word for word, drop in zip(words, rng.random(len(words)) < 0.25, strict=True) if not drop]
    return " ".join(kept or words[:1])


def change_char_case(text: str, rng: np.random.Generator) -> str:
    """Each letter changes its case with probability .25."""
    hits = rng.random(len(text)) < 0.25
    return "".join(letter.swapcase() if hit else letter for letter, hit in zip(text, hits, strict=True))


def whitespace_perturbation(text: str, rng: np.random.Generator) -> str:
    """Spaces are dropped with probability .25, and others are put in behind letters with probability .0625."""

    def changed(letter: str, draw: float) -> str:
        if letter == " ":
            return "" if draw < 0.25 else " "
        return f"{letter} " if draw < 0.0625 else letter

    return "".join(map(changed, text, rng.random(len(text))))


def underscore_trick(text: str, rng: np.random.Generator) -> str:
    """Each space is an underscore with probability .25."""
    hits = rng.random(len(text)) < 0.25
    return "".join("_" if hit and letter == " " else letter for letter, hit in zip(text, hits, strict=True))


def years_deleted(text: str, rng: np.random.Generator) -> str:
    """Without the years 1900 to 2099 and the blanks before them; a text of nothing else stays as it is."""
    return re.sub(rf"\s*{YEAR.pattern}", "", text).strip() or text


def years_replaced(text: str, rng: np.random.Generator) -> str:
    """Every year of 1900 to 2099 becomes 2023."""
    return YEAR.sub(ONE_YEAR, text)


def wrapped(text: str, rng: np.random.Generator) -> str:
    """In lines of at most 60 characters, all but the first indented by four: a docstring as it stands in its file."""
    return textwrap.fill(
        text, LINE_WIDTH, subsequent_indent=INDENTATION, break_long_words=False, break_on_hyphens=False
    )


# All views that change a text, each by the function of its name.
VIEWS: dict[str, Callable[[str, np.random.Generator], str]] = {
    name: globals()[name] for name in get_args(View) if name not in ("original", BEHIND_END_OF_TEXT)
}


@dataclass(frozen=True)
class Prefixes(Transform):
    """Of every document its first so many words, one document per length, as WikiMIA has of each article: ids "id/32",
    the document as their cluster.

    So a split by cluster keeps the lengths of one document together, and a split by document does not. Words are joined
    by one space. A document shorter than a length has none of it.
    Raises ValueError if no document is as long as the shortest.
    """

    base: CorpusSpec
    lengths: Annotated[tuple[int, ...], Distinct("different numbers of words", Count(1))]

    name: ClassVar[str] = "prefixes"

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "lengths", tuple(sorted(self.lengths)))

    def build(self, builder: Builder) -> Corpus:
        documents = []
        for document in builder.get(self.base).documents:
            words = document.text.split()
            for length in (number for number in self.lengths if number <= len(words)):
                doc_id, text = f"{document.doc_id}/{length}", " ".join(words[:length])
                documents.append(replace(document, doc_id=doc_id, text=text, cluster_id=document.doc_id))
        if not documents:
            raise ValueError(f"Prefixes needs documents of {self.lengths[0]} words or more, but there are none.")
        return Corpus(tuple(documents))
