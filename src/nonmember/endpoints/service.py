"""A service that answers requests: where it is, how it wants them, and what is sent with each of them."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Annotated, Any
from urllib.parse import urlsplit

from nonmember.artifacts.store import canonical_json, key_hash, text_hash
from nonmember.checks import (
    ENVIRONMENT,
    Checked,
    Count,
    OneOf,
    looks_like_secret,
    names_a_secret,
    refuse_secrets,
    require_choice,
    require_kind,
    require_text,
    require_variable_name,
)
from nonmember.endpoints.reading import EndpointError
from nonmember.models.base import last_part
from nonmember.records.answers import Request

TOKEN_LIMITS = ("max_tokens", "max_completion_tokens")
ROUTES = {"chat": "chat/completions", "completions": "completions"}
# What the client of OpenAI sends to any server by itself: a key that begins so is OpenAI's own.
OPENAI_VARIABLE, OPENAI_KEYS = "OPENAI_API_KEY", ("sk-proj-", "sk-svcacct-", "sk-admin-")
OPENAI_HEADERS, OPENAI_HEADERS_VARIABLE = ("OpenAI-Organization", "OpenAI-Project"), "OPENAI_CUSTOM_HEADERS"


@dataclass(frozen=True)
class RequestSettings(Checked):
    """How a service wants its requests."""

    token_limit: Annotated[str, OneOf(TOKEN_LIMITS)] = "max_tokens"  # the name of the field
    min_output_tokens: Annotated[int, Count(0)] = 0  # at least so many are asked for
    temperature: bool = True  # whether it is sent
    seed: bool = True  # whether it is sent
    system: bool = True  # whether an instruction is a turn of its own; else it stands before the question

    fields_called = "request_settings.{field} of an endpoint"


def _without_secret(value: str, name: str) -> None:
    refuse_secrets([f"{name}={value}"])


def _mapping_without_secrets(values: object, name: str) -> None:
    require_kind(values, Mapping, name, "a mapping")
    assert isinstance(values, Mapping)
    for key, value in values.items():
        if not str(value).startswith(ENVIRONMENT) and (names_a_secret(key) or looks_like_secret(str(value))):
            raise ValueError(f"{name} must hold no secret; write env:NAME for the value of an environment variable.")


@dataclass(frozen=True)
class Service(Checked):
    """Where a model is asked, and how."""

    url: Annotated[str, require_text, _without_secret]  # up to and including /v1
    model: Annotated[str, require_text, _without_secret]  # as the server calls it
    form: Annotated[str, OneOf(tuple(ROUTES))]  # the route that is asked
    # The environment variable that holds the secret; it need not be set for a server that wants none.
    key_variable: Annotated[str, require_variable_name]
    # Fields of `RequestSettings`; those that are left out or null are found by trying.
    request_settings: Annotated[Mapping[str, Any], _mapping_without_secrets] = field(default_factory=dict, hash=False)
    # Sent with every request. In the place of a secret stands env:NAME, for the value of an environment variable; it is
    # no part of any key.
    extra_body: Annotated[Mapping[str, Any], _mapping_without_secrets] = field(default_factory=dict, hash=False)
    extra_query: Annotated[Mapping[str, str], _mapping_without_secrets] = field(default_factory=dict, hash=False)
    extra_headers: Annotated[Mapping[str, str], _mapping_without_secrets] = field(default_factory=dict, hash=False)
    # strip, thoughts are cut off its answers; keep, those that stand in the text are part of the answer.
    thinking: Annotated[str, OneOf(("strip", "keep"))] = "strip"

    fields_called = "{field} of an endpoint"

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.url.startswith(("http://", "https://")) or not self.host or set("@?#") & set(self.url):
            raise ValueError(
                "url of an endpoint must be as in http://localhost:8080/v1, without user, password or query: a secret "
                "belongs in the environment variable that key_variable names, a query into extra_query."
            )
        given = {name: value for name, value in self.request_settings.items() if value is not None}
        object.__setattr__(self, "request_settings", given)  # null and left out are the same
        for name in given:
            require_choice(name, [item.name for item in fields(RequestSettings)], "a name among request_settings")
        self.settings()

    @property
    def label(self) -> str:
        return f"{last_part(self.model)} at {self.url}"

    @property
    def address(self) -> str:
        return self.url.rstrip("/")

    @property
    def host(self) -> str:
        return urlsplit(self.url).hostname or ""

    @property
    def is_openai(self) -> bool:
        return self.host == "openai.com" or self.host.endswith(".openai.com")

    @property
    def unwanted_headers(self) -> list[str]:
        """Those that the client of OpenAI takes from the environment and that are not for this server."""
        if self.is_openai:
            return []
        lines = os.environ.get(OPENAI_HEADERS_VARIABLE, "").split("\n")
        return [*OPENAI_HEADERS, *(line.partition(":")[0].strip() for line in lines if ":" in line)]

    @property
    def extras(self) -> dict[str, Any]:
        """What tells it from the same model asked in the plain way; empty for that. Secrets are left out."""
        extras = {
            "request_settings": dict(self.request_settings),
            "extra_body": dict(self.extra_body),
            "extra_query": without_secrets(self.extra_query),
            "extra_headers": without_secrets(self.extra_headers),
            "thinking": "" if self.thinking == "strip" else self.thinking,
        }
        return {name: value for name, value in extras.items() if value}

    def settings(self, **others: Any) -> RequestSettings:
        """Those that are given, others by default or as said."""
        return RequestSettings(**{**others, **self.request_settings})

    def finding(self, name: str) -> str:
        """What a finding about it is called in the table that all ways of asking the model share."""
        return f"{name} {key_hash(self.extras)[:16]}" if self.extras else name

    def secret(self) -> str:
        """Empty where there is none. Raises EndpointError where it may not be sent."""
        secret = os.environ.get(self.key_variable, "").strip()
        if self.key_variable == OPENAI_VARIABLE and secret.startswith(OPENAI_KEYS) and not self.is_openai:
            raise EndpointError(
                f"{OPENAI_VARIABLE} holds a key of OpenAI's, which is not sent to another server. Name the variable "
                "with this server's key as `key_variable`, or NO_KEY if it wants none."
            )
        return secret


def without_secrets(values: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in values.items() if not value.startswith(ENVIRONMENT)}


def with_secrets(values: Mapping[str, str]) -> dict[str, str]:
    """env:NAME replaced by the variable's value. Raises EndpointError where it is not set."""
    names = {name: value.removeprefix(ENVIRONMENT) for name, value in values.items() if value.startswith(ENVIRONMENT)}
    if missing := [name for name in names.values() if name not in os.environ]:
        raise EndpointError(
            f"the environment variable {missing[0]} is not set, and a header or query needs it. Set it."
        )
    return {**values, **{name: os.environ[variable] for name, variable in names.items()}}


