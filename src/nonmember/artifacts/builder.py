"""Builds artifacts from specs: dependencies first, each once, reusing what the store or this process has."""

from __future__ import annotations

import copy
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

from nonmember.artifacts.keeping import NOTES
from nonmember.artifacts.spec import Spec
from nonmember.artifacts.store import Entry, Store, canonical_json
from nonmember.checks import returned
from nonmember.runtime.compute import Compute, give_freed_memory_back
from nonmember.runtime.source import versions

if TYPE_CHECKING:
    from nonmember.tracking.trackers import Tracker

T = TypeVar("T")

FORMAT_OF_NOTES = 3  # raise it when what is noted is found otherwise: it is then found again


class NotHandedOver(ValueError):
    """A model or documents that another program had in its memory."""


@dataclass
class Counters:
    """What a run had to make, and what it found."""

    models_trained: int = 0
    models_found: int = 0
    tokens_observed: int = 0
    observations_found: int = 0
    answers_asked: int = 0
    answers_found: int = 0


# Kind of an artifact, and whether it was made now -> the counter of such.
_COUNTED = {
    ("models", True): "models_trained",
    ("models", False): "models_found",
    ("observations", False): "observations_found",
}


class Memory:
    """What the audits of a sweep share: values by pool and name. Names are made of content, so nothing grows stale.

    A value may rest on another one (an adapted model on its base); it goes when that goes.
    """

    def __init__(self) -> None:
        self.pools: dict[str, OrderedDict[str, Any]] = {}
        self._rests_on: dict[tuple[str, str], tuple[str, str]] = {}
        self._shared: dict[type, Any] = {}

    def get(
        self,
        pool: str,
        name: str,
        make: Callable[[], T],
        *,
        at_most: int | None = None,
        rests_on: tuple[str, str] | None = None,
    ) -> T:
        """The value of that name, made where it is missing. at_most: values the pool keeps, those used last.
        rests_on: pool and name of the value without which it goes."""
        values = self.pools.setdefault(pool, OrderedDict())
        if name not in values:
            values[name] = make()
            if rests_on is not None:
                self._rests_on[pool, name] = rests_on
            while at_most is not None and len(values) > at_most:
                self.forget(pool, next(iter(values)))
        values.move_to_end(name)
        value: T = values[name]
        return value

    def shared(self, kind: type[T]) -> T:
        """The one object of a class that all audits of the process have in common."""
        if kind not in self._shared:
            self._shared[kind] = kind()
        item: T = self._shared[kind]
        return item

    def forget(self, pool: str, name: str) -> None:
        self.pools[pool].pop(name, None)
        self._rests_on.pop((pool, name), None)
        for dependent in [item for item, base in self._rests_on.items() if base == (pool, name)]:
            self.forget(*dependent)


