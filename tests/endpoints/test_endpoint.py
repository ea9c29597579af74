"""A model behind a server: every answer is paid for once and kept, and nothing is asked beyond what was allowed."""

from __future__ import annotations

import asyncio
import json
import re
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from lab_server.running import KEY_VARIABLE, RunningLab, limits
from nonmember.artifacts.store import Store
from nonmember.endpoints import Completion, Request, questions
from nonmember.endpoints.client import EndpointClient, Session
from nonmember.endpoints.models import Endpoint
from nonmember.endpoints.reading import EndpointError
from nonmember.endpoints.table import FILE

UNLIMITED = limits(8, max_retries=4)
NUM_PROBES = 1  # requests that a plain question costs at the first use of an endpoint


@pytest.fixture(autouse=True)
def no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("openai._base_client.INITIAL_RETRY_DELAY", 0.001)


@pytest.fixture
def client(lab: RunningLab, tmp_path: Path) -> Callable[..., EndpointClient]:
    """client(form, max_questions=3): as a new process would have it, on one store."""

    def make(form: str = "chat", *, other: Endpoint | None = None, **limits: Any) -> EndpointClient:
        return EndpointClient(
            other or lab.endpoint(form), Store(tmp_path / "store"), replace(UNLIMITED, **limits), Session()
        )

    return make


def asked(number: int, **changes: Any) -> list[Request]:
    plain = Request("d", "q", "", 16, 0.0, 0, instruction="Answer in a word.")
    return [replace(plain, doc_id=f"d{index}", question=f"What is {index}?", **changes) for index in range(number)]


def rows(folder: Path) -> list[dict[str, Any]]:
    with sqlite3.connect(folder / FILE) as connection:
        connection.row_factory = sqlite3.Row
        return [dict(row) for row in connection.execute("SELECT * FROM completions")]


def without_probes(folder: Path) -> list[dict[str, Any]]:
    return [
        row
        for row in rows(folder)
        if "Which colour" not in row["request"] and "colour of the sky" not in row["request"]
    ]


# Asked once -----------------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("form", ["chat", "completions"])
def test_answers_come_in_the_order_of_the_requests(lab, client, form):
    lab.setup(documents=[{"text": f"passage number {n} of the book", "read": True} for n in range(30)])
    wanted = []
    for number in range(30):
        b, d = (f"passage number {number} of the book", "another")[:: 1 if number % 2 else -1]
        wanted.append(Request(f"d{number}", "q", f"Which?\nA. w\nB. {b}\nC. y\nD. {d}\nAnswer:", 9, 0.0, 0))
    assert [item.text for item in questions.completions(client(form), wanted)] == ["D", "B"] * 15


@pytest.mark.slow
def test_what_was_asked_is_found_by_everybody_for_nothing(lab, client):
    first = questions.completions(client(), asked(20))
    assert lab.ledger()["paid"] == 20 + NUM_PROBES
    again = client()
    others_words = [replace(item, doc_id="other", name="other", expected="blue", options=("a",)) for item in asked(20)]
    assert questions.completions(again, others_words) == first
    assert (again.num_asked, again.num_found) == (0, 20)
    assert lab.ledger()["received"] == 20 + NUM_PROBES


def test_what_is_sent_tells_requests_apart(lab, client):
    (item,) = asked(1)
    others = [
        replace(item, question="What else?"),
        replace(item, instruction="At length."),
        replace(item, max_new_tokens=17),
        replace(item, temperature=0.5),
        replace(item, seed=1),
        replace(item, instruction=""),
    ]
    questions.completions(client(), [item, *others])
    assert lab.ledger()["distinct"] == 1 + len(others) + NUM_PROBES


def test_equal_requests_are_asked_once(lab, client):
    (item,) = asked(1)
    found = questions.completions(client(), [replace(item, doc_id=f"d{n}") for n in range(50)])
    assert len(set(found)) == 1
    assert lab.ledger()["received"] == 1 + NUM_PROBES


def test_another_model_or_form_has_a_table_of_its_own(lab, client, tmp_path):
    assert len({client(form).folder for form in ("chat", "completions")}) == 2
    assert client(other=lab.endpoint(model="other")).folder != client().folder
    slash, key = replace(lab.endpoint(), url=f"{lab.url}/"), replace(lab.endpoint(), key_variable="OTHER")
    assert client(other=slash).folder == client(other=key).folder == client().folder


