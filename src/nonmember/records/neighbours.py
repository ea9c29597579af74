"""Neighbours of texts: how they are made, and their names."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Neighbours:
    """How changed versions of each text are made.

    Attributes:
        number: Of each text.
        filler: A masked language model that proposes single words; None: random words of the corpus in `share` of the
            places, in spans of `span` words with `buffer` words between.
        revision: Of the filler.
    """

    number: int
    filler: str | None
    revision: str | None
    share: float
    span: int
    buffer: int


def name_of_neighbour(doc_id: str, number: int) -> str:
    return f"{doc_id}#{number}"


def text_of_neighbour(name: str) -> str:
    """The id of the document that this is a neighbour of."""
    return name.rpartition("#")[0]
