"""Services as their makers document them, in so far as they differ: what they refuse, want, and put into an answer."""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

Body = dict[str, Any]
Response = tuple[int, Body | bytes] | tuple[int, Body | bytes, dict[str, str]]  # status, body, headers


@dataclass
class Asked:
    """One request as it came."""

    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    body: Body


Service = Callable[[Asked], Response]


def answer(content: Any = "It is blue.", *, finish: str = "stop", reasoning: int = 0, **message: Any) -> Response:
    usage: Body = {"prompt_tokens": 10, "completion_tokens": 4}
    if reasoning:
        usage["completion_tokens_details"] = {"reasoning_tokens": reasoning}
    choice = {"index": 0, "message": {"role": "assistant", "content": content, **message}, "finish_reason": finish}
    return 200, {"model": "served", "choices": [choice], "usage": usage}


def error(status: int, message: str, **fields: Any) -> Response:
    return status, {"error": {"message": message, "type": "invalid_request_error", "param": None, **fields}}


def limit_of(body: Body) -> int:
    return int(body.get("max_tokens") or body.get("max_completion_tokens") or 0)


def roles_of(body: Body) -> list[str]:
    return [turn["role"] for turn in body["messages"]]


def openai_reasoning(asked: Asked) -> Response:
    """Of the o and GPT-5 kinds: no temperature, a new name for the limit, 16 tokens at least, thoughts kept back."""
    body = asked.body
    if "max_tokens" in body:
        return error(400, "Unsupported parameter.", param="max_tokens", code="unsupported_parameter")
    if "temperature" in body:
        return error(400, "Only the default (1) value is supported.", code="unsupported_value")
    if limit_of(body) < 16:
        return error(400, "Integer below minimum value.", code="integer_below_min_value")
    if body.get("logprobs"):
        return error(403, "You are not allowed to request logprobs from this model.", code=None)
    return answer(reasoning=0 if body.get("reasoning_effort") == "none" else 64)


def azure(asked: Asked) -> Response:
    """A deployment below the path, a version in the query, a key in a header of its own and no other one."""
    if asked.path != "/openai/deployments/mine/chat/completions":
        return error(404, "The API deployment for this resource does not exist.", code="DeploymentNotFound")
    if asked.query.get("api-version") != "2024-10-21":
        return error(404, "Resource not found.", code="404")
    if asked.headers.get("api-key") != "azure-0123456789abcdef" or "authorization" in asked.headers:
        return error(401, f"Access denied due to invalid subscription key {asked.headers.get('api-key')}.", code="401")
    filtered = {"code": "content_filter", "innererror": {"code": "ResponsibleAIPolicyViolation"}}
    return error(400, "Filtered.", **filtered) if "bomb" in str(asked.body) else answer()


def vllm(asked: Asked) -> Response:
    """A template in which roles alternate, thoughts in the text, -9999 for minus infinity."""
    if asked.path.endswith("/chat/completions"):
        if roles_of(asked.body) != ["user"]:
            return error(400, "Conversation roles must alternate user/assistant/user/assistant/...", code=400)
        thinks = (asked.body.get("chat_template_kwargs") or {}).get("enable_thinking", True)
        return answer("<think>\nIs it <name>Bob</name>?</think>\n\nBlue." if thinks else "Blue.")
    prompt = asked.body["prompt"]
    tokens = [word if index == 0 else f" {word}" for index, word in enumerate(prompt.split(" "))]
    scores = [None, *(-9999.0 if word == " never" else -1.0 - index / 8 for index, word in enumerate(tokens[1:]))]
    new = ["."] * limit_of(asked.body)
    shown = [*tokens, *new] if asked.body.get("echo") else new
    listed = {"tokens": shown, "token_logprobs": [*(scores if asked.body.get("echo") else []), *[-0.5] * len(new)]}
    choice = {"text": "".join(shown), "logprobs": listed, "finish_reason": "length"}
    return 200, {"choices": [choice], "usage": {"prompt_tokens": len(tokens), "completion_tokens": len(new)}}


def llama_cpp(asked: Asked) -> Response:
    """A template that fails is status 500; thoughts apart, as `reasoning_content`."""
    if roles_of(asked.body) != ["user"]:
        return 500, {
            "error": {"code": 500, "message": "Jinja Exception: System role not supported", "type": "server_error"}
        }
    thinks = (asked.body.get("chat_template_kwargs") or {}).get("enable_thinking", True)
    return answer("Blue.", reasoning_content="Hm. <name>Bob</name>") if thinks else answer("Blue.")


def sglang(asked: Asked) -> Response:
    """Content in parts; refuses a seed; a mark that ends thoughts which began in the prompt."""
    if "seed" in asked.body:
        return error(400, "seed is not supported")
    thinks = (asked.body.get("chat_template_kwargs") or {}).get("thinking", True)
    parts = [{"type": "text", "text": "Let me see.</think>"}] if thinks else []
    return answer([*parts, {"type": "text", "text": "Bl"}, {"type": "text", "text": "ue."}])


@dataclass
class Running:
    """root: its address without a path.   asked: all that came."""

    root: str
    asked: list[Asked] = field(default_factory=list)


@contextlib.contextmanager
def running(service: Service) -> Iterator[Running]:
    """A service on the loopback address, in a thread."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            parts = urlsplit(self.path)
            query = {name: values[0] for name, values in parse_qs(parts.query).items()}
            item = Asked(parts.path, query, {name.lower(): value for name, value in self.headers.items()}, body)
            here.asked.append(item)
            status, content, *headers = service(item)
            self.send_response(status)
            for name, value in (headers[0] if headers else {}).items():
                self.send_header(name, value)
            self.end_headers()
            with contextlib.suppress(OSError):  # the client reads no further
                self.wfile.write(content if isinstance(content, bytes) else json.dumps(content).encode())

        def log_message(self, *_: object) -> None: ...

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        here = Running(f"http://127.0.0.1:{server.server_address[1]}")
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield here
        finally:
            server.shutdown()
            thread.join()