def test_the_table_says_what_was_asked_and_answered(lab, client):
    lab.setup(seed=7)
    (answer,) = questions.completions(client(input_price=2.0, output_price=8.0), asked(1))
    (row,) = without_probes(client().folder)
    request = json.loads(row["request"])
    assert request == {
        "url": lab.url,
        "route": "chat/completions",
        "body": {
            "model": "lab",
            "messages": [{"role": "system", "content": "Answer in a word."}, {"role": "user", "content": "What is 0?"}],
            "max_tokens": 16,
            "temperature": 0.0,
            "seed": 0,
        },
    }
    assert (
        json.loads(row["response"])["choices"][0]["message"]["content"] == row["text"] == answer.text == "It is blue."
    )
    assert (row["outcome"], row["finish_reason"], row["served_model"]) == ("answered", "stop", "lab")
    assert row["system_fingerprint"] == "fp_7"
    assert row["date"] == answer.date
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\+00:00", row["date"])
    assert (row["prompt_tokens"], row["completion_tokens"]) == (answer.prompt_tokens, answer.completion_tokens)
    assert row["cost"] == pytest.approx((2.0 * row["prompt_tokens"] + 8.0 * row["completion_tokens"]) / 1e6)


def test_refusals_and_empty_answers_are_told_apart_and_kept(lab, client):
    lab.setup(refused=0.3, empty=0.3)
    found = questions.completions(client(), asked(40))
    assert {item.outcome for item in found} == {"answered", "empty", "refused"}
    assert all(item.reason == "content_filter" for item in found if item.outcome == "refused")
    assert questions.completions(client(), asked(40)) == found
    assert lab.ledger()["twice"] == 0


def test_in_a_notebook_a_loop_is_running_already(lab, client):
    async def cell() -> list[Completion]:
        return questions.completions(client(), asked(3))

    assert len(asyncio.run(cell())) == 3


@pytest.mark.slow
def test_so_many_at_once_and_no_more(lab, client):
    lab.setup(latency=0.1)  # long beside what it takes to send five
    questions.completions(client(concurrency=5), asked(20))
    assert lab.ledger()["most_under_way"] == 5


@pytest.mark.slow
def test_a_changed_model_is_told(lab, client):
    lab.setup(served=[["lab-v1", 0], ["lab-v2", 10 + NUM_PROBES]])
    item = client(concurrency=1)
    questions.completions(item, asked(15))
    (warning,) = item.warnings()
    assert "lab-v1 (10 answers), lab-v2 (5 answers)" in warning
    again = client()
    questions.completions(again, asked(15))
    assert again.warnings() == [warning]


# Faults ---------------------------------------------------------------------------------------------------------------


def test_faults_cost_no_answer_and_none_is_paid_for_twice(lab, client):
    lab.setup(faults={"429": 0.1, "500": 0.1, "503": 0.1, "cut": 0.1}, fault_attempts=2, retry_after="0", refused=0.05)
    found = questions.completions(client(concurrency=16), asked(120))
    assert {item.outcome for item in found} == {"answered", "refused"}
    ledger = lab.ledger()
    assert (ledger["paid"], ledger["twice"]) == (120 + NUM_PROBES, 0)
    for status in ("429", "500", "503"):
        assert ledger["statuses"][status] >= 10


@pytest.mark.slow
def test_a_server_that_stalls_is_asked_again(lab, client):
    lab.setup(faults={"stall": 0.1}, stall=3.0)
    found = questions.completions(client(timeout=0.5), asked(40))
    assert {item.outcome for item in found} == {"answered"}
    assert lab.ledger()["received"] > 40 + NUM_PROBES


@pytest.mark.slow
def test_what_the_server_asks_for_is_waited_for(lab, client):
    lab.setup(faults={"429": 1.0}, retry_after="0.4")
    started = time.monotonic()
    questions.completions(client(concurrency=1), asked(1))
    assert time.monotonic() - started >= 2 * 0.4  # for the probe, and for the question
    lab.setup(faults={"429": 1.0}, retry_after="86400")
    with pytest.raises(EndpointError, match="429"):  # no wait for a day
        questions.completions(client(), asked(2))


@pytest.mark.slow
def test_what_helps_is_tried_so_often_and_nothing_else_is(lab, client):
    questions.completions(client(), asked(1))
    for status, attempts in (("500", 4), ("429", 4), ("400", 1)):
        lab.setup(faults={status: 1.0}, fault_attempts=99)
        lab.forget()
        with pytest.raises(EndpointError):
            questions.completions(client(concurrency=1, max_retries=3), asked(2)[1:])
        assert lab.ledger()["statuses"] == {status: attempts}


@pytest.mark.slow
def test_a_request_that_is_not_accepted_has_failed_and_is_no_answer(lab, client):
    lab.setup(faults={"400": 0.2})
    item = client()
    found = questions.completions(item, asked(50))
    failed = [answer for answer in found if answer.outcome == "failed"]
    assert 0 < len(failed) < 50
    assert all("made-up" not in answer.text and "Unsupported: this very request" in answer.reason for answer in failed)
    assert len(without_probes(item.folder)) == 50 - len(failed)
    lab.setup()
    again = client()
    assert {answer.outcome for answer in questions.completions(again, asked(50))} == {"answered"}
    assert again.num_asked == len(failed)


