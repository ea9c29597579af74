"""Calibrated clearance: what is planted, what the gates say, and which Delta clears whom of what."""

from __future__ import annotations

from dataclasses import fields, replace

import numpy as np
import pytest

import tiny
from made_up_methods import clearance
from nonmember.audits.question import Audit
from nonmember.audits.run import run_audit
from nonmember.corpora import Select
from nonmember.corpora.transforms.mixtures import planted_part
from nonmember.methods import Roles, ScoredDocuments
from nonmember.methods.clearance.clearance import role_of
from nonmember.methods.clearance.controls import PlantedControls, SharedControls
from nonmember.models import Noised
from nonmember.models.exposure import truth_about
from nonmember.records.exposure import Exposure
from nonmember.training import Trained
from nonmember.training.planting import planted
from tiny import build

NONE, TWICE, OFTEN, HALF = Exposure(1.0, 0), Exposure(1.0, 2), Exposure(1.0, 8), Exposure(0.5, 8)
SETS = {name: tiny.texts(*tiny.random_texts(20, seed=seed), name=name) for seed, name in enumerate("abc")}
TARGET = Trained(tiny.scratch(1), tiny.pretraining(), tiny.GENERAL, seed=1, label="target")
REFERENCE = Trained(tiny.scratch(2), tiny.pretraining(), tiny.GENERAL, seed=2, label="reference")
CONTROLS = PlantedControls(
    stand_in=TARGET, training=tiny.pretraining(), general=tiny.GENERAL, readings=[NONE, TWICE, OFTEN], seeds=[1, 2]
)
METHOD = clearance(CONTROLS, TWICE, tiny.texts(*tiny.random_texts(60, seed=9), name="third"))
ROLES = Roles(TARGET, REFERENCE, tiny.SUSPECT, seed=7)


# Planting --------------------------------------------------------------------------------------------------------


def num_read(model: Trained, name: str) -> int:
    corpus = build(model.corpus)
    return sum(document.doc_id.split("#")[0].startswith(name) for document in corpus.documents)


def test_every_set_has_every_reading_once_over_the_runs():
    readings = [NONE, TWICE, OFTEN]
    runs = [planted(TARGET, tiny.pretraining(), tiny.GENERAL, SETS, readings, "a", index, seed=3) for index in range(3)]
    for name in SETS:
        assert sorted(num_read(run, name) for run in runs) == [0, 40, 160]


def test_another_set_at_the_reading_it_has_there_is_the_same_run():
    readings = [NONE, TWICE, OFTEN]
    item = planted(TARGET, tiny.pretraining(), tiny.GENERAL, SETS, readings, "a", 0, seed=3)
    same = planted(TARGET, tiny.pretraining(), tiny.GENERAL, SETS, readings, "b", 1, seed=3)
    assert item.corpus.identity() == same.corpus.identity()


def test_in_a_drawn_order_a_set_keeps_its_reading_and_stands_beside_others():
    readings = [NONE, TWICE, OFTEN]
    runs = {
        order: planted(TARGET, tiny.pretraining(), tiny.GENERAL, SETS, readings, "a", 1, seed=3, order=order)
        for order in (None, 0, 1, 2, 3)
    }
    assert {num_read(run, "a") for run in runs.values()} == {40}
    assert {num_read(run, "b") for run in runs.values()} == {0, 160}
    again = planted(TARGET, tiny.pretraining(), tiny.GENERAL, SETS, readings, "a", 1, seed=3, order=2)
    assert again.corpus.identity() == runs[2].corpus.identity()


def test_a_set_that_is_none_is_left_out():
    fewer = {"none": None, **SETS}
    runs = [
        planted(TARGET, tiny.pretraining(), tiny.GENERAL, item, [NONE, TWICE], "b", 1, seed=3) for item in (SETS, fewer)
    ]
    assert runs[0].corpus.identity() == runs[1].corpus.identity()
    with pytest.raises(ValueError, match="one of the planted sets a, b"):
        planted(TARGET, tiny.pretraining(), tiny.GENERAL, fewer, [NONE, TWICE], "none", 0, seed=3)


