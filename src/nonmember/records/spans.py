"""Tokenizer-independent token spans."""

from __future__ import annotations

import re
from collections.abc import Callable

# Of a text, where each of its tokens begins and ends, in order.
Spans = Callable[[str], list[tuple[int, int]]]


def words(text: str) -> list[tuple[int, int]]:
    """What white space separates: tokens that need no tokenizer."""
    return [match.span() for match in re.finditer(r"\S+", text)]


def first_tokens(text: str, spans: Spans, number: int) -> str:
    """The text up to the end of so many tokens; all of it where it has fewer."""
    places = spans(text)
    return text[: places[number - 1][1]] if len(places) > number else text
