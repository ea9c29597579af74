"""What a set of questions needs, as one graph of artifacts, before anything of it is made."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from typing import Any

from nonmember.artifacts.builder import Builder
from nonmember.artifacts.spec import Spec
from nonmember.artifacts.store import Entry, key_hash

ALL_AT_ONCE = ("corpora",)  # kinds that are made to know the keys of others: documents must be read for that


class NotMade(Exception):
    """Something is needed that is not in the store, and a planner makes nothing."""


@dataclass
class Planner(Builder):
    """A builder that finds and reads, and makes nothing but corpora that no model writes."""

    def entry(self, spec: Spec[Any]) -> Entry:
        if spec.kind in ALL_AT_ONCE and not any(item.kind not in ALL_AT_ONCE for item in all_of(spec)):
            return super().entry(spec)
        if not self.store.has(spec.kind, spec.lookup_key(self)):
            raise NotMade(spec.readable)
        found = self.store.find(spec.kind, spec.readable, spec.lookup_key(self))
        assert found is not None
        return found

    def noted(self, what: str, key: Mapping[str, Any], find: Callable[[], Any] | None = None) -> Any:
        found = super().noted(what, key)
        return find() if found is None and find is not None else found


@dataclass
class Node:
    """An artifact that is kept in the store."""

    name: str  # kind and hash of its key; where the key rests on what a model will write, a name of its own
    spec: Spec[Any] = field(repr=False)
    parents: tuple[str, ...]  # names of what is made before it
    in_store: bool

    @property
    def kind(self) -> str:
        return self.spec.kind


class Graph:
    """The artifacts of several questions, each once; parents stand before their children."""

    def __init__(self, builder: Builder) -> None:
        self.builder = builder
        self.nodes: dict[str, Node] = {}
        self._there: dict[str, set[str]] = {}

    def add(self, specs: Iterable[Spec[Any]]) -> None:
        """The artifacts that a question needs, and all that they are made of."""
        seen: dict[int, tuple[Spec[Any], tuple[str, ...]]] = {}  # by id, which is a spec's for as long as it is here
        for spec in specs:
            self._add(spec, seen)

    def missing(self) -> list[Node]:
        """What is to be made, of which corpora are no part that were read to know the keys of others."""
        there = {f"{kind}/{item}" for kind in ALL_AT_ONCE for item in self.builder.store.hashes(kind)}
        for name in there & self.nodes.keys():
            self.nodes[name].in_store = True
        return [node for node in self.nodes.values() if not node.in_store]

    def _add(self, spec: Spec[Any], seen: dict[int, tuple[Spec[Any], tuple[str, ...]]]) -> tuple[str, ...]:
        """Names of the nodes that whatever is made of `spec` rests on: itself, or what it is made of in turn."""
        if id(spec) in seen:
            return seen[id(spec)][1]
        parents = tuple(dict.fromkeys(name for item in made_of(spec) for name in self._add(item, seen)))
        if spec.stored:
            node = self._node(spec, parents)
            parents = (node.name,)
        seen[id(spec)] = spec, parents
        return parents

    def _node(self, spec: Spec[Any], parents: tuple[str, ...]) -> Node:
        try:
            digest = key_hash(spec.lookup_key(self.builder))
        except NotMade:
            digest = "unknown-" + hashlib.sha256(repr(spec).encode()).hexdigest()[:16]
        name = f"{spec.kind}/{digest}"
        if name not in self.nodes:
            if spec.kind not in self._there:
                self._there[spec.kind] = self.builder.store.hashes(spec.kind)
            self.nodes[name] = Node(name, spec, parents, digest in self._there[spec.kind])
        return self.nodes[name]


def made_of(spec: Spec[Any]) -> Iterator[Spec[Any]]:
    """What it names: models, corpora and all else it is made of. Parents first, which may be none of its fields."""
    yield from spec.parents()
    if is_dataclass(spec):
        for item in fields(spec):
            yield from _specs_in(getattr(spec, item.name))


def all_of(spec: Spec[Any]) -> Iterator[Spec[Any]]:
    """It and all that it is made of, some of it more than once."""
    yield spec
    for item in made_of(spec):
        yield from all_of(item)


def _specs_in(value: Any) -> Iterator[Spec[Any]]:
    match value:
        case Spec():
            yield value
        case Mapping():
            for item in value.values():
                yield from _specs_in(item)
        case list() | tuple():
            for item in value:
                yield from _specs_in(item)
        case _ if is_dataclass(value) and not isinstance(value, type):
            for item in fields(value):
                yield from _specs_in(getattr(value, item.name))
