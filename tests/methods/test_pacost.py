"""PaCoST: what it asks for, what it concludes, and the whole way on tiny models."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
import torch
from scipy import stats

import tiny
from made_up_methods import PACOST
from nonmember.audits.keys import audit_keys
from nonmember.audits.question import Audit
from nonmember.audits.record import finished
from nonmember.audits.run import run_audit
from nonmember.corpora import Documents
from nonmember.endpoints.rephrased import Rephrasings, Written
from nonmember.methods import Roles, ScoredDocuments
from nonmember.methods.pacost import IS_IT_CORRECT, REPHRASE
from nonmember.models import Pretrained
from nonmember.models.prompting import answer_ids
from nonmember.observations import AnswerProbabilities
from nonmember.observations.passes import tokens as tokens_module
from nonmember.observations.passes import writing
from nonmember.results.result import AuditResult
from nonmember.scores import AnswerProbability, ScoreInputs
from tiny import jsonl

ROLES = Roles(Pretrained("the/target"), Pretrained("the/reference"), tiny.SUSPECT, seed=9)


# What it asks for ------------------------------------------------------------------------------------------------


def test_it_asks_the_target_about_each_text_and_its_rephrasing():
    (group,) = PACOST.groups(ROLES).values()
    assert group.corpus is ROLES.suspect
    assert list(group.measured) == ["original", "rephrased", "original_no", "rephrased_no"]
    assert {(item.role, item.model) for item in group.measured.values()} == {("target", ROLES.target)}
    assert [item.score.name for item in group.measured.values()] == ["p(Yes)", "p(Yes)", "p(No)", "p(No)"]
    assert all(item.score.asks == IS_IT_CORRECT for item in group.measured.values())
    written = Written(
        tiny.SUSPECT, PACOST.rephraser, REPHRASE, temperature=0.1, max_new_tokens=20, max_tokens=30, seed=9
    )
    assert group.measured["original"].corpus is ROLES.suspect
    assert group.measured["rephrased"].corpus == Rephrasings(tiny.SUSPECT, written, 0.5, 2.0)


def test_given_rephrasings_take_the_place_of_the_rephraser():
    given = tiny.texts("moss")
    for rephraser in (None, PACOST.rephraser):
        (group,) = replace(PACOST, rephraser=rephraser, rephrasings=given).groups(ROLES).values()
        assert group.measured["rephrased"].corpus.texts is given


def test_settings_that_make_no_sense_are_refused_at_once():
    for changes, message in [({"rephraser": None}, "needs a rephraser, or rephrasings")]:
        with pytest.raises(ValueError, match=message):
            replace(PACOST, **changes)
    with pytest.raises(ValueError, match="answer must be one of Yes, No"):
        AnswerProbability(IS_IT_CORRECT, "Maybe")


# What it concludes -----------------------------------------------------------------------------------------------


def confidences(effect: float = 0.0, *, n: int = 60, level: float = 0.6, mass: float = 0.9) -> dict[str, np.ndarray]:
    """Yes and No share `mass` of the probability; texts win `effect` over their rephrasings."""
    rng = np.random.default_rng(0)
    common = level + 0.05 * rng.normal(size=n)
    yes = {"original": common + effect + 0.02 * rng.normal(size=n), "rephrased": common + 0.02 * rng.normal(size=n)}
    values = {name: np.clip(mass * item, 0, mass) for name, item in yes.items()}
    return values | {f"{name}_no": mass - item for name, item in values.items()}


def outcome_of(values: dict[str, np.ndarray], **changes):
    ids = tuple(f"d{index}" for index in range(len(values["original"])))
    method = replace(PACOST, **changes)
    return method.test({"suspect": ScoredDocuments(ids, values)}, np.random.default_rng(1))


def test_a_planted_difference_is_found():
    values = confidences(0.03)
    outcome = outcome_of(values)
    expected = stats.ttest_rel(values["original"], values["rephrased"], alternative="greater")
    assert (outcome.statistic, outcome.p_value) == pytest.approx((expected.statistic, expected.pvalue))
    assert outcome.verdict == "evidence_of_membership"
    assert "provided that rephrasing by itself costs no confidence" in outcome.allowed_claim
    assert outcome.details.to_json()["mean_difference"] == pytest.approx(0.027, abs=0.01)
    assert outcome.details.to_json()["median_answer_mass"] == pytest.approx(0.9)
    shares = (values[name] / 0.9 for name in ("original", "rephrased"))
    normalised = stats.ttest_rel(*shares, alternative="greater")
    assert outcome.details.to_json()["normalised_p_value"] == pytest.approx(normalised.pvalue)
    (control,) = outcome.warnings
    assert "3.0e-13" in control
    assert "negative control is compulsory" in control


@pytest.mark.parametrize("effect", [0.0, -0.03])
def test_no_evidence_is_inconclusive_and_never_the_opposite(effect):
    outcome = outcome_of(confidences(effect))
    assert outcome.p_value > 0.05
    assert outcome.verdict == "inconclusive"
    assert "not evidence that the dataset was not used" in outcome.allowed_claim
    assert json.loads(json.dumps(outcome.details.to_json(), allow_nan=False)) == outcome.details.to_json()


def test_p_equal_to_alpha_is_not_below_it():
    values = confidences(0.005)
    p_value = outcome_of(values).p_value
    assert outcome_of(values, alpha=p_value).verdict == "inconclusive"
    assert outcome_of(values, alpha=p_value * 1.001).verdict == "evidence_of_membership"


def test_equal_differences_prove_nothing():
    values = confidences()
    values["original"] = values["rephrased"] + 0.125
    outcome = outcome_of(values)
    assert (outcome.p_value, outcome.verdict) == (1.0, "inconclusive")
    assert outcome.warnings[0].startswith("All 60 differences equal 0.125")


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        (confidences(0.03, mass=0.01), "its median probability of Yes or No is 0.01, below 0.05"),
        (confidences(0.03, n=29), "29 documents with a rephrasing are left; the test needs at least 30"),
        (
            {name: np.full(40, value) for name, value in zip(confidences(), (0.5, 0.4, 0.2, 0.3), strict=True)},
            "do not depend on the text: all are 0.5",
        ),
        ({name: confidences(0.03)[name.removesuffix("_no")] for name in confidences()}, "begin with the same token"),
    ],
)
def test_a_target_that_does_not_answer_is_invalid(values, reason):
    outcome = outcome_of(values)
    assert outcome.verdict == "invalid"
    assert any(reason in warning for warning in outcome.warnings)
    assert "nothing may be concluded" in outcome.allowed_claim


def test_no_probability_at_all_has_no_shares():
    values = confidences(0.03)
    values["rephrased"][0] = values["rephrased_no"][0] = 0.0
    assert outcome_of(values).details.to_json()["normalised_p_value"] is None


# The whole way ---------------------------------------------------------------------------------------------------

VOCABULARY = tiny.texts("and Yes and No " * 300, *tiny.random_texts(40, seed=1))
LONG = {"max_position_embeddings": 4096}


@pytest.fixture
def audit(tmp_path) -> Audit:
    """A target and a rephraser of random weights: the answers have some 2/280 of the probability, and the end of a text
    1/280 of each token's."""
    documents = write_jsonl(tmp_path / "suspect.jsonl", tiny.random_texts(40, seed=2))
    target, rephraser = (tiny.scratch(seed, VOCABULARY, **LONG) for seed in (1, 2))
    writing = {"rephraser": rephraser, "temperature": 1.0, "max_new_tokens": 60}
    method = replace(PACOST, **writing, min_answer_mass=0.0, min_length_ratio=0.0, max_length_ratio=50.0)
    return Audit(target, tiny.scratch(3), documents, method, seed=5, corpus_label="suspect texts")