@pytest.mark.slow
def test_a_request_at_which_the_server_always_fails_does_not_hold_up_the_others(lab, client):
    lab.setup(faults={"500": 0.05}, fault_attempts=99, latency=0.002)
    found = questions.completions(client(concurrency=4, max_retries=2), asked(60))
    failed = [answer for answer in found if answer.outcome == "failed"]
    assert 0 < len(failed) < 12
    assert all("made-up fault 500" in answer.reason for answer in failed)


# Budgets --------------------------------------------------------------------------------------------------------------


def test_a_budget_counts_questions_and_retries_stand_beside(lab, client, caplog):
    """Of a server that refuses the first attempt at every question."""
    caplog.set_level("INFO", "nonmember")
    lab.setup(faults={"429": 1.0}, retry_after="0")
    item = client(concurrency=4, max_questions=30)
    with pytest.raises(EndpointError, match=r"asking\.max_questions=30 is spent.* 30 answers are kept"):
        questions.completions(item, asked(50))
    spent = item.session.spent
    assert (spent.questions, spent.retries) == (30, 30)
    assert lab.ledger()["statuses"] == {"200": 30, "429": 30}
    assert "requests were sent again 29 times (retries)" in caplog.text, "one more was of the probe"


def test_a_budget_is_that_of_the_process(lab, client):
    first, second = client(max_questions=12), client(max_questions=12)
    second.session = first.session
    questions.completions(first, asked(8))
    with pytest.raises(EndpointError, match=r"asking\.max_questions=12 is spent"):
        questions.completions(second, asked(20))
    assert lab.ledger()["received"] == 12


def test_what_is_found_needs_no_budget_and_no_server(lab, client):
    found = questions.completions(client(), asked(5))
    lab.setup(faults={"503": 1.0}, fault_attempts=99)
    item = client(max_questions=1)
    assert questions.completions(item, asked(5)) == found
    assert item.session.spent.questions == 0


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "limit", "prices"), [("tokens", 2000, {}), ("cost", 0.01, {"input_price": 3.0, "output_price": 12.0})]
)
def test_a_budget_stops_before_it_is_passed(lab, client, name, limit, prices):
    lab.setup(latency=0.005)
    item = client(concurrency=16, **{f"max_{name}": limit}, **prices)
    with pytest.raises(EndpointError, match=rf"budget asking\.max_{name}={limit} is spent"):
        questions.completions(item, asked(400))
    paid = [row["cost"] if prices else row["prompt_tokens"] + row["completion_tokens"] for row in rows(item.folder)]
    assert 0.9 * limit < sum(paid) <= limit
    assert getattr(item.session.spent, name) == pytest.approx(sum(paid))


def test_limits_are_needed_where_something_has_to_be_asked(lab, client):
    nothing = EndpointClient(lab.endpoint(), client()._store, None, Session())
    with pytest.raises(ValueError, match="within limits, and none were given"):
        questions.completions(nothing, asked(1))


# Errors in one sentence -----------------------------------------------------------------------------------------------


def refusal(make: Callable[[], object]) -> str:
    with pytest.raises(EndpointError) as error:
        make()
    assert "\n" not in str(error.value)
    return str(error.value)


def test_a_wrong_key(lab, client, monkeypatch):
    lab.setup(key="sk-right")
    assert "the server refuses the secret in LAB_KEY (401)" in refusal(
        lambda: questions.completions(client(), asked(1))
    )
    monkeypatch.setenv(KEY_VARIABLE, "sk-wrong-and-long")
    said = refusal(lambda: questions.completions(client(), asked(1)))
    assert "(401)" in said
    assert "sk-wrong" not in said
    monkeypatch.setenv(KEY_VARIABLE, "sk-right")
    assert len(questions.completions(client(), asked(1))) == 1


@pytest.mark.slow
def test_an_empty_account(lab, client):
    lab.setup(quota=11)
    said = refusal(lambda: questions.completions(client(concurrency=1), asked(30)))
    assert "no credit left" in said
    assert "11 answers are kept, and the same command goes on from there" in said
    assert len(rows(client().folder)) == lab.ledger()["paid"] == 11


def test_a_damaged_table(lab, client):
    (client().folder / FILE).write_bytes(b"This was a table once. " * 100)
    with pytest.raises(ValueError, match=r"completions\.sqlite cannot be used .* move it away"):
        questions.completions(client(), asked(1))


