"""Text of another date: what stands beside keeps verdicts and numbers apart; what reads no model is told always."""

from __future__ import annotations

import dataclasses

import pytest
from made_up_dose import rival
from reading import block, built, text


def of_release(
    method, dose, against, statistic, *, domain="scipy", verdict="score_only", details=None, sweep="releases_rivals"
):
    made = rival(
        method,
        dose,
        statistic,
        name=f"{domain}-{against}",
        model=f"m-{dose}",
        sweep=sweep,
        verdict=verdict,
        against=against,
    )
    statistics = dataclasses.replace(made.statistics, details=details or {})
    return dataclasses.replace(
        made, question=dataclasses.replace(made.question, world="releases"), statistics=statistics
    )


@pytest.fixture(scope="module")
def sections(dated_paper):
    blind = of_release("blind", 0, "newer", 0.75)
    of_no_model = dataclasses.replace(blind.question, target=None, models={})
    return built(
        dated_paper,
        of_release("llm_di", 0, "newer", -2.0, verdict="found"),
        of_release("llm_di", 0, "newer", 1.0, domain="sympy", verdict="inconclusive"),
        of_release("llm_di", 1, "newer", -4.0, verdict="found"),
        of_release("llm_di", 1, "older", -3.0, verdict="inconclusive"),
        of_release("levels", 1, "older", -3.0, details={"less_both": {"loss": 0.25}, "means": {"loss": -3.0}}),
        dataclasses.replace(blind, question=of_no_model),
        of_release("llm_di", 0, "newer", -9.0, verdict="found", sweep="releases_later_reference"),
    )


def test_who_is_accused(sections):
    verdicts = block(sections["verdicts"], "verdicts-dated")
    assert text(verdicts, "LLM-DI", "nothing, a newer one") == "1† of 2"
    assert text(verdicts, "LLM-DI", "nothing, its own release") == "–"
    assert text(verdicts, "LLM-DI", "1x, a newer one") == "1 of 1"
    assert text(verdicts, "LLM-DI", "1x, its own release") == "0 of 1"


def test_numbers_lie_apart_by_the_date(sections):
    numbers = block(sections["numbers"], "numbers-dated")
    assert text(numbers, "LLM-DI", "nothing, a newer one") == "+0.500 (−1.000 to +2.000)"  # a low t speaks for reading
    assert text(numbers, "loss less reference and held-out", "1x, its own release") == "+0.250"
    assert text(numbers, "blind baseline", "1x, a newer one") == text(numbers, "blind baseline", "nothing, a newer one")
    assert text(numbers, "blind baseline", "1x, its own release") == "–"


def test_a_reference_of_a_later_date_stands_apart(sections):
    """Its audits are none of those above."""
    verdicts, numbers = (block(sections["later"], f"{name}-later_reference") for name in ("verdicts", "numbers"))
    assert text(verdicts, "LLM-DI", "nothing, a newer one") == "1† of 1"
    assert text(numbers, "LLM-DI", "nothing, a newer one") == "+9.000"
