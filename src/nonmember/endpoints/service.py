"""A service that answers requests: where it is, how it wants them, and what is sent with each of them."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Annotated, Any, ClassVar, Self
from urllib.parse import urlsplit

from nonmember.artifacts.store import canonical_json, key_hash, text_hash
from nonmember.checks import (
    ENVIRONMENT,
    Checked,
    Count,
    Number,
    OneOf,
    looks_like_secret,
    names_a_secret,
    refuse_secrets,
    require_choice,
    require_kind,
    require_text,
    require_variable_name,
)
from nonmember.endpoints.reading import EndpointError, check_length
from nonmember.models.base import last_part
from nonmember.records.answers import Request

FORMS = ("chat", "completions")
TOKEN_LIMITS = ("max_tokens", "max_completion_tokens")
THINKING = ("off", "strip", "keep")
# Fields of a request that hold the question, are set by `request_settings`, or change the form of the answer.
OWN_FIELDS = (
    *("model", "messages", "prompt", "suffix", *TOKEN_LIMITS, "max_output_tokens", "temperature", "seed"),
    *("logprobs", "top_logprobs", "echo", "n", "best_of", "stream", "stream_options"),
    *("tools", "tool_choice", "functions", "function_call", "modalities"),
)
_HEADER = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
OWN_HEADERS = (
    *("content-length", "content-type", "content-encoding", "accept-encoding", "transfer-encoding"),
    *("host", "connection", "idempotency-key"),
)
# What the client of OpenAI would send to any server: the variable of its key, how such keys begin, and further headers.
OPENAI_VARIABLE, OPENAI_KEYS = "OPENAI_API_KEY", ("sk-proj-", "sk-svcacct-", "sk-admin-")
OPENAI_HEADERS, OPENAI_HEADERS_VARIABLE = ("OpenAI-Organization", "OpenAI-Project"), "OPENAI_CUSTOM_HEADERS"
ROUTES = {"chat": "chat/completions", "completions": "completions"}
# What asks a model not to think, by whom it is understood.
WITHOUT_THOUGHTS: Mapping[str, Mapping[str, Any]] = {
    "chat template": {"chat_template_kwargs": {"enable_thinking": False, "thinking": False}},  # vLLM, SGLang, llama.cpp
    "effort": {"reasoning_effort": "none"},  # OpenAI, Ollama
    "least effort": {"reasoning_effort": "minimal"},
    "type": {"thinking": {"type": "disabled"}},  # Anthropic, DeepSeek
    "flag": {"enable_thinking": False},  # DashScope
    "reasoning": {"reasoning": {"enabled": False}},  # OpenRouter
}


MOST_BYTES = 32 * 2**20  # of any response
# Of one: what a token and each of its alternatives take at most, what an echoed byte does, and all that is beside.
BYTES_PER_TOKEN, BYTES_PER_ECHOED, BYTES_BESIDE = 1024, 512, 2**18
# Characters of an answer: more than tokens have, runs of white space aside, and what no tokenizer counts.
CHARACTERS_PER_TOKEN, CHARACTERS_BESIDE = 64, 1024


@dataclass(frozen=True)
class RequestSettings(Checked):
    """How a service wants its requests."""

    token_limit: Annotated[str, OneOf(TOKEN_LIMITS)] = "max_tokens"  # the name of the field
    min_output_tokens: Annotated[int, Count(0)] = 0  # at least so many are asked for
    temperature: bool = True  # whether it is sent
    # Lower ones are raised to it, for servers that refuse 0.
    least_temperature: Annotated[float, Number("[0, 1)")] = 0.0
    seed: bool = True  # whether it is sent
    system: bool = True  # whether an instruction is a turn of its own; else it stands before the question
    no_thoughts: str = ""  # the one of `WITHOUT_THOUGHTS` by which the model is asked not to think

    fields_called = "request_settings.{field} of an endpoint"

    @classmethod
    def of_quirks(cls, quirks: Sequence[str]) -> Self:
        """As earlier versions noted them in the table of an endpoint."""
        return cls(
            token_limit="max_completion_tokens" if "max_completion_tokens" in quirks else "max_tokens",
            seed="no_seed" not in quirks,
            system="no_system" not in quirks,
        )


SETTINGS_IN_YAML = tuple(item.name for item in fields(RequestSettings) if item.name != "no_thoughts")


@dataclass(frozen=True)
class Service:
    """Where a model is asked, and how."""

    url: str  # up to and including /v1
    model: str  # as the server calls it
    form: str  # chat or completions, the route that is asked
    key_variable: str  # the environment variable that holds the secret; it need not be set for a server that wants none
    # Fields of `RequestSettings`; those that are left out or null are found by trying.
    request_settings: Mapping[str, Any] = field(default_factory=dict, hash=False)
    # Sent with every request, beside the fields that it sets itself.
    extra_body: Mapping[str, Any] = field(default_factory=dict, hash=False)
    # Sent with every request. In the place of a secret stands env:NAME, for the value of an environment variable; it is
    # no part of any key.
    extra_query: Mapping[str, str] = field(default_factory=dict, hash=False)
    extra_headers: Mapping[str, str] = field(default_factory=dict, hash=False)  # the same
    # off, the model is asked not to think; strip, thoughts are cut off its answers; keep, those that stand in the text
    # are part of the answer.
    thinking: str = "strip"

    protocol: ClassVar[str] = "OpenAI's"  # the form of its answers

    def __post_init__(self) -> None:
        require_choice(self.form, FORMS, "form of an endpoint")
        require_choice(self.thinking, THINKING, "thinking of an endpoint")
        for name in ("url", "model"):
            require_text(getattr(self, name), f"{name} of an endpoint")
            refuse_secrets([f"{name} of an endpoint={getattr(self, name)}"])
        require_variable_name(self.key_variable, "key_variable of an endpoint")
        _require_address(self.url)
        for name in ("request_settings", "extra_body", "extra_query", "extra_headers"):
            require_kind(getattr(self, name), Mapping, f"{name} of an endpoint", "a mapping")
        given = {name: value for name, value in self.request_settings.items() if value is not None}
        object.__setattr__(self, "request_settings", given)  # null and left out are the same
        for name in given:
            require_choice(name, SETTINGS_IN_YAML, "a name among request_settings of an endpoint")
        self.settings()
        _require_extra_body(self.extra_body)
        _require_extra("extra_query", self.extra_query, ())
        _require_extra("extra_headers", self.extra_headers, OWN_HEADERS)

    @property
    def label(self) -> str:
        return f"{last_part(self.model)} at {self.url}"

    @property
    def address(self) -> str:
        return self.url.rstrip("/")

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

    def has_answer(self, response: Mapping[str, Any], sent: Sent) -> bool:
        """Whether a response holds an answer. Raises Unusable for one that is longer than it can be."""
        if not response.get("choices"):
            return False
        check_length(response, sent.most_characters, sent.max_new_tokens)
        return True

    def settings(self, **others: Any) -> RequestSettings:
        """Those that are given, others by default or as said."""
        return RequestSettings(**{**others, **self.request_settings})

    def finding(self, name: str) -> str:
        """What a finding about it is called in the table that all ways of asking the model share."""
        return f"{name} {key_hash(self.extras)[:16]}" if self.extras else name

    @property
    def host(self) -> str:
        return urlsplit(self.url).hostname or ""

    @property
    def is_local(self) -> bool:
        return self.host in ("localhost", "::1", "0.0.0.0") or self.host.startswith("127.")

    @property
    def is_openai(self) -> bool:
        return self.host == "openai.com" or self.host.endswith(".openai.com")

    def secret(self) -> str:
        """Raises EndpointError where it cannot be sent; empty where there is none."""
        secret = _variable(self.key_variable)
        if self.key_variable == OPENAI_VARIABLE and secret.startswith(OPENAI_KEYS) and not self.is_openai:
            raise EndpointError(
                f"{OPENAI_VARIABLE} holds a key of OpenAI's, which is not sent to another server. Name the variable "
                "with this server's key as `key_variable`, or NO_KEY if it wants none."
            )
        return secret

    @property
    def unwanted_headers(self) -> list[str]:
        """Those that the client of OpenAI takes from the environment and that are not for this server."""
        if self.is_openai:
            return []
        lines = os.environ.get(OPENAI_HEADERS_VARIABLE, "").split("\n")
        return [*OPENAI_HEADERS, *(line.partition(":")[0].strip() for line in lines if ":" in line)]

    def query(self) -> dict[str, str]:
        """With the secrets in it."""
        return {name: _filled(value) for name, value in self.extra_query.items()}

    def headers(self) -> dict[str, str]:
        """With the secrets in them."""
        return {name: _filled(value) for name, value in self.extra_headers.items()}

    def secrets(self) -> tuple[str, ...]:
        """All of them, to be removed from what comes back."""
        values = (*self.extra_query.values(), *self.extra_headers.values())
        names = (self.key_variable, *(value.removeprefix(ENVIRONMENT) for value in values if _is_secret(value)))
        return tuple(filter(None, map(_variable, names)))


# Checks of what is given ----------------------------------------------------------------------------------------------


def _require_address(url: str) -> None:
    if any(mark in url for mark in "@?#"):  # where secrets may stand, which are not repeated here
        raise ValueError(
            "url of an endpoint must have no user, password or query: a secret belongs in the environment variable "
            "that key_variable names, a query into extra_query."
        )
    if not url.startswith(("http://", "https://")):
        raise ValueError(f"url of an endpoint must begin with http:// or https://; got {url!r}.")
    if not _has_host(url):
        raise ValueError(f"url of an endpoint must name a host, as in http://localhost:8080/v1; got {url!r}.")


def _has_host(url: str) -> bool:
    """A name of printable letters, and a port that can be one."""
    try:
        parts = urlsplit(url)
        return bool(parts.hostname) and parts.port != 0 and url.isprintable() and " " not in url
    except ValueError:
        return False


def _require_extra_body(body: Mapping[str, Any]) -> None:
    for name in body:
        if name in OWN_FIELDS:
            instead = " Give it in request_settings." if name in (*TOKEN_LIMITS, "temperature", "seed") else ""
            raise ValueError(
                f"extra_body of an endpoint may not hold {name!r}: each request sets it itself, or it would change the "
                f"form of the answers.{instead}"
            )
    if any(looks_like_secret(text) or names_a_secret(name) for name, text in _leaves(body, "")):
        raise ValueError(
            "extra_body of an endpoint must hold no secret, since it is written into results. Give it in "
            f"extra_headers or extra_query as {ENVIRONMENT}NAME, with the name of an environment variable."
        )
    try:
        canonical_json(body)
    except (TypeError, ValueError) as error:
        raise ValueError(f"extra_body of an endpoint must be JSON ({error}). Leave out what is not.") from None


def _leaves(value: Any, name: str) -> Sequence[tuple[str, str]]:
    if isinstance(value, Mapping):
        return [pair for key, inner in value.items() for pair in _leaves(inner, str(key))]
    if isinstance(value, list | tuple):
        return [pair for inner in value for pair in _leaves(inner, name)]
    return [(name, str(value))]


def _require_extra(what: str, values: Mapping[str, str], own: Sequence[str]) -> None:
    for name, value in values.items():
        where = f"{what}.{name} of an endpoint"
        if not isinstance(name, str) or not _HEADER.fullmatch(name) or name.lower() in own:
            raise ValueError(f"{what} of an endpoint must name what may be set; got {name!r}. Leave it out.")
        require_text(value, where)
        if not value.isprintable() or not value.isascii():
            raise ValueError(f"{where} must be printable ASCII, without line ends. Correct it.")
        if _is_secret(value):
            require_variable_name(value.removeprefix(ENVIRONMENT), f"what follows {ENVIRONMENT} in {where}")
        elif names_a_secret(name) or looks_like_secret(value):
            raise ValueError(
                f"{where} must name an environment variable that holds the secret, as {ENVIRONMENT}NAME; what was "
                "given is not repeated here. Put it into that variable."
            )


def _is_secret(value: str) -> bool:
    return value.startswith(ENVIRONMENT)


def without_secrets(values: Mapping[str, str]) -> dict[str, str]:
    """Without the secrets."""
    return {name: value for name, value in values.items() if not _is_secret(value)}


def _filled(value: str) -> str:
    if not _is_secret(value):
        return value
    if not (secret := _variable(name := value.removeprefix(ENVIRONMENT))):
        raise EndpointError(f"the environment variable {name} is not set, and a header or query needs it. Set it.")
    return secret


def _variable(name: str) -> str:
    secret = os.environ.get(name, "").strip()
    if not (secret.isascii() and secret.isprintable()):
        raise EndpointError(f"what {name} holds is no key: it has characters that cannot be sent. Set it again.")
    return secret


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
        turns: Sequence[Mapping[str, str]] = self.body.get("messages", ())
        return str(self.body.get("prompt", self.body.get("query", ""))) + "".join(turn["content"] for turn in turns)

    @property
    def max_new_tokens(self) -> int:
        return int(next((self.body[name] for name in TOKEN_LIMITS if name in self.body), 0))

    @property
    def most_characters(self) -> int:
        """That its answer can have."""
        echoed = len(self.prompt) if self.body.get("echo") else 0
        return CHARACTERS_BESIDE + CHARACTERS_PER_TOKEN * self.max_new_tokens + echoed

    @property
    def most_bytes(self) -> int:
        """That the response to it can have."""
        echoed = len(self.prompt.encode("utf-8", "surrogatepass")) if self.body.get("echo") else 0
        alternatives = int(self.body.get("top_logprobs", self.body.get("logprobs", 0)))
        tokens = BYTES_PER_TOKEN * self.max_new_tokens * (1 + alternatives)
        return min(MOST_BYTES, BYTES_BESIDE + tokens + BYTES_PER_ECHOED * echoed)


def sent(service: Service, request: Request, settings: RequestSettings) -> Sent:
    """A question in the service's form. What only we know (document, name, expected answer) is not sent."""
    body: dict[str, Any] = {"max_tokens": request.max_new_tokens, "temperature": request.temperature}
    body["seed"] = request.seed
    if service.form == "chat":
        body["messages"] = _turns(request, with_system=settings.system)
        body |= WITHOUT_THOUGHTS.get(settings.no_thoughts, {})
        if request.top_logprobs:
            body |= {"logprobs": True, "top_logprobs": request.top_logprobs}
    else:
        body["prompt"] = request.as_text
        if request.top_logprobs:
            body["logprobs"] = request.top_logprobs
    return _sent(service, service.form, body, settings)


