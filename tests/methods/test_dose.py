"""The dose meter: what is planted, what is read off the curve, and what refuses a verdict."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

import tiny
from nonmember.audits.distilled import prepare
from nonmember.audits.keys import settings_of_method
from nonmember.audits.preconditions import require_planted
from nonmember.audits.question import Audit
from nonmember.audits.run import run_audit
from nonmember.corpora import Component, Mixture
from nonmember.methods import Dose, ScoredDocuments
from nonmember.methods.dose.controls import Afterwards, PlantedDoses, RotatedDoses
from nonmember.methods.dose.dose import readings_of
from nonmember.methods.dose.gates import DoseGates
from nonmember.methods.dose.panel import BetweenBases, Feature, Panel, Scores
from nonmember.records.exposure import NOT_READ, Exposure
from nonmember.scores import Loss, MinK, MinKPlusPlus
from nonmember.stats.dose_curve import DoseReading
from nonmember.training import Trained
from nonmember.training.planting import planted

BASE = Trained(tiny.scratch(1), tiny.pretraining(), tiny.GENERAL, seed=1, label="base")
REFERENCE = Trained(tiny.scratch(2), tiny.pretraining(), tiny.GENERAL, seed=2, label="reference")
SETS = {name: tiny.texts(*tiny.random_texts(20, seed=seed), name=name) for seed, name in enumerate("abcd")}
RELATED = tiny.texts(*tiny.random_texts(30, seed=30), name="related")
CONTROLS = PlantedDoses(
    base=BASE,
    own_base=True,
    training=tiny.pretraining(),
    general=tiny.GENERAL,
    seeds=[1, 2],
    exposures=[0, 2, 8],
    related=RELATED,
    related_exposures=[8],
)
LEVEL = Feature(MinKPlusPlus(0.2), "level")
PANEL = Panel(
    {"level": LEVEL, "loss": Feature(Loss(), "level")},
    shape=[[1.0, 0.0], [0.0, 1.0]],
    between=None,
    version="test",
    origin="a test",
)
GATES = DoseGates(
    min_separation=4.0,
    min_order=0.8,
    min_fit=0.01,
    min_left_out=0.01,
    max_shift=5.0,
    max_weight_ratio=1.15,
    max_base_distance=1.5,
    max_layout_auc=None,
    num_folds=3,
    seed=0,
)
METHOD = Dose(
    controls=CONTROLS,
    panel=PANEL,
    third=tiny.texts(*tiny.random_texts(60, seed=9), name="third"),
    exclude=2,
    exceed=0.1,
    gates=GATES,
    alpha=0.05,
    max_tokens=64,
)
READINGS = [Exposure(1.0, dose) for dose in (0, 4, 0, 1)]


def test_controls_of_the_target_itself_are_refused_before_any_is_trained(tmp_path):
    asked = Audit(replace(BASE, label="the target"), REFERENCE, SETS["a"], METHOD, seed=0, corpus_label="a")
    with pytest.raises(ValueError, match="The base of the controls is the target"):
        prepare(asked, tiny.builder(tmp_path))


# Planting --------------------------------------------------------------------------------------------------------


def test_controls_of_one_set_read_it_or_related_text():
    read = [(item.exposure.exposures, item.related.exposures) for item in CONTROLS.models(tiny.SUSPECT)]
    assert read == [(0, 0)] * 2 + [(2, 0)] * 2 + [(8, 0)] * 2 + [(0, 8)] * 2
    assert len({item.role for item in CONTROLS.models(tiny.SUSPECT)}) == 8
    related = CONTROLS.models(tiny.SUSPECT)[-1].model.corpus
    ids = [document.doc_id for document in tiny.build(related).documents]
    assert sum(item.startswith("related") for item in ids) == 8 * 30


SHARED = RotatedDoses(
    base=BASE,
    own_base=True,
    training=tiny.pretraining(),
    general=tiny.GENERAL,
    seeds=[3],
    sets=SETS,
    audited="b",
    readings=READINGS,
    family=2,
)


def test_shared_runs_say_what_they_read_of_the_sibling():
    read = {item.exposure.exposures: [] for item in SHARED.models(SETS["b"])}
    for index, item in enumerate(SHARED.models(SETS["b"])):
        read[item.exposure.exposures].append(item.related.exposures)
        corpus = tiny.build(item.model.corpus)
        counts = {name: sum(doc.doc_id.startswith(name) for doc in corpus.documents) // 20 for name in SETS}
        assert (counts["b"], counts["a"]) == (item.exposure.exposures, item.related.exposures)
        run = planted(BASE, tiny.pretraining(), tiny.GENERAL, SETS, READINGS, "b", index, seed=3)
        assert item.model.corpus.identity() == run.corpus.identity()
    assert read == {0: [1, 4], 4: [0], 1: [0]}  # the sibling a stands one place before
    siblings = {document.doc_id for document in tiny.build(SHARED.related_text).documents}
    assert siblings == {document.doc_id for document in tiny.build(SETS["a"]).documents}
    assert replace(SHARED, family=1, seeds=[3, 4]).related_text is None
    with pytest.raises(ValueError, match="must be of whole sets; leave out those with a share"):
        replace(SHARED, readings=[*READINGS, Exposure(0.5, 4)])


def test_controls_go_on_as_the_target_did():
    after = Afterwards(tiny.pretraining(), tiny.GENERAL, seed=8)
    for controls in (CONTROLS, SHARED):
        plain, then = controls.models(tiny.SUSPECT), replace(controls, afterwards=after).models(tiny.SUSPECT)
        assert [item.role for item in plain] == [item.role for item in then]
        assert [item.model.base for item in then] == [item.model for item in plain]
        assert {(item.model.training, item.model.corpus, item.model.seed) for item in then} == {
            (after.training, after.corpus, 8)
        }


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"exposures": [1, 2]}, "0 and one or more heavier doses"),
        ({"exposures": [0]}, "0 and one or more heavier doses"),
        ({"exposures": [0, 0, 2]}, "different whole numbers"),
        ({"related_exposures": [4, 4]}, "different whole numbers"),
        ({"seeds": [1]}, "two or more"),
        ({"seeds": [1, 1]}, "different whole numbers"),
        ({"own_base": "yes"}, "own_base"),
        (
            {"training": replace(tiny.pretraining(), optimization=replace(tiny.optimization(), epochs=3))},
            r"would read the set 3 times as often .* Set method\.controls\.training\.optimization\.epochs=1",
        ),
    ],
)
def test_controls_that_cannot_be(changes, message):
    with pytest.raises(ValueError, match=message):
        replace(CONTROLS, **changes)


def test_one_control_of_each_dose_is_refused_before_it_is_trained():
    different = [Exposure(1.0, dose) for dose in (0, 1, 4)]
    with pytest.raises(ValueError, match=r"got 1 seed for 3 different readings\. Add a seed"):
        replace(SHARED, readings=different)
    alone = replace(SHARED, readings=different, seeds=[3, 4], family=1)
    assert len(alone.models(SETS["b"])) == 6


def test_controls_whose_related_text_goes_with_the_dose_are_refused_before_they_are_trained():
    """0 beside 4, 1 beside 0, 4 beside 1: of two seeds too each effect could be the other's."""
    readings = [Exposure(1.0, dose) for dose in (0, 1, 4)]
    with pytest.raises(ValueError, match="what they read of one tells what they read of the other"):
        replace(SHARED, readings=readings, seeds=[3, 4], family=2)


