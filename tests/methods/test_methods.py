"""What a method asks for and concludes: a closed set of verdicts, never the opposite of one not found."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

import made_up_methods
import tiny
from made_up_methods import PAIRED_T
from nonmember.methods import Blind, RankAgreement, RankShift, Roles, ScoredDocuments
from nonmember.methods.prism.prism import UNGATED
from nonmember.models import Pretrained
from nonmember.records import Corpus, Document
from nonmember.scores import MinKPlusPlus
from nonmember.training import Trained

DISTILLATION = tiny.distillation()
PRISM = replace(made_up_methods.PRISM, num_resamples=500)
ROLES = Roles(Pretrained("the/target"), Pretrained("the/reference"), tiny.SUSPECT, seed=9)


def role_scores(n: int, *, like_reference: float, like_distilled: float, seed: int = 0) -> ScoredDocuments:
    """A target that agrees with the reference and with the distilled model to given degrees (0 to 1)."""
    rng = np.random.default_rng(seed)
    target = rng.normal(size=n)

    def other(degree: float) -> np.ndarray:
        return degree * target + np.sqrt(1 - degree**2) * rng.normal(size=n)

    values = {"target": target, "reference": other(like_reference), "distilled": other(like_distilled)}
    return ScoredDocuments(tuple(f"d{index}" for index in range(n)), values)


def models_of(method) -> dict:
    """The models of the one group, by role, all on the suspect documents and by the method's score."""
    (group,) = method.groups(ROLES).values()
    assert all(
        item.corpus is group.corpus is ROLES.suspect and item.score == method.score for item in group.measured.values()
    )
    assert all(name == item.role for name, item in group.measured.items())
    return {name: item.model for name, item in group.measured.items()}


def prism(scores: ScoredDocuments, **changes):
    return replace(PRISM, **changes).test({"suspect": scores}, np.random.default_rng(1))


CLEARED = {"like_reference": 0.95, "like_distilled": 0.3}


def test_the_models_it_needs():
    models = models_of(PRISM)
    assert list(models) == ["target", "reference", "distilled"]
    assert (models["target"], models["reference"]) == (ROLES.target, ROLES.reference)
    distilled = models["distilled"]
    assert distilled == Trained(ROLES.reference, DISTILLATION, tiny.SUSPECT, seed=9, teacher=ROLES.target)
    assert distilled.label == "distilled-reference-from-target"
    assert models_of(PAIRED_T) == {"target": ROLES.target, "distilled": distilled}


def test_a_smaller_agreement_with_the_distilled_reference_is_evidence_of_non_membership():
    outcome = prism(role_scores(200, **CLEARED))
    assert outcome.verdict == "evidence_of_non_membership"
    assert outcome.p_value == pytest.approx(1 / 501)
    assert outcome.statistic > 0.3
    assert outcome.ci_low < outcome.statistic < outcome.ci_high
    assert outcome.warnings == (UNGATED,)
    assert "not trained on this dataset as a whole" in outcome.allowed_claim
    assert "nothing about single documents" in outcome.allowed_claim
    assert len(outcome.distribution) == 500


@pytest.mark.parametrize("agreement", [(0.3, 0.95), (0.8, 0.8)])
def test_no_evidence_is_inconclusive_and_never_the_opposite(agreement):
    outcome = prism(role_scores(200, like_reference=agreement[0], like_distilled=agreement[1]))
    assert outcome.p_value > 0.05
    assert outcome.verdict == "inconclusive"
    assert "not evidence that the dataset was used" in outcome.allowed_claim


def test_p_equal_to_alpha_is_not_below_it(monkeypatch):
    monkeypatch.setattr("nonmember.stats.bootstrap.draws_to_add", lambda *_: 0)  # which would move p
    scores = role_scores(200, **CLEARED)
    margin = prism(scores).statistic * 0.7
    p_value = prism(scores, margin=margin).p_value
    assert 0.003 < p_value < 0.5
    assert prism(scores, margin=margin, alpha=p_value).verdict == "inconclusive"
    assert prism(scores, margin=margin, alpha=p_value * 1.001).verdict == "evidence_of_non_membership"


def test_the_margin_must_be_exceeded():
    scores = role_scores(200, **CLEARED)
    delta = prism(scores).statistic
    assert prism(scores, margin=delta + 0.2).verdict == "inconclusive"
    assert prism(scores, margin=0.1).p_value == prism(scores).details.to_json()["p_value_at_margin_0.1"]


