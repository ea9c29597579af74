"""KDS: what is measured under which model, what is told beside the score, and when there is none."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pyarrow.parquet as pq
import pytest
import torch

import made_up_methods
import tiny
from made_up_methods import ORDER
from nonmember.audits.keys import audit_keys
from nonmember.audits.question import Audit
from nonmember.audits.run import run_audit
from nonmember.corpora import NestedMixture, Sharded
from nonmember.methods import Roles, ScoredDocuments
from nonmember.models import Pretrained
from nonmember.models.exposure import truth_about
from nonmember.scores import Loss, Perplexity, ReferenceDifference, Zlib
from nonmember.stats.kernels import kernel_divergence
from nonmember.training import Trained
from nonmember.training.recipes import AdapterTuning, Lora

SGD = tiny.optimization(optimizer="sgd", learning_rate=0.1, batch_size=4, gradient_clip=None)
LORA = Lora(rank=4, alpha=8, dropout=0.3, target_modules=None)
TUNING = AdapterTuning(SGD, LORA, max_tokens=64, drop_last=False)
FSD_TUNING = AdapterTuning(tiny.optimization(epochs=3), LORA, max_tokens=64, drop_last=True)
KDS = replace(made_up_methods.KDS, training=TUNING)
ALL = replace(KDS, baselines=[Perplexity(), Zlib()], fsd=FSD_TUNING)
ORDER_TEST = replace(ORDER, num_shards=4, num_orders=3)
ROLES = Roles(Pretrained("the/target"), Pretrained("the/reference"), tiny.SUSPECT, 9)
RNG = np.random.default_rng(0)


def vectors(number, *, seed=0, moved=0.0):
    """[documents, 8] of length 1."""
    first, second = (np.random.default_rng(item).normal(size=(number, 8)) for item in (seed, seed + 1))
    together = (first + moved * second).astype(np.float32)
    return together / np.linalg.norm(together, axis=1, keepdims=True)


def documents(before, after, **values):
    embeddings = {"target/embedding": before, "tuned/embedding": after}
    names = tuple(f"d{index}" for index in range(len(before)))
    return {"suspect": ScoredDocuments(names, values, embeddings=embeddings)}


# What is measured -------------------------------------------------------------------------------------------


def test_the_target_is_tuned_on_the_suspect_documents_themselves():
    groups = KDS.groups(ROLES)
    assert list(groups) == ["suspect"]
    measured = groups["suspect"].measured
    assert list(measured) == ["target/embedding", "tuned/embedding"]
    assert [item.model for item in measured.values()] == [
        ROLES.target,
        Trained(ROLES.target, TUNING, tiny.SUSPECT, seed=9),
    ]
    assert {(item.corpus, item.layer, item.dropout_seed) for item in measured.values()} == {(tiny.SUSPECT, -1, None)}


def test_baselines_are_measured_under_the_target_and_the_one_tuned_as_fsd_does():
    measured = ALL.groups(ROLES)["suspect"].measured
    assert list(measured) == [
        *("target/perplexity", "target/zlib", "target/embedding", "tuned/embedding", "fsd/perplexity", "fsd/zlib")
    ]
    assert measured["fsd/zlib"].model == Trained(ROLES.target, FSD_TUNING, tiny.SUSPECT, seed=9)
    assert measured["fsd/zlib"].role == "fsd"
    without = replace(ALL, fsd=None).groups(ROLES)["suspect"].measured
    assert list(without) == list(measured)[:4]


def test_compat_drops_out_in_the_second_pass_alone():
    measured = replace(KDS, compat=True, layer=1).groups(ROLES)["suspect"].measured
    assert [(item.layer, item.dropout_seed) for item in measured.values()] == [(1, None), (1, 9)]


def test_the_order_test_is_over_shards_of_the_same_documents():
    groups = replace(KDS, order_test=ORDER_TEST).groups(ROLES)
    assert list(groups) == ["suspect", "order"]
    assert groups["order"].corpus == Sharded(tiny.SUSPECT, 4, 100)


# What it means ----------------------------------------------------------------------------------------------


def test_the_statistic_is_the_divergence_and_no_more_than_a_score():
    before, after = vectors(40), vectors(40, moved=0.1)
    outcome = KDS.test(documents(before, after), RNG)
    found = kernel_divergence(before, after, bandwidth="per_kernel_median")
    assert outcome.statistic == found.score < 0
    assert (outcome.verdict, outcome.warnings) == ("score_only", ())
    assert np.isnan([outcome.p_value, outcome.ci_low, outcome.ci_high]).all()
    assert "as many documents, under the same model and the same recipe" in outcome.allowed_claim
    assert outcome.details.to_json() == {
        "normalizer": found.normalizer,
        "gamma_before": found.gamma_before,
        "gamma_after": found.gamma_after,
        "kernel_before": dict(zip(("smallest", "largest"), found.kernel_before, strict=True)),
        "kernel_after": dict(zip(("smallest", "largest"), found.kernel_after, strict=True)),
    }
    fixed = replace(KDS, bandwidth="fixed", gamma=2.0).test(documents(before, after), RNG)
    assert fixed.details.to_json()["gamma_after"] == 2.0


def test_baselines_are_means_that_are_higher_for_what_was_read():
    """Perplexities 12 and 20 that become 11.5 and 9: minus 16 on average, and -(.5 + 11) / 2."""
    pair = vectors(3), vectors(3, moved=0.1)
    values = {
        "target/perplexity": -np.array([12.0, 20, 16]),
        "fsd/perplexity": -np.array([11.5, 9, 16]),
        "target/zlib": np.array([-1.0, -2, -3]),
        "fsd/zlib": np.array([-1.0, -2, 0]),
    }
    details = ALL.test(documents(*pair, **values), RNG).details.to_json()
    assert details["baselines"] == {"perplexity": -16.0, "zlib": -2.0}
    assert details["fsd"] == {"perplexity": pytest.approx(-11.5 / 3), "zlib": -1.0}
    values["target/zlib"][0] = -np.inf
    assert ALL.test(documents(*pair, **values), RNG).details.to_json()["baselines"]["zlib"] is None


def test_where_there_is_no_score_the_result_says_why():
    pair, same = (vectors(9), vectors(9, moved=0.1)), np.repeat(vectors(1), 9, axis=0)
    zero = pair[1] * (np.arange(9) > 0)[:, None]
    for given, told in (
        ((same, pair[1]), "at least half of the pairs have the same embedding before tuning"),
        ((pair[0], same), "at least half of the pairs have the same embedding after tuning"),
        ((pair[0], zero), "1 of 9 embeddings are zero"),
        ((pair[0][:2], pair[1][:2]), "2 documents are too few"),
        ((pair[0][:0], pair[1][:0]), "0 documents are too few"),
        ((pair[0], pair[0]), "closer to 0 than 1e-06, so tuning has not moved the embeddings"),
    ):
        outcome = KDS.test(documents(*given), RNG)
        assert outcome.verdict == "invalid"
        assert told in outcome.warnings[0]
        assert outcome.allowed_claim == "A precondition failed; nothing may be concluded."
        json.dumps(outcome.details.to_json(), allow_nan=False)


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"gamma": 1.0}, "gamma is for bandwidth=fixed"),
        ({"baselines": [Loss(), Loss()]}, "baselines must be a list of different scores, each once; got"),
        ({"compat": True, "training": tiny.pretraining()}, "compat=true lets an adapter drop out"),
    ],
)
def test_settings_are_refused_in_a_sentence(changes, told):
    with pytest.raises(ValueError, match=told):
        replace(KDS, **changes)


# The whole way ----------------------------------------------------------------------------------------------


def audit(method=KDS, corpus=tiny.SUSPECT, **changes) -> Audit:
    return Audit(tiny.scratch(1), tiny.scratch(2), corpus, method, seed=5, corpus_label="texts", **changes)


def run(asked: Audit, folder, name="one"):
    return run_audit(asked, tiny.builder(folder / "store"), folder / name)


@pytest.mark.slow  # bundles of it are made and recomputed in tests/evidence
def test_from_documents_to_a_result(tmp_path):
    method = replace(ALL, baselines=[Perplexity(), ReferenceDifference()])
    result = run(audit(method), tmp_path)
    told = json.loads((tmp_path / "one" / "result.json").read_text())
    assert (result.verdict.decision, result.statistics.num_documents, result.exclusions.num_documents) == (
        "score_only",
        34,
        0,
    )
    assert told["statistics"]["value"] < -1e-6
    assert told["statistics"]["p_value"] is told["statistics"]["ci_low"] is None
    assert result.health.capability.keys() == {"target", "tuned", "fsd"}
    assert result.health.capability["target"]["nll"] > result.health.capability["fsd"]["nll"], (
        "tuned on these very documents"
    )
    assert result.provenance.keys.keys() == {"target", "tuned", "fsd", "reference", "corpus", "audit"}
    assert told["question"]["settings"]["bandwidth"] == "per_kernel_median"

    table = pq.read_table(tmp_path / "one" / "scores.parquet").to_pydict()
    assert list(table) == ["doc_id", *(f"{m}/{s}" for m in ("target", "fsd") for s in ("perplexity", "ref_diff"))]
    assert np.mean(table["target/perplexity"]) == pytest.approx(
        told["statistics"]["details"]["baselines"]["perplexity"]
    )

    again = run(audit(method), tmp_path, "again")
    assert (again.statistics.value, again.statistics.details) == (result.statistics.value, result.statistics.details)
    assert (again.provenance.made["models_trained"], again.provenance.made["tokens_observed"]) == (0, 0)
    elsewhere = run(audit(method), tmp_path / "elsewhere")
    assert (elsewhere.statistics.value, elsewhere.statistics.details) == (
        result.statistics.value,
        result.statistics.details,
    ), "same seed, same numbers"


@pytest.mark.slow
def test_with_the_order_test(tmp_path):
    result = run(audit(replace(KDS, order_test=ORDER_TEST)), tmp_path)
    assert result.verdict.decision == "score_only"
    assert np.isfinite(result.statistics.details["order_t"])
    assert result.statistics.num_documents == 34


@pytest.mark.slow
def test_dropout_in_the_second_pass_is_noise_of_the_seed(tmp_path):
    plain, noisy = run(audit(), tmp_path), run(audit(replace(KDS, compat=True)), tmp_path, "noisy")
    assert noisy.statistics.value < plain.statistics.value, "noise moves the documents too"
    assert noisy.provenance.made["models_trained"] == 0, "the same tuned model"
    assert run(audit(replace(KDS, compat=True)), tmp_path / "elsewhere").statistics.value == noisy.statistics.value


def test_a_level_of_contamination_has_no_truth_but_its_ends(tmp_path):
    target = Trained(tiny.scratch(1), tiny.pretraining(), tiny.SUSPECT, seed=1)
    shop, unread = tiny.builder(tmp_path), tiny.texts(*tiny.random_texts(34, seed=3), name="unread")
    truths = [
        truth_about(shop, target, NestedMixture(tiny.SUSPECT, unread, 20, rate, "draw")) for rate in (0, 0.05, 0.5, 1)
    ]
    assert truths == ["non_member", None, None, "member"]


@pytest.mark.slow
def test_documents_without_a_direction_are_left_out_and_listed(tmp_path):
    texts = [*tiny.random_texts(30, seed=3), "", "a"]
    result = run(audit(corpus=tiny.texts(*texts)), tmp_path)
    assert (result.statistics.num_documents, result.verdict.decision) == (30, "score_only")
    assert set(result.exclusions.documents["suspect"]) == {"d30", "d31"}
    assert "fewer than two tokens" in result.exclusions.documents["suspect"]["d30"]
    assert "could not be scored" in result.verdict.warnings[0]


@pytest.mark.slow
def test_a_model_whose_embeddings_are_all_zero_gives_an_invalid_result(tmp_path, monkeypatch):
    shop = tiny.builder(tmp_path / "store")
    norm = shop.get(tiny.scratch(1)).model.gpt_neox.final_layer_norm
    torch.nn.init.zeros_(norm.weight)
    result = run_audit(audit(), shop, tmp_path / "one")
    assert (result.verdict.decision, result.statistics.value, result.exclusions.num_documents) == ("invalid", None, 34)
    assert set(result.exclusions.documents["suspect"].values()) == {
        "target/embedding: the embedding is zero and has no direction"
    }
    assert any("0 documents are too few" in text for text in result.verdict.warnings)


def test_two_documents_give_an_invalid_result(tmp_path):
    result = run(audit(corpus=tiny.texts(*tiny.random_texts(2, seed=3))), tmp_path)
    assert (result.verdict.decision, result.statistics.num_documents) == ("invalid", 2)


@pytest.mark.slow
def test_a_rate_of_nothing_gives_an_invalid_result(tmp_path):
    idle = replace(TUNING, optimization=replace(SGD, learning_rate=1e-12))
    result = run(audit(replace(KDS, training=idle)), tmp_path)
    assert result.verdict.decision == "invalid"
    assert "raise the learning rate" in result.verdict.warnings[0]


def test_the_layer_and_the_recipe_are_part_of_the_question(tmp_path):
    shop = tiny.builder(tmp_path)
    methods = [
        *(KDS, replace(KDS, layer=1), replace(KDS, bandwidth="pre_only"), replace(KDS, compat=True), ALL),
        replace(KDS, training=replace(TUNING, optimization=replace(SGD, epochs=2))),
    ]
    assert len({audit_keys(audit(method), shop)["audit"] for method in methods}) == len(methods)