def test_what_is_excluded_must_have_been_planted():
    with pytest.raises(ValueError, match=r"exclude must be a number in \(0, 8\]"):
        replace(METHOD, exclude=9)


def test_a_third_text_that_overlaps_the_set_is_refused():
    corpora = {"suspect": tiny.build(tiny.SUSPECT), "third": tiny.build(tiny.SUSPECT)}
    with pytest.raises(ValueError, match=r"no model read; \d+ of its \d+ documents are in the suspect set"):
        METHOD.check(corpora)


# Features --------------------------------------------------------------------------------------------------------


def test_features_by_hand():
    suspect = Scores(np.array([1.0, 2.0, 4.0]), np.array([0.0, 1.0, 2.0]))  # delta 1, 1, 2
    third = Scores(np.array([0.5, 0.5]), np.array([0.0, 1.0]))  # delta .5, -.5
    value = {
        name: Feature(Loss(), name)(suspect, third)
        for name in ("level", "rank_correlation", "upper_tail", "slope", "spread")
    }
    assert value["level"] == pytest.approx(4 / 3)
    assert value["rank_correlation"] == pytest.approx(1)
    assert value["upper_tail"] == pytest.approx((2 - 1) - (0.5 - 0))
    assert value["slope"] == pytest.approx(0.5 - (-1))
    assert value["spread"] == pytest.approx(np.std([1, 1, 2], ddof=1) - np.std([0.5, -0.5], ddof=1))


