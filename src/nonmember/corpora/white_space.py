"""White space of texts, and texts of nothing else."""

from __future__ import annotations

import re

# White space, controls, and what Unicode calls default-ignorable: zero-width marks, fillers, variation selectors.
BLANK = re.compile(
    "[\\s\\x00-\\x1f\\x7f-\\xa0\\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e"
    "\u2060-\u206f\u2800\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\U000e0000-\U000e0fff]*"
)


def is_blank(text: str) -> bool:
    """Whether there is nothing to see in it."""
    return BLANK.fullmatch(text) is not None


def normalise(text: str) -> str:
    """Words, whatever whitespace separates them, joined by one space: no line breaks or indentation.

    Nothing else: case, punctuation, markup and Unicode form stay, as the scores look at exactly these.
    """
    return " ".join(text.split())