@pytest.mark.parametrize(
    ("n", "verdict", "warning"),
    [
        (29, "invalid", "29 documents are left; the test needs at least 30"),
        (30, "evidence_of_non_membership", "30 documents: below 150 the p-value is unstable"),
        (149, "evidence_of_non_membership", "149 documents: below 150 the p-value is unstable"),
        (150, "evidence_of_non_membership", None),
        (1000, "evidence_of_non_membership", None),
        (1001, "evidence_of_non_membership", "1001 documents: above 1000 the small positive Delta"),
    ],
)
def test_the_number_of_documents(n, verdict, warning):
    outcome = prism(role_scores(n, **CLEARED), num_resamples=200)
    assert outcome.verdict == verdict
    assert outcome.warnings[-1] == UNGATED
    assert len(outcome.warnings) == 1 + (warning is not None)
    assert warning is None or outcome.warnings[0].startswith(warning)
    assert ("nothing may be concluded" in outcome.allowed_claim) == (verdict == "invalid")


def test_constant_scores_are_invalid():
    scores = role_scores(200, **CLEARED)
    constant = replace(scores, values=scores.values | {"distilled": np.ones(200)})
    outcome = prism(constant)
    assert outcome.verdict == "invalid"
    assert outcome.p_value == 1.0
    assert np.isnan(outcome.statistic)
    assert "100.0% of the resamples have no rank correlation" in outcome.warnings[0]
    assert outcome.details.to_json()["num_undefined_resamples"] == 500
    assert outcome.details.to_json()["num_tied_scores"] == {"target": 0, "reference": 0, "distilled": 199}


def test_one_in_a_hundred_undefined_resamples_is_too_many():
    # One value differs: (1 - 1/n)^n, some 37% of the resamples miss it and are constant.
    scores = role_scores(200, **CLEARED)
    nearly = replace(scores, values=scores.values | {"distilled": np.eye(200)[0]})
    outcome = prism(nearly)
    assert outcome.verdict == "invalid"
    assert outcome.details.to_json()["num_undefined_resamples"] == pytest.approx(0.37 * 500, rel=0.2)
    # Six of them: 0.2%, which may be.
    few = replace(scores, values=scores.values | {"distilled": np.eye(200)[:6].sum(0)})
    assert prism(few).verdict == "evidence_of_non_membership"


@pytest.mark.parametrize("metric", ["spearman", "kendall"])
def test_its_numbers_are_those_of_the_two_correlations(metric):
    scores = role_scores(60, **CLEARED)
    outcome = prism(scores, rank_metric=metric)
    details = outcome.details.to_json()
    assert outcome.statistic == pytest.approx(details["rho_reference_target"] - details["rho_distilled_target"])
    mirrored = prism(
        replace(scores, values={role: -values for role, values in scores.values.items()}), rank_metric=metric
    )
    assert (mirrored.statistic, mirrored.p_value) == pytest.approx((outcome.statistic, outcome.p_value))


@pytest.mark.parametrize("shift", [-5.0, 0.0, 5.0])
def test_paired_t_is_never_more_than_a_score(shift):
    scores = role_scores(60, like_reference=0.9, like_distilled=0.9)
    moved = replace(scores, values=scores.values | {"distilled": scores.values["distilled"] + shift})
    outcome = PAIRED_T.test({"suspect": moved}, np.random.default_rng(1))
    assert outcome.verdict == "score_only"
    assert (outcome.p_value < 0.05) == (shift > 0)  # H1: the target's scores are lower
    assert outcome.details.to_json()["mean_difference"] == pytest.approx(-shift, abs=0.2)
    assert outcome.allowed_claim.startswith("None")


def test_paired_t_by_hand():
    target, distilled = np.array([-1.2, -0.8, -1.5, -0.9]), np.array([-1.0, -0.7, -1.1, -1.0])
    scores = ScoredDocuments(("a", "b", "c", "d"), {"target": target, "distilled": distilled})
    outcome = PAIRED_T.test({"suspect": scores}, np.random.default_rng(1))
    assert outcome.statistic == pytest.approx(-1.441153, abs=1e-6)
    assert outcome.p_value == pytest.approx(0.122597, abs=1e-6)
    assert np.isnan([outcome.ci_low, outcome.ci_high]).all()


def test_paired_t_of_equal_differences_warns():
    values = np.arange(40.0)
    outcome = PAIRED_T.test(
        {"suspect": ScoredDocuments((), {"target": values, "distilled": values})}, np.random.default_rng(1)
    )
    assert outcome.warnings[0].startswith("All 40 differences equal")
    assert outcome.verdict == "score_only"