@pytest.mark.parametrize("shape", [[[1.0]], [[1.0, 2.0], [2.0, 1.0]], [[1.0, 0.5], [0.0, 1.0]]])
def test_a_panel_needs_a_covariance_of_its_features(shape):
    with pytest.raises(ValueError, match="shape of the panel must be a covariance of its 2 features"):
        replace(PANEL, shape=shape)


def test_panels_of_other_scores_are_other_settings():
    """Else the result of one would be found for the other."""
    other = replace(METHOD, panel=replace(PANEL, features={**PANEL.features, "level": Feature(MinK(0.2), "level")}))
    assert settings_of_method(other) != settings_of_method(METHOD)


def test_a_stand_in_needs_to_know_how_bases_differ():
    with pytest.raises(ValueError, match=r"method\.controls\.own_base=true"):
        replace(METHOD, controls=replace(CONTROLS, own_base=False))


# Reading ---------------------------------------------------------------------------------------------------------

N = 60
EFFECT = 0.1  # of one reading, on every document
RISE = {0: 0.0, 2: 2 * EFFECT, 8: 8 * EFFECT}
LOSS = "loss"


def documents(
    target, *, method: Dose = METHOD, rises=RISE, profile: float = 0.0, of_loss: float | None = None, shift: float = 0.0
):
    """Scores of a world in which a reading adds EFFECT to every document, related text a tenth of that and, to the
    loss, twice that.   profile: by how much the target differs from the controls on single documents of the third
    text.   of_loss: what the target's loss gains, where it is not what its other score gains.   shift: by how much the
    target is better on every document."""
    rng = np.random.default_rng(4)
    base = {"suspect": rng.standard_normal(N), "third": rng.standard_normal(N)}
    rise = {name: {"target": target, "reference": 0.0} for name in method.panel.scores}
    if of_loss is not None:
        rise[LOSS]["target"] = of_loss
    for item in method.controls.models(tiny.SUSPECT):
        for name, times in ((next(iter(method.panel.scores)), 0.1), (LOSS, 0.2)):
            rise[name][item.role] = rises[item.exposure.exposures] + times * EFFECT * item.related.exposures
    groups = {}
    for group, common in base.items():
        values = {}
        for name, by_role in rise.items():
            for role, item in by_role.items():
                noise = 0.05 * rng.standard_normal(N) + (0.01 * rng.standard_normal() if role != "reference" else 0)
                if role == "target" and group == "third":
                    noise = noise + profile * rng.standard_normal(N)
                better = shift if role == "target" else 0.0
                values[f"{role}/{name}"] = common + noise + better + (item if group == "suspect" else 0.0)
        groups[group] = ScoredDocuments(tuple(map(str, range(N))), values, ("",) * N, ("text",) * N)
    return groups


def judged(target: float, *, method: Dose = METHOD, **world):
    return method.test(documents(target, method=method, **world), np.random.default_rng(0))


@pytest.mark.parametrize(
    ("rise", "verdict", "said"),
    [
        (0.0, "evidence_of_non_membership", "fewer than"),
        (8 * EFFECT, "evidence_of_membership", "about"),
        (-0.3, "invalid", "fewer than"),
    ],
)
def test_verdicts(rise, verdict, said):
    outcome = judged(rise)
    assert outcome.verdict == verdict
    assert said in outcome.details.to_json()["readings"]
    json.dumps(outcome.details.to_json())


def test_related_text_does_not_convict():
    outcome = judged(0.8 * EFFECT, of_loss=1.6 * EFFECT)
    assert outcome.verdict == "evidence_of_non_membership"
    assert outcome.details.to_json()["related_readings"] > 3


