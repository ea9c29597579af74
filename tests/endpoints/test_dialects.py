"""Services that differ from the plain protocol: how they want their requests is found by trying, or given."""

from __future__ import annotations

import json
import logging
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from lab_server import dialects
from lab_server.dialects import Asked, Response, answer, error, running
from lab_server.running import limits
from marks import thinned
from nonmember.artifacts.store import Store
from nonmember.endpoints import Access, Completion, Request, questions
from nonmember.endpoints.client import EndpointClient, Session
from nonmember.endpoints.models import Endpoint
from nonmember.endpoints.reading import EndpointError
from nonmember.records import Corpus, Document

LIMITS = limits(max_retries=1)
QUESTION = Request("d", "q", "Who is it?", 8, 0.0, 0, instruction="Answer in a word.")


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("openai._base_client.INITIAL_RETRY_DELAY", 0.001)
    monkeypatch.delenv("LAB_KEY", raising=False)
    monkeypatch.setenv("AZURE_KEY", "azure-0123456789abcdef")


def client_of(root: str, folder: Path, path: str = "/v1", **settings: Any) -> EndpointClient:
    given = {"model": "m", "form": "chat", "key_variable": "LAB_KEY"} | settings
    return EndpointClient(Endpoint(root + path, **given), Store(folder), LIMITS, Session())


def asked(client: EndpointClient, **changes: Any) -> Completion:
    (found,) = questions.completions(client, [replace(QUESTION, **changes)])
    return found


AZURE = {
    "path": "/openai/deployments/mine",
    "extra_query": {"api-version": "2024-10-21"},
    "extra_headers": {"api-key": "env:AZURE_KEY"},
}


@pytest.mark.parametrize(
    ("service", "settings", "text", "thinks", "sent"),
    [
        (dialects.openai_reasoning, {}, "It is blue.", True, {"max_completion_tokens": 16, "seed": 0}),
        (
            dialects.openai_reasoning,
            {"request_settings": {"min_output_tokens": 900}},
            "It is blue.",
            True,
            {"max_completion_tokens": 900},
        ),
        (dialects.azure, AZURE, "It is blue.", False, {"max_tokens": 8, "temperature": 0.0}),
        (dialects.vllm, {}, "Blue.", True, {"temperature": 0.0, "seed": 0}),
        (dialects.vllm, {"thinking": "keep"}, "<think>\nIs it <name>Bob</name>?</think>\n\nBlue.", False, {}),
        (
            dialects.vllm,
            {"extra_body": {"chat_template_kwargs": {"enable_thinking": False}, "top_k": 1}},
            "Blue.",
            False,
            {"top_k": 1},
        ),
        (dialects.llama_cpp, {}, "Blue.", True, {"temperature": 0.0}),
        (dialects.sglang, {}, "Blue.", True, {"temperature": 0.0}),
    ],
)
def test_each_service_is_asked_as_it_wants_and_once(service, settings, text, thinks, sent, tmp_path):
    with running(service) as here:
        client = client_of(here.root, tmp_path, **settings)
        found = asked(client)
        body = here.asked[-1].body
        assert (found.text, found.outcome, found.has_thoughts) == (text, "answered", thinks)
        assert {name: body.get(name) for name in sent} == sent
        assert len(here.asked) <= 12
        before = len(here.asked)
        assert asked(client_of(here.root, tmp_path, **settings)) == found
        assert len(here.asked) == before, "what was found out is kept"
    drawn = [note for note in client.notes if "takes no temperature" in note]
    assert bool(drawn) == (service is dialects.openai_reasoning)


@pytest.mark.parametrize("number", thinned(range(16), 4))
def test_any_of_the_refusals_together_is_found_whatever_the_server_says(number, tmp_path):
    """By trying: the reason is the same for all."""
    flags = [bool(number & 1 << bit) for bit in range(4)]
    no_temperature, no_seed, no_system, other_name = flags

    def service(one: Asked) -> Response:
        refused = (
            (no_temperature and "temperature" in one.body)
            or (no_seed and "seed" in one.body)
            or (no_system and dialects.roles_of(one.body) != ["user"])
            or (other_name and "max_tokens" in one.body)
        )
        return error(400, "Nein.") if refused else answer()

    with running(service) as here:
        assert asked(client_of(here.root, tmp_path)).outcome == "answered"
        body = here.asked[-1].body
    left_out = ["temperature" not in body, "seed" not in body, len(body["messages"]) == 1]
    assert [*left_out, "max_tokens" not in body] == flags, "nothing is left out that the server takes"