def test_a_share_is_part_of_a_larger_one():
    read = {
        share: {document.doc_id for document in build(planted_part(tiny.SUSPECT, Exposure(share, 1)).corpus).documents}
        for share in (0.25, 0.5, 1.0)
    }
    assert read[0.25] < read[0.5] < read[1.0]
    assert 0.3 * 34 < len(read[0.5]) < 0.7 * 34


@pytest.mark.parametrize(("share", "exposures"), [(0, 1), (1.2, 1), (0.5, -1), (0.5, 1.5)])
def test_a_reading_that_is_none(share, exposures):
    with pytest.raises(ValueError, match="of a reading must"):
        Exposure(share, exposures)


def test_what_is_as_heavy_as_another():
    assert OFTEN.at_least(TWICE)
    assert not HALF.at_least(TWICE)
    assert not TWICE.at_least(OFTEN)


def test_some_controls_of_runs_that_carry_more():
    """The very models, so that they are found and not trained again."""
    whole = replace(CONTROLS, sets=SETS, audited="b")
    given = {field.name: getattr(whole, field.name) for field in fields(whole)} | {"readings": [NONE, OFTEN]}
    some = SharedControls(**given, rotation=whole.readings)
    assert some.models(SETS["b"]) == [item for item in whole.models(SETS["b"]) if item.reading != TWICE]
    assert [item.seed for item in some.models(SETS["b"])] == [1, 2, 1, 2]
    with pytest.raises(ValueError, match="among those of the rotation; got 8x50%"):
        SharedControls(**given | {"readings": [NONE, HALF]}, rotation=whole.readings)


def test_controls_must_differ_and_one_must_read():
    with pytest.raises(ValueError, match="must differ, and one of them must have exposures"):
        replace(CONTROLS, readings=[NONE])
    with pytest.raises(ValueError, match=r"audited must be one of .*; got 'd'"):
        replace(CONTROLS, sets=SETS, audited="d")
    with pytest.raises(ValueError, match=r"exclude must be one of the planted readings \(2x, 8x\)"):
        replace(METHOD, exclude=Exposure(1.0, 4))


# Deciding --------------------------------------------------------------------------------------------------------

N = 300


def agreeing(rng, target, rho):
    """Scores whose rank correlation with the target is about rho."""
    return rho * target + np.sqrt(1 - rho**2) * rng.standard_normal(len(target))


def scored(delta, control_deltas, *, damaged=(), seed=0):
    """Documents of an audit: Delta of the target, and of every control by reading and seed, about these."""
    rng = np.random.default_rng(seed)
    values = {"reference": rng.standard_normal(N)}
    for role, rho, item in [("target", 0.8, delta)] + [
        (role_of(reading, number), 0.8, value)
        for reading, pair in control_deltas.items()
        for number, value in zip((1, 2), pair, strict=True)
    ]:
        values[role] = agreeing(rng, values["reference"], rho)
        prefix = "" if role == "target" else f"{role}/"
        for name in ("distilled", "distilled/2"):
            values[f"{prefix}{name}"] = agreeing(rng, values[role], rho - item)
            values[f"loss/{prefix}{name}"] = np.full(N, -2.8)
    for sham in ("sham_unrelated", "sham_noise"):
        values[sham] = rng.standard_normal(N)
    for role in ("reference", "distilled", "distilled/2", "sham_unrelated", "sham_noise"):
        good = role.startswith("distilled") and role not in damaged
        values[f"loss/{role}"] = np.full(N, -3.0 + 0.2 * good)
        values[f"kl/{role}"] = np.full(N, 0.4 - 0.1 * good)
    third = {name: np.full(N, -3.0 if name.startswith("loss") else 0.4) for name in values if "/" in name}
    ids = tuple(f"d{index}" for index in range(N))
    texts = tuple(tiny.random_texts(N, seed=1))
    return {
        "suspect": ScoredDocuments(ids, values, ("",) * N, texts),
        "third": ScoredDocuments(ids, third, ("",) * N, tuple(tiny.random_texts(N, seed=2))),
    }


READ = {NONE: (0.30, 0.32), TWICE: (0.10, 0.12), OFTEN: (-0.10, -0.12)}


def decide(documents, method=METHOD):
    return method.test(documents, np.random.default_rng(0))


