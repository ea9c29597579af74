"""A real model: readings are those that were planted, since nobody knows what it had read before."""

from __future__ import annotations

import dataclasses

import pytest
from made_up_dose import rival
from reading import block, built, text

from nonmember.results.result import Verdict

READINGS = {"never": 0, "once": 1, "four_times": 4}


def of_continuation(method, reading, statistic, *, domain="scipy", sweep="smollm", verdict="score_only", **bounds):
    """What the recipe does not tell, as of a published model's unread sets, is left open in the result."""
    made = rival(
        method,
        READINGS[reading],
        statistic,
        name=f"{domain}-a",
        model=f"m-{reading}",
        sweep=sweep,
        verdict=verdict,
        reading=reading,
    )
    models = dict(made.question.models)
    if reading == "never":
        models["target"] = dataclasses.replace(models["target"], exposure=None)
    question = dataclasses.replace(made.question, world="smollm", models=models)
    statistics = dataclasses.replace(made.statistics, **bounds)
    return dataclasses.replace(made, question=question, statistics=statistics)


@pytest.fixture(scope="module")
def sections(real_model_paper):
    weak = of_continuation("pacost", "once", None, sweep="smollm_asked", verdict="invalid")
    weak = dataclasses.replace(weak, verdict=Verdict("invalid", "Nothing.", ("Half of the answers were no list.",)))
    return built(
        real_model_paper,
        *(of_continuation("kds", "never", value, domain=name) for name, value in (("scipy", 0.1), ("torch", 0.3))),
        *(of_continuation("kds", "once", value, domain=name) for name, value in (("scipy", 0.2), ("torch", 0.5))),
        of_continuation("dose", "never", 0.2, ci_low=0.0, ci_high=0.7, verdict="cleared"),
        of_continuation("dose", "four_times", 3.6, ci_low=3.0, ci_high=None, verdict="found"),
        weak,
    )


def test_statistics_by_what_was_planted(sections):
    found = block(sections["numbers"], "numbers")
    assert text(found, "KDS", "nothing") == "+0.200 (+0.100 to +0.300)"
    assert text(found, "KDS", "1x") == "+0.350 (+0.200 to +0.500)"


def test_estimated_readings_of_each_set(sections):
    found = block(sections["readings"], "readings")
    assert (text(found, "scipy", "nothing"), text(found, "scipy", "4x")) == ("0.2 (0.0 to 0.7)", "3.6 (3.0 to –)")


def test_what_a_model_too_weak_to_be_asked_gives_is_invalid_with_the_reason(sections):
    found = block(sections["asked"], "asked")
    assert text(found, "pacost", "1x") == "invalid"
    assert found.notes == ("pacost, 1x: Half of the answers were no list.",)


def test_one_method_by_two_readings_of_answers_is_two_rows(real_model_paper):
    def decop(reading, value):
        made = of_continuation("decop", "once", value, sweep="smollm_asked")
        question = dataclasses.replace(made.question, settings={"reading": reading})
        return dataclasses.replace(made, question=question)

    found = block(built(real_model_paper, decop("text", 0.1), decop("probabilities", 0.3))["asked"], "asked")
    assert text(found, "decop", "1x") == "score only, difference in accuracy 0.100"
    assert text(found, "decop, by probabilities of letters", "1x") == "score only, difference in accuracy 0.300"


def test_settings_of_prism_and_other_training(real_model_paper):
    def prism(reading, statistic, p, verdict, *, sweep, **settings):
        made = of_continuation("prism", reading, statistic, sweep=sweep, verdict=verdict, p_value=p)
        question = dataclasses.replace(made.question, world="smollm_kinds", settings=settings)
        return dataclasses.replace(made, question=question)

    sections = built(
        real_model_paper,
        prism("never", 0.3, 0.01, "cleared", sweep="k", score={"k": 0.1}),
        prism("once", 0.25, 0.02, "cleared", sweep="k", score={"k": 0.1}),
        prism("once", 0.1, 0.2, "inconclusive", sweep="k", score={"k": 0.5}),
        prism("four_times", -0.1, 0.9, "invalid", sweep="smollm_later"),
    )
    by_k = block(sections["settings"], "k")
    assert text(by_k, "scipy, nothing", "K = 0.1") == "+0.300 (0.010)"
    assert text(by_k, "scipy, 1x", "K = 0.1") == "+0.250 (0.020)†"
    assert text(by_k, "scipy, 1x", "K = 0.5") == "+0.100 (0.200)"
    assert text(by_k, "scipy, nothing", "K = 0.5") == "–"
    trained = block(sections["trained"], "trained")
    assert text(trained, "PRISM, then other text", "4x") == "+0.100 (0.900)⊘", "a low Delta speaks for reading"


def of_published(method, classes, statistic, *, domain="scipy", verdict="score_only", details=None):
    made = rival(
        method, 0, statistic, name=f"{domain}-{classes}", sweep="smollm_published", verdict=verdict, classes=classes
    )
    question = dataclasses.replace(made.question, world="published")
    return dataclasses.replace(
        made, question=question, statistics=dataclasses.replace(made.statistics, details=details or {})
    )


def test_the_published_model_is_told_by_what_was_compared(real_model_paper):
    sections = built(
        real_model_paper,
        of_continuation("dose", "never", 0.2, ci_low=0.0, ci_high=0.7, verdict="cleared"),
        of_published("llm_di", "older_newer", -1.5, verdict="found"),
        of_published("llm_di", "older_newer", -0.5, domain="pandas"),
        of_published("llm_di", "both_newer", 0.5),
        of_published("levels", "older_newer", -2.0, details={"less_heldout": {"minkpp(0.2)": 0.25}}),
    )
    assert len(sections["published"].commands) == len(sections["readings"].commands) == 1, "of the world that has them"
    assert not sections["readings"].notes
    table = block(sections["published"], "published")
    assert text(table, "LLM-DI", "older against newer") == "+1.000 (+0.500 to +1.500)"  # a low t speaks for reading
    assert text(table, "LLM-DI", "newer against newer") == "\u22120.500"
    assert text(table, "LLM-DI", "older against older") == "–"
    assert text(table, "Min-K%++ less held-out", "older against newer") == "+0.250"
    assert any("1 of 2 (older against newer); 0 of 1 (newer against newer)" in note for note in table.notes)
