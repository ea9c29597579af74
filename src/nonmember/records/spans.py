"""Spans of tokens in a text, and of what an assistant says in a conversation."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Sequence

# Of a text, where each of its tokens begins and ends, in order.
Spans = Callable[[str], list[tuple[int, int]]]


# Of scripts that put no blanks between words (Thai, Lao, Tibetan, Burmese, Khmer, kana, Chinese) each character is one.
NO_BLANKS = "\u0e00-\u109f\u1780-\u17ff\u3041-\u30ff\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
_WORD = re.compile(rf"[{NO_BLANKS}]|[^\s{NO_BLANKS}]+")


def words(text: str) -> list[tuple[int, int]]:
    """What white space separates, or a character of a script without: tokens that need no tokenizer."""
    return [match.span() for match in _WORD.finditer(text)]


def split_words(text: str) -> list[str]:
    """The texts of `words`."""
    return text.split() if text.isascii() else _WORD.findall(text)


def first_tokens(text: str, spans: Spans, number: int) -> str:
    """The text up to the end of so many tokens; all of it where it has fewer."""
    found = spans(text)
    return text[: found[number - 1][1]] if len(found) > number else text


def turns_of(pieces: Sequence[str]) -> list[tuple[int, int]]:
    """Where the assistant's turns begin and end in the text."""
    ends = list(itertools.accumulate(map(len, pieces)))
    return [(ends[index - 1], ends[index]) for index in range(1, len(pieces), 2)]


def scored_spans(pieces: Sequence[str], spans: Sequence[tuple[int, int]]) -> list[bool]:
    """Whether there is something in a token that the assistant says."""
    turns = turns_of(pieces)
    return [any(start < last and end > first for first, last in turns) for start, end in spans]
