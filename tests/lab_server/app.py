"""The routes: two of OpenAI's, and /lab/... through which tests set the server up and read its ledger."""

from __future__ import annotations

import asyncio
import json
import math
from collections import Counter
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from lab_server.player import Player, Said, alternatives, pieces_of, uniform
from lab_server.settings import Settings


@dataclass
class Ledger:
    """received: every request.   statuses: what came of them.   paid: request -> how often it was charged for.
    tokens: of all that was charged.   under_way, most_under_way: at once."""

    received: int = 0
    statuses: Counter[str] = field(default_factory=Counter)
    attempts: Counter[str] = field(default_factory=Counter)
    paid: Counter[str] = field(default_factory=Counter)
    tokens: int = 0
    under_way: int = 0
    most_under_way: int = 0

    def summary(self) -> dict[str, Any]:
        return {
            "received": self.received,
            "statuses": dict(self.statuses),
            "paid": sum(self.paid.values()),
            "distinct": len(self.paid),
            "twice": sum(number - 1 for number in self.paid.values()),
            "tokens": self.tokens,
            "under_way": self.under_way,
            "most_under_way": self.most_under_way,
        }


class Lab:
    """mind: what answers, with the fields of OpenAI's response but for model and date."""

    def __init__(self, mind: Any) -> None:
        self.real, self.settings, self.ledger = mind, Settings(), Ledger()
        self.mind = mind or PlayedMind(self.settings)

    async def setup(self, request: Request) -> Response:
        self.settings = Settings(**await request.json())
        self.mind = self.real or PlayedMind(self.settings)
        return JSONResponse({})

    async def forget(self, request: Request) -> Response:
        self.ledger = Ledger()
        return JSONResponse({})

    async def tell(self, request: Request) -> Response:
        return JSONResponse(self.ledger.summary())

    async def completions(self, request: Request) -> Response:
        return await self._counted(request, "completion")

    async def chat(self, request: Request) -> Response:
        return await self._counted(request, "chat")

    async def _counted(self, request: Request, form: str) -> Response:
        ledger = self.ledger
        ledger.received += 1
        ledger.under_way += 1
        ledger.most_under_way = max(ledger.most_under_way, ledger.under_way)
        try:
            response = await self._answered(request, form)
        finally:
            ledger.under_way -= 1
        ledger.statuses[str(response.status_code)] += 1
        return response

    async def _answered(self, request: Request, form: str) -> Response:
        settings, ledger = self.settings, self.ledger
        given = request.headers.get("authorization", "")
        if settings.key and given != f"Bearer {settings.key}":
            return self._error(401, f"Incorrect API key provided: {given.removeprefix('Bearer ')}.", "invalid_api_key")
        body = await request.json()
        if body.get("model") != settings.model:
            return self._error(404, f"The model `{body.get('model')}` does not exist.", "model_not_found")
        if settings.quota is not None and sum(ledger.paid.values()) >= settings.quota:
            return self._error(429, "You exceeded your current quota.", "insufficient_quota")
        name = json.dumps([form, body], sort_keys=True)
        ledger.attempts[name] += 1
        fault = self._fault(name, ledger.attempts[name])
        if fault in ("429", "500", "503"):
            headers = {"Retry-After": settings.retry_after} if settings.retry_after is not None else {}
            return self._error(int(fault), f"made-up fault {fault}", "", headers)
        if fault == "400" or any(self._refuses(body, what) for what in settings.refuses):
            return self._error(400, f"Unsupported: {', '.join(settings.refuses) or 'this very request'}.", "")
        if fault == "stall":
            await asyncio.sleep(settings.stall)
        if settings.latency:
            await asyncio.sleep(settings.latency)
        if fault == "cut":
            return StreamingResponse(_half(), headers={"Content-Length": "1000"}, media_type="application/json")
        body = self._as_read(body, name)
        if int(body.get("top_logprobs") or 0) > settings.most_alternatives:
            return self._error(400, f"top_logprobs must be at most {settings.most_alternatives}.", "")
        answer = getattr(self.mind, form)(body)
        ledger.paid[name] += 1
        ledger.tokens += answer["usage"]["prompt_tokens"] + answer["usage"]["completion_tokens"]
        answer |= {"model": self._served(), "system_fingerprint": f"fp_{settings.seed}"}
        if settings.echoes_key:
            answer["echo"] = given
        return JSONResponse(answer)

    def _fault(self, name: str, attempt: int) -> str:
        """At most one kind per request: the shares lie side by side."""
        draw, below = uniform(self.settings.seed, "fault", name), 0.0
        for kind, share in self.settings.faults.items():
            below += share
            if draw < below:
                return kind if attempt <= self.settings.fault_attempts else ""
        return ""

    def _refuses(self, body: dict[str, Any], what: str) -> bool:
        if what == "system":
            return any(turn["role"] == "system" for turn in body.get("messages", ()))
        if what.startswith("max_tokens="):
            return body.get("max_tokens") == int(what.partition("=")[2])
        return what in body

    def _as_read(self, body: dict[str, Any], name: str) -> dict[str, Any]:
        """As the server is set to take it: without the request for log-probabilities, say."""
        if body.get("max_tokens") == 0:
            body = body | {"max_tokens": self.settings.zero_tokens}
        if self.settings.shifted and body.get("echo"):
            body = body | {"shifted": True}
        logprobs = self.settings.logprobs
        ignored = logprobs == "ignored" or (
            not isinstance(logprobs, str) and uniform(self.settings.seed, "logprobs", name) < logprobs
        )
        if ignored:
            return {field: value for field, value in body.items() if field not in ("logprobs", "top_logprobs")}
        return body

    def _served(self) -> str:
        number = sum(self.ledger.paid.values())
        names = [name for name, first in self.settings.served if number > first]
        return names[-1] if names else self.settings.model

    def _error(self, status: int, message: str, code: str, headers: dict[str, str] | None = None) -> Response:
        if self.settings.echoes_key:
            message += f" (key: {self.settings.key})"
        error = {"message": message, "type": "error", "param": None, "code": code or None}
        return JSONResponse({"error": error}, status, headers or {})


