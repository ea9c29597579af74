"""method=auto: at most one test for each answer, audits below its folder, and what is lacking where none is."""

from __future__ import annotations

import json

import pytest

from command_line import rows_of, write_rows
from tiny import random_texts

SETTINGS = [
    "+method.given.prism.num_resamples=200",
    "+method.given.prism.distillation.max_tokens=64",
    "+method.given.prism.max_tokens=64",
    "+method.given.llm_di.max_tokens=64",
    "+method.given.llm_di.num_steps=50",
    "+method.given.difference_in_differences.max_tokens=64",
]


@pytest.fixture
def auto(nonmember, make_model, tmp_path):
    """auto(...): what the command printed, the result, and the folder."""
    for name, seed in (("suspect", 2), ("heldout", 3)):
        write_rows(tmp_path / f"{name}.jsonl", rows_of(random_texts(70, seed=seed)))

    def run(*words):
        target = ["model@target=pretrained", f"target.path={make_model(0)}", "data=jsonl", "data.path=suspect.jsonl"]
        done = nonmember("audit", "method=auto", "world=micro", "gates=off", "logger=none", *target, *SETTINGS, *words)
        assert done.status == 0, done.err
        found = sorted(tmp_path.glob("outputs/audits/*/*/result.json"), key=lambda path: path.stat().st_mtime)
        return done, json.loads(found[-1].read_text()) if found else None, found[-1].parent if found else None

    return run


@pytest.fixture
def reference(make_model):
    return ["model@reference=pretrained", f"reference.path={make_model(1)}"]


HELDOUT = ["+data@data.heldout=jsonl", "data.heldout.path=heldout.jsonl"]


@pytest.mark.slow
def test_one_test_for_each_answer(auto, reference, nonmember):
    said, result, folder = auto(*reference, *HELDOUT)
    tests = result["statistics"]["details"]["tests"]
    assert {claim: item["method"] for claim, item in tests.items()} == {
        "membership": "difference_in_differences",
        "non_membership": "prism",
    }
    assert sorted(path.parent.name for path in folder.glob("parts/*/result.json")) == [
        "blind",
        *sorted(item["method"] for item in tests.values()),
    ]
    for item in tests.values():
        own = json.loads((folder / item["result"]).read_text())
        assert (own["statistics"]["p_value"], own["verdict"]["decision"]) == (item["p_value"], item["verdict"])
        assert own["provenance"]["keys"]["audit"] == item["audit"]
        assert f"p = {item['p_value']:.2g} by {item['method']}" in result["verdict"]["allowed_claim"]
    assert result["question"]["target"] == "tiny0"
    page = (folder / "audit.html").read_text()
    assert all(f'href="parts/{item["method"]}/audit.html"' in page for item in tests.values())
    assert 'href="../../audit.html"' in (folder / "parts/prism/audit.html").read_text()
    assert 0 <= result["statistics"]["details"]["largest_blind_auc"] <= 1
    assert "models trained: 1" in said.out
    again, same, _ = auto(*reference, *HELDOUT)
    assert "models trained: 0" in again.out
    assert same == result, "nothing is made again"
    planned, _, _ = auto(*reference, *HELDOUT, "dry_run=true")
    assert "Audits: 3; 3 with a result, 0 to be run." in planned.out
    bundled = nonmember("bundle", folder, "--out", "b.zip", "--new-key", "k.key")
    assert "Bundled 3 audits" in bundled.out
    listed = nonmember("table", "outputs/audits").out
    assert "prism" not in listed.partition("warning")[0], "its parts are on its page"


@pytest.mark.slow
def test_with_a_target_alone_it_says_what_is_lacking(auto):
    said, result, folder = auto("reference=null")
    assert result["verdict"]["decision"] == "score_only"
    assert result["answer"]["next"].startswith("data.heldout.path=FILE")
    assert "reference.path=FOLDER" in result["answer"]["next"]
    lacking = result["statistics"]["details"]["lacking"]
    assert "unread text of the same draw" in lacking["membership"]
    assert "a reference model that has certainly not read the texts" in lacking["non_membership"]
    assert lacking["non_membership"] in said.out.replace("\n", " ")
    assert not list(folder.glob("parts/*"))


@pytest.mark.slow
def test_without_unread_text_it_tells_one_side(auto, reference, tmp_path):
    details = auto(*reference)[1]["statistics"]["details"]
    assert [*details["lacking"], *(item["method"] for item in details["tests"].values())] == ["membership", "prism"]
    write_rows(tmp_path / "all.jsonl", rows_of(random_texts(100, seed=2)))
    given = [f"+method.given.order.{item}" for item in ("num_orders=9", "window=64", "stride=32")]
    result = auto("reference=null", "data.path=all.jsonl", "+data.in_public_order=true", *given)[1]
    assert result["statistics"]["details"]["tests"]["membership"]["method"] == "order"


@pytest.mark.slow
def test_sets_that_text_tells_apart_are_not_compared(auto, tmp_path):
    write_rows(tmp_path / "other.jsonl", rows_of([text.upper() + "!" for text in random_texts(70, seed=3)]))
    words = ["max_layout_auc=null", "+data@data.heldout=jsonl", "data.heldout.path=other.jsonl", "reference=null"]
    _, result, folder = auto(*words)
    assert "Text alone tells the suspect" in result["statistics"]["details"]["lacking"]["membership"]
    assert [path.name for path in folder.glob("parts/*")] == ["blind"]


@pytest.mark.slow
def test_what_cannot_be_run_by_the_best_score_goes_by_the_next(auto, make_model):
    """The default of the difference in differences compares tokens of one tokenizer; losses need none."""
    other = make_model(1, words=("alder", "birch", "cedar"))
    _, result, folder = auto("model@reference=pretrained", f"reference.path={other}", *HELDOUT)
    own = json.loads((folder / "parts/difference_in_differences/result.json").read_text())
    assert own["question"]["score"] == "loss"
    assert "difference_in_differences" in result["statistics"]["details"]["passed_over"]


def test_a_seal_of_several_questions_is_refused_when_it_is_written(nonmember):
    refused = nonmember("seal", "--new-key", "k.key", "--out", "seal.json", "world=micro", "method=auto")
    assert refused.status == 1
    assert "method=auto runs several" in refused.err
