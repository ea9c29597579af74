"""PRISM's gates: no verdict of non-membership from a ruined reference, from the target itself, or from empty text."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

import made_up_methods
import tiny
from made_up_methods import PRISM_GATES
from nonmember.audits.distilled import DIVERGED, UNMEASURED, prepare
from nonmember.audits.distilled import judged as judged_by_audit
from nonmember.audits.preconditions import require_unread_third
from nonmember.audits.question import Audit
from nonmember.audits.run import run_audit
from nonmember.methods import DifferenceInDifferences, Prism, Roles, ScoredDocuments, TestOutcome
from nonmember.methods.gates import above, below
from nonmember.methods.prism.prism import UNGATED
from nonmember.models import Pretrained
from nonmember.results.result import AuditResult
from nonmember.scores import Loss, Wbc
from nonmember.training import Trained

GATES = replace(PRISM_GATES, min_kl_gain=-0.1, max_characters=60)
PRISM = replace(made_up_methods.PRISM, gates=GATES)
GENERAL = tiny.texts(*tiny.random_texts(300, seed=11), name="other")
TARGET, REFERENCE = (
    Trained(tiny.scratch(seed), tiny.pretraining(epochs=8), tiny.GENERAL, seed=seed, label=label)
    for seed, label in ((1, "target"), (2, "reference"))
)
AUDIT = Audit(TARGET, REFERENCE, tiny.SUSPECT, PRISM, seed=7, corpus_label="suspect", general=GENERAL)


@pytest.fixture(scope="module")
def store(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("gates") / "store"


@pytest.fixture
def ask(store, tmp_path):
    def answer(audit: Audit, **compute) -> AuditResult:
        return run_audit(audit, tiny.builder(store, **compute), tmp_path / "run")

    return answer


def at(rate: float, **changes) -> Prism:
    return replace(PRISM, distillation=tiny.distillation(learning_rate=rate), **changes)


def failed(result: AuditResult) -> set[str]:
    return {name for name, gate in result.statistics.details["gates"].items() if not gate["passed"]}


# Whole audits -----------------------------------------------------------------------------------------------


def test_a_distillation_as_it_should_be_passes(ask):
    result = ask(AUDIT)
    assert failed(result) <= {"delta"}
    assert result.verdict.decision in ("evidence_of_non_membership", "inconclusive")
    assert UNGATED not in result.verdict.warnings
    assert {"third", "distilled", "audit"} <= result.provenance.keys.keys()
    assert set(result.statistics.details["power"]) == {
        "rho_reference_target",
        "rho_distilled_target",
        "kl_fall",
        "kl_fall_third",
        "has_power",
    }
    assert result.question.settings["gates"]["min_delta"] == 0.02
    paper = ask(replace(AUDIT, method=replace(PRISM, gates=None)))
    assert (paper.statistics.value, paper.statistics.p_value) == (result.statistics.value, result.statistics.p_value)
    assert paper.verdict.warnings[-1] == UNGATED
    assert not {"gates", "ladder"} & paper.question.settings.keys()
    assert "third" not in paper.provenance.keys
    assert "power" not in paper.statistics.details


@pytest.mark.slow
@pytest.mark.parametrize(("rate", "gate"), [(1.0, "nll_third"), (1e-4, "ce")])
def test_a_rate_a_hundred_times_too_high_or_too_low_is_invalid(ask, rate, gate):
    result = ask(replace(AUDIT, method=at(rate)))
    assert result.verdict.decision == "invalid"
    assert gate in failed(result)
    number = result.statistics.details["gates"][gate]["value"]
    assert any(f"is {number:.3f}, and must be" in warning for warning in result.verdict.warnings)


@pytest.mark.slow
def test_a_reference_that_is_the_target_is_invalid_and_nothing_is_trained(make_model, ask):
    target, copy = Pretrained(str(make_model(5))), Pretrained(str(make_model(5)), dtype="bfloat16")
    result = ask(replace(AUDIT, target=target, reference=copy), measure_health=False)
    assert (result.verdict.decision, result.provenance.made["models_trained"]) == ("invalid", 0)
    assert result.verdict.warnings[0].startswith("The reference is the target: ")
    assert result.statistics.details["rho_reference_target"] > 0.995
    assert "rank_correlation" in failed(result)
    assert result.statistics.p_value is None


@pytest.mark.parametrize(("read", "expected"), [(tiny.GENERAL, "invalid"), (GENERAL, "evidence_of_non_membership")])
def test_a_third_text_that_the_target_has_read_measures_nothing(read, expected, tmp_path):
    """It gained there what it gained on the suspect set: a set read once was cleared that way."""
    asked = replace(AUDIT, heldout=read, heldout_label="given as unread")
    cleared = TestOutcome(alpha=0.05, verdict="evidence_of_non_membership", allowed_claim="It was not read.")
    assert require_unread_third(cleared, asked, tiny.builder(tmp_path)).verdict == expected


def test_texts_without_content_are_invalid(ask):
    rng = np.random.default_rng(0)
    empty = tiny.texts(*(" ".join(rng.permutation(tiny.WORDS)) for _ in range(40)))
    result = ask(replace(AUDIT, target=tiny.scratch(1), reference=tiny.scratch(2), suspect=empty))
    assert result.verdict.decision == "invalid"
    assert result.statistics.details["gates"]["distinct"]["value"] == 1 / 40
    assert "distinct" in failed(result)


def test_another_tokenizer_is_refused_before_weights_are_loaded(make_model, ask, monkeypatch):
    monkeypatch.setattr(Pretrained, "weights", lambda *_: pytest.fail("weights were loaded"))
    other = Pretrained(str(make_model(6, words="zq xj vk " * 50)))
    with pytest.raises(ValueError, match=r"Only .*% of the documents' tokens are the same"):
        ask(replace(AUDIT, target=Pretrained(str(make_model(5))), reference=other))


@pytest.mark.slow
@pytest.mark.parametrize("words", ["", "zq xj vk " * 50])
def test_a_reference_with_another_tokenizer_is_warned_of_where_the_method_lets_it_pass(words, make_model, ask):
    method = DifferenceInDifferences(Loss(), num_permutations=999, alpha=0.05, max_tokens=64)
    heldout = tiny.texts(*tiny.random_texts(40, seed=12))
    models = {"target": Pretrained(str(make_model(5))), "reference": Pretrained(str(make_model(6, words=words)))}
    warnings = ask(replace(AUDIT, method=method, heldout=heldout, **models)).verdict.warnings
    found = [text for text in warnings if "have different tokenizers" in text]
    assert len(found) == bool(words)
    for text in found:
        assert re.search(r"tiny5's \(\w+, \d+ entries\) and tiny6's \(\w+, \d+ entries\): \d\.\d% of", text)


def test_the_default_difference_in_differences_compares_tokens_and_names_what_does_not(make_model, ask, monkeypatch):
    monkeypatch.setattr(Pretrained, "weights", lambda *_: pytest.fail("weights were loaded"))
    method = DifferenceInDifferences(Wbc(), num_permutations=999, alpha=0.05, max_tokens=64)
    models = {
        "target": Pretrained(str(make_model(5))),
        "reference": Pretrained(str(make_model(6, words="zq xj vk " * 50))),
    }
    with pytest.raises(
        ValueError, match=r"of both tiny5 and tiny6; difference_in_differences by wbc.*score@method\.score=loss"
    ):
        ask(replace(AUDIT, method=method, heldout=tiny.texts(*tiny.random_texts(40, seed=12)), **models))


# Numbers alone ----------------------------------------------------------------------------------------------


def documents(n: int = 200, *, rho: float = 0.3, **moved: float) -> dict[str, ScoredDocuments]:
    """A healthy distilled reference that target and reference disagree with; `moved` adds to columns by name."""
    rng = np.random.default_rng(0)
    target = rng.normal(-1, 0.3, size=n)
    noise = {role: rng.normal(0, 0.3, size=n) for role in ("reference", "distilled")}
    values = {
        "target": target,
        "reference": target + 0.3 * noise["reference"],
        "distilled": rho * target + noise["distilled"],
    }
    level = {
        "loss/target": -3.0,
        "loss/reference": -3.2,
        "loss/distilled": -3.0,
        "kl/reference": 0.3,
        "kl/distilled": 0.2,
    }
    columns = {name: np.full(n, value + moved.get(name, 0.0)) for name, value in level.items()}
    third = {name: np.full(n, level[name] + moved.get(f"third/{name}", 0.0)) for name in level}
    third["loss/distilled"] = third["loss/distilled"] - 0.2
    texts = tuple(f"text number {index}" for index in range(n))
    ids = tuple(map(str, range(n)))
    return {
        "suspect": ScoredDocuments(ids, {**values, **columns}, ("",) * n, texts),
        "third": ScoredDocuments(ids, {**values, **third}, ("",) * n, texts),
    }


def judged(given: dict[str, ScoredDocuments], method: Prism = PRISM) -> TestOutcome:
    return method.test(given, np.random.default_rng(1))


def test_healthy_numbers_give_a_verdict():
    outcome = judged(documents())
    assert outcome.verdict == "evidence_of_non_membership"
    assert all(gate["passed"] for gate in outcome.details.to_json()["gates"].values())


@pytest.mark.parametrize(
    ("moved", "gate", "number"),
    [
        ({"loss/distilled": -0.19}, "ce", "0.010"),
        ({"kl/distilled": 0.3}, "kl", "-0.200"),
        ({"third/kl/distilled": 0.4}, "kl_third", "0.300"),
        ({"third/loss/distilled": -0.5}, "nll_third", "0.500"),
        ({"loss/reference": 1.0, "loss/distilled": 1.0}, "reference_gain", "1.000"),
    ],
)
def test_each_gate_gives_its_number(moved, gate, number):
    outcome = judged(documents(**moved))
    assert outcome.verdict == "invalid"
    assert [name for name, told in outcome.details.to_json()["gates"].items() if not told["passed"]] == [gate]
    assert f"is {number}, and must be" in outcome.warnings[0]


@pytest.mark.parametrize(
    ("start", "end", "bound", "passed"),
    [
        (0.039, 0.097, -0.111, True),  # a sibling of the target's, which can only move away
        (0.039, 0.16, -0.111, False),  # one that was near and is no longer
        (0.039, 2.5, -0.111, False),  # ruined
        (0.149, 0.148, -0.001, True),
        (0.3, 0.301, 0.0, False),  # far away, it must come closer
        (0.3, 0.29, 0.0, True),
    ],
)
def test_a_reference_that_starts_near_need_not_come_closer(start, end, bound, passed):
    near = replace(PRISM, gates=replace(GATES, min_kl_gain=0.0))
    moved = {"kl/reference": start - 0.3, "kl/distilled": end - 0.2}
    gate = judged(documents(**moved), near).details.to_json()["gates"]["kl"]
    assert (gate["value"], gate["bound"]) == pytest.approx((start - end, bound))
    assert gate["passed"] == passed
    moved_away_and_cleared = passed and end >= start
    assert any("a single reading may not show" in text for text in judged(documents(**moved), near).warnings) == (
        moved_away_and_cleared
    )


@pytest.mark.parametrize(
    ("on_third", "agreement", "power", "says"),
    [
        # The distilled reference is closer on third text, and the set is not cleared.
        ((0.5, 0.95), 20, False, "differs in general"),
        ((0.95, 0.5), 20, True, ""),
        ((0.95, 0.5), 0.3, True, ""),
        ((0.5, 0.95), 0.3, False, "differs in general"),  # nor is it where Delta is significant
        ((0.1, 0.05), 20, False, "score@method.score=loss"),  # ranks are noise
    ],
)
def test_a_test_that_could_not_have_cleared_says_why(on_third, agreement, power, says):
    given = documents(rho=agreement)
    rng = np.random.default_rng(2)
    target, *noise = rng.normal(size=(3, 200))
    scores = {"target": target} | {
        role: share * target + np.sqrt(1 - share**2) * other
        for role, share, other in zip(("reference", "distilled"), on_third, noise, strict=True)
    }
    third = replace(given["third"], values={**given["third"].values, **scores})
    outcome = judged(given | {"third": third})
    told = outcome.details.to_json()["power"]
    assert told["has_power"] == power
    expected = [stats.spearmanr(scores[role], target).statistic for role in ("reference", "distilled")]
    assert [told["rho_reference_target"], told["rho_distilled_target"]] == pytest.approx(expected)
    assert (told["kl_fall"], told["kl_fall_third"]) == pytest.approx((0.1, 0.1))
    assert outcome.verdict == ("evidence_of_non_membership" if power and agreement < 1 else "inconclusive")
    assert "score=loss" not in GATES.why_no_power(told, "loss"), "no remedy names what was done already"
    warned = [says in text and "dose" in text for text in outcome.warnings if text.startswith("No power")]
    assert warned == [True] * bool(says)
    without = replace(PRISM, gates=replace(GATES, min_third_delta=None, min_third_agreement=None))
    assert "power" not in judged(given, without).details.to_json()


def test_the_same_ranks_under_reference_and_target_are_invalid():
    given = documents()
    values = given["suspect"].values
    same = replace(given["suspect"], values={**values, "reference": values["target"] * 1.01})
    assert judged(given | {"suspect": same}).verdict == "invalid"


def test_scores_that_hardly_differ_are_invalid():
    given = documents()
    values = {
        name: -1 + (column + 1) / 1000 if "/" not in name else column
        for name, column in given["suspect"].values.items()
    }
    outcome = judged(given | {"suspect": replace(given["suspect"], values=values)})
    assert outcome.verdict == "invalid"
    assert "standard deviation of the score" in outcome.warnings[0]


@pytest.mark.parametrize(
    ("moved", "bounds", "says"),
    [
        ({}, {"min_delta": 1.5}, "Delta is 0."),
        ({"loss/target": 0.15}, {}, "on the third text (upper end of a 95% interval; a reading of the set"),
        ({"loss/target": 0.15}, {"max_target_gain": None}, ""),
        ({"loss/target": 0.05}, {}, ""),
        ({"loss/target": 0.15, "third/loss/target": 0.1}, {}, ""),  # a better model everywhere
        ({"loss/target": 0.05, "third/loss/target": -0.1}, {}, "is 0.150, and must be below 0.100"),
        ({"loss/target": 0.05}, {"max_gain_of_start": 0.1}, "is 0.050, and must be below 0.030"),  # of .3 nats
        ({"loss/target": 0.05}, {"max_gain_of_start": 0.2}, ""),
    ],
)
def test_a_significant_delta_that_decides_nothing(moved, bounds, says):
    gates = replace(GATES, **{"max_target_gain": 0.1} | bounds)
    outcome = judged(documents(**moved), replace(PRISM, gates=gates))
    assert outcome.p_value < 0.05
    assert outcome.verdict == ("inconclusive" if says else "evidence_of_non_membership")
    assert says in " ".join(outcome.warnings)


def test_what_the_target_knows_is_said_of_a_set_that_is_not_cleared_anyway():
    outcome = judged(
        documents(rho=20, **{"loss/target": 0.15}), replace(PRISM, gates=replace(GATES, max_target_gain=0.1))
    )
    assert (outcome.verdict, outcome.p_value > 0.05) == ("inconclusive", True)
    assert "difference_in_differences" in outcome.warnings[0]


def test_health_that_was_not_measured_is_no_verdict_of_non_membership():
    cleared = judged(documents(), replace(PRISM, gates=None))
    assert cleared.verdict == "evidence_of_non_membership"
    paper = partial(judged_by_audit, replace(AUDIT, method=replace(PRISM, gates=None)))
    assert paper(cleared, {"ce_after": 1.0, "kl_after": 1.0}).verdict == cleared.verdict
    outcome = paper(cleared, {})
    assert (outcome.verdict, outcome.warnings[0]) == ("invalid", UNMEASURED)
    before, worse = {"ce_before": 1.0, "kl_before": 1.0}, {"ce_after": 1.2, "kl_after": 1.1}
    assert paper(cleared, before | worse | {"ce_after": 0.9}).verdict == cleared.verdict  # it learned something
    outcome = paper(cleared, before | worse)
    assert (outcome.verdict, outcome.warnings[0]) == ("invalid", DIVERGED)


def test_where_nothing_is_left_to_choose_it_is_the_very_audit(tmp_path):
    """Its groups are worked out once."""
    audit = replace(AUDIT, target=tiny.scratch(1), reference=tiny.scratch(2))
    assert prepare(audit, tiny.builder(tmp_path)) is audit


def test_off_is_a_word_and_other_words_are_refused():
    assert replace(PRISM, gates="off").gates is None
    with pytest.raises(ValueError, match="gates=standard or gates=off"):
        replace(PRISM, gates="loose")
    with pytest.raises(ValueError, match=r"gates.min_delta must be a finite number; got 'x'"):
        replace(GATES, min_delta="x")


def test_the_third_text_is_general_text_or_docstrings():
    roles = Roles(TARGET, REFERENCE, tiny.SUSPECT, seed=1)
    assert GATES.third(roles).base.packages == ("numpy",)
    assert GATES.third(replace(roles, general=GENERAL)).base == GENERAL


def test_a_value_that_just_misses_its_bound_is_told_from_it():
    assert above("ce", 0.01984, 0.02, "The gain").sentence == "The gain is 0.0198, and must be above 0.0200."
    assert below("shift", 3.2, 3.0, "The shift").sentence == "The shift is 3.200, and must be below 3.000."