def test_membership_is_claimed_of_more_than_is_to_be_exceeded():
    sharp, careful = (judged(1.2 * EFFECT, method=replace(METHOD, exceed=exceed)) for exceed in (0, 1))
    assert sharp.details.to_json()["p_value_of_no_reading"] == sharp.details.to_json()["p_value_of_exceeded"] < 0.05
    assert sharp.verdict == "evidence_of_membership"
    assert careful.details.to_json()["p_value_of_no_reading"] < 0.05 < careful.details.to_json()["p_value_of_exceeded"]
    assert careful.verdict != "evidence_of_membership"
    with pytest.raises(ValueError, match=r"exceed must be a number in \[0, 2\)"):
        replace(METHOD, exceed=2)


def test_what_could_be_either_is_inconclusive():
    outcome = judged(0.02, rises={0: 0.0, 2: 0.05, 8: 0.8})
    assert outcome.verdict == "inconclusive"
    assert outcome.details.to_json()["readings"].startswith("fewer than")


def test_the_dose_is_estimated():
    outcome = judged(5 * EFFECT)
    assert outcome.statistic == pytest.approx(5, abs=1.2)
    assert outcome.ci_low < 5 < outcome.ci_high


def test_without_related_controls_membership_is_not_claimed():
    gates = replace(METHOD.gates, min_fit=0.001)  # few controls, which lie close together
    alone = replace(METHOD, controls=replace(CONTROLS, related=None), gates=gates)
    outcome = judged(8 * EFFECT, method=alone)
    assert outcome.verdict == "score_only"
    assert any("related" in warning for warning in outcome.warnings)


def test_a_panel_without_a_shape_is_warned_of():
    for shape, is_warned in ((PANEL.shape, False), (None, True)):
        warnings = judged(0.0, method=replace(METHOD, panel=replace(PANEL, shape=shape))).warnings
        assert any("estimated from these controls" in warning for warning in warnings) == is_warned


def test_a_set_whose_reading_leaves_no_trace_is_refused():
    outcome = judged(0.0, rises={0: 0.0, 2: 0.0, 8: 0.01})
    assert outcome.verdict == "invalid"
    assert any("distance of controls" in warning for warning in outcome.warnings)


def test_controls_that_fall_with_the_dose_are_refused():
    outcome = judged(0.0, rises={0: 0.0, 2: 0.9, 8: 0.3})
    assert outcome.verdict == "invalid"
    assert any("what the controls have read" in warning for warning in outcome.warnings)


def test_a_base_that_is_not_the_targets_is_noticed():
    outcome = judged(0.0, profile=0.5)
    assert outcome.verdict == "invalid"
    assert any("own_base=false" in warning for warning in outcome.warnings)
    between = BetweenBases([[1e-4, 0.0], [0.0, 1e-4]], 0.1, 10)
    stand_in = replace(METHOD, controls=replace(CONTROLS, own_base=False), panel=replace(PANEL, between=between))
    assert judged(0.0, method=stand_in, profile=0.5).verdict == "evidence_of_non_membership"


def reading(estimate, low, high):
    return DoseReading(estimate, 0.0, low, high, None, 0.5, 0.5, 0.5, 0.5)


def test_a_target_that_read_much_other_text_is_not_read_off_these_controls():
    outcome = judged(0.0, shift=0.2)
    assert outcome.verdict == "invalid"
    assert any("make controls that read as much" in warning for warning in outcome.warnings)


def test_weights_that_moved_otherwise_than_the_controls_refuse_a_verdict():
    """By an adapter, say, or at half the rate: then as many readings leave a smaller trace."""
    outcome = judged(0.0)
    controls = {"one": 0.30, "two": 0.33}
    for target, passed in ((0.31, True), (0.37, True), (0.39, False), (0.25, False), (0.0, False), (np.nan, False)):
        found = METHOD.judged_by_weights(outcome, target, controls)
        assert found.details.to_json()["gates"]["weights"]["passed"] is passed
        json.dumps(found.details.to_json(), allow_nan=False)
        assert found.verdict == (outcome.verdict if passed else "invalid")
        assert any("weights have moved" in item for item in found.warnings) is not passed
    (*_, warning) = METHOD.judged_by_weights(outcome, None, {}).warnings
    assert warning.startswith("The target's weights are not at hand")
    assert METHOD.judged_by_weights(outcome, None, {}).verdict == outcome.verdict


