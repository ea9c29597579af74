"""method=auto: its parts are audits like any other, and the joined result links them."""

from __future__ import annotations

import hashlib
import json

import pytest

from command_line import rows_of, write_rows
from nonmember.config.compose import composed
from nonmember.config.given import given
from nonmember.config.parts import parts_of
from nonmember.config.runs import builder_of
from tiny import random_texts


@pytest.fixture
def words(make_model, tmp_path) -> list[str]:
    """PRISM without gates, and LLM-DI, as parts of an audit."""
    for name, seed in (("suspect", 2), ("heldout", 3)):
        write_rows(tmp_path / f"{name}.jsonl", rows_of(random_texts(70, seed=seed)))
    return [
        "world=micro",
        "model@target=pretrained",
        f"target.path={make_model(0)}",
        "model@reference=pretrained",
        f"reference.path={make_model(1)}",
        "data=jsonl",
        "data.path=suspect.jsonl",
        "+data@data.heldout=jsonl",
        "data.heldout.path=heldout.jsonl",
        "gates=off",
        "logger=none",
        "method=auto",
        "+method.given.prism.num_resamples=200",
        "+method.given.prism.distillation.max_tokens=64",
        "+method.given.prism.max_tokens=64",
        "+method.given.llm_di.max_tokens=64",
        "+method.given.llm_di.num_steps=50",
    ]


@pytest.fixture
def auto(nonmember, words, tmp_path):
    """auto(...): what the command printed, and the folder of the joined result."""

    def run(*more: str):
        done = nonmember("audit", *words, *more)
        folders = [path.parent for path in tmp_path.glob("outputs/audits/*/*/result.json")]
        return done, folders[0] if folders else None

    return run


@pytest.mark.slow
def test_the_parts_are_linked_and_joined(auto, nonmember):
    said, folder = auto("method.methods=[prism,llm_di,order]")
    assert said.status == 0, said.err
    result = json.loads((folder / "result.json").read_text())
    details = result["statistics"]["details"]
    parts = {item["method"]: item for item in details["parts"]}
    assert list(parts) == ["blind", "llm_di", "order", "prism"], "cheapest first, the texts before all"
    for name in ("blind", "llm_di", "prism"):
        path = folder / parts[name]["result"]
        own = json.loads(path.read_text())
        assert parts[name]["sha256"] == hashlib.sha256(path.read_bytes()).hexdigest()
        assert (own["verdict"]["decision"], own["question"]["method"]) == (parts[name]["verdict"], name)
    assert "left_out" in parts["order"]
    assert any(warning.startswith("order was left out: ") for warning in result["verdict"]["warnings"])
    assert details["families"]["non_membership"]["parts"] == {"prism": parts["prism"]["p_value"]}
    assert details["families"]["membership"]["parts"] == {"llm_di": parts["llm_di"]["p_value"]}
    assert (result["question"]["method"], result["question"]["target"]) == ("auto", "tiny0")
    page = (folder / "audit.html").read_text()
    linked = '<a href="./parts/prism/audit.html">parts/prism/result.json</a>'
    assert all(words in page for words in ("Parts", linked, "left out:"))
    assert "p for not used (Holm)" in said.out
    again, _ = auto("method.methods=[prism,llm_di,order]", "dry_run=true")
    assert "method=auto runs nothing more.\n  with a result already: blind, llm_di, prism\n" in again.out
    bundled = nonmember("bundle", folder, "--out", "b.zip", "--new-key", "k.key")
    assert "joins several audits: its parts are bundled" in bundled.err
    assert "Bundled 3 audits" in bundled.out
    verified = nonmember("verify", "b.zip", "--signer", "k.key.pub")
    assert (verified.status, "the arithmetic of blind is not implemented" in verified.out) == (3, True), verified.out
    again, _ = auto("method.methods=[prism,llm_di,order]")
    assert "models trained: 0" in again.out
    assert json.loads((folder / "result.json").read_text())["provenance"]["keys"] == result["provenance"]["keys"]
    listed = nonmember("table", "outputs/audits").out
    assert all(f"({name}, a part of auto) │ 70 │" in listed for name in ("blind", "llm_di", "prism"))


@pytest.mark.slow
def test_the_budget_leaves_out_what_exceeds_it(auto):
    said, folder = auto("method.methods=[prism,llm_di]", "method.max_models=0")
    assert said.status == 0, said.err
    details = json.loads((folder / "result.json").read_text())["statistics"]["details"]
    assert {item["method"]: item.get("left_out") for item in details["parts"]} == {
        "blind": None,
        "llm_di": None,
        "prism": "over the budget (max_models 0; with it 1)",
    }
    assert "non_membership" not in details["families"]


def test_the_order_test_is_taken_where_the_data_say_that_the_order_is_public(words, tmp_path, monkeypatch):
    """None of the parts is composed."""
    monkeypatch.chdir(tmp_path)
    write_rows(tmp_path / "file.jsonl", rows_of(random_texts(110, seed=4)))

    def compose(*_):
        raise ValueError

    def taken(*more):
        with composed("audit", [*words, "data.path=file.jsonl", "method.max_models=0", *more]) as (config, folder):
            return {part.method for part in parts_of(given(config), folder, compose, builder_of(config))}

    assert "order" in (parts := taken("data=ordered"))
    assert "sampled_completion" not in parts, "weights say more than what the target can be made to write, in less time"
    assert "order" not in taken("data=ordered", "data.in_public_order=false")


@pytest.mark.slow
def test_a_dry_run_counts_the_parts(auto):
    said, folder = auto("method.methods=[prism,llm_di,order]", "method.max_models=0", "dry_run=true")
    assert (said.status, folder) == (0, None), said.err
    assert "method=auto runs blind, llm_di." in said.out
    assert "without prism: over the budget (max_models 0; with it 1)" in said.out
    assert "without order: " in said.out
    assert "models" not in said.out.split("Audits: 1;")[0].replace("models trained", ""), "no distilled reference"
    none, _ = auto("method.methods=[prism]", "method.max_models=0", "dry_run=true")
    assert none.status == 1
    assert "No method would be run by method=auto. prism: over the budget" in none.err


def test_a_seal_of_several_questions_is_refused_when_it_is_written(nonmember):
    refused = nonmember("seal", "--new-key", "k.key", "--out", "seal.json", "world=micro", "method=auto")
    assert refused.status == 1
    assert "method=auto runs several" in refused.err


@pytest.mark.slow
def test_what_cannot_be_run_by_the_advised_score_goes_by_the_next(auto, make_model):
    """The default compares tokens of one tokenizer; losses need none."""
    other = make_model(1, words=("alder", "birch", "cedar"))
    said, folder = auto("method.methods=[difference_in_differences]", f"reference.path={other}")
    assert said.status == 0, said.err
    result = json.loads((folder / "parts/difference_in_differences/result.json").read_text())
    assert result["question"]["score"] == "loss"
    assert "difference_in_differences went by other settings (loss). Only " in said.out
    again, _ = auto("method.methods=[difference_in_differences]", f"reference.path={other}")
    assert (again.status, again.out.count("went by other settings (loss)")) == (0, 1), "the same when started again"


@pytest.mark.slow
def test_nothing_to_run_is_said(auto):
    said, folder = auto("method.methods=[prism]", "method.max_models=0")
    assert (said.status, folder) == (1, None)
    assert "No method could be run by method=auto. prism: over the budget" in said.err
