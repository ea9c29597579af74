"""Which words of a document MC-PDD masks: the most specific by TF-IDF, or random ones as a control; and what counts as
an occurrence of a word.

A word is a maximal run of letters and digits, with apostrophes and hyphens inside it; an apostrophe at its edge is a
quotation mark. Words are counted without regard to case. A word *occurs* wherever it stands between characters that are
neither letters nor digits: "Leon" also in "Leon's" and in "leon_s". One rule serves for masking, where anything less
would leave the answer in the prompt, for names and for reading answers.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Literal

import numpy as np

Strategy = Literal["max", "random"]

BLANK = "<blank>"
LETTER = r"[^\W_]"  # of any script, or a digit
WORD = re.compile(rf"{LETTER}+(?:['’-]{LETTER}+)*")
ENGLISH_LETTERS = re.compile("[A-Za-z]+")
DIGITS_OF_A_WEIGHT = 12  # weights that are equal in exact arithmetic may differ in the last bit


def words_of(text: str) -> list[str]:
    """In their order, in one case."""
    return [word.casefold() for word in WORD.findall(text)]


def document_frequencies(texts: Iterable[str]) -> Counter[str]:
    """In how many of the texts each word occurs."""
    return Counter(word for text in texts for word in set(words_of(text)))


def weights(words: Sequence[str], frequencies: Mapping[str, int], num_documents: int) -> dict[str, float]:
    """TF-IDF of each word of a document, in the order of its first occurrence: count / length * ln(N / df), nothing
    smoothed."""
    return {
        word: count / len(words) * math.log(num_documents / frequencies[word]) for word, count in Counter(words).items()
    }


def chosen(
    text: str,
    frequencies: Mapping[str, int],
    num_documents: int,
    *,
    strategy: Strategy,
    number: int,
    letters_only: bool,
    stop_words: Collection[str],
    name: str,
) -> list[str]:
    """At most so many different words of a text, the first to be masked first.

    max: of the largest weights, of equal ones the earliest in the text.   random: drawn alike from all different ones;
    name: of this draw.   letters_only: only of words of English letters alone.
    """
    found = {
        word: weight
        for word, weight in weights(words_of(text), frequencies, num_documents).items()
        if word not in stop_words and (not letters_only or ENGLISH_LETTERS.fullmatch(word))
    }
    if strategy == "random":
        order = _generator(name).permutation(len(found))
        return [list(found)[place] for place in order[:number]]
    return sorted(found, key=lambda word: -round(found[word], DIGITS_OF_A_WEIGHT))[:number]  # stable


def _generator(name: str) -> np.random.Generator:
    """One for each name, whatever else is drawn."""
    return np.random.default_rng(int.from_bytes(hashlib.sha256(name.encode("utf-8", "replace")).digest()[:16], "big"))


def occurs(word: str, text: str) -> bool:
    """Whether a word, in one case, occurs in a text in any."""
    return next(_occurrences(word, text.casefold()), None) is not None


def masked(word: str, text: str) -> str:
    """The text with a blank for every occurrence of a word, in any case."""
    place = [index for index, letter in enumerate(text) for _ in letter.casefold()]  # one letter may become two
    parts, last = [], 0
    for found in _occurrences(word, text.casefold()):
        parts += [text[last : place[found.start()]], BLANK]
        last = place[found.end() - 1] + 1
    return "".join([*parts, text[last:]])


def _occurrences(word: str, text: str) -> Iterator[re.Match[str]]:
    return re.finditer(rf"(?<!{LETTER}){re.escape(word)}(?!{LETTER})", text)
