"""A real model: readings are those that were planted, since nobody knows what it had read before."""

from __future__ import annotations

import dataclasses

from made_up_dose import rival
from reading import block, built, text

READINGS = {"never": 0, "once": 1, "four_times": 4}


def of_continuation(method, reading, statistic, *, domain="scipy", sweep="smollm", settings=None, **more):
    """What the recipe does not tell, as of a published model's unread sets, is left open in the result."""
    dose = READINGS[reading]
    made = rival(method, dose, statistic, name=f"{domain}-a", model=f"m-{reading}", sweep=sweep, reading=reading)
    models = {**made.question.models, "target": dataclasses.replace(made.question.models["target"], exposure=None)}
    question = dataclasses.replace(made.question, world="smollm_kinds", models=models, settings=settings or {})
    return dataclasses.replace(made, question=question, statistics=dataclasses.replace(made.statistics, **more))


def test_numbers_stand_under_what_was_planted(real_model_paper):
    sections = built(
        real_model_paper,
        of_continuation("kds", "never", 0.1),
        of_continuation("kds", "never", 0.3, domain="wikipedia"),
        of_continuation("kds", "once", 0.2),
        of_continuation("dose", "never", 0.2, ci_low=0.0, ci_high=0.7),
        of_continuation("dose", "four_times", 3.6, ci_low=3.0, ci_high=None),
    )
    numbers = block(sections["numbers"], "arena-numbers-smollm-kinds")
    assert text(numbers, "KDS", "nothing") == "+0.200 (+0.100 to +0.300)"
    readings = block(sections["readings"], "arena-readings-smollm-kinds")
    row = "scipy (documentation)"
    assert (text(readings, row, "nothing"), text(readings, row, "4x")) == ("0.2 (0.0 to 0.7)", "3.6 (3.0 to –)")


def test_settings_of_prism(real_model_paper):
    def prism(reading, statistic, p, k):
        settings = {"score": {"k": k}}
        return of_continuation("prism", reading, statistic, sweep="k", settings=settings, p_value=p)

    sections = built(real_model_paper, prism("never", 0.3, 0.01, 0.1), prism("once", 0.1, 0.2, 0.5))
    by_k = block(sections["settings"], "k-smollm-kinds")
    assert text(by_k, "scipy (documentation), nothing", "K = 0.1") == "+0.300 (0.010)"
    assert text(by_k, "scipy (documentation), 1x", "K = 0.5") == "+0.100 (0.200)"
    assert text(by_k, "scipy (documentation), nothing", "K = 0.5") == "–"
