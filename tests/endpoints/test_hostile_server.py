"""A server that misbehaves: answers are kept, budgets hold, and neither the secret nor the documents go astray."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from lab_server import dialects
from lab_server.dialects import Response, running
from lab_server.running import KEY_VARIABLE, limits
from nonmember.artifacts.store import Store
from nonmember.endpoints import Completion, Request, questions
from nonmember.endpoints.client import EndpointClient, Session
from nonmember.endpoints.models import Endpoint
from nonmember.endpoints.reading import EndpointError, usage
from nonmember.endpoints.table import opened

CONCURRENCY = 2
Page = Callable[[int], Response]  # number of the request -> what comes of it


def answer(content: str = "It is blue.", prompt_tokens: Any = 10, completion_tokens: Any = 4, **more: Any) -> Response:
    """In the protocol's form."""
    counted = {"prompt_tokens": prompt_tokens, "completion_tokens": completion_tokens}
    return 200, dialects.answer(content)[1] | {"model": "lab", "usage": counted} | more


def client_of(root: str, folder: Path, **allowed: Any) -> EndpointClient:
    endpoint = Endpoint(f"{root}/v1", "lab", "chat", KEY_VARIABLE)
    return EndpointClient(endpoint, Store(folder), limits(**{"concurrency": CONCURRENCY} | allowed), Session())


class Outcome:
    """What came of so many questions. found: empty where the run ended early, and `error` says why."""

    def __init__(self, page: Page, folder: Path, number: int = 3, **allowed: Any) -> None:
        self.found: list[Completion] = []
        self.error = ""
        wanted = [Request(f"d{index}", "q", f"What is {index}?", 16, 0.0, 0) for index in range(number)]
        with running(lambda _: page(len(here.asked))) as here:
            self.client = client_of(here.root, folder, **allowed)
            try:
                self.found = questions.completions(self.client, wanted)
            except EndpointError as error:
                self.error = str(error)
                assert "\n" not in self.error
            self.num_received = len(here.asked)
        with opened(self.client.folder) as table:
            self.num_kept = len(table)


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("openai._base_client.INITIAL_RETRY_DELAY", 0.001)
    monkeypatch.delenv(KEY_VARIABLE, raising=False)


def later(body: bytes, status: int = 200, **headers: str) -> Page:
    """A sound answer to the probe and to the first question, then this."""
    return lambda number: (status, body, headers) if number > 2 else answer()


@pytest.mark.parametrize("counted", [(-5, 4), (10, -4_000), (10, 10**19), ("10", 4)])
def test_counts_that_cannot_be_are_none(counted, tmp_path):
    assert usage(answer("x", *counted)[1]) == (0, 0)
    asked = Outcome(lambda _: answer("x", *counted), tmp_path, 9, max_tokens=400, concurrency=1)
    most_of_one = 16 + 64 + len("What is 0?")
    assert "asking.max_tokens=400 is spent" in asked.error
    assert asked.num_received == 1 + asked.num_kept - 1 <= 1 + 400 // most_of_one
    assert 400 - 2 * most_of_one < asked.client.session.spent.tokens <= 400


@pytest.mark.parametrize("body", [b'{"choices": []}', b'{"choices": [7]}', b'{"choices": [{"message": 3}]}'])
def test_answers_of_no_use_are_not_paid_for_for_long(body, tmp_path):
    asked = Outcome(later(body), tmp_path, 121)
    assert "the last 5 answers could not be used" in asked.error
    assert "2 answers are kept" in asked.error
    assert asked.num_received <= 2 + 5 + CONCURRENCY
    assert asked.client.session.spent.questions == asked.num_received


def test_an_outage_keeps_what_came_before(tmp_path):
    asked = Outcome(later(b"{}", 503), tmp_path, 50, max_retries=1)
    assert "2 answers are kept, and the same command goes on from there" in asked.error
    assert asked.num_received < 20


def test_a_few_among_many_do_not_end_it(tmp_path):
    asked = Outcome(lambda number: (200, b'{"choices": [7]}') if number > 1 and number % 2 else answer(), tmp_path, 30)
    assert not asked.error
    assert 10 <= sum(item.outcome == "failed" for item in asked.found) <= 20


@pytest.mark.parametrize("status", [302, 307])
def test_the_documents_are_not_sent_on_to_another_host(status, tmp_path):
    with running(lambda _: answer()) as elsewhere:
        asked = Outcome(later(b"", status, Location=f"{elsewhere.root}/v1/chat/completions"), tmp_path)
    assert "2 answers are kept" in asked.error
    assert not elsewhere.asked


@pytest.mark.parametrize(
    ("body", "outcome"),
    [
        (b'{"error": {"code": "content_filter", "message": "not that"}}', "refused"),
        (b'{"error": ' + b"[" * 600 + b"]" * 600 + b"}", "failed"),  # read, and too deep to look for the secret in it
    ],
    ids=["declined", "deep"],
)
def test_a_request_that_is_turned_down_costs_the_others_nothing(body, outcome, tmp_path):
    asked = Outcome(later(body, 400), tmp_path)
    assert not asked.error
    assert sorted(item.outcome for item in asked.found) == ["answered", outcome, outcome]
    assert asked.num_received == 1 + 3, "it would be turned down again"
    assert asked.num_kept == 2 + 2 * (outcome == "refused"), "what was declined is an answer of the model's"


def test_samples_are_as_many_where_no_seed_is_taken(tmp_path):
    """They differ by their seed alone, which is not sent."""

    def service(asked: dialects.Asked) -> Response:
        return (400, b"{}") if "seed" in asked.body else answer(f"It is {len(here.asked)}.")

    with running(service) as here:
        samples = [Request("d", f"sample-{seed}", "What?", 16, 1.0, seed) for seed in range(5)]
        assert len({item.text for item in questions.completions(client_of(here.root, tmp_path), samples)}) == 5


def test_that_another_model_answered_is_warned_of(tmp_path):
    for name, num_warnings in {"other-7b": 1, "lab-2026-01-01": 0, "owner/LAB": 0}.items():
        asked = Outcome(lambda _, name=name: answer(model=name), tmp_path / name)
        assert len(asked.client.warnings()) == num_warnings


def test_a_server_that_still_loads_its_model_is_waited_for(tmp_path):
    asked = Outcome(lambda number: (503, b"{}") if number < 5 else answer(), tmp_path, max_retries=4)
    assert [item.outcome for item in asked.found] == ["answered"] * 3
