"""PaCoST for questions: what it asks for, and the whole way on tiny models."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
import torch
from scipy import stats

import made_up_methods
import tiny
from nonmember.audits.keys import audit_keys
from nonmember.audits.question import Audit
from nonmember.audits.record import finished
from nonmember.audits.run import run_audit
from nonmember.corpora import Jsonl
from nonmember.generated.rephrased import Answered, Rephrasings, Written
from nonmember.methods import PacostQa, Roles, ScoredDocuments
from nonmember.methods.pacost import ANSWER, IS_THE_ANSWER_CORRECT, REPHRASE_QUESTION
from nonmember.models import Pretrained
from nonmember.models.prompting import answer_ids
from nonmember.observations.passes import tokens as tokens_module
from nonmember.observations.passes import writing
from nonmember.results.result import AuditResult

ROLES = Roles(Pretrained("the/target"), Pretrained("the/reference"), tiny.SUSPECT, seed=9)
PACOST = PacostQa(**vars(made_up_methods.PACOST) | {"max_tokens": 60}, max_answer_tokens=12)


def test_it_asks_about_each_question_with_the_targets_own_answer():
    (group,) = PACOST.groups(ROLES).values()
    assert group.corpus is ROLES.suspect
    assert list(group.measured) == ["original", "rephrased", "original_no", "rephrased_no"]
    assert all(item.score.asks == IS_THE_ANSWER_CORRECT for item in group.measured.values())
    rephrased = Rephrasings(
        tiny.SUSPECT,
        Written(tiny.SUSPECT, PACOST.rephraser, REPHRASE_QUESTION, 0.1, max_new_tokens=20, max_tokens=48, seed=9),
        0.5,
        2.0,
    )
    for name, questions in (("original", tiny.SUSPECT), ("rephrased", rephrased)):
        answers = Written(
            questions, ROLES.target, ANSWER, 0.0, max_new_tokens=12, max_tokens=48, seed=9, may_be_cut=True
        )
        assert group.measured[name].corpus == Answered(questions, answers)


def test_how_questions_are_shown():
    assert ANSWER.request("What is 1+1?") == "Question: What is 1+1?\nAnswer:"
    pair = tiny.build(Answered(tiny.texts("What  is\n1+1?"), tiny.texts(" 2\n")))
    assert IS_THE_ANSWER_CORRECT.request(pair.documents[0].text) == "Question: What is 1+1?\nAnswer: 2\nResponse:"


def test_questions_without_an_answer_are_dropped_and_counted():
    corpus = tiny.build(Answered(tiny.texts("one?", "two?", "three?"), tiny.texts("1", "  ")))
    assert corpus.doc_ids == ("d0",)
    assert corpus.dropped == {"no answer": 2}


def test_settings_that_make_no_sense_are_refused():
    for number in (0, 60, 1.5, True):
        with pytest.raises(ValueError, match=r"max_answer_tokens must be a whole number .*; got"):
            replace(PACOST, max_answer_tokens=number)


def test_answers_below_the_listed_ones_count_as_nothing_and_are_counted():
    """As an endpoint gives them that lists a few of the likeliest tokens: probability 0."""
    rng = np.random.default_rng(0)
    values = {name: rng.uniform(0.3, 0.6, 40) for name in ("original", "rephrased")}
    values |= {f"{name}_no": np.zeros(40) for name in ("original", "rephrased")}
    values["original"][:3] = 0
    outcome = PACOST.test({"suspect": ScoredDocuments(tuple(map(str, range(40))), values)}, rng)
    assert outcome.details.to_json()["num_not_listed"] == 83
    expected = stats.ttest_rel(values["original"], values["rephrased"], alternative="greater")
    assert outcome.p_value == pytest.approx(expected.pvalue)


# The whole way ---------------------------------------------------------------------------------------------------

VOCABULARY = tiny.texts("and Yes and No " * 300, *tiny.random_texts(40, seed=1))
LONG = {"max_position_embeddings": 4096}


@pytest.fixture
def audit(tmp_path) -> Audit:
    path = tmp_path / "questions.jsonl"
    texts = [f"{text}?" for text in tiny.random_texts(40, seed=2)]
    path.write_text("".join(json.dumps({"id": f"q{n}", "text": text}) + "\n" for n, text in enumerate(texts)))
    target, rephraser = (tiny.scratch(seed, VOCABULARY, **LONG) for seed in (1, 2))
    writing = {"rephraser": rephraser, "temperature": 1.0, "max_new_tokens": 800}
    method = replace(PACOST, **writing, min_answer_mass=0.0, min_length_ratio=0.0, max_length_ratio=50.0)
    questions = Jsonl(str(path), id_field="id", text_field="text")
    return Audit(target, tiny.scratch(3), questions, method, seed=5, corpus_label="questions")


def run(audit: Audit, folder: Path, name: str = "one") -> AuditResult:
    return run_audit(audit, tiny.builder(folder / "store"), folder / name)


@pytest.mark.slow
def test_on_tiny_models(audit, tmp_path, monkeypatch):
    result = run(audit, tmp_path)
    assert (result.question.method, result.statistics.num_documents + result.exclusions.num_documents) == (
        "pacost_qa",
        40,
    )
    assert result.statistics.num_documents >= 30
    assert result.provenance.keys.keys() == {"target", "corpus", "original", "rephrased", "audit"}
    assert any("compulsory" in warning for warning in result.verdict.warnings)
    rows = {row["doc_id"]: row for row in pq.read_table(tmp_path / "one" / "scores.parquet").to_pylist()}

    # The confidence, by the model's own logits, in the answer that it writes itself.
    shop = tiny.builder(tmp_path / "store")
    loaded = shop.get(audit.target)
    yes, _ = answer_ids(loaded.tokenizer, IS_THE_ANSWER_CORRECT)
    (group,) = audit.method.groups(audit.roles).values()
    pairs = shop.get(group.measured["original"].corpus)
    asked = next(item for item in shop.get(audit.suspect).documents if item.doc_id in rows)
    prompt = f"{ANSWER.instruction}\n\nQuestion: {asked.text}\nAnswer:"
    ids = loaded.tokenizer(prompt, return_tensors="pt")
    written = loaded.model.generate(**ids, max_new_tokens=12, do_sample=False, pad_token_id=0)
    answer = loaded.tokenizer.decode(written[0, ids["input_ids"].shape[1] :], skip_special_tokens=True)
    (pair,) = (item.text for item in pairs.documents if item.doc_id == asked.doc_id)
    assert pair == f"Question: {asked.text}\nAnswer: {' '.join(answer.split())}"
    if len(loaded.tokenizer(pair)["input_ids"]) <= audit.method.max_tokens:
        judged = f"{IS_THE_ANSWER_CORRECT.instruction}\n\n{pair}\nResponse:"
        with torch.no_grad():
            logits = loaded.model(**loaded.tokenizer(judged, return_tensors="pt")).logits[0, -1]
        assert rows[asked.doc_id]["original"] == pytest.approx(float(logits.softmax(-1)[yes]), rel=1e-4)

    def never(*_, **__):
        raise AssertionError("this was made already")

    monkeypatch.setattr(writing, "write_texts", never)
    monkeypatch.setattr(tokens_module, "observe_answers", never)
    found = run(audit, tmp_path, "found")
    assert (found.statistics.p_value, found.provenance.keys) == (result.statistics.p_value, result.provenance.keys)
    assert finished(tmp_path / "one", audit_keys(audit, tiny.builder(tmp_path / "store"))["audit"]) == result


@pytest.mark.slow
def test_what_was_rejected_is_counted(audit, tmp_path):
    given = tmp_path / "given.jsonl"
    texts = ["", *(f"{text}, is it?" for text in tiny.random_texts(40, seed=3)[1:])]
    given.write_text("".join(json.dumps({"id": f"q{n}", "text": text}) + "\n" for n, text in enumerate(texts)))
    method = replace(audit.method, rephraser=None, rephrasings=Jsonl(str(given), id_field="id", text_field="text"))
    result = run(replace(audit, method=method), tmp_path)
    assert result.exclusions.dropped["rephrased: empty"] == 1
    assert "q0" in result.exclusions.documents["suspect"]


def test_the_key_names_what_is_written_without_writing_it(audit, tmp_path, monkeypatch):
    def never(*_, **__):
        raise AssertionError("a key must not cost a model's writing")

    monkeypatch.setattr(writing, "write_texts", never)
    other = replace(audit, method=replace(audit.method, rephraser=tiny.scratch(4, VOCABULARY, **LONG)))
    keys = [audit_keys(item, tiny.builder(tmp_path / "store")) for item in (audit, other)]
    assert keys[0]["original"] == keys[1]["original"]
    assert keys[0]["rephrased"] != keys[1]["rephrased"]
    assert keys[0]["audit"] != keys[1]["audit"]
