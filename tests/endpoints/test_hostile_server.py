"""A server that misbehaves: answers are kept, budgets hold, and neither the secret nor the documents go astray."""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from nonmember.artifacts.store import Store
from nonmember.endpoints import Completion, Limits, Request, questions
from nonmember.endpoints.client import EndpointClient, Session
from nonmember.endpoints.models import Endpoint
from nonmember.endpoints.reading import EndpointError, usage

KEY_VARIABLE = "LAB_KEY"
LIMITS = Limits(2, 10, 2, None, None, None, None, None)
Page = Callable[[int], tuple[int, dict[str, str], bytes]]  # number of the request -> status, headers, body


def answer(content: str = "It is blue.", prompt_tokens: Any = 10, completion_tokens: Any = 4, **more: Any) -> bytes:
    """In the protocol's form."""
    choice = {"message": {"content": content}, "finish_reason": "stop"}
    counted = {"prompt_tokens": prompt_tokens, "completion_tokens": completion_tokens}
    return json.dumps({"model": "lab", "choices": [choice], "usage": counted} | more).encode()


@contextlib.contextmanager
def serving(page: Page) -> Iterator[tuple[str, list[str]]]:
    """(address, bodies of the requests that came)"""
    bodies: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            bodies.append(self.rfile.read(int(self.headers["Content-Length"])).decode())
            status, headers, body = page(len(bodies))
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.end_headers()
            with contextlib.suppress(OSError):  # the client reads no further
                self.wfile.write(body)

        def log_message(self, *_: object) -> None: ...

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}/v1", bodies
        finally:
            server.shutdown()
            thread.join()


class Asked:
    """What came of so many questions. found: empty where the run ended early, and `error` says why."""

    def __init__(self, page: Page, folder: Path, number: int = 3, **limits: Any) -> None:
        self.found: list[Completion] = []
        self.error = ""
        wanted = [Request(f"d{index}", "q", f"What is {index}?", 16, 0.0, 0) for index in range(number)]
        with serving(page) as (url, bodies):
            self.client = EndpointClient(
                Endpoint(url, "lab", "chat", KEY_VARIABLE), Store(folder), replace(LIMITS, **limits), Session()
            )
            try:
                self.found = questions.completions(self.client, wanted)
            except EndpointError as error:
                self.error = str(error)
                assert "\n" not in self.error
            self.num_received = len(bodies)
        with self.client.table() as table:
            self.num_kept = len(table)
        self.on_disk = b"".join(path.read_bytes() for path in folder.rglob("*") if path.is_file()).decode("latin-1")


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("openai._base_client.INITIAL_RETRY_DELAY", 0.001)
    monkeypatch.delenv(KEY_VARIABLE, raising=False)


def later(body: bytes, headers: dict[str, str] | None = None, status: int = 200, first: int = 2) -> Page:
    """A sound answer to the probe and to the first question, then this."""
    return lambda number: (status, headers or {}, body) if number > first else (200, {}, answer())


@pytest.mark.parametrize(
    ("page", "expected"),
    [(b"<html>Welcome</html>", "in another form than OpenAI's"), (b'{"answer": 7}', "in another form than OpenAI's")],
)
def test_a_server_that_speaks_otherwise(page, expected, tmp_path):
    assert expected in Asked(later(page, first=0), tmp_path).error


@pytest.mark.parametrize("counted", [(-5, 4), (10, -4_000), (10, 10**19), ("10", 4)])
def test_counts_that_cannot_be_are_none(counted, tmp_path):
    assert usage(json.loads(answer("x", *counted))) == (0, 0)
    asked = Asked(lambda _: (200, {}, answer("x", *counted)), tmp_path, 9, max_tokens=400, concurrency=1)
    most_of_one = 16 + 64 + len("What is 0?")
    assert "asking.max_tokens=400 is spent" in asked.error
    assert asked.num_received == 1 + asked.num_kept - 1 <= 1 + 400 // most_of_one
    assert 400 - 2 * most_of_one < asked.client.session.spent.tokens <= 400


@pytest.mark.parametrize("body", [b'{"choices": []}', b'{"choices": [7]}', b'{"choices": [{"message": 3}]}'])
def test_answers_of_no_use_are_not_paid_for_for_long(body, tmp_path):
    asked = Asked(later(body), tmp_path, 121)
    assert "the last 5 answers could not be used" in asked.error
    assert "2 answers are kept" in asked.error
    assert asked.num_received <= 2 + 5 + LIMITS.concurrency
    assert asked.client.session.spent.questions == asked.num_received


def test_a_few_among_many_do_not_end_it(tmp_path):
    asked = Asked(
        lambda n: (200, {}, b'{"choices": [7]}' if n % 2 else answer()) if n > 1 else (200, {}, answer()), tmp_path, 30
    )
    assert not asked.error
    assert 10 <= sum(item.outcome == "failed" for item in asked.found) <= 20


@pytest.mark.parametrize("status", [302, 307])
def test_the_documents_are_not_sent_on_to_another_host(status, tmp_path):
    with serving(lambda _: (200, {}, answer())) as (elsewhere, bodies):
        asked = Asked(later(b"", {"Location": f"{elsewhere}/chat/completions"}, status), tmp_path)
    assert "2 answers are kept" in asked.error
    assert not bodies


@pytest.mark.parametrize(
    ("body", "outcome"),
    [
        (b'{"error": {"code": "content_filter", "message": "not that"}}', "refused"),
        (b'{"error": ' + b"[" * 600 + b"]" * 600 + b"}", "failed"),  # read, and too deep to look for the secret in it
    ],
    ids=["declined", "deep"],
)
def test_a_request_that_is_turned_down_costs_the_others_nothing(body, outcome, tmp_path):
    asked = Asked(later(body, status=400), tmp_path)
    assert not asked.error
    assert sorted(item.outcome for item in asked.found) == ["answered", outcome, outcome]
    assert asked.num_received == 1 + 3, "it would be turned down again"
    assert asked.num_kept == 2 + 2 * (outcome == "refused"), "what was declined is an answer of the model's"


def test_samples_are_as_many_where_no_seed_is_taken(tmp_path):
    """They differ by their seed alone, which is not sent."""

    def page(number: int) -> tuple[int, dict[str, str], bytes]:
        return (400, {}, b"{}") if '"seed"' in bodies[-1] else (200, {}, answer(f"It is {number}."))

    with serving(lambda number: page(number)) as (url, bodies):
        client = EndpointClient(Endpoint(url, "lab", "chat", KEY_VARIABLE), Store(tmp_path), LIMITS, Session())
        samples = [Request("d", f"sample-{seed}", "What?", 16, 1.0, seed) for seed in range(5)]
        assert len({item.text for item in questions.completions(client, samples)}) == 5


def test_that_another_model_answered_is_warned_of(tmp_path):
    for name, num_warnings in {"other-7b": 1, "lab-2026-01-01": 0, "owner/LAB": 0}.items():
        asked = Asked(lambda _, name=name: (200, {}, answer(model=name)), tmp_path / name)
        assert len(asked.client.warnings()) == num_warnings


def test_a_server_that_still_loads_its_model_is_waited_for(tmp_path):
    asked = Asked(lambda n: (503, {}, b"{}") if n < 5 else (200, {}, answer()), tmp_path, max_retries=4)
    assert [item.outcome for item in asked.found] == ["answered"] * 3
