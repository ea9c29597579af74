"""How much text a corpus can have, told from its recipe: nothing is read."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

TOKENS_PER_WORD = 1.6  # a bound for English prose in vocabularies of 32,000 entries and more


@dataclass(frozen=True)
class Bound:
    """Most documents, and most words of each; None where the recipe does not say."""

    documents: int | None
    words: int | None = None

    def tokens(self, most: int | None = None) -> int | None:
        """Of all documents, of at most so many tokens each; None where nothing bounds them."""
        of_words = None if self.words is None else math.ceil(self.words * TOKENS_PER_WORD)
        each = least(most, of_words)
        return None if self.documents is None or each is None else self.documents * each


# What is known of a data set on the hub: its path, and the names that choose a part of it -> bound.
HubBounds = Callable[[str, Sequence[str | None]], Bound]


def least(*numbers: int | None) -> int | None:
    """The smallest of those that are known."""
    return min((item for item in numbers if item is not None), default=None)