def test_a_server_that_wants_room_for_thoughts(tmp_path):
    def service(one: Asked) -> Response:
        return answer() if dialects.limit_of(one.body) >= 1000 else error(400, "Could not finish the message.")

    with running(service) as here:
        asked(client_of(here.root, tmp_path))
        assert here.asked[-1].body["max_tokens"] == 2048


def test_log_probabilities_that_the_key_may_not_ask_for_are_no_bad_key(tmp_path):
    with running(dialects.openai_reasoning) as here:
        client = client_of(here.root, tmp_path)
        with pytest.raises(EndpointError, match="answers with text alone: it refused them") as raised:
            questions.require(client, Access.TOP_LOGPROBS, "decop")
    assert "secret" not in str(raised.value)


@pytest.mark.parametrize("status", [401, 403])
def test_a_key_that_is_refused_is_called_that(status, tmp_path):
    with running(lambda _: error(status, "Forbidden.")) as here:
        with pytest.raises(EndpointError, match=rf"{status}.*LAB_KEY|LAB_KEY \({status}\)"):
            asked(client_of(here.root, tmp_path))
        assert len(here.asked) == 1, "no other way to write the request is tried"


@pytest.mark.parametrize(
    ("status", "body", "expected"),
    [(402, {}, "no credit left"), (429, {"code": "insufficient_quota"}, "no credit left")],
)
def test_every_status_has_a_meaning(status, body, expected, tmp_path):
    with (
        running(lambda _: (status, {"error": {"message": "", **body}})) as here,
        pytest.raises(EndpointError) as raised,
    ):
        asked(client_of(here.root, tmp_path))
    assert expected in str(raised.value)
    assert "\n" not in str(raised.value)
    assert "secret" not in str(raised.value)


@pytest.mark.parametrize(
    "body", [b"<!DOCTYPE html>", b'{"choices": [{"message": {"content": "It i', b'{"error": {"code": 502}}']
)
def test_what_comes_in_place_of_an_answer_ends_it(body, tmp_path):
    with running(lambda _: (200, body)) as here, pytest.raises(EndpointError, match="in another form than OpenAI's"):
        asked(client_of(here.root, tmp_path))


def test_a_probability_of_zero_is_floored_and_counted_and_what_is_none_leaves_the_document_out(tmp_path, caplog):
    documents = {"a": "moss fern never reed", "b": "moss fern reed pine", "c": "null"}

    def service(one: Asked) -> Response:
        status, body = dialects.vllm(one)
        if one.body["prompt"].startswith("bad"):
            body["choices"][0]["logprobs"]["token_logprobs"][2] = sentinels[one.body["prompt"]]
        return status, body

    sentinels = {f"bad {number} reed": value for number, value in enumerate((None, float("nan"), 0.7, "x"))}
    documents |= {text: text for text in sentinels}
    corpus = Corpus(tuple(Document(name, text) for name, text in documents.items()))
    with running(service) as here:
        client = client_of(here.root, tmp_path, form="completions")
        table = questions.observations(client, corpus, 64)
    assert table.log_prob[table.rows(0)].tolist() == [-1.0, -100.0, -1.25]
    assert table.log_prob[table.rows(1)].tolist() == [-1.0, -1.125, -1.25]
    reason = "the server's answer cannot be used: not every token of the text has a log-probability"
    assert table.reasons == dict.fromkeys(sentinels, reason)
    assert table.num_tokens.tolist() == [3, 3, 0, *[0] * len(sentinels)]
    (note,) = client.notes
    assert note.startswith("To 1 of 6 tokens")
    assert note in caplog.text


def test_secrets_of_headers_and_queries_are_sent_and_written_nowhere(tmp_path, caplog):
    caplog.set_level(logging.DEBUG)
    signed = AZURE | {"extra_query": {"api-version": "2024-10-21", "sig": "env:AZURE_KEY"}}
    with running(dialects.azure) as here:
        client = client_of(here.root, tmp_path, **signed)
        found = asked(client)
        assert here.asked[-1].query["sig"] == here.asked[-1].headers["api-key"] == "azure-0123456789abcdef"
        unset = client_of(here.root, tmp_path, **signed | {"extra_headers": {"api-key": "env:UNSET"}, "model": "n"})
        with pytest.raises(EndpointError, match="the environment variable UNSET is not set"):
            asked(unset)
    everything = caplog.text + repr(found) + repr(client.endpoint)
    everything += "".join(path.read_bytes().decode("latin-1") for path in tmp_path.rglob("*") if path.is_file())
    assert "0123456789abcdef" not in everything


