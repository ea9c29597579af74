"""In-memory cache of artifacts, shared by the audits of a sweep."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Any, TypeVar

T = TypeVar("T")


class Memory:
    """Values by pool and name. Names are made of content, so nothing in it grows stale.

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
                self._forget(pool, next(iter(values)))
        values.move_to_end(name)
        value: T = values[name]
        return value

    def shared(self, kind: type[T]) -> T:
        """The one object of a class that all audits of the process have in common."""
        if kind not in self._shared:
            self._shared[kind] = kind()
        item: T = self._shared[kind]
        return item

    def _forget(self, pool: str, name: str) -> None:
        self.pools[pool].pop(name, None)
        self._rests_on.pop((pool, name), None)
        for dependent in [item for item, base in self._rests_on.items() if base == (pool, name)]:
            self._forget(*dependent)