def test_delta_like_that_of_the_untouched_controls_clears():
    outcome = decide(scored(0.31, READ))
    assert outcome.verdict == "evidence_of_non_membership"
    assert outcome.p_value < 0.05
    assert "did not read this dataset 2 times or more" in outcome.allowed_claim
    assert outcome.statistic > outcome.details.to_json()["margin"] > 0.10


def test_a_positive_delta_that_readers_have_too_does_not_clear_though_prism_rejects():
    outcome = decide(scored(0.12, READ))
    assert outcome.details.to_json()["prism"]["p_value"] < 0.05
    assert outcome.verdict == "inconclusive"
    assert outcome.p_value > 0.05


def test_excluding_a_heavier_reading_clears_where_a_lighter_one_does_not():
    documents = scored(0.12, READ)
    assert decide(documents, replace(METHOD, exclude=OFTEN)).verdict == "evidence_of_non_membership"


def test_the_margin_is_that_of_the_worst_of_the_readings_that_are_excluded():
    outcome = decide(scored(0.31, {NONE: (0.3, 0.3), TWICE: (0.0, 0.02), OFTEN: (0.25, 0.27)}))
    assert outcome.details.to_json()["margin"] == outcome.details.to_json()["margins"]["8x"]["bound"] > 0.25
    assert outcome.p_value == max(point["p_value"] for point in outcome.details.to_json()["detection"]["points"])


@pytest.mark.parametrize("seed", ["distilled", "distilled/2"])
def test_one_distilled_reference_that_did_not_learn_makes_it_invalid(seed):
    outcome = decide(scored(0.31, READ, damaged=[seed]))
    assert outcome.verdict == "invalid"
    assert f"The gain of {seed} in cross-entropy on the suspect set is" in " ".join(outcome.warnings) or (
        f"The fall of {seed}'s divergence" in " ".join(outcome.warnings)
    )


def test_a_sham_that_passes_every_gate_makes_it_invalid():
    documents = scored(0.31, READ)
    values = dict(documents["suspect"].values)
    for column in ("loss", "kl"):
        values[f"{column}/sham_noise"] = values[f"{column}/distilled"]
    values["sham_noise"] = values["distilled"]
    outcome = decide(documents | {"suspect": replace(documents["suspect"], values=values)})
    assert outcome.verdict == "invalid"
    assert any("sham_noise passed every gate" in warning for warning in outcome.warnings)
    assert outcome.details.to_json()["shams"]["sham_unrelated"]["refused"]


def test_a_suspect_set_of_another_layout_makes_it_invalid():
    documents = scored(0.31, READ)
    suspect = replace(documents["suspect"], texts=tuple(t.replace(" ", "\n  ") for t in documents["suspect"].texts))
    outcome = decide(documents | {"suspect": suspect})
    assert outcome.verdict == "invalid"
    assert any("layout alone tells" in warning for warning in outcome.warnings)


def test_a_distilled_reference_that_gained_less_than_half_of_what_those_of_controls_did_is_no_such_thing():
    documents = scored(0.31, READ)
    for gain, verdict in ((0.11, "evidence_of_non_membership"), (0.09, "invalid")):
        values = documents["suspect"].values | {"loss/distilled/2": np.full(N, -3.0 + gain)}
        outcome = decide(documents | {"suspect": replace(documents["suspect"], values=values)})
        assert outcome.verdict == verdict
        assert outcome.details.to_json()["gates"]["ce_share"]["value"] == pytest.approx(gain / 0.2)
    assert any("as a share of what the controls'" in warning for warning in outcome.warnings)


def test_invalid_where_reading_leaves_no_trace_in_delta():
    outcome = decide(scored(0.31, READ | {NONE: (0.05, 0.04)}))
    assert outcome.verdict == "invalid"
    assert -0.1 < outcome.details.to_json()["gates"]["separation"]["value"] < 0
    assert any("does not tell controls that read" in warning for warning in outcome.warnings)


def test_an_audit_that_would_hardly_clear_anybody_says_so():
    outcome = decide(scored(0.13, READ | {NONE: (0.13, 0.14)}))
    assert outcome.verdict == "inconclusive"
    assert any("would hardly clear anybody" in warning for warning in outcome.warnings)
    assert not any("hardly clear" in warning for warning in decide(scored(0.31, READ)).warnings)


