"""The command line with a model behind a server: it works, it resumes, and every mistake is one sentence."""

from __future__ import annotations

import json
import signal
from collections.abc import Callable
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from test_cli import in_one_sentence
from test_interruption import signal_at

from command_line import Said, only, rows_of, write_rows
from lab_server.running import KEY_VARIABLE, RunningLab, running_model

LETTERS = "bdfgklmnprst"


@pytest.fixture(autouse=True)
def no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("openai._base_client.INITIAL_RETRY_DELAY", 0.001)


@pytest.fixture
def documents(tmp_path: Path, texts: list[str]) -> Path:
    return write_rows(tmp_path / "documents.jsonl", rows_of(texts))


@pytest.fixture
def pacost(lab: RunningLab, documents: Path, make_model: Callable[..., Path]) -> list[str]:
    """PaCoST, target and rephraser behind the same server. (A reference is for other methods.)"""
    rows = [json.loads(line) for line in documents.read_text().splitlines()]
    lab.setup(documents=[{"text": row["text"], "read": True} for row in rows], hit={"judgement": [0.4, 0.6]})
    model = ["url=" + lab.url, "model=lab", f"key_variable={KEY_VARIABLE}"]
    return [
        *("audit", "method=pacost", "logger=none", "data=jsonl", f"data.path={documents}"),
        *("model@reference=pretrained", f"reference.path={make_model(2)}"),
        *("model@target=endpoint", *(f"target.{given}" for given in model)),
        *("model@method.rephraser=endpoint", *(f"method.rephraser.{given}" for given in model)),
    ]


def answers_kept(tmp_path: Path) -> int:
    import sqlite3

    with sqlite3.connect(only(tmp_path, "outputs/store/completions/lab-*/completions.sqlite")) as connection:
        return int(connection.execute("SELECT count(*) FROM completions").fetchone()[0])


@pytest.mark.slow  # ranks over an endpoint go the same way
def test_an_audit_over_an_endpoint(nonmember, lab, pacost, tmp_path):
    said: Said = nonmember(*pacost, "asking.input_price=1", "asking.output_price=2", "asking.max_cost=1")
    assert said.status == 0, said.err
    result = json.loads(only(tmp_path, "outputs/audits/mine/*/result.json").read_text())
    assert (result["question"]["target"], result["health"]["capability"]) == ("lab", {"target": {}})
    assert (
        result["statistics"]["details"]["mean_confidence_original"]
        > result["statistics"]["details"]["mean_confidence_rephrased"]
    )
    assert result["provenance"]["made"]["answers_asked"] == lab.ledger()["paid"]
    paid = lab.ledger()["received"]
    again = nonmember(*pacost, "seed=7", "method.alpha=0.01")
    assert again.status == 0, again.err
    # Another seed: other rephrasings, and what they are judged; the originals are found.
    assert lab.ledger()["received"] < 2 * paid - 30
    assert lab.ledger()["twice"] == 0


@pytest.mark.slow
def test_a_budget_that_is_spent_and_the_way_on(nonmember, lab, pacost, tmp_path):
    said = nonmember(*pacost, "asking.max_questions=50", "asking.concurrency=8")
    error = in_one_sentence(said)
    assert "The budget asking.max_questions=50 is spent" in error
    assert f"{answers_kept(tmp_path)} answers are kept, and the same command goes on from there" in error
    assert lab.ledger()["received"] == 50
    assert nonmember(*pacost).status == 0
    assert lab.ledger()["twice"] == 0


@pytest.mark.slow
def test_interrupted_while_answers_are_under_way(nonmember, lab, pacost, monkeypatch, tmp_path):
    with monkeypatch.context() as patched:
        signal_at(patched, "nonmember.endpoints.table.CompletionsTable.add", signal.SIGTERM, call=20)
        said = nonmember(*pacost, "asking.concurrency=4")
    assert said.status == 143
    assert said.err.startswith("nonmember: interrupted (SIGTERM); ")
    assert not list(tmp_path.glob("outputs/audits/*/*/error.json"))
    assert 19 <= answers_kept(tmp_path) <= 24
    assert nonmember(*pacost).status == 0
    assert lab.ledger()["twice"] <= 4, "what was under way"


@pytest.mark.slow
def test_a_wrong_key(nonmember, lab, pacost, monkeypatch, tmp_path):
    lab.setup(key="sk-right-0123456789", echoes_key=True)
    monkeypatch.setenv(KEY_VARIABLE, "sk-wrong-0123456789")
    error = in_one_sentence(nonmember(*pacost))
    assert "refuses the secret in LAB_KEY (401)" in error
    everything = b"".join(path.read_bytes() for path in (tmp_path / "outputs").rglob("*") if path.is_file())
    assert b"0123456789" not in everything + error.encode()
    assert KEY_VARIABLE.encode() in everything, "the name of the variable is no secret"


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (["target.model=gpt-17"], "The model `gpt-17` does not exist. Correct `model`, `form` or `url`"),
        (["target.url=http://127.0.0.1:9/v1"], "no answer from that address"),
        (["asking.concurrency=0"], "asking.concurrency must be a whole number of at least 1"),
        (["method=prism", "gates=off"], "prism needs whole next-token distributions of the model, but lab at"),
    ],
)
def test_mistakes(nonmember, lab, pacost, change, expected):
    if change[0].startswith("method="):
        pacost = [item for item in pacost if "rephraser" not in item and not item.startswith("method=")]
    assert expected in in_one_sentence(nonmember(*pacost, *change))
    assert lab.ledger()["paid"] == 0


