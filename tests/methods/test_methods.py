"""What a method asks for and concludes: a closed set of verdicts, never the opposite of one not found."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

import tiny
from nonmember.methods import PairedT, Prism, Roles, RoleScores
from nonmember.models.specs import Pretrained, Trained
from nonmember.scores import MinKPlusPlus

DISTILLATION = tiny.distillation()
PRISM = Prism(
    score=MinKPlusPlus(0.2),
    distillation=DISTILLATION,
    rank_metric="spearman",
    num_resamples=500,
    alpha=0.05,
    margin=0.0,
    max_tokens=64,
)
PAIRED_T = PairedT(score=MinKPlusPlus(0.2), distillation=DISTILLATION, alpha=0.05, max_tokens=64)
ROLES = Roles(Pretrained("the/target"), Pretrained("the/reference"), tiny.SUSPECT, seed=9)


def role_scores(n: int, *, like_reference: float, like_distilled: float, seed: int = 0) -> RoleScores:
    """A target that agrees with the reference and with the distilled model to given degrees (0 to 1)."""
    rng = np.random.default_rng(seed)
    target = rng.normal(size=n)

    def other(degree: float) -> np.ndarray:
        return degree * target + np.sqrt(1 - degree**2) * rng.normal(size=n)

    values = {"target": target, "reference": other(like_reference), "distilled": other(like_distilled)}
    return RoleScores(tuple(f"d{place}" for place in range(n)), values)


def prism(scores: RoleScores, **changes):
    return replace(PRISM, **changes).test(scores, np.random.default_rng(1))


CLEARED = {"like_reference": 0.95, "like_distilled": 0.3}


def test_the_models_it_needs():
    models = PRISM.models(ROLES)
    assert list(models) == ["target", "reference", "distilled"]
    assert (models["target"], models["reference"]) == (ROLES.target, ROLES.reference)
    distilled = models["distilled"]
    assert distilled == Trained(ROLES.reference, DISTILLATION, tiny.SUSPECT, seed=9, teacher=ROLES.target)
    assert distilled.label == "distilled-reference-from-target"
    assert PAIRED_T.models(ROLES) == {"target": ROLES.target, "distilled": distilled}


def test_a_smaller_agreement_with_the_distilled_reference_is_evidence_of_non_membership():
    outcome = prism(role_scores(200, **CLEARED))
    assert outcome.verdict == "evidence_of_non_membership"
    assert outcome.p_value == pytest.approx(1 / 501)
    assert outcome.statistic > 0.3
    assert outcome.ci_low < outcome.statistic < outcome.ci_high
    assert outcome.warnings == ()
    assert "not trained on this dataset as a whole" in outcome.allowed_claim
    assert "nothing about single documents" in outcome.allowed_claim
    assert len(outcome.distribution) == 500


@pytest.mark.parametrize("agreement", [(0.3, 0.95), (0.8, 0.8)])
def test_no_evidence_is_inconclusive_and_never_the_opposite(agreement):
    outcome = prism(role_scores(200, like_reference=agreement[0], like_distilled=agreement[1]))
    assert outcome.p_value > 0.05
    assert outcome.verdict == "inconclusive"
    assert "not evidence that the dataset was used" in outcome.allowed_claim


def test_p_equal_to_alpha_is_not_below_it():
    scores = role_scores(200, **CLEARED)
    p_value = prism(scores).p_value
    assert prism(scores, alpha=p_value).verdict == "inconclusive"
    assert prism(scores, alpha=p_value * 1.001).verdict == "evidence_of_non_membership"


def test_the_margin_must_be_exceeded():
    scores = role_scores(200, **CLEARED)
    delta = prism(scores).statistic
    assert prism(scores, margin=delta + 0.2).verdict == "inconclusive"
    assert prism(scores, margin=0.1).p_value == prism(scores).details["p_value_at_margin_0.1"]


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
    assert len(outcome.warnings) == (warning is not None)
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
    assert outcome.details["num_undefined_resamples"] == 500
    assert outcome.details["num_tied_scores"] == {"target": 0, "reference": 0, "distilled": 199}


def test_one_in_a_hundred_undefined_resamples_is_too_many():
    # One value differs: (1 - 1/n)^n, some 37% of the resamples miss it and are constant.
    scores = role_scores(200, **CLEARED)
    nearly = replace(scores, values=scores.values | {"distilled": np.eye(200)[0]})
    outcome = prism(nearly)
    assert outcome.verdict == "invalid"
    assert outcome.details["num_undefined_resamples"] == pytest.approx(0.37 * 500, rel=0.2)
    # Six of them: 0.2%, which may be.
    few = replace(scores, values=scores.values | {"distilled": np.eye(200)[:6].sum(0)})
    assert prism(few).verdict == "evidence_of_non_membership"


@pytest.mark.parametrize("metric", ["spearman", "kendall"])
def test_its_numbers_are_those_of_the_two_correlations(metric):
    scores = role_scores(60, **CLEARED)
    outcome = prism(scores, rank_metric=metric)
    details = outcome.details
    assert outcome.statistic == pytest.approx(details["rho_reference_target"] - details["rho_distilled_target"])
    mirrored = prism(
        replace(scores, values={role: -values for role, values in scores.values.items()}), rank_metric=metric
    )
    assert (mirrored.statistic, mirrored.p_value) == pytest.approx((outcome.statistic, outcome.p_value))


def test_draws_come_from_the_generator_alone():
    scores = role_scores(60, **CLEARED)
    one, other = (prism(scores).distribution for _ in range(2))
    assert np.array_equal(one, other)
    assert not np.array_equal(one, PRISM.test(scores, np.random.default_rng(2)).distribution)


def test_what_is_told_is_plain_json():
    for method in (PRISM, PAIRED_T):
        details = method.test(role_scores(60, **CLEARED), np.random.default_rng(1)).details
        assert json.loads(json.dumps(details, allow_nan=False)) == details


@pytest.mark.parametrize("shift", [-5.0, 0.0, 5.0])
def test_paired_t_is_never_more_than_a_score(shift):
    scores = role_scores(60, like_reference=0.9, like_distilled=0.9)
    moved = replace(scores, values=scores.values | {"distilled": scores.values["distilled"] + shift})
    outcome = PAIRED_T.test(moved, np.random.default_rng(1))
    assert outcome.verdict == "score_only"
    assert (outcome.p_value < 0.05) == (shift > 0)  # H1: the target's scores are lower
    assert outcome.details["mean_difference"] == pytest.approx(-shift, abs=0.2)
    assert outcome.allowed_claim.startswith("None")


def test_paired_t_by_hand():
    target, distilled = np.array([-1.2, -0.8, -1.5, -0.9]), np.array([-1.0, -0.7, -1.1, -1.0])
    scores = RoleScores(("a", "b", "c", "d"), {"target": target, "distilled": distilled})
    outcome = PAIRED_T.test(scores, np.random.default_rng(1))
    assert outcome.statistic == pytest.approx(-1.441153, abs=1e-6)
    assert outcome.p_value == pytest.approx(0.122597, abs=1e-6)
    assert np.isnan([outcome.ci_low, outcome.ci_high]).all()


def test_paired_t_of_equal_differences_warns():
    values = np.arange(40.0)
    outcome = PAIRED_T.test(RoleScores((), {"target": values, "distilled": values}), np.random.default_rng(1))
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