@pytest.mark.parametrize(
    ("found", "said"),
    [
        (reading(3.1, 2.2, 4.06), "about 3.1 readings (2.2 to 4.1)"),
        (reading(0.0, 0.0, 0.61), "fewer than 0.61 readings"),
        (reading(1.04, 0.5, None), "about 1 reading (0.5 or more)"),
        (reading(8.0, 8.0, None), "8 readings or more"),
        (reading(1.0, 0.0, None), "any number of readings"),
    ],
)
def test_it_reads_like_an_instrument(found, said):
    assert readings_of(found, 8.0) == said


def test_a_target_of_another_tokenizer_is_refused(tmp_path):
    """Before anything is trained: levels are means over tokens."""
    other = tiny.texts(*("".join(chr(97 + (i * j) % 26) for i in range(40)) for j in range(1, 60)), name="other")
    target = Trained(tiny.scratch(1, other), tiny.pretraining(), other, seed=1, label="stranger")
    audit = Audit(target, REFERENCE, tiny.SUSPECT, METHOD, seed=1, corpus_label="suspect")
    builder = tiny.builder(tmp_path / "store")
    with pytest.raises(ValueError, match=r"tokenizers of both base and stranger; dose needs"):
        run_audit(audit, builder, tmp_path / "audit")
    assert builder.counters.models_trained == 0


def test_controls_that_read_otherwise_than_is_said_are_refused_before_they_are_trained(tmp_path):
    """The set in the general text, as where a laboratory gives the very text of its training."""
    with_set = Mixture((Component(tiny.GENERAL, 1), Component(tiny.SUSPECT, 1)))
    method = replace(
        METHOD,
        controls=replace(CONTROLS, general=with_set),
        third=tiny.texts(*tiny.random_texts(40, seed=9), name="third"),
    )
    builder = tiny.builder(tmp_path / "store")
    audit = Audit(BASE, REFERENCE, tiny.SUSPECT, method, seed=1, corpus_label="suspect")
    with pytest.raises(ValueError, match=r"must not be trained on the suspect set, but .*world\.general"):
        run_audit(audit, builder, tmp_path / "audit")
    others = {name: SETS[name] for name in "abd"}
    another = replace(method, controls=replace(SHARED, sets=others))  # of which none is the suspect set
    with pytest.raises(ValueError, match=r"0 of its .* documents are in its training text\. Name the planted set"):
        run_audit(replace(audit, method=another), builder, tmp_path / "audit")
    item = tiny.texts(tiny.build(tiny.SUSPECT).documents[0].text, name="one")
    with_one = Mixture((Component(tiny.GENERAL, 1), Component(item, 1)))
    require_planted(replace(audit, method=replace(method, controls=replace(CONTROLS, general=with_one))), builder)
    assert builder.counters.models_trained == 0


@pytest.mark.slow
def test_an_audit_from_models_to_result(tmp_path):
    target = planted(
        BASE, tiny.pretraining(), tiny.GENERAL, {"suspect": tiny.SUSPECT}, [Exposure(1.0, 2)], "suspect", 0, seed=5
    )
    light = replace(CONTROLS, exposures=[0, 2], related_exposures=[2])
    method = replace(METHOD, controls=light, third=tiny.texts(*tiny.random_texts(40, seed=9), name="third"))
    audit = Audit(target, REFERENCE, tiny.SUSPECT, method, seed=1, corpus_label="suspect")
    result = run_audit(audit, tiny.builder(tmp_path / "store"), tmp_path / "audit")
    controls = result.question.controls
    assert len(controls) == 6
    assert {item.exposure for item in controls.values()} == {NOT_READ, Exposure(1.0, 2)}
    assert result.question.target_exposure == Exposure(1.0, 2)
    assert result.question.models["target"].related == NOT_READ
    assert {item.related for item in controls.values()} == {NOT_READ, Exposure(1.0, 2)}
    assert result.statistics.name == "readings"
    assert (tmp_path / "audit" / "audit.html").exists()
    changes = result.statistics.details["weight_changes"]
    assert set(changes) == {"target", *controls}
    others = [changes[role] for role in controls]
    ratio = max(changes["target"] / max(others), min(others) / changes["target"])
    assert result.statistics.details["gates"]["weights"] == {
        "value": pytest.approx(ratio),
        "bound": 1.15,
        "upper": True,
        "passed": ratio < 1.15,
    }