def echoed(service: Service, text: str, num_new_tokens: int) -> Sent:
    """Ask for the log-probability of each token of a text. num_new_tokens: 1, or 0 where a server writes none."""
    return _scored(service, text, num_new_tokens, {"echo": True})


def continued(service: Service, text: str, num_new_tokens: int) -> Sent:
    """Ask for the likeliest continuation of a text, with the log-probability of each token of it."""
    return _scored(service, text, num_new_tokens, {})


def _scored(service: Service, text: str, num_new_tokens: int, more: Mapping[str, Any]) -> Sent:
    body = {"prompt": text, "logprobs": 1, "max_tokens": num_new_tokens, "temperature": 0.0, **more}
    return _sent(service, "completions", body, replace(service.settings(), min_output_tokens=0))


def _sent(service: Service, form: str, body: dict[str, Any], settings: RequestSettings) -> Sent:
    number = body.pop("max_tokens")
    body[settings.token_limit] = max(number, settings.min_output_tokens)
    draw = body["seed"] if body["temperature"] and not settings.seed else 0
    body["temperature"] = max(body["temperature"], settings.least_temperature)
    for name in ("temperature", "seed"):
        if not getattr(settings, name):
            body.pop(name, None)
    headers = without_secrets(service.extra_headers)
    extra = {"query": without_secrets(service.extra_query), "headers": headers, "draw": draw}
    extra = {name: value for name, value in extra.items() if value}
    return Sent(service.address, ROUTES[form], {"model": service.model, **body, **service.extra_body}, extra)


def _turns(request: Request, *, with_system: bool) -> list[dict[str, str]]:
    if request.instruction and with_system:
        return [{"role": "system", "content": request.instruction}, {"role": "user", "content": request.question}]
    whole = "\n\n".join(part for part in (request.instruction, request.question) if part)
    return [{"role": "user", "content": whole}]
