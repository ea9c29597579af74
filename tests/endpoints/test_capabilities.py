"""What an endpoint offers is found out by asking it; a method that needs more is refused before it costs anything."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from lab_server.running import RunningLab, limits
from nonmember.artifacts.store import Store
from nonmember.endpoints import Access, Completion, Request, questions
from nonmember.endpoints.client import EndpointClient, Session
from nonmember.endpoints.models import Recorded
from nonmember.endpoints.questions import most_alternatives, require
from nonmember.endpoints.reading import (
    EndpointError,
    Unusable,
    are_log_probabilities,
    listed_tokens,
    read_completion,
    read_prompt_scores,
)

LIMITS = limits(4, max_questions=100)
QUESTION = Request("d", "q", "What is it?", 4, 0.0, 0, instruction="Be brief.")


@pytest.fixture
def client(lab: RunningLab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., EndpointClient]:
    """client("chat"): as a new process would have it, on one store."""
    monkeypatch.setattr("openai._base_client.INITIAL_RETRY_DELAY", 0.001)
    return lambda form="chat": EndpointClient(lab.endpoint(form), Store(tmp_path), LIMITS, Session())


def refused(client: EndpointClient, access: Access) -> str:
    with pytest.raises(EndpointError) as error:
        require(client, access, "decop")
    assert "\n" not in str(error.value)
    return str(error.value)


@pytest.mark.parametrize("form", ["chat", "completions"])
def test_a_server_that_gives_alternatives(lab, client, form):
    require(client(form), Access.TOP_LOGPROBS, "decop")
    lab.forget()
    require(client(form), Access.TOP_LOGPROBS, "decop")
    assert lab.ledger()["received"] == 0, "it was known already"
    (answer,) = questions.completions(client(form), [replace(QUESTION, top_logprobs=5)])
    assert [len(row) for row in answer.top_logprobs] == [5, 5, 5]


@pytest.mark.slow
@pytest.mark.parametrize("form", ["chat", "completions"])
@pytest.mark.parametrize("settings", [{"logprobs": "ignored"}, {"refuses": ["logprobs"]}])
def test_a_server_that_answers_with_text_alone(lab, client, form, settings):
    """Whether it says so or not."""
    lab.setup(**settings)
    require(client(form), Access.TEXT, "decop")
    lab.forget()
    said = refused(client(form), Access.TOP_LOGPROBS)
    assert "decop needs the log-probabilities of the likeliest tokens" in said
    assert "answers with text alone" in said
    assert lab.ledger()["received"] <= 3
    asks = [replace(QUESTION, doc_id=f"d{n}", question=str(n), top_logprobs=4) for n in range(50)]
    with pytest.raises(EndpointError, match="answers with text alone"):
        questions.completions(client(form), asks)
    assert lab.ledger()["received"] <= 6, "nothing but probes"
    lab.setup()  # it has learnt it since
    require(client(form), Access.TOP_LOGPROBS, "decop")


def test_what_cannot_be_log_probabilities():
    assert are_log_probabilities([("a", -0.1), ("b", -3.0)], 2)
    assert not are_log_probabilities([("a", 0.0), ("b", 0.0)], 2)
    assert not are_log_probabilities([("a", 0.9), ("b", 0.05)], 2)
    assert not are_log_probabilities([("a", float("nan")), ("b", -1.0)], 2)
    assert not are_log_probabilities([("a", -0.1)], 2)


def test_so_many_alternatives_and_no_more(lab, client):
    lab.setup(most_alternatives=5)
    assert most_alternatives(client(), "decop") == 5
    with pytest.raises(EndpointError, match=r"the 6 likeliest tokens, and .* gives at most 5"):
        questions.completions(client(), [replace(QUESTION, top_logprobs=6)])


@pytest.mark.slow
def test_log_probabilities_that_go_missing_on_the_way(lab, client):
    """The server gave them at the start. An answer without them is none, and is told."""
    item = client()
    require(item, Access.TOP_LOGPROBS, "decop")
    lab.setup(logprobs=0.3)
    asks = [replace(QUESTION, doc_id=f"d{n}", question=str(n), top_logprobs=4) for n in range(40)]
    found = questions.completions(item, asks)
    without = [answer for answer in found if answer.outcome == "failed"]
    assert 0 < len(without) < 40
    assert {answer.reason for answer in without} == {"the log-probabilities that were asked for were left out"}
    assert all(answer.top_logprobs for answer in found if answer.outcome == "answered")


@pytest.mark.parametrize("form", ["chat", "completions"])
def test_a_server_without_scores_of_texts(client, form):
    said = refused(client(form), Access.PROMPT_LOGPROBS)
    assert "the log-probability of each token of a given text (completions with echo and logprobs)" in said


@pytest.mark.parametrize("access", [Access.FULL_LOGITS, Access.WEIGHTS])
def test_what_no_endpoint_gives_is_refused_without_a_request(lab, client, access):
    assert "can only be queried. Choose another method or score, or a model whose weights are available." in refused(
        client(), access
    )
    assert lab.ledger()["received"] == 0


def test_probes_are_paid_from_the_budget(lab, client):
    item = client()
    item.session.spent.questions = 100
    with pytest.raises(EndpointError, match="max_questions=100 is spent"):
        require(item, Access.TEXT, "decop")
    assert lab.ledger()["received"] == 0


def test_the_written_token_is_among_the_alternatives():
    """Some servers list the likeliest alone."""
    response = {
        "choices": [
            {
                "text": "B",
                "logprobs": {"tokens": ["B"], "token_logprobs": [-2.0], "top_logprobs": [{"A": -0.2, "C": -3.0}]},
            }
        ]
    }
    answer = read_completion(response, "", needs_logprobs=True)
    assert answer.top_logprobs == ((("A", -0.2), ("B", -2.0), ("C", -3.0)),)


TEXT = "moss and fern"


def scored(text: str = TEXT, new: int = 1, **more: object) -> dict:
    """An answer that repeats a text of three tokens, and holds their scores and that of one that was written."""
    logprobs = {"tokens": ["moss", " and", " fern", "."], "token_logprobs": [None, -1.0, -2.0, -0.5]}
    usage = {"prompt_tokens": 3, "completion_tokens": new}
    return {"choices": [{"text": f"{text}.", "logprobs": logprobs | more}], "usage": usage}


@pytest.mark.parametrize(
    ("response", "reason"),
    [
        ({"choices": [{"text": TEXT}]}, "the log-probabilities of the text were left out"),
        (scored(token_logprobs=None), "the log-probabilities of the text were left out"),
        (scored(text="fern and moss"), "the text was not repeated"),
        *(
            (scored(tokens=tokens, token_logprobs=[-1.0, -2.0, -0.5]), "are not those of the text, from its first")
            for tokens in ([" and", " fern", "."], ["and", "fern", "."], ["Ġand", "Ġfern", "."], ["moss", " and", "."])
        ),
        (scored(new=3), "3 tokens were written and 1 wanted"),
        (scored(token_logprobs=[None, -1.0, None, -0.5]), "not every token of the text has a log-probability"),
        (scored(token_logprobs=[None, -1.0, 0.5, -0.5]), "not every token of the text has a log-probability"),
        (scored(token_logprobs=[None, -1.0, float("nan"), -0.5]), "not every token of the text has a log-probability"),
        (scored(token_logprobs=[None, -1.0, -1.0, -0.5]), "every token of the text has the same log-probability"),
    ],
)
def test_scores_of_a_text_are_of_that_text_and_complete_or_none(response, reason):
    """Others would be taken for the model's."""
    for tokens in (["moss", " and", " fern", "."], ["moss", "Ġand", "▁fern", "."], ["Moss", "and", "\ufffd", "."]):
        assert read_prompt_scores(scored(tokens=tokens), TEXT, 1) == [-1.0, -2.0]
    with_front = scored(tokens=["<s>", "moss", " and fern", "."])
    assert read_prompt_scores(with_front, TEXT, 1) == [-1.0, -2.0]
    with pytest.raises(Unusable, match=re.escape(reason)):
        read_prompt_scores(response, TEXT, 1)


