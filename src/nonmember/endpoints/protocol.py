"""OpenAI's wire protocol: requests as JSON, and parsing of responses."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

from nonmember.artifacts.store import canonical_json, text_hash
from nonmember.endpoints.models import Endpoint
from nonmember.endpoints.table import Row
from nonmember.records.answers import Completion, Outcome, Request

ROUTES = {"chat": "chat/completions", "completions": "completions"}
MOST_TOKENS = 10_000_000  # of one request; no model reads or writes as many
LARGEST_SUM = 1.001  # of probabilities, after rounding

# Where servers differ: `max_tokens` under its newer name, no seeds, no system's turn.
Quirk = Literal["max_completion_tokens", "no_seed", "no_system"]


class Unusable(Exception):
    """An answer that does not hold what was asked for. Its text says what is missing."""


@dataclass(frozen=True)
class Sent:
    """One request as it is sent: `body` to `route` below `url`."""

    url: str
    route: str
    body: Mapping[str, Any]

    @cached_property
    def as_json(self) -> str:
        return canonical_json({"url": self.url, "route": self.route, "body": self.body})

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
        return int(self.body.get("max_tokens", self.body.get("max_completion_tokens", 0)))


def sent(endpoint: Endpoint, request: Request, quirks: Sequence[Quirk]) -> Sent:
    """A question in the endpoint's form. What only we know (document, name, expected answer) is not sent."""
    body: dict[str, Any] = {"model": endpoint.model, "temperature": request.temperature}
    if endpoint.form == "chat":
        body["messages"] = _turns(request, with_system="no_system" not in quirks)
        if request.top_logprobs:
            body |= {"logprobs": True, "top_logprobs": request.top_logprobs}
    else:
        body["prompt"] = request.as_text
        if request.top_logprobs:
            body["logprobs"] = request.top_logprobs
    body["max_completion_tokens" if "max_completion_tokens" in quirks else "max_tokens"] = request.max_new_tokens
    if "no_seed" not in quirks:
        body["seed"] = request.seed
    return Sent(_address(endpoint), ROUTES[endpoint.form], body)


def echoed(endpoint: Endpoint, text: str, num_new_tokens: int) -> Sent:
    """Ask for the log-probability of each token of a text. num_new_tokens: 1, or 0 where a server writes none."""
    return _scored(endpoint, text, num_new_tokens, {"echo": True})


def continued(endpoint: Endpoint, text: str, num_new_tokens: int) -> Sent:
    """Ask for the likeliest continuation of a text, with the log-probability of each token of it."""
    return _scored(endpoint, text, num_new_tokens, {})


def _scored(endpoint: Endpoint, text: str, num_new_tokens: int, more: Mapping[str, Any]) -> Sent:
    body = {"model": endpoint.model, "prompt": text, "logprobs": 1, "max_tokens": num_new_tokens, "temperature": 0.0}
    return Sent(_address(endpoint), ROUTES["completions"], {**body, **more})


def _address(endpoint: Endpoint) -> str:
    return endpoint.url.rstrip("/")


def _turns(request: Request, *, with_system: bool) -> list[dict[str, str]]:
    if request.instruction and with_system:
        return [
            {"role": "system", "content": request.instruction},
            {"role": "user", "content": request.question},
        ]
    whole = "\n\n".join(part for part in (request.instruction, request.question) if part)
    return [{"role": "user", "content": whole}]


def read_completion(response: Mapping[str, Any], date: str, *, needs_logprobs: bool) -> Completion:
    """A completion from a server's answer by either route. Raises Unusable for one that is not in the protocol's form,
    or has tokens without the log-probabilities that were asked for."""
    choice = _choice(response)
    message = choice.get("message")
    text = str((message or {}).get("content") or "") if message is not None else str(choice.get("text") or "")
    refusal = (message or {}).get("refusal")
    finish_reason = str(choice.get("finish_reason") or "")
    refused = bool(refusal) or finish_reason == "content_filter"
    outcome: Outcome = "refused" if refused else "answered" if text.strip() else "empty"
    top_logprobs = alternatives(choice.get("logprobs")) if needs_logprobs else ()
    if needs_logprobs and outcome == "answered" and not top_logprobs:
        raise Unusable("the log-probabilities that were asked for were left out")
    prompt_tokens, completion_tokens = usage(response)
    return Completion(
        text=text,
        outcome=outcome,
        finish_reason=finish_reason,
        served_model=str(response.get("model") or ""),
        date=date,
        top_logprobs=top_logprobs,
        prompt_tokens=prompt_tokens,
        completion_tokens=completion_tokens,
        reason=str(refusal or finish_reason) if refused else "",
    )