async def _half() -> AsyncIterator[bytes]:
    yield b'{"choices": [{"message": {"content": "half an ans'
    raise ConnectionError("cut on purpose")


class PlayedMind:
    """The made-up model in OpenAI's form."""

    def __init__(self, settings: Settings) -> None:
        self._player = Player(settings)

    def chat(self, body: dict[str, Any]) -> dict[str, Any]:
        prompt = "\n\n".join(turn["content"] for turn in body["messages"])
        said, tokens, finish = self._said(prompt, body)
        message = {"role": "assistant", "content": "".join(tokens), "refusal": None}
        choice: dict[str, Any] = {"message": message, "finish_reason": finish, "logprobs": None}
        if body.get("logprobs"):
            rows = alternatives(said, tokens, max(1, int(body.get("top_logprobs") or 0)))
            choice["logprobs"] = {
                "content": [
                    {
                        "token": token,
                        "logprob": math.log(row.get(token, 1e-3)),
                        "top_logprobs": [{"token": t, "logprob": math.log(p)} for t, p in row.items()],
                    }
                    for token, row in zip(tokens, rows, strict=True)
                ]
            }
        return {"choices": [choice], "usage": _usage(prompt, tokens)}

    def completion(self, body: dict[str, Any]) -> dict[str, Any]:
        said, tokens, finish = self._said(body["prompt"], body)
        choice: dict[str, Any] = {"text": "".join(tokens), "finish_reason": finish, "logprobs": None}
        if body.get("logprobs") is not None:
            rows = alternatives(said, tokens, max(1, int(body["logprobs"])))
            choice["logprobs"] = {
                "tokens": tokens,
                "token_logprobs": [math.log(row.get(token, 1e-3)) for token, row in zip(tokens, rows, strict=True)],
                "top_logprobs": [{token: math.log(p) for token, p in row.items()} for row in rows],
            }
        return {"choices": [choice], "usage": _usage(body["prompt"], tokens)}

    def _said(self, prompt: str, body: dict[str, Any]) -> tuple[Said, list[str], str]:
        limit = int(body.get("max_tokens") or body.get("max_completion_tokens") or 16)
        said = self._player.answer(prompt, limit)
        tokens = pieces_of(said.text)
        finish = "content_filter" if said.refused else "length" if len(tokens) > limit else "stop"
        return said, tokens[:limit], finish


def _usage(prompt: str, tokens: list[str]) -> dict[str, int]:
    num_prompt = len(prompt.encode("utf-8", "surrogatepass")) // 4 + 8
    return {"prompt_tokens": num_prompt, "completion_tokens": len(tokens)}


def application(mind: Any) -> Starlette:
    lab = Lab(mind)
    return Starlette(
        routes=[
            Route("/v1/completions", lab.completions, methods=["POST"]),
            Route("/v1/chat/completions", lab.chat, methods=["POST"]),
            Route("/lab/setup", lab.setup, methods=["POST"]),
            Route("/lab/forget", lab.forget, methods=["POST"]),
            Route("/lab/ledger", lab.tell),
        ]
    )