def write_jsonl(path: Path, texts: list[str]) -> Documents:
    path.write_text("".join(json.dumps({"id": f"d{n}", "text": text}) + "\n" for n, text in enumerate(texts)))
    return jsonl(str(path), id_field="id", text_field="text")


def run(audit: Audit, folder: Path, name: str = "one", store: str = "store", **compute) -> AuditResult:
    return run_audit(audit, tiny.builder(folder / store, **compute), folder / name)


def with_given(audit: Audit, path: Path, texts: list[str]) -> Audit:
    """The same question with rephrasings from a file."""
    method = replace(audit.method, rephraser=None, rephrasings=write_jsonl(path, texts))
    return replace(audit, method=replace(method, min_length_ratio=0.5, max_length_ratio=2.0))


@pytest.mark.slow
def test_with_a_rephraser(audit, tmp_path, monkeypatch):
    result = run(audit, tmp_path)
    assert (result.question.method, result.statistics.num_documents + result.exclusions.num_documents) == ("pacost", 40)
    assert result.question.settings["rephraser"] == "gpt_neox-scratch"
    assert result.provenance.keys.keys() == {"target", "corpus", "rephrased", "audit"}
    assert result.health.capability["target"].keys() == {"num_parameters"}
    assert (result.statistics.num_tokens, result.question.reference) == (None, None)
    assert result.provenance.made["tokens_observed"] == 2 * (40 + result.statistics.num_documents)
    assert 0 < result.statistics.details["median_answer_mass"] < 0.1
    assert any("compulsory" in warning for warning in result.verdict.warnings)
    table = pq.read_table(tmp_path / "one" / "scores.parquet")
    assert table.column_names == ["doc_id", "original", "rephrased", "original_no", "rephrased_no"]

    anew = run(audit, tmp_path, "anew", "another store", max_batch_tokens=4096)
    assert anew.statistics.p_value == pytest.approx(result.statistics.p_value, rel=1e-3)
    assert anew.provenance.keys == result.provenance.keys

    def never(*_, **__):
        raise AssertionError("this was made already")

    monkeypatch.setattr(writing, "write", never)
    monkeypatch.setattr(tokens_module, "observe_answers", never)
    found = run(audit, tmp_path, "found")
    assert (found.statistics.p_value, found.provenance.made["tokens_observed"]) == (result.statistics.p_value, 0)
    shop = tiny.builder(tmp_path / "store")
    assert finished(tmp_path / "one", audit_keys(audit, shop)["audit"]) == result
    other = replace(audit, method=replace(audit.method, rephraser=tiny.scratch(4, VOCABULARY, **LONG)))
    assert finished(tmp_path / "one", audit_keys(other, shop)["audit"]) is None