def alternatives(logprobs: Any) -> tuple[tuple[tuple[str, float], ...], ...]:
    """Per written token the pairs of text and log-probability, itself among them, the likeliest first; empty where the
    server gave none."""
    if not isinstance(logprobs, Mapping):
        return ()
    rows: list[tuple[tuple[str, float], ...]] = []
    if isinstance(content := logprobs.get("content"), list):  # chat
        for token in content:
            pairs = [(str(one["token"]), float(one["logprob"])) for one in token.get("top_logprobs") or ()]
            rows.append(_ranked(pairs, str(token["token"]), token.get("logprob")))
    elif isinstance(tops := logprobs.get("top_logprobs"), list):  # completions
        tokens = logprobs.get("tokens") or [None] * len(tops)
        chances = logprobs.get("token_logprobs") or [None] * len(tops)
        for top, token, chance in zip(tops, tokens, chances, strict=True):
            pairs = [(str(name), float(value)) for name, value in (top or {}).items()]
            rows.append(_ranked(pairs, token, chance))
    return tuple(rows) if all(rows) else ()


def _ranked(pairs: list[tuple[str, float]], token: Any, chance: Any) -> tuple[tuple[str, float], ...]:
    if chance is not None and token is not None and all(name != token for name, _ in pairs):
        pairs = [*pairs, (str(token), float(chance))]
    return tuple(sorted(pairs, key=lambda pair: -pair[1]))


def are_log_probabilities(row: Sequence[tuple[str, float]], least: int) -> bool:
    """Whether the alternatives to a token can be what they are called. least: so many there must be."""
    values = [value for _, value in row]
    return (
        len(values) >= least
        and all(math.isfinite(value) and value <= 1e-6 for value in values)
        and sum(map(math.exp, values)) <= LARGEST_SUM
    )


def read_prompt_scores(response: Mapping[str, Any], text: str, num_new_tokens: int) -> list[float]:
    """The log-probability of each token of a text but the first, from an answer that repeats the text. Raises Unusable
    for one that does not. num_new_tokens: how many were asked for beside it."""
    choice = _choice(response)
    logprobs = choice.get("logprobs")
    if not isinstance(logprobs, Mapping) or not isinstance(values := logprobs.get("token_logprobs"), list):
        raise Unusable("the log-probabilities of the text were left out")
    if not _same_text(str(choice.get("text") or ""), text):
        raise Unusable("the text was not repeated")
    num_new = usage(response)[1] if response.get("usage") else num_new_tokens  # nobody shows an end of text
    if num_new > max(1, num_new_tokens):  # llama-cpp-python takes 0 for as many as it can
        raise Unusable(f"{num_new:,} tokens were written and {num_new_tokens} wanted")
    scores = values[1 : len(values) - num_new]
    if any(value is None or not math.isfinite(value) or value > 1e-6 for value in scores):
        raise Unusable("not every token of the text has a log-probability")
    return [float(value) for value in scores]


def listed_tokens(response: Mapping[str, Any]) -> list[tuple[str, float]]:
    """Text and log-probability of each token that an answer of the completions route lists; those without a number
    (the first of a text) left out. Empty where it lists none."""
    logprobs = _choice(response).get("logprobs")
    if not isinstance(logprobs, Mapping):
        return []
    tokens, values = (logprobs.get(name) or [] for name in ("tokens", "token_logprobs"))
    return [(str(token), float(value)) for token, value in zip(tokens, values, strict=False) if value is not None]


def _same_text(answer: str, text: str) -> bool:
    """Up to white space, which some tokenizers do not bring back, and to characters cut in the middle."""
    return "".join(answer.split()).startswith("".join(text.split())[:200])


def _choice(response: Mapping[str, Any]) -> Mapping[str, Any]:
    choices = response.get("choices")
    if not isinstance(choices, list) or not choices or not isinstance(choices[0], Mapping):
        raise Unusable("the answer has no choices")
    return choices[0]


def usage(response: Mapping[str, Any]) -> tuple[int, int]:
    """Tokens sent and received, as the server counts them; 0 and 0 where it does not, or not what can be counts."""
    counted = response.get("usage")
    if not isinstance(counted, Mapping):
        return 0, 0
    prompt, completion = (counted.get(name) or 0 for name in ("prompt_tokens", "completion_tokens"))
    if not all(type(number) is int and 0 <= number <= MOST_TOKENS for number in (prompt, completion)):
        return 0, 0
    return prompt, completion


def row_of(sent: Sent, text: str, response: Mapping[str, Any], date: str, cost: float | None) -> Row:
    """An answer as a row of the table. text: the raw response."""
    read = read_completion(response, date, needs_logprobs=False)
    return Row(
        key=sent.key,
        request=sent.as_json,
        response=text,
        outcome=read.outcome,
        text=read.text,
        finish_reason=read.finish_reason,
        served_model=read.served_model,
        system_fingerprint=str(response.get("system_fingerprint") or ""),
        date=date,
        prompt_tokens=read.prompt_tokens,
        completion_tokens=read.completion_tokens,
        cost=cost,
    )
