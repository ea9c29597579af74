"""A kind of model that can only be asked: it has no weights here and answers requests."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from nonmember.artifacts import Builder
from nonmember.endpoints import Completion, Request
from nonmember.models import ModelSpec


@dataclass(frozen=True)
class Parrot(ModelSpec):
    """Answers with the last word of every question, so often as asked for: knows nothing and sounds as if it did."""

    has_weights: ClassVar[bool] = False

    @property
    def readable(self) -> str:
        return "parrot"

    def recipe(self) -> dict[str, Any]:
        return {"kind": "parrot"}

    def key(self, builder: Builder) -> dict[str, Any]:
        return {"parrot": 1}

    def complete(self, builder: Builder, requests: Sequence[Request]) -> list[Completion]:
        words = (request.as_text.split()[-1] for request in requests)
        return [Completion(word, "answered") for word in words]
