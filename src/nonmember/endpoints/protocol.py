"""OpenAI's wire protocol: requests as they are sent."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from nonmember.artifacts.store import canonical_json, text_hash
from nonmember.endpoints.service import TOKEN_LIMITS, RequestSettings, Service, without_secrets
from nonmember.records.answers import Request

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


@dataclass(frozen=True)
class Sent:
    """One request as it is sent: `body` to `route` below `url`. extra: of query and headers, what may change an
    answer."""

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
        return str(self.body.get("prompt", "")) + "".join(turn["content"] for turn in turns)

    @property
    def max_new_tokens(self) -> int:
        return int(next((self.body[name] for name in TOKEN_LIMITS if name in self.body), 0))

    @property
    def num_alternatives(self) -> int:
        return int(self.body.get("top_logprobs", self.body.get("logprobs", 0)))

    @property
    def echoes(self) -> bool:
        return bool(self.body.get("echo"))


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
    for name in ("temperature", "seed"):
        if not getattr(settings, name):
            body.pop(name, None)
    extra = {"query": without_secrets(service.extra_query), "headers": without_secrets(service.extra_headers)}
    extra = {name: value for name, value in extra.items() if value}
    return Sent(service.address, ROUTES[form], {"model": service.model, **body, **service.extra_body}, extra)


def _turns(request: Request, *, with_system: bool) -> list[dict[str, str]]:
    if request.instruction and with_system:
        return [
            {"role": "system", "content": request.instruction},
            {"role": "user", "content": request.question},
        ]
    whole = "\n\n".join(part for part in (request.instruction, request.question) if part)
    return [{"role": "user", "content": whole}]
