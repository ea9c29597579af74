"""A server that misbehaves: answers are kept, budgets hold, and neither the secret nor the documents go astray."""

from __future__ import annotations

import contextlib
import gzip
import json
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from nonmember.artifacts.store import Store
from nonmember.endpoints import Completion, Limits, Request, questions, service
from nonmember.endpoints.client import EndpointClient, Session
from nonmember.endpoints.models import Endpoint
from nonmember.endpoints.reading import EndpointError, parsed, usage

KEY_VARIABLE = "LAB_KEY"
LIMITS = Limits(2, None, None, 10, 2, None, None, None, None, None)
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
    monkeypatch.setattr("nonmember.endpoints.client.FIRST_PAUSE", 0.001)
    monkeypatch.delenv(KEY_VARIABLE, raising=False)


def later(body: bytes, headers: dict[str, str] | None = None, status: int = 200, first: int = 2) -> Page:
    """A sound answer to the probe and to the first question, then this."""
    return lambda number: (status, headers or {}, body) if number > first else (200, {}, answer())


DEEP = b'{"choices": ' + b"[" * 100_000 + b"]" * 100_000 + b"}"


@pytest.mark.parametrize(
    ("page", "expected"),
    [
        (b"<html>Welcome</html>", "in another form than OpenAI's"),
        (b'{"answer": 7}', "in another form than OpenAI's"),
        (DEEP, "in another form than OpenAI's"),
        (b'{"error": {"message": "busy"}}', "at last: an error in place of an answer: {'message': 'busy'}"),
        (b'{"choices": [7]}', "does not accept a plain question: the answer has no choices"),
        (b'{"choices": [{"message": 3}]}', "does not accept a plain question: the answer has neither message nor text"),
    ],
)
def test_a_server_that_speaks_otherwise(page, expected, tmp_path):
    assert expected in Asked(later(page, first=0), tmp_path).error


def test_half_characters_become_whole_ones_and_are_found_again(tmp_path):
    content = json.loads('"half \\ud83d"')
    asked = Asked(lambda _: (200, {}, answer(content, model="\ud83d")), tmp_path)
    assert [item.text for item in asked.found] == ["half \ufffd"] * 3
    assert (asked.num_kept, asked.client.num_asked) == (4, 3 + 1)
    again = EndpointClient(asked.client.endpoint, Store(tmp_path), None, Session())
    wanted = [Request("d", "q", "What is 0?", 16, 0.0, 0)]
    assert questions.completions(again, wanted)[0] == asked.found[0]


@pytest.mark.slow
@pytest.mark.parametrize(
    "counted", [(-5, 4), (10, -4_000), (10**30, 4), (10, 10**19), (True, 4), ("10", 4), (1.5, 4), (10, [4])]
)
def test_counts_that_cannot_be_are_none(counted, tmp_path):
    assert usage(json.loads(answer("x", *counted))) == (0, 0)
    asked = Asked(lambda _: (200, {}, answer("x", *counted)), tmp_path, 9, max_tokens=400, concurrency=1)
    most_of_one = 16 + 64 + len("What is 0?")
    assert "budget of 400 tokens" in asked.error
    assert asked.num_received == 1 + asked.num_kept - 1 <= 1 + 400 // most_of_one
    assert 400 - 2 * most_of_one < asked.client.session.spent.tokens <= 400


@pytest.mark.parametrize("body", [b'{"choices": []}', b'{"choices": [7]}', b'{"choices": [{"message": 3}]}', DEEP])
def test_answers_of_no_use_are_not_paid_for_for_long(body, tmp_path):
    asked = Asked(later(body), tmp_path, 121)
    assert "the last 5 answers could not be used" in asked.error
    assert "2 answers are kept" in asked.error
    assert asked.num_received <= 2 + 5 + LIMITS.concurrency
    assert asked.client.session.spent.requests == asked.num_received


def test_a_few_among_many_do_not_end_it(tmp_path):
    asked = Asked(
        lambda n: (200, {}, b'{"choices": [7]}' if n % 2 else answer()) if n > 1 else (200, {}, answer()), tmp_path, 30
    )
    assert not asked.error
    assert 10 <= sum(item.outcome == "failed" for item in asked.found) <= 20


@pytest.mark.parametrize(
    ("body", "headers"),
    [
        (answer("x" * 5000), {}),
        (b"", {"Content-Length": "300000000"}),
        (gzip.compress(answer("x" * 5000)), {"Content-Encoding": "gzip"}),
    ],
)
def test_an_answer_without_end_is_not_read_to_it(body, headers, tmp_path, monkeypatch):
    monkeypatch.setattr(service, "MOST_BYTES", 2000)
    asked = Asked(later(body, headers), tmp_path, 3)
    assert sorted(item.outcome for item in asked.found) == [
        "answered",
        "failed",
        "failed",
    ]  # in whatever order they came
    assert all("compressed, or larger than" in item.reason for item in asked.found if item.outcome == "failed")
    assert asked.client.session.spent.tokens >= 2 * (16 + 64), "it may have been charged for"