@pytest.mark.slow
def test_confidences_are_those_of_the_models_own_logits(audit, tmp_path):
    texts = tiny.random_texts(40, seed=7)
    asked = with_given(audit, tmp_path / "given.jsonl", texts)
    result = run(asked, tmp_path)
    loaded = tiny.builder(tmp_path / "store").get(asked.target)
    yes, no = answer_ids(loaded.tokenizer, IS_IT_CORRECT)
    assert yes != no
    assert loaded.tokenizer.decode([yes, no]) == " Yes No"
    rows = pq.read_table(tmp_path / "one" / "scores.parquet").to_pylist()
    assert len(rows) == result.statistics.num_documents
    for row in rows:
        number = int(row["doc_id"][1:])
        for name, text in (("original", tiny.random_texts(40, seed=2)[number]), ("rephrased", texts[number])):
            cut = loaded.tokenizer.decode(loaded.tokenizer(text)["input_ids"][:30])
            prompt = f"{IS_IT_CORRECT.instruction}\n\nText: {cut}\nResponse:"
            with torch.no_grad():
                logits = loaded.model(torch.tensor([loaded.tokenizer(prompt)["input_ids"]])).logits[0, -1]
            expected = logits.softmax(-1)
            assert row[name] == pytest.approx(float(expected[yes]), abs=1e-7, rel=1e-5)
            assert row[f"{name}_no"] == pytest.approx(float(expected[no]), abs=1e-7, rel=1e-5)


