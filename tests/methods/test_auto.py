"""What method=auto says from at most two tests: each verdict is a part's own, and a contradiction is said."""

from __future__ import annotations

import numpy as np
import pytest

from nonmember.config.auto import p_values_of
from nonmember.methods import Auto, Decop, Dose, Prism
from nonmember.methods.auto import VERDICTS, AutoDetails, ChosenTest, Found

AUTO = Auto({}, "same_draw", follows=False, alpha=0.05, max_tokens=512)


def outcome(**tests):
    """tests: claim -> (method, p, verdict)."""
    made = {
        claim: {
            "method": method,
            "p_value": p,
            "p_error": None,
            "verdict": verdict,
            "null_hypothesis": f"{claim} of nothing",
            "guarantee": "exact",
            "because": "",
            "next": "",
            "result": f"parts/{method}/result.json",
            "audit": "k",
        }
        for claim, (method, p, verdict) in tests.items()
    }
    lacking = {claim: "it needs more" for claim in ("membership", "non_membership") if claim not in made}
    claims = {method: f"What {method} may say." for method, *_ in tests.values()}
    found = Found(AutoDetails(tests=made, lacking=lacking), claims, ("prism: a warning",))
    return Auto(**vars(AUTO) | {"found": found}).test({}, np.random.default_rng(0))


NOT_USED = ("prism", 1e-4, "evidence_of_non_membership")
USED = ("llm_di", 1e-4, "evidence_of_membership")


@pytest.mark.parametrize(
    ("tests", "verdict", "says"),
    [
        ({"non_membership": NOT_USED}, "evidence_of_non_membership", "What prism may say."),
        ({"membership": USED}, "evidence_of_membership", "What llm_di may say."),
        ({"non_membership": NOT_USED, "membership": ("llm_di", 0.4, "inconclusive")}, NOT_USED[2], "p = 0.4 by llm_di"),
        ({"non_membership": NOT_USED, "membership": USED}, "invalid", "Both tests conclude"),
        # A gate failed, or the works of the other set are guessed better: what a part does not say is not said.
        ({"non_membership": ("prism", 1e-9, "invalid")}, "inconclusive", "prism: invalid"),
        ({"membership": ("decop", 1e-9, "inconclusive")}, "inconclusive", "not used: no test; it needs more"),
        # Half a set read once: the dose meter rules out one reading and none, and says what it says.
        ({"membership": ("dose", 0.03, USED[2]), "non_membership": ("dose", 0.001, USED[2])}, USED[2], "p = 0.001"),
        ({}, "score_only", "No test could be run"),
    ],
)
def test_the_verdict_is_a_part_s_own(tests, verdict, says):
    found = outcome(**tests)
    assert found.verdict == verdict
    assert says in found.allowed_claim
    decisive = [item[1] for claim, item in tests.items() if VERDICTS[claim] == item[2]]
    if len(decisive) == 1:
        assert (found.p_value, found.null_hypothesis) == (decisive[0], f"{found.claim} of nothing")
    else:
        assert np.isnan(found.p_value), "none decides, or they contradict each other"
    assert found.warnings[-1] == "prism: a warning"
    assert found.details.to_json()["tests"] == {claim: dict(item) for claim, item in found.details.tests.items()}


def test_the_question_names_the_audits_it_rests_on():
    found = Found(
        AutoDetails(tests={"membership": {**dict.fromkeys(ChosenTest.__annotations__), "audit": "k"}}, lacking={}),
        {},
        (),
    )
    assert "parts" not in AUTO.settings()
    assert Auto(**vars(AUTO) | {"found": found}).settings()["parts"] == {"membership": "k"}


def test_p_values_of_a_result_by_claim():
    assert p_values_of(Prism, {}, 0.2, {}) == {"non_membership": 0.2}
    assert p_values_of(Prism, {}, None, {}) == {}
    assert p_values_of(Decop, {"calibrate": False}, 0.06, {"p_value_greater": 0.97}) == {"membership": 0.97}
    known = {"p_value_of_exceeded": 0.4, "p_value_of_excluded": 0.2, "controls": [{"dose": 0, "related": 4}]}
    assert p_values_of(Dose, {}, 0.2, known) == {"non_membership": 0.2, "membership": 0.4}
    assert p_values_of(Dose, {}, 0.2, known | {"controls": [{"dose": 0, "related": 0}]}) == {"non_membership": 0.2}


def test_it_cannot_be_run_as_one_method():
    with pytest.raises(ValueError, match="each as an audit"):
        AUTO.test({}, np.random.default_rng(0))