def test_tokens_without_numbers_are_not_compared():
    assert listed_tokens(scored()) == [(" and", -1.0), (" fern", -2.0), (".", -0.5)]
    assert listed_tokens({"choices": [{"text": TEXT, "logprobs": None}]}) == []


@pytest.mark.parametrize("logprob", [0.0, 0.5, float("nan")])
def test_alternatives_that_cannot_be_are_none(client, monkeypatch, logprob):
    """Equal ones of 0, say: a method would take them for the model's."""
    row = tuple((letter, logprob) for letter in "ABCDE")
    item = client()
    answer = Completion("A", "answered", "stop", "", "", top_logprobs=(row,))
    monkeypatch.setattr(item, "exchange", lambda *_, **__: [answer])
    assert questions._find_alternatives(item) == 0


def test_of_recorded_answers_no_scores_of_texts_can_be_had():
    recorded = Recorded("answers.csv", "m")
    recorded.require(None, Access.TOP_LOGPROBS, "decop")
    with pytest.raises(EndpointError, match=r"needs the log-probability of each token .* m can only be queried"):
        recorded.require(None, Access.PROMPT_LOGPROBS, "prism")
    with pytest.raises(EndpointError, match=r"needs weights and tokenizer of the model"):
        recorded.require(None, Access.WEIGHTS, "dose")
