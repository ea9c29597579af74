"""Black-box models: behind an endpoint, replayed from recorded answers, or masked language models."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from nonmember.artifacts import Builder
from nonmember.artifacts.settings import settings_of
from nonmember.checks import require_text
from nonmember.endpoints import questions
from nonmember.endpoints.capabilities import require
from nonmember.endpoints.endpoint import EndpointClient, Session
from nonmember.endpoints.recorded import Recorded
from nonmember.endpoints.service import Service
from nonmember.models.access import Access
from nonmember.models.base import ModelSpec, last_part
from nonmember.models.places import require_model
from nonmember.runtime.naming import label_of_path

if TYPE_CHECKING:
    from nonmember.records import Corpus, Question, TokenTable
    from nonmember.records.answers import Completion, Request

__all__ = ["Endpoint", "MaskedModel", "Recorded"]

T = TypeVar("T")


@dataclass(frozen=True)
class Endpoint(Service, ModelSpec):
    """A model behind a server of OpenAI's protocol; its fields are those of `Service`."""

    has_weights: ClassVar[bool] = False

    @property
    def readable(self) -> str:
        return last_part(self.model)

    def recipe(self) -> dict[str, Any]:
        return settings_of(self)

    def key(self, builder: Builder) -> dict[str, Any]:
        return {"endpoint": {"url": self.address, "model": self.model, "form": self.form, **self.extras}}

    def require(self, builder: Builder, access: Access, what: str) -> None:
        self._ask(builder, lambda client: require(client, access, what))

    def complete(self, builder: Builder, requests: Sequence[Request]) -> list[Completion]:
        return self._ask(builder, lambda client: questions.completions(client, requests))

    def token_table(self, builder: Builder, shown: Corpus, max_tokens: int) -> TokenTable:
        return self._ask(builder, lambda client: questions.observations(client, shown, max_tokens))

    def answer_table(self, builder: Builder, shown: Corpus, question: Question, max_tokens: int) -> TokenTable:
        return self._ask(builder, lambda client: questions.answer_probabilities(client, shown, max_tokens, question))

    def _ask(self, builder: Builder, ask: Callable[[EndpointClient], T]) -> T:
        session = builder.memory.shared(Session)
        client = builder.resource(self, lambda: EndpointClient(self, builder.store, builder.asking, session))
        asked, found = client.num_asked, client.num_found
        try:
            return ask(client)
        finally:
            builder.counters.answers_asked += client.num_asked - asked
            builder.counters.answers_found += client.num_found - found


@dataclass(frozen=True)
class MaskedModel(ModelSpec):
    """A masked language model from a folder or the Hugging Face hub: it fills blanks, and is asked nothing else.

    revision: commit, tag or branch on the hub; the commit it stands for goes into the key.
    """

    path: str
    revision: str | None = None

    has_weights: ClassVar[bool] = False

    def __post_init__(self) -> None:
        require_text(self.path, "path of a masked model")
        require_text(self.revision, "revision of a masked model", or_null=True)

    @property
    def readable(self) -> str:
        return label_of_path(self.path)

    def recipe(self) -> dict[str, Any]:
        return settings_of(self)

    def validate(self) -> None:
        require_model(self.path)

    def key(self, builder: Builder) -> dict[str, Any]:
        from nonmember.models.kinds.pretrained import Pretrained
        from nonmember.models.loading import pretrained_identity

        return {"masked": pretrained_identity(Pretrained(self.path, self.revision))}

    def complete(self, builder: Builder, requests: Sequence[Request]) -> list[Completion]:
        from nonmember.endpoints.masked import fill_blanks

        return fill_blanks(self, requests, builder.compute.device)