def test_a_target_that_is_another_model_than_the_stand_in_needs_a_larger_margin():
    near = decide(scored(0.25, READ))
    controls = replace(CONTROLS, deviation=0.1, deviation_df=8)
    far = decide(scored(0.25, READ), replace(METHOD, controls=controls))
    assert near.verdict == "evidence_of_non_membership"
    assert far.verdict == "inconclusive"
    assert far.details.to_json()["margin"] > near.details.to_json()["margin"] + 0.05
    points = [point for point in far.details.to_json()["detection"]["points"] if point["exposures"] == 2]
    assert points[0]["p_value"] > 0.05
    with pytest.raises(ValueError, match=r"deviation of the controls must be a number of at least 0; got -0\.1"):
        replace(CONTROLS, deviation=-0.1)


def test_a_third_text_that_was_drawn_by_a_salt_of_its_own_has_two_halves():
    """As the worlds draw theirs. By the same salt one of them would be empty."""
    drawn = Select(tiny.texts(*tiny.random_texts(400, seed=9), name="third"), num_documents=60, salt="third")
    groups = replace(METHOD, third=drawn).groups(ROLES)
    gates, sham = groups["third"].corpus, groups["suspect"].measured["sham_unrelated"].model.corpus
    halves = [set(build(part).doc_ids) for part in (gates, sham)]
    assert set.union(*halves) == set(build(drawn).doc_ids)
    assert all(15 < len(half) < 45 for half in halves)


# From specs to a result ------------------------------------------------------------------------------------------


@pytest.mark.slow  # test_shams.py goes the same way
def test_an_audit_end_to_end(tmp_path):
    """Noise for a test: what counts is that everything is made, measured, told, and found again."""
    method = replace(METHOD, controls=replace(CONTROLS, readings=[NONE, OFTEN]), exclude=OFTEN)
    audit = Audit(
        TARGET,
        REFERENCE,
        tiny.SUSPECT,
        method,
        seed=7,
        corpus_label="suspect",
        heldout=tiny.texts(*tiny.random_texts(34, seed=5), name="heldout"),
        heldout_label="heldout",
    )
    builder = tiny.builder(tmp_path / "store")
    result = run_audit(audit, builder, tmp_path / "run")
    assert result.question.truth == "non_member"
    assert set(result.statistics.details["control_deltas"]) == {"0x", "8x"}
    assert {len(deltas) for deltas in result.statistics.details["control_deltas"].values()} == {2}
    assert set(result.statistics.details["shams"]) == {"sham_unrelated", "sham_noise"}
    assert result.statistics.details["shams"]["sham_noise"]["refused"]
    assert set(result.health.training) == {"ce_before", "ce_after", "kl_before", "kl_after"}
    # The divergence by document is the one that training told of the whole, up to the weighting by tokens.
    gate = result.statistics.details["gates"]["kl"]
    assert gate["value"] == pytest.approx(
        result.health.training["kl_before"] - result.health.training["kl_after"], rel=0.35, abs=0.02
    )
    made = builder.counters.models_trained
    again = run_audit(audit, builder, tmp_path / "again")
    assert builder.counters.models_trained == made
    assert again.statistics.value == result.statistics.value
    assert again.statistics.details == result.statistics.details


@pytest.mark.slow
def test_noise_is_by_seed_and_in_proportion_to_the_weights(tmp_path):
    builder = tiny.builder(tmp_path)
    plain = builder.get(REFERENCE).model.state_dict()
    noised = {seed: builder.get(Noised(REFERENCE, 0.5, seed)).model.state_dict() for seed in (1, 2)}
    name = "gpt_neox.layers.0.mlp.dense_h_to_4h.weight"
    moved = {seed: (noised[seed][name] - plain[name]).numpy() for seed in noised}
    assert moved[1].std() == pytest.approx(0.5 * plain[name].std().item(), rel=0.1)
    assert not np.allclose(moved[1], moved[2])
    assert Noised(REFERENCE, 0.5, 1).key(builder) != Noised(REFERENCE, 0.5, 2).key(builder)
    assert truth_about(builder, Noised(REFERENCE, 0.5, 1), tiny.GENERAL) == "member"
