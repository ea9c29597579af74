"""The protocol of every artifact: corpora, tokenizers, models, observations."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar

from nonmember.artifacts.store import Entry

if TYPE_CHECKING:
    from nonmember.artifacts.builder import Builder

T = TypeVar("T")


class Spec(ABC, Generic[T]):
    """What an artifact is made of: a frozen dataclass of plain values and other specs.

    A spec that is kept in the store implements `make` and `load`, one that is quickly made from others `build`.

    kind: its folder in the store.   resumable: what a killed run left in the folder is there when `make` runs again.
    joint: all processes of a distributed run make it together; otherwise the first alone.
    pool: name of what is kept of it for all audits of a process; empty: it is kept by one builder alone.
    max_in_memory: most values kept in that pool, those used last; None: all.
    gives: names of the classes that the artifact may be of.
    """

    kind: ClassVar[str] = ""
    resumable: ClassVar[bool] = False
    joint: ClassVar[bool] = False
    pool: ClassVar[str] = ""
    max_in_memory: ClassVar[int | None] = None
    gives: ClassVar[tuple[str, ...]] = ("object",)

    @property
    def stored(self) -> bool:
        """Whether it is kept in the store."""
        return True

    @property
    def readable(self) -> str:
        """A short name for people; no part of any key."""
        return re.sub("(?<=[a-z])(?=[A-Z])", " ", type(self).__name__).lower()

    @abstractmethod
    def key(self, builder: Builder) -> Mapping[str, Any]:
        """Everything that determines its content, as JSON: equal keys mean equal artifacts. No labels, no devices."""

    def lookup_key(self, builder: Builder) -> Mapping[str, Any]:
        """What it is found by in store and memory. A corpus is found by its recipe and known by its content; everything
        else is found by its key."""
        return self.key(builder)

    def validate(self) -> None:
        """Raise ValueError where the files or folders that it names are not there, or cannot be what they must be.
        Cheap; imports nothing heavy."""

    def parents(self) -> Iterable[Spec[Any]]:
        """What is to be in the store before this one is made, so that no lock is held meanwhile."""
        return ()

    def expected_tokens(self, builder: Builder) -> int | None:
        """About how many tokens are read when it is made; None where nobody can tell before."""
        return None

    def alike(self) -> str:
        """What it has in common with others that take as long per token, and as much disk."""
        return type(self).__name__

    def rests_on(self) -> Spec[Any] | None:
        """The artifact in memory that this one is a view of: it is forgotten with that one."""
        return None

    def make(self, builder: Builder, folder: Path) -> Mapping[str, Any] | None:
        """Fill the folder; return facts to be kept beside the data (JSON)."""
        raise NotImplementedError(f"{type(self).__name__} is not kept in the store.")

    def load(self, builder: Builder, entry: Entry) -> T:
        """Read what `make` has written."""
        raise NotImplementedError(f"{type(self).__name__} is not kept in the store.")

    def build(self, builder: Builder) -> T:
        """Make it in memory, where it is not kept in the store."""
        raise NotImplementedError(f"{type(self).__name__} is kept in the store.")