@pytest.mark.slow
@pytest.mark.parametrize("status", [301, 302, 307, 308])
def test_the_documents_are_not_sent_on_to_another_host(status, tmp_path):
    with serving(lambda _: (200, {}, answer())) as (elsewhere, bodies):
        asked = Asked(later(b"", {"Location": f"{elsewhere}/chat/completions"}, status), tmp_path)
    assert "sends requests on to 127.0.0.1, and the documents' text was not sent there" in asked.error
    assert "2 answers are kept" in asked.error
    assert not bodies


def test_a_place_to_go_that_is_none_ends_it_as_well(tmp_path):
    asked = Asked(later(b"", {"Location": "http://[half"}, 302), tmp_path)
    assert "sends requests on to an address that cannot be read, and the documents' text was not" in asked.error


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


def test_what_cannot_go_over_the_wire_is_told_without_the_secret(tmp_path, monkeypatch):
    monkeypatch.setenv(KEY_VARIABLE, "sk-0123456789abcdef")
    monkeypatch.setattr(service, "_has_host", lambda url: True)  # which refuses those that we know of
    nowhere = Endpoint("http:///v1", "lab", "chat", KEY_VARIABLE)
    client = EndpointClient(nowhere, Store(tmp_path), LIMITS, Session())
    with pytest.raises(EndpointError, match=r"nothing can be sent there\. Correct `url` or .* LAB_KEY") as error:
        questions.completions(client, [Request("d", "q", "What?", 16, 0.0, 0)])
    assert "sk-0123" not in str(error.value)


def test_the_secret_is_hidden_however_it_is_written(tmp_path, monkeypatch):
    secret = 'sk-0123"456789\\abcdef'
    monkeypatch.setenv(KEY_VARIABLE, secret)
    escaped = "".join(f"\\u{ord(character):04x}" for character in secret)
    body = answer("KEY", echo="KEY", fault="KEY").decode().replace("KEY", escaped).encode()
    asked = Asked(lambda n: (200, {}, body) if n < 3 else (400, {}, body), tmp_path, 2)
    assert sorted(item.text for item in asked.found) == ["", "***"]  # either may be sent first
    for form in (secret, escaped, json.dumps(secret)[1:-1]):
        assert form not in asked.on_disk + repr(asked.found)


@pytest.mark.parametrize("word", ["sky", "token", "1"])
def test_a_word_for_a_key_does_not_damage_answers(word, tmp_path, monkeypatch):
    monkeypatch.setenv(KEY_VARIABLE, word)
    text = "The sky of 1 token is 11 times as blue."
    assert {item.text for item in Asked(lambda _: (200, {}, answer(text)), tmp_path).found} == {text}
    plain = answer(text).decode()
    assert parsed(plain, (word,)) == (plain, json.loads(plain))


def test_dates_beyond_all_calendars(tmp_path):
    late = {"Retry-After": "Fri, 31 Dec 99999999999999 23:59:59 GMT"}
    asked = Asked(lambda n: (429, late, b"{}") if n == 2 else (200, {}, answer()), tmp_path)
    assert [item.outcome for item in asked.found] == ["answered"] * 3


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


def test_thoughts_that_only_the_total_counts_are_paid_for():
    counted = {"prompt_tokens": 10, "completion_tokens": 4}
    assert usage({"usage": counted | {"total_tokens": 514}}) == (10, 504)
    assert (
        usage({"usage": counted | {"total_tokens": 14}}) == usage({"usage": counted | {"total_tokens": "?"}}) == (10, 4)
    )


def test_a_server_that_still_loads_its_model_is_waited_for(tmp_path):
    asked = Asked(lambda n: (503, {}, b"{}") if n < 5 else (200, {}, answer()), tmp_path, max_retries=4)
    assert [item.outcome for item in asked.found] == ["answered"] * 3


def test_what_goes_to_this_machine_goes_through_no_proxy(tmp_path, monkeypatch):
    monkeypatch.setenv("ALL_PROXY", "ftp://proxy:1")
    assert [item.outcome for item in Asked(lambda _: (200, {}, answer()), tmp_path).found] == ["answered"] * 3
    elsewhere = Endpoint("http://elsewhere.invalid/v1", "lab", "chat", KEY_VARIABLE)
    with pytest.raises(EndpointError, match=r"Unknown scheme for proxy .*\. Correct the proxy in HTTP_PROXY"):
        questions.completions(
            EndpointClient(elsewhere, Store(tmp_path), LIMITS, Session()), [Request("d", "q", "What?", 16, 0.0, 0)]
        )


def test_a_kept_answer_that_cannot_be_read_is_asked_again(tmp_path):
    """As one that was kept with its thoughts, or that an earlier version took."""

    def text_of(response: Any) -> str:
        return str(response["choices"][0]["message"]["content"])

    with serving(lambda number: (200, {}, answer(f"It is {number}."))) as (url, bodies):
        client = EndpointClient(Endpoint(url, "lab", "chat", KEY_VARIABLE), Store(tmp_path), LIMITS, Session())
        wanted = [service.echoed(client.endpoint, "What?", 1)]
        texts = [
            client.exchange(wanted, lambda *got: text_of(got[1]), "first"),
            client.exchange(wanted, lambda *got: {"It is 2.": "two"}[text_of(got[1])], "again"),
            client.exchange(wanted, lambda *got: text_of(got[1]), "found"),
        ]
    assert texts == [["It is 1."], ["two"], ["It is 2."]]
    assert len(bodies) == 2