@dataclass
class Builder:
    """Gets artifacts: from memory, from the store, or by making them. It knows no kinds; specs know how they are made.

    compute: devices, precision, memory budgets.   tracker: logs the training curves of models trained on the way.
    memory: what is shared with the other audits of this process.   asking: limits of endpoints (`endpoints.Limits`).
    """

    store: Store
    compute: Compute
    tracker: Tracker
    memory: Memory = field(default_factory=Memory)
    counters: Counters = field(default_factory=Counters)
    asking: Any = None
    _entries: dict[str, Entry] = field(default_factory=dict)
    _values: dict[str, Any] = field(default_factory=dict)
    _resources: dict[Hashable, Any] = field(default_factory=dict)
    _roles: dict[str, str] = field(default_factory=dict)
    _names: dict[int, tuple[Spec[Any], str]] = field(default_factory=dict)

    def get(self, spec: Spec[T]) -> T:
        """The artifact itself."""
        name = self._name(spec)

        def load() -> T:
            made = spec.load(self, self.entry(spec)) if spec.stored else spec.build(self)
            return returned(made, spec, *spec.gives)

        if spec.pool:
            base = spec.rests_on()
            rests_on = None if base is None else (base.pool, self._name(base))  # it shares its weights with that
            return self.memory.get(spec.pool, name, load, at_most=spec.max_in_memory, rests_on=rests_on)
        if name not in self._values:
            self._values[name] = load()
        value: T = self._values[name]
        return value

    def entry(self, spec: Spec[Any]) -> Entry:
        """The store's entry of an artifact, made where it is missing."""
        name = self._name(spec)
        if name not in self._entries:
            self.ensure_all(spec.parents())
            entry = self.store.get_or_make(
                spec.kind,
                spec.readable,
                spec.lookup_key(self),
                lambda folder: spec.make(self, folder),
                resumable=spec.resumable,
                joint=spec.joint,
                note={"alike": spec.alike(), "machine": self.compute.machine},
            )
            if (counter := _COUNTED.get((spec.kind, entry.made_now))) is not None:
                setattr(self.counters, counter, getattr(self.counters, counter) + 1)
            self._entries[name] = entry
        return self._entries[name]

    def has_made(self, spec: Spec[Any]) -> bool:
        """Whether this builder has made it itself."""
        entry = self._entries.get(self._name(spec))
        return entry is not None and entry.made_now

    def ensure(self, spec: Spec[Any]) -> None:
        """Have it in the store, or at least what it is made of."""
        if spec.stored:
            self.entry(spec)
        else:
            self.ensure_all(spec.parents())

    def ensure_all(self, specs: Iterable[Spec[Any]]) -> None:
        """Have them all, those first that no other process is making: so cells side by side do not wait in vain.

        In their order where several processes train together: each must come to the same training at the same time.
        """
        left = list(specs)
        while left:
            chosen = left[0]
            if len(left) > 1 and self.compute.in_one_process:
                chosen = next((item for item in left if not self._is_made_elsewhere(item)), chosen)
            left.remove(chosen)
            self.ensure(chosen)

    def _is_made_elsewhere(self, spec: Spec[Any]) -> bool:
        """By another process, or something that it is made of."""
        if spec.stored:
            if self._name(spec) in self._entries or self.store.has(spec.kind, spec.lookup_key(self)):
                return False
            if self.store.is_being_made(spec.kind, spec.lookup_key(self)):
                return True
        return any(self._is_made_elsewhere(parent) for parent in spec.parents())

    def set_role(self, spec: Spec[Any], role: str) -> None:
        """Name a model's role in the audit, for the curves of its training."""
        self._roles[self._name(spec)] = role

    def role(self, spec: Spec[Any]) -> str:
        """Its role in the audit; its readable name where it has none."""
        return self._roles.get(self._name(spec), spec.readable)

    def resource(self, name: Hashable, open_it: Callable[[], T]) -> T:
        """What is opened once and used by several artifacts, such as the client of an endpoint."""
        if name not in self._resources:
            self._resources[name] = open_it()
        opened: T = self._resources[name]
        return opened

    def noted(self, what: str, key: Mapping[str, Any], find: Callable[[], Any] | None = None) -> Any:
        """A small finding (JSON), which `find` gives where the store has no note of it; without, it is None then. key:
        all that it depends on but the versions of the libraries."""
        key = {what: key, "format": FORMAT_OF_NOTES, "versions": versions()}
        if find is None:
            entry = self.store.find(NOTES, what, key)
        else:
            entry = self.store.get_or_make(NOTES, what, key, lambda _: {"found": find()})
        return None if entry is None else entry.facts["found"]

    def warnings(self) -> list[str]:
        """What a reader of a result has to know of the resources it rests on."""
        return [text for item in self._resources.values() for text in getattr(item, "warnings", list)()]

    def make_room(self, pool: str, needed: Spec[Any] | None) -> None:
        """Keep of a pool what is needed alone: a training takes several times the memory of a model."""
        kept = {self._name(needed)} if needed is not None else set()
        for name in self.memory.pools.get(pool, {}).keys() - kept:
            self.memory.forget(pool, name)
        give_freed_memory_back()

    def model_for_trainer(self, model: Any) -> Any:
        """The model; a copy where the trainer would change it for good."""
        return copy.deepcopy(model) if self.compute.alters_models else model

    def _name(self, spec: Spec[Any]) -> str:
        """Made once for each spec, which stays alive here so that its id is not another's: the recipe of a model that
        read forty sets is a thousand values long, and asked for at every step."""
        if id(spec) not in self._names:
            self._names[id(spec)] = spec, f"{spec.kind} {canonical_json(spec.lookup_key(self))}"
        return self._names[id(spec)][1]
