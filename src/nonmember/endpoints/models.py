"""Black-box models: behind an endpoint, replayed from recorded answers, or masked language models."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar
from urllib.parse import urlsplit

from nonmember.artifacts import Builder
from nonmember.artifacts.settings import settings_of
from nonmember.checks import require_choice, require_text
from nonmember.models.access import Access
from nonmember.models.base import ModelSpec, last_part
from nonmember.models.places import require_model
from nonmember.runtime.naming import label_of_path

if TYPE_CHECKING:
    from nonmember.endpoints.endpoint import EndpointClient
    from nonmember.records import Corpus, Question, TokenTable
    from nonmember.records.answers import Completion, Request

FORMS = ("chat", "completions")

T = TypeVar("T")


def _has_host(url: str) -> bool:
    """A name of printable letters, and a port that can be one."""
    try:
        parts = urlsplit(url)
        return bool(parts.hostname) and parts.port != 0 and url.isprintable() and " " not in url
    except ValueError:
        return False


@dataclass(frozen=True)
class Endpoint(ModelSpec):
    """A model behind a server of OpenAI's protocol.

    url: up to and including /v1.   model: as the server calls it.   form: chat or completions, the route that is asked.
    key_variable: the environment variable that holds the secret; it need not be set for a server that wants none.
    """

    url: str
    model: str
    form: str
    key_variable: str

    has_weights: ClassVar[bool] = False

    def __post_init__(self) -> None:
        require_choice(self.form, FORMS, "form of an endpoint")
        for name in ("url", "model", "key_variable"):
            require_text(getattr(self, name), f"{name} of an endpoint")
        if any(mark in self.url for mark in "@?#"):  # where secrets may stand, which are not repeated here
            raise ValueError(
                "url of an endpoint must have no user, password or query: a secret belongs into the environment "
                "variable that key_variable names."
            )
        if not self.url.startswith(("http://", "https://")):
            raise ValueError(f"url of an endpoint must begin with http:// or https://; got {self.url!r}.")
        if not _has_host(self.url):
            raise ValueError(f"url of an endpoint must name a host, as in http://localhost:8080/v1; got {self.url!r}.")

    @property
    def readable(self) -> str:
        return last_part(self.model)

    def recipe(self) -> dict[str, Any]:
        return settings_of(self)

    def key(self, builder: Builder) -> dict[str, Any]:
        return {"endpoint": {"url": self.url.rstrip("/"), "model": self.model, "form": self.form}}

    def require(self, builder: Builder, access: Access, what: str) -> None:
        from nonmember.endpoints.capabilities import require

        self._ask(builder, lambda client: require(client, access, what))

    def complete(self, builder: Builder, requests: Sequence[Request]) -> list[Completion]:
        from nonmember.endpoints.questions import completions

        return self._ask(builder, lambda client: completions(client, requests))

    def token_table(self, builder: Builder, shown: Corpus, max_tokens: int) -> TokenTable:
        from nonmember.endpoints.questions import observations

        return self._ask(builder, lambda client: observations(client, shown, max_tokens))

    def answer_table(self, builder: Builder, shown: Corpus, question: Question, max_tokens: int) -> TokenTable:
        from nonmember.endpoints.questions import answer_probabilities

        return self._ask(builder, lambda client: answer_probabilities(client, shown, max_tokens, question=question))

    def _ask(self, builder: Builder, ask: Callable[[EndpointClient], T]) -> T:
        from nonmember.endpoints.endpoint import EndpointClient, Session

        session = builder.memory.shared(Session)
        client = builder.resource(self, lambda: EndpointClient(self, builder.store, builder.asking, session))
        asked, found = client.num_asked, client.num_found
        try:
            return ask(client)
        finally:
            builder.counters.answers_asked += client.num_asked - asked
            builder.counters.answers_found += client.num_found - found


@dataclass(frozen=True)
class Recorded(ModelSpec):
    """Answers that a model gave elsewhere, in a file that takes its place (`nonmember.endpoints.recorded`).

    path: of a CSV, JSON Lines or Parquet table.   model: whose answers are read from it.   columns: what the columns
    are called, by the names of that module.
    """

    path: str
    model: str
    columns: Mapping[str, str] = field(default_factory=dict)

    has_weights: ClassVar[bool] = False
    answers_by_name: ClassVar[bool] = True

    def __post_init__(self) -> None:
        require_text(self.path, "path of recorded answers")
        require_text(self.model, "model of recorded answers")

    @property
    def readable(self) -> str:
        return last_part(self.model)

    def recipe(self) -> dict[str, Any]:
        return settings_of(self)

    def look(self) -> None:
        from nonmember.corpora.sources.tables import table_files

        table_files([self.path])

    def key(self, builder: Builder) -> dict[str, Any]:
        from nonmember.endpoints.recorded import recorded_identity

        return {"recorded": recorded_identity(self)}

    def require(self, builder: Builder, access: Access, what: str) -> None:
        from nonmember.endpoints.capabilities import only_answers

        if access >= Access.PROMPT_LOGPROBS:
            raise only_answers(access, what, self.readable)

    def complete(self, builder: Builder, requests: Sequence[Request]) -> list[Completion]:
        from nonmember.endpoints.recorded import recorded_completions

        return recorded_completions(self, requests)


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

    def look(self) -> None:
        require_model(self.path)

    def key(self, builder: Builder) -> dict[str, Any]:
        from nonmember.models.kinds.pretrained import Pretrained
        from nonmember.models.loading import pretrained_identity

        return {"masked": pretrained_identity(Pretrained(self.path, self.revision))}

    def complete(self, builder: Builder, requests: Sequence[Request]) -> list[Completion]:
        from nonmember.endpoints.masked import fill_blanks

        return fill_blanks(self, requests, builder.compute.device)