@pytest.mark.slow
def test_rejected_rephrasings_leave_the_comparison_and_are_counted(audit, tmp_path):
    texts = tiny.random_texts(40, seed=2)
    given = [*texts[:1], "", *(" ".join(reversed(text.split())) for text in texts[2:39]), texts[39] * 5]
    result = run(with_given(audit, tmp_path / "given.jsonl", given), tmp_path)
    counts = {name: number for name, number in result.exclusions.dropped.items() if name.startswith("rephrased")}
    reversed_alike = sum(text.split() == text.split()[::-1] for text in texts[2:39])
    assert counts == {
        "rephrased: empty": 1,
        "rephrased: equal to the original": 1 + reversed_alike,
        "rephrased: too long": 1,
    }
    assert result.exclusions.num_documents == sum(counts.values())
    assert result.exclusions.documents["suspect"]["d1"] == "rephrased: no text of this document to compare with"
    assert result.statistics.num_documents == 40 - result.exclusions.num_documents
    assert any("could not be scored" in warning for warning in result.verdict.warnings)
    assert result.verdict.decision in ("inconclusive", "evidence_of_membership")


def test_rephrasings_of_which_none_can_be_used(audit, tmp_path):
    with pytest.raises(
        ValueError, match=r"40 documents none can be used \(equal to the original: 40\)\. Choose a model"
    ):
        run(with_given(audit, tmp_path / "given.jsonl", tiny.random_texts(40, seed=2)), tmp_path)


@pytest.mark.slow
def test_a_model_that_does_not_answer_is_invalid(audit, tmp_path):
    method = replace(audit.method, min_answer_mass=0.05)
    result = run(replace(audit, method=method), tmp_path)
    assert result.verdict.decision == "invalid"
    assert any("does not answer the question" in warning for warning in result.verdict.warnings)


@pytest.mark.slow
def test_a_context_too_short_for_the_prompt_is_one_sentence(audit, tmp_path):
    short = replace(audit, target=tiny.scratch(1, VOCABULARY))
    with pytest.raises(ValueError, match=r"gpt_neox-scratch cannot be asked\. It reads at most 128 tokens"):
        run(with_given(short, tmp_path / "given.jsonl", tiny.random_texts(40, seed=7)), tmp_path)
    method = replace(audit.method, rephraser=tiny.scratch(2, VOCABULARY))
    with pytest.raises(ValueError, match=r"gpt_neox-scratch cannot write\. It reads at most 128 tokens"):
        run(replace(audit, method=method), tmp_path)


def test_a_changed_file_of_rephrasings_is_another_question(audit, tmp_path):
    keys = []
    for seed in (7, 8):
        asked = with_given(audit, tmp_path / "given.jsonl", tiny.random_texts(40, seed=seed))
        keys.append(audit_keys(asked, tiny.builder(tmp_path / "store")))
    assert keys[0]["rephrased"] != keys[1]["rephrased"]
    assert keys[0]["audit"] != keys[1]["audit"]


@pytest.mark.slow
def test_an_answer_is_read_from_its_row(audit, tmp_path):
    shop = tiny.builder(tmp_path / "store")
    answers = shop.get(AnswerProbabilities(audit.target, audit.suspect, IS_IT_CORRECT, max_tokens=30))
    scores = [AnswerProbability(IS_IT_CORRECT, answer)(ScoreInputs(answers)) for answer in ("Yes", "No")]
    np.testing.assert_allclose(np.log([item.values for item in scores]).T.ravel(), answers.log_prob, rtol=1e-6)
    assert not scores[0].reasons