@dataclass(frozen=True)
class Sent:
    """One request as it is sent: `body` to `route` below `url`. extra: of query and headers, what may change an
    answer; and `draw`, which tells samples apart where the service takes no seed."""

    url: str
    route: str
    body: Mapping[str, Any]
    extra: Mapping[str, Any] = field(default_factory=dict)

    @cached_property
    def as_json(self) -> str:
        return canonical_json({"url": self.url, "route": self.route, "body": self.body, **self.extra})

    @cached_property
    def key(self) -> str:
        return text_hash(self.as_json)

    @property
    def prompt(self) -> str:
        """All text that is sent."""
        turns = "".join(turn["content"] for turn in self.body.get("messages", ()))
        return turns or str(self.body.get("prompt", ""))

    @property
    def max_new_tokens(self) -> int:
        return int(next((self.body[name] for name in TOKEN_LIMITS if name in self.body), 0))


def sent(service: Service, request: Request, settings: RequestSettings) -> Sent:
    """A question in the service's form. What only we know (document, name, expected answer) is not sent."""
    body: dict[str, Any] = {"max_tokens": request.max_new_tokens, "temperature": request.temperature}
    body["seed"] = request.seed
    if service.form == "chat":
        apart = [("system", request.instruction), ("user", request.question)]
        whole = [("user", "\n\n".join(part for part in (request.instruction, request.question) if part))]
        turns = apart if request.instruction and settings.system else whole
        body["messages"] = [{"role": role, "content": content} for role, content in turns]
        if request.top_logprobs:
            body |= {"logprobs": True, "top_logprobs": request.top_logprobs}
    else:
        body |= {"prompt": request.as_text} | ({"logprobs": request.top_logprobs} if request.top_logprobs else {})
    return _sent(service, service.form, body, settings)


def scored_text(service: Service, text: str, num_new_tokens: int, *, echo: bool) -> Sent:
    """Ask for the likeliest continuation of a text, with the log-probability of each token of it; with `echo` of each
    token of the text too. num_new_tokens: 1, or 0 where a server writes none."""
    body = {"prompt": text, "logprobs": 1, "max_tokens": num_new_tokens, "temperature": 0.0}
    body |= {"echo": True} if echo else {}
    return _sent(service, "completions", body, replace(service.settings(), min_output_tokens=0))


def _sent(service: Service, form: str, body: dict[str, Any], settings: RequestSettings) -> Sent:
    body[settings.token_limit] = max(body.pop("max_tokens"), settings.min_output_tokens)
    draw = body["seed"] if body["temperature"] and not settings.seed else 0
    for name in ("temperature", "seed"):
        if not getattr(settings, name):
            body.pop(name, None)
    headers = without_secrets(service.extra_headers)
    extra = {"query": without_secrets(service.extra_query), "headers": headers, "draw": draw}
    extra = {name: value for name, value in extra.items() if value}
    return Sent(service.address, ROUTES[form], {"model": service.model, **body, **service.extra_body}, extra)