def test_what_the_environment_holds_for_openai_goes_to_nobody_else(tmp_path, monkeypatch):
    for name, value in {
        "OPENAI_ORG_ID": "of-openai",
        "OPENAI_PROJECT_ID": "of-openai",
        "OPENAI_CUSTOM_HEADERS": "X-Gateway: of-openai\nAuthorization: Bearer of-openai",
        "OPENAI_API_KEY": "sk-proj-of-openai",
    }.items():
        monkeypatch.setenv(name, value)
    with running(lambda _: answer()) as here:
        asked(client_of(here.root, tmp_path))
        with pytest.raises(EndpointError, match="a key of OpenAI's, which is not sent to another server"):
            asked(client_of(here.root, tmp_path, key_variable="OPENAI_API_KEY", model="n"))
    assert len(here.asked) == 2
    assert "of-openai" not in repr([item.headers for item in here.asked])


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"extra_body": []}, "must be a mapping"),
        ({"request_settings": {"colour": 1}}, "must be one of token_limit"),
        ({"request_settings": {"token_limit": "most"}}, "must be one of max_tokens"),
        ({"request_settings": {"min_output_tokens": -1}}, "must be a whole number"),
        ({"request_settings": {"seed": "no"}}, "must be true or false"),
        ({"key_variable": "sk-0123456789abcdefgh"}, "must be the name of an environment variable"),
        ({"key_variable": "AKIAIOSFODNN7EXAMPLE"}, "must be the name of an environment variable"),
        ({"key_variable": "0123456789ABCDEF0123456789ABCDEF"}, "must be the name of an environment variable"),
        ({"url": "https://h/sk-0123456789abcdefgh/v1"}, "holds what looks like a secret"),
        ({"url": "sk-0123456789abcdefgh"}, "holds what looks like a secret"),
        *(
            ({"url": f"http://{url}"}, "without user, password or query")
            for url in ("u:EXAMPLE@h/v1", "h/v1?k=EXAMPLE")
        ),
    ],
)
def test_settings_of_requests_are_checked(settings, expected):
    with pytest.raises(ValueError, match=expected) as raised:
        Endpoint(**{"url": "http://h/v1", "model": "m", "form": "chat", "key_variable": "KEY"} | settings)
    assert not [text for text in ("0123456789", "abcdef", "EXAMPLE") if text in str(raised.value)]


def test_ways_to_ask_do_not_share_answers(tmp_path):
    ways: list[dict[str, Any]] = [
        {},
        {"extra_body": {"top_k": 1}},
        {"extra_query": {"version": "1"}},
        {"extra_headers": {"x-beta": "1"}},
        {"request_settings": {"temperature": False}},
    ]
    with running(lambda _: answer()) as here:
        for way in ways:
            asked(client_of(here.root, tmp_path, **way))
        assert len(here.asked) == 2 * len(ways), "a probe and a question each"
        asked(client_of(here.root, tmp_path, extra_headers={"authorization": "env:AZURE_KEY"}))
    plain = {"url": "http://h/v1", "model": "m", "form": "chat", "key_variable": "K"}
    keys = [Endpoint(**plain, **way).key(None) for way in [*ways, {"thinking": "keep"}]]
    assert len({json.dumps(key) for key in keys}) == len(keys)
    assert Endpoint(**plain).key(None) == {"endpoint": {name: plain[name] for name in ("url", "model", "form")}}
    null = {"request_settings": {"seed": None}, "extra_headers": {"api-key": "env:K"}}
    assert Endpoint(**plain, **null).key(None) == keys[0], "what is found by trying, and secrets, are no part of it"


def test_what_forbids_one_text_is_a_failed_question_and_what_forbids_all_ends_the_run(tmp_path):
    def wall(one: Asked) -> Response:
        return (403, b"<html><title>Blocked</title></html>") if "SELECT" in str(one.body) else answer()

    with running(wall) as here:
        wanted = [replace(QUESTION, question=text) for text in ("SELECT 1", "Who?", "What?")]
        found = questions.completions(client_of(here.root, tmp_path), wanted)
        assert [one.outcome for one in found] == ["failed", "answered", "answered"]
        assert found[0].reason == "Error code: 403"
        wanted = [replace(QUESTION, question=f"SELECT {n}") for n in range(40)]
        with pytest.raises(EndpointError, match="the last 5 answers could not be used"):
            questions.completions(client_of(here.root, tmp_path), wanted)
        assert len(here.asked) < 20
