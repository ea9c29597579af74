"""Everything that a question rests on, spec by spec."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from typing import Any

from nonmember.observations import Scored


def specs_in(node: Any, seen: dict[int, Any] | None = None) -> Iterator[Any]:
    """Every spec in this one, itself first and each once; what a score makes no use of is left out."""
    seen = {} if seen is None else seen  # by id; held, so that no other takes it
    if id(node) in seen:
        return
    seen[id(node)] = node
    match node:
        case Mapping():
            children = list(node.values())
        case list() | tuple():
            children = list(node)
        case Scored():
            yield node
            children = _used(node)
        case _ if is_dataclass(node):
            yield node
            children = [getattr(node, field.name) for field in fields(node)]
        case _:
            return
    for child in children:
        yield from specs_in(child, seen)


def _used(scored: Scored) -> list[Any]:
    compared, further = scored.compared_with(), scored.further_corpora()
    return [scored.model, scored.corpus, scored.score, *compared.values(), scored.general(), *further.values()]
