"""Joining the results of several methods: apart by claim, invalid parts against it, a contradiction said."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from nonmember.audits.joined import Done, JoinedPart, warnings_about
from nonmember.methods import Auto, Decop, Dose, Prism
from nonmember.methods.auto import PartResult
from nonmember.methods.prism.prism import NEAR
from nonmember.stats.multiplicity import harmonic_mean_p
from reporting import made_up

SETTINGS = {
    "methods": None,
    "given": {},
    "heldout": "same_draw",
    "follows": False,
    "max_models": None,
    "max_tokens_read": None,
    "max_requests": None,
    "combination": "harmonic_mean",
    "alpha": 0.05,
    "max_tokens": 512,
}
AUTO = Auto(**SETTINGS)


def not_used(method, p, decision=None):
    return PartResult(method, decision or said(p, "non_membership"), {"non_membership": p})


def used(method, p, decision=None):
    return PartResult(method, decision or said(p, "membership"), {"membership": p})


def said(p, claim):
    return f"evidence_of_{claim}" if p < SETTINGS["alpha"] else "inconclusive"


def test_claims_are_joined_apart():
    found = AUTO.join([not_used("prism", 0.001), not_used("clearance", 0.01), used("llm_di", 0.6)])
    families = found.details.to_json()["families"]
    assert found.verdict == "evidence_of_non_membership"
    assert found.p_value == families["non_membership"]["p"] == harmonic_mean_p([0.001, 0.01])
    assert families["membership"]["p"] == 0.6
    assert families["non_membership"]["holm"] == {"prism": 0.002, "clearance": 0.01}
    assert "stands prism, clearance" in found.allowed_claim


def test_what_stands_by_itself_is_named():
    found = AUTO.join([used("llm_di", 0.03), used("order", 0.028)])
    assert (found.verdict, "Holm" in found.allowed_claim) == ("inconclusive", False)
    found = AUTO.join([used("llm_di", 0.02), used("order", 0.9)])
    assert (found.verdict, "stands llm_di;" in found.allowed_claim) == ("evidence_of_membership", True)
    found = AUTO.join([used("llm_di", 0.016), used("order", 0.9), used("mc_pdd", 0.9)])
    assert (found.verdict, "llm_di would stand" in found.allowed_claim) == ("inconclusive", True)


def test_an_invalid_part_counts_against():
    alone = AUTO.join([not_used("prism", 0.03)])
    beside = AUTO.join([not_used("prism", 0.03), not_used("clearance", 1e-9, "invalid")])
    assert (alone.verdict, beside.verdict) == ("evidence_of_non_membership", "inconclusive")
    assert beside.details.to_json()["families"]["non_membership"]["parts"]["clearance"] == 1.0


@pytest.mark.parametrize(
    "part",
    [
        not_used("prism", 1e-4, "inconclusive"),  # a gate on the least Delta
        not_used("paired_t", 1e-9, "score_only"),
        used("decop", 5e-17, "inconclusive"),  # the clean works are guessed better
        PartResult("dose", "evidence_of_membership", {"non_membership": 0.001, "membership": 0.03}),
    ],
    ids=lambda part: part.method,
)
def test_nothing_is_said_that_no_part_says(part):
    """Of half a reading the dose meter rules out one reading and more, and none."""
    joined = AUTO.join([part, used("llm_di", 0.4), not_used("clearance", 0.3)])
    assert joined.verdict == "inconclusive"
    assert joined.details.to_json()["families"][next(iter(part.p_values))]["parts"][part.method] == 1.0


def test_a_contradiction_is_invalid_and_says_so():
    found = AUTO.join([not_used("prism", 1e-4), used("llm_di", 1e-4)])
    assert found.verdict == "invalid"
    assert "both reject" in found.allowed_claim


@pytest.mark.parametrize("reason", ["No power here, because ranks are noise.", NEAR])
def test_how_a_part_is_to_be_read_stands_in_the_joined_result(reason):
    part = JoinedPart("prism", models=1, tokens=0, requests=0, compares=False, cells=())
    result = made_up.result(warnings=(reason, "70 documents: below 150 the p-value is unstable."))
    assert list(warnings_about([Done(part, result)])) == [f"prism: {reason}"]


def test_parts_without_a_test_are_no_test():
    found = AUTO.join([PartResult("kds", "score_only", {})])
    assert (found.verdict, np.isnan(found.p_value)) == ("invalid", True)
    assert "No part gave a test" in found.allowed_claim


def test_the_error_of_each_verdict_is_kept():
    """Four tests of one claim that all but agree, of sets of which the opposite is true; alpha is that of all."""
    rng = np.random.default_rng(5)
    z = np.sqrt(0.95) * rng.normal(size=(1500, 1)) + np.sqrt(0.05) * rng.normal(size=(1500, 4))
    verdicts = [
        AUTO.join([not_used(f"m{index}", p) for index, p in enumerate(row)]).verdict for row in stats.norm.sf(z)
    ]
    share = verdicts.count("evidence_of_non_membership") / len(verdicts)
    assert 0.005 < share <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / 1500)


def test_p_values_of_a_result_by_claim():
    assert Prism.p_values({}, 0.2, {}) == {"non_membership": 0.2}
    assert Prism.p_values({}, None, {}) == {}
    two_sided = {"p_value_greater": 0.97}
    assert Decop.p_values({"calibrate": False}, 0.06, two_sided) == {"membership": 0.97}
    known = {"p_value_of_exceeded": 0.4, "controls": [{"dose": 0, "related": 4}]}
    assert Dose.p_values({}, 0.2, known) == {"non_membership": 0.2, "membership": 0.4}
    assert Dose.p_values({}, 0.2, known | {"controls": [{"dose": 0, "related": 0}]}) == {"non_membership": 0.2}


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"methods": ["prism", "prism"]}, "methods must be"),
        ({"methods": ["auto"]}, "names of other methods"),
        ({"combination": "cauchy"}, "combination must be one of harmonic_mean, twice_the_mean"),
        ({"heldout": "yes"}, "heldout must be one of"),
        ({"max_models": -1}, "max_models must be"),
    ],
)
def test_settings_that_cannot_be(change, sentence):
    with pytest.raises(ValueError, match=sentence):
        Auto(**SETTINGS | change)


def test_it_cannot_be_run_as_one_method():
    with pytest.raises(ValueError, match="each as an audit"):
        AUTO.test({}, np.random.default_rng(0))