@pytest.mark.slow
def test_secrets_stay_in_the_environment(lab, client, monkeypatch, tmp_path, caplog):
    secret = "sk-0123456789abcdef"
    monkeypatch.setenv(KEY_VARIABLE, secret)
    lab.setup(key=secret, echoes_key=True, faults={"400": 0.3, "500": 0.2})
    caplog.set_level("DEBUG", "nonmember")
    found = questions.completions(client(), asked(40))
    lab.setup(key=secret, echoes_key=True, faults={"400": 1.0})
    said = refusal(lambda: questions.completions(client(), asked(41)[40:]))
    assert "***" in said
    everything = said + caplog.text + repr(found) + repr(client().endpoint)
    everything += "".join(path.read_bytes().decode("latin-1") for path in tmp_path.rglob("*") if path.is_file())
    assert "***" in everything
    assert secret not in everything


# Several processes ----------------------------------------------------------------------------------------------------

ASKING = """
import sys, json
from pathlib import Path
from nonmember.endpoints import questions
from nonmember.endpoints import Limits, Request
from nonmember.endpoints.client import EndpointClient, Session
from nonmember.endpoints.models import Endpoint
from nonmember.artifacts.store import Store

url, store, number, concurrency = sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])
limits = Limits(concurrency, 30, 4, None, None, None, None, None)
client = EndpointClient(Endpoint(url, "lab", "chat", "LAB_KEY"), Store(store), limits, Session())
requests = [Request(f"d{n}", "q", f"What is {n}?", 16, 0.0, 0) for n in range(number)]
found = questions.completions(client, requests)
print(json.dumps([client.num_asked, client.num_found, sum(one.outcome == "answered" for one in found)]))
"""


@pytest.fixture
def start(lab: RunningLab, tmp_path: Path) -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """start(300, 16): another process that asks so many questions, so many at once."""
    started = []

    def begin(number: int, concurrency: int) -> subprocess.Popen[str]:
        arguments = [lab.url, str(tmp_path / "store"), str(number), str(concurrency)]
        started.append(subprocess.Popen([sys.executable, "-c", ASKING, *arguments], stdout=subprocess.PIPE, text=True))
        return started[-1]

    yield begin
    for process in started:
        process.kill()
        process.wait()


def asked_by_others(number: int) -> list[Request]:
    """As ASKING makes them."""
    return [Request(f"d{n}", "q", f"What is {n}?", 16, 0.0, 0) for n in range(number)]


def kill_after(process: subprocess.Popen[str], lab: RunningLab, paid: int) -> None:
    while lab.ledger()["paid"] < paid:
        assert process.poll() is None, "it came to its end before it could be killed"
        time.sleep(0.01)
    process.kill()
    process.wait()


def settled(lab: RunningLab) -> dict[str, Any]:
    """The ledger when the server has nothing under way any more."""
    while (ledger := lab.ledger())["under_way"]:
        time.sleep(0.01)
    return ledger


def told(process: subprocess.Popen[str]) -> list[int]:
    out, _ = process.communicate(timeout=120)
    return list(json.loads(out.splitlines()[-1]))


@pytest.mark.slow
def test_killed_twice_and_nothing_lost(lab, start, client):
    """Whatever was read is in the table, so all that is lost is what was under way at a kill; and only that is paid for
    again, if at all."""
    number, concurrency = 400, 16
    lab.setup(latency=0.02)
    for paid in (100, 250):
        kill_after(start(number, concurrency), lab, paid)
        lost = settled(lab)["distinct"] - len(rows(client().folder))
        assert 0 <= lost <= concurrency
    last = client(concurrency=concurrency)
    assert {item.outcome for item in questions.completions(last, asked_by_others(number))} == {"answered"}
    ledger = lab.ledger()
    assert last.num_asked + last.num_found >= number
    assert ledger["distinct"] == number + NUM_PROBES == len(rows(client().folder))
    assert ledger["twice"] <= 2 * concurrency


def test_texts_that_cannot_be_sent(lab, client):
    (good,) = asked(1)
    found = questions.completions(client(), [good, replace(good, question="cut \ud83d in two")])
    assert [item.outcome for item in found] == ["answered", "failed"]
    assert found[1].reason == "its text is not valid Unicode"


@pytest.mark.slow
def test_two_processes_share_what_they_pay_for(lab, start, client):
    lab.setup(latency=0.03)
    assert {item.outcome for item in questions.completions(client(), asked_by_others(75))} == {"answered"}
    lab.forget()
    other = start(150, 8)
    while not lab.ledger()["received"]:
        assert other.poll() is None, "it came to its end before it asked"
        time.sleep(0.01)
    ours = client()
    assert {item.outcome for item in questions.completions(ours, asked_by_others(150))} == {"answered"}
    num_asked, _, num_answered = told(other)
    assert num_answered == 150
    assert num_asked + ours.num_asked == 75
    assert lab.ledger()["received"] == 75