def test_a_reference_that_is_to_be_trained(nonmember, lab, documents, make_model, tmp_path):
    said = nonmember(
        "audit",
        "method=paired_t",
        "logger=none",
        "data=jsonl",
        f"data.path={documents}",
        "model@target=pretrained",
        f"target.path={make_model(1)}",
        "model@reference=endpoint",
        f"reference.url={lab.url}",
        "reference.model=lab",
    )
    assert "paired_t needs weights and tokenizer of the model, but lab at" in in_one_sentence(said)
    assert not list((tmp_path / "outputs/store").glob("observations/*")), "before anything was made"


def test_a_server_that_lies_about_log_probabilities(nonmember, lab, pacost):
    lab.setup(logprobs="ignored")
    error = in_one_sentence(nonmember(*pacost))
    assert "pacost needs the log-probabilities of the likeliest tokens" in error
    assert "answers with text alone" in error
    assert lab.ledger()["paid"] <= 4, "refused before anything else was paid for"


@pytest.mark.slow
def test_a_changed_model_is_a_warning_in_the_result(nonmember, lab, pacost, tmp_path):
    lab.setup(served=[["lab-v1", 0], ["lab-v2", 60]], hit={"judgement": [0.4, 0.6]})
    assert nonmember(*pacost).status == 0
    result = json.loads(only(tmp_path, "outputs/audits/mine/*/result.json").read_text())
    assert any("answered as 2 models: lab-v" in warning for warning in result["verdict"]["warnings"])


@pytest.fixture(scope="module")
def real(make_model: Callable[..., Path]) -> RunningLab:
    with running_model(make_model(1)) as lab:
        lab.setup(model="tiny")
        yield lab


@pytest.mark.slow
def test_scores_over_an_endpoint_are_those_of_the_model(nonmember, real, documents, make_model):
    def scores(*model: object) -> dict[str, list[float]]:
        said = nonmember("score", "data=jsonl", f"data.path={documents}", *model)
        assert said.status == 0, said.err
        return pq.read_table(said.last_line).to_pydict()

    wanted = "scores=[one_pass,lowercase]"
    local = scores("model@target=pretrained", f"target.path={make_model(1)}", wanted)
    found = scores(
        wanted,
        "model@target=endpoint",
        f"target.url={real.url}",
        "target.model=tiny",
        "target.form=completions",
        f"target.key_variable={KEY_VARIABLE}",
    )
    assert set(local) - set(found) == {"min_k_plus_plus", "is_cut", "num_tokens_uncut"}
    for name in ("log_likelihood", "zlib", "lowercase", "min_k"):
        assert found[name] == pytest.approx(local[name], abs=1e-4)


@pytest.mark.slow
def test_ranks_over_an_endpoint_are_those_of_the_model(nonmember, real, documents, make_model, tmp_path):
    """A reference with its weights beside it."""

    def statistic(name: str, *target: object) -> float:
        said = nonmember(
            "audit",
            f"name={name}",
            "method=rank_agreement",
            "score@method.score=loss",
            "logger=none",
            "data=jsonl",
            f"data.path={documents}",
            "method.num_resamples=20",
            "model@reference=pretrained",
            f"reference.path={make_model(2)}",
            *target,
        )
        assert said.status == 0, said.err
        return float(
            json.loads(only(tmp_path, f"outputs/audits/{name}/*/result.json").read_text())["statistics"]["value"]
        )

    local = statistic("local", "model@target=pretrained", f"target.path={make_model(1)}")
    model = (
        f"target.url={real.url}",
        "target.model=tiny",
        "target.form=completions",
        f"target.key_variable={KEY_VARIABLE}",
    )
    assert statistic("asked", "model@target=endpoint", *model) == pytest.approx(local, abs=1e-9)


@pytest.mark.slow  # ranks over an endpoint go the same way
def test_canaries_over_an_endpoint_have_the_ranks_of_the_model(nonmember, real, make_model, tmp_path):
    """It is sent every variant, and gives the log-probabilities of each."""
    documents = write_rows(tmp_path / "own.jsonl", rows_of([" ".join(f"{a}{b}" for a in LETTERS for b in LETTERS)]))
    made = nonmember("plant", f"documents={documents}", "out=planted", "canaries=4", "variants=6")
    assert made.status == 0, made.err

    def details(name: str, *target: object) -> dict[str, object]:
        private = ("data=canaries", "data.path=planted/canaries.private.json")
        done = nonmember("audit", f"name={name}", "method=canary", *private, "logger=none", *target)
        assert done.status == 0, done.err
        result = json.loads(only(tmp_path, f"outputs/audits/{name}/*/result.json").read_text())
        return {"p": result["statistics"]["p_value"], **result["statistics"]["details"]}

    local = details("local", f"target.path={make_model(1)}")
    model = (f"target.url={real.url}", "target.model=tiny", "target.form=completions")
    asked = details("asked", "model@target=endpoint", *model, f"target.key_variable={KEY_VARIABLE}")
    assert (asked["p"], asked["ranks"]) == (local["p"], local["ranks"])
    assert asked["shift"] == pytest.approx(local["shift"], abs=1e-2)