@pytest.mark.parametrize(
    "changes",
    [
        {"alpha": 0.0},
        {"alpha": 1},
        {"margin": -0.1},
        {"num_resamples": 0},
        {"rank_metric": "pearson"},
        {"max_tokens": 1},
    ],
)
def test_settings_that_make_no_sense_are_refused_at_once(changes):
    with pytest.raises(ValueError, match=next(iter(changes))):
        replace(PRISM, **changes)


# Rank agreement and rank shift -----------------------------------------------------------------------------------

AGREEMENT = RankAgreement(score=MinKPlusPlus(0.2), rank_metric="spearman", num_resamples=300, alpha=0.05, max_tokens=64)
SHIFT = RankShift(score=MinKPlusPlus(0.2), num_bins=10, num_resamples=300, alpha=0.05, max_tokens=64)


def test_agreement_is_a_number_without_a_decision():
    assert models_of(AGREEMENT) == {"target": ROLES.target, "reference": ROLES.reference}
    scores = role_scores(200, **CLEARED)
    outcome = AGREEMENT.test({"suspect": scores}, np.random.default_rng(1))
    rho = stats.spearmanr(scores.values["reference"], scores.values["target"]).statistic
    assert outcome.statistic == outcome.details.to_json()["rho_reference_target"] == pytest.approx(rho)
    assert outcome.ci_low < rho < outcome.ci_high
    assert (outcome.verdict, np.isnan(outcome.p_value)) == ("score_only", True)
    constant = replace(scores, values=scores.values | {"target": np.ones(200)})
    assert AGREEMENT.test({"suspect": constant}, np.random.default_rng(1)).verdict == "invalid"


def test_shift_by_hand():
    """Reversed ranks: the most surprising document goes from the last rank, 40, to the first, and so on."""
    before = np.arange(40.0)  # the score: document 0 is the most surprising one
    outcome = SHIFT.test(
        {"suspect": ScoredDocuments((), {"reference": before, "target": -before})}, np.random.default_rng(1)
    )
    assert outcome.statistic == pytest.approx(-1.0)
    assert outcome.details.to_json()["points"][0] == [0.0, -39.0]  # x = minus the score; rank 1 after, 40 before
    assert outcome.details.to_json()["points"][39] == [-39.0, 39.0]
    assert outcome.details.to_json()["slope_per_unit_of_surprise"] == pytest.approx(-2.0)
    bins = outcome.details.to_json()["bins"]
    assert [item["count"] for item in bins] == [4] * 10
    assert bins[0]["x"] == pytest.approx(-37.5)
    assert bins[0]["mean"] == pytest.approx(36.0)
    assert json.loads(json.dumps(outcome.details.to_json(), allow_nan=False)) == outcome.details.to_json()


def test_shift_of_noise_shows_regression_to_the_mean():
    """Neither model read anything, and yet the surprising documents rise: why the figure needs its control."""
    scores = role_scores(400, like_reference=0.7, like_distilled=0.5)
    assert SHIFT.test({"suspect": scores}, np.random.default_rng(1)).statistic < -0.2


def test_shift_of_equal_ranks_is_invalid():
    same = ScoredDocuments((), {"reference": np.arange(40.0), "target": np.arange(40.0) * 2})
    outcome = SHIFT.test({"suspect": same}, np.random.default_rng(1))
    assert outcome.verdict == "invalid"
    with pytest.raises(ValueError, match="num_bins"):
        replace(SHIFT, num_bins=1)


# Methods that compare with held-out text -------------------------------------------------------------------------

LLM_DI = replace(
    made_up_methods.LLM_DI, perturbations=(), reference_features=False, fit_size=1000, num_splits=10, num_steps=200
)
BLIND = Blind(num_folds=5, inverse_penalty=1.0, num_resamples=100, alpha=0.05, max_tokens=64)
HELDOUT = tiny.texts(*tiny.random_texts(34, seed=3), name="heldout")


def test_both_need_held_out_text():
    for method in (LLM_DI, BLIND):
        with pytest.raises(ValueError, match="compares the suspect set with text of the same kind"):
            method.groups(ROLES)
    groups = LLM_DI.groups(replace(ROLES, heldout=HELDOUT))
    assert list(groups) == ["suspect", "heldout"]
    for name, corpus in (("suspect", tiny.SUSPECT), ("heldout", HELDOUT)):
        assert len(groups[name].measured) == 16
        assert {item.model for item in groups[name].measured.values()} == {ROLES.target}
        assert {item.role for item in groups[name].measured.values()} == {"target"}
        assert all(item.corpus is corpus for item in groups[name].measured.values())


