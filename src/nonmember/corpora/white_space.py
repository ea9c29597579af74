"""White space of texts."""

from __future__ import annotations


def normalise(text: str) -> str:
    """Words, whatever whitespace separates them, joined by one space: no line breaks or indentation.

    Nothing else: case, punctuation, markup and Unicode form stay, as the scores look at exactly these.
    """
    return " ".join(text.split())