def test_optional_features():
    more = replace(LLM_DI, perturbations=("butter_fingers", "underscore_trick"), reference_features=True)
    names = [score.name for score in more.features()]
    assert len(names) == len(set(names)) == 16 + 2 * 4 + 2
    with pytest.raises(ValueError, match="perturbation must be one of"):
        replace(LLM_DI, perturbations=("synonyms",))


def features(shift: float, seed: int, n: int = 60) -> ScoredDocuments:
    rng = np.random.default_rng(seed)
    values = {f"f{index}": rng.normal(size=n) + shift * (index == 0) for index in range(4)}
    return ScoredDocuments(tuple(f"d{index}" for index in range(n)), values)


def test_dataset_inference_finds_a_shift_and_says_nothing_of_its_absence():
    found = LLM_DI.test({"suspect": features(2.0, 1), "heldout": features(0.0, 2)}, np.random.default_rng(1))
    assert found.verdict == "evidence_of_membership"
    assert found.p_value < 0.01
    assert found.statistic < 0
    assert found.details.to_json()["weights"]["f0"] < 0  # the larger, the more it speaks for the suspect set
    assert "draws from one distribution" in found.allowed_claim
    nothing = LLM_DI.test({"suspect": features(0.0, 1), "heldout": features(0.0, 2)}, np.random.default_rng(1))
    assert nothing.verdict == "inconclusive"
    assert "not evidence that the dataset was not used" in nothing.allowed_claim
    assert len(nothing.details.to_json()["p_values"]) == 10
    assert nothing.details.to_json()["num_heldout"] == 60
    assert list(nothing.details.to_json()["weights"]) == ["f0", "f1", "f2", "f3"]
    assert json.loads(json.dumps(nothing.details.to_json(), allow_nan=False)) == nothing.details.to_json()


@pytest.mark.parametrize(
    ("method", "scores"),
    [
        (PRISM, role_scores(120, like_reference=0.6, like_distilled=0.5)),
        (PAIRED_T, role_scores(120, **CLEARED)),
        (LLM_DI, features(1.0, 1, 120)),
    ],
    ids=["prism", "paired_t", "llm_di"],
)
def test_documents_of_one_cluster_are_drawn_together(method, scores):
    """Where the question says so; and too few clusters are refused, or invalid where they became too few."""

    def of(size: int) -> ScoredDocuments:
        return replace(scores, cluster_ids=tuple(f"work{index // size}" for index in range(120)))

    def p_of(documents: ScoredDocuments, unit: str) -> float:
        method_by_unit = replace(method, sampling_unit=unit)
        assert ("sampling_unit" in method_by_unit.settings()) == (unit == "cluster")
        others = {"heldout": of(1)} if method is LLM_DI else {}
        return method_by_unit.test({"suspect": documents, **others}, np.random.default_rng(1)).p_value

    by_document = p_of(of(4), "document")
    assert by_document == p_of(of(1), "cluster") == p_of(of(1), "document") != p_of(of(4), "cluster")
    assert np.isnan(p_of(of(30), "cluster"))
    few = Corpus(tuple(Document(f"d{index}", f"text {index}", f"work{index // 30}") for index in range(120)))
    replace(method, sampling_unit="document").check({"suspect": few})
    with pytest.raises(ValueError, match="needs at least 10 clusters in each set; the suspect set has 4"):
        replace(method, sampling_unit="cluster").check({"suspect": few})


def written(name: str, extra: str, seed: int, n: int = 60) -> ScoredDocuments:
    texts = tuple(f"{text} {extra}" for text in tiny.random_texts(n, seed=seed))
    return ScoredDocuments(tuple(f"{name}{index}" for index in range(n)), {}, ("",) * n, texts)


def test_blind_baseline_sees_what_the_text_gives_away():
    same = BLIND.test({"suspect": written("a", "", 1), "heldout": written("b", "", 2)}, np.random.default_rng(1))
    assert (same.verdict, same.warnings) == ("score_only", ())
    assert same.statistic < 0.6
    assert same.details.to_json()["auc"]["years"] == 0.5
    assert same.statistic == max(same.details.to_json()["auc"]["words"], same.details.to_json()["auc"]["characters"])
    told = BLIND.test({"suspect": written("a", "in 2024", 1), "heldout": written("b", "", 2)}, np.random.default_rng(1))
    assert told.details.to_json()["auc"]["years"] == 1.0
    assert told.statistic == 1.0
    assert "above 0.6" in told.warnings[0]
    assert json.loads(json.dumps(told.details.to_json(), allow_nan=False)) == told.details.to_json()
