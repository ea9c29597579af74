"""Results of the dose study that no audit has made."""

from __future__ import annotations

import dataclasses
import itertools

import made_up

from nonmember.records.exposure import Exposure
from nonmember.results.result import AuditedModel

VERDICTS = {"cleared": "evidence_of_non_membership", "found": "evidence_of_membership"}


def planted(target, name, model, verdict, data, **given):
    """An audit of a target that read so. verdict: cleared, found, or as results have it.   model: its key."""
    plain = {"half": "reported", "set": name, "domain": name.partition("-")[0], "base": "s", "place": 0, "run": 302}
    made = made_up.result(
        world="dose_study",
        corpus=name,
        data=plain | data,
        verdict=VERDICTS.get(verdict, verdict),
        truth=None,
        keys={"audit": "0" * 16, "target": model},
        **given,
    )
    question = dataclasses.replace(made.question, models={**made.question.models, "target": target})
    return dataclasses.replace(made, question=question)


def audit(
    dose=0,
    related=0,
    verdict="inconclusive",
    *,
    name="scipy-a",
    model="m0",
    estimate=None,
    low=0.0,
    high=None,
    cleared=None,
    sweep="dose_reported",
    share=1.0,
    **data,
):
    """By the dose meter."""
    target = AuditedModel(Exposure(share, dose), root="micro_s", related=Exposure(1.0, related))
    told = {
        "statistic": float(dose) if estimate is None else estimate,
        "p_value": 0.5,
        "ci_low": low,
        "ci_high": high,
        "num_documents": 100,
        "details": {"cleared_dose": cleared, "panel": "v1"},
    }
    return planted(target, name, model, verdict, data, method="dose", sweep=sweep, **told)


def rival(
    method, dose, statistic, *, name="scipy-a", model="m0", verdict="score_only", sweep="arena", seconds=1.0, **data
):
    """By another method."""
    target, told = AuditedModel(Exposure(1.0, dose), root="micro_s"), {"statistic": statistic, "seconds": seconds}
    return planted(target, name, model, verdict, data, method=method, sweep=sweep, **told)


def study():
    """Three libraries, two sets each, six targets."""
    sets = [f"{library}-{half}" for library in ("scipy", "sympy", "torch") for half in "ab"]
    targets = ((0, 0), (0, 4), (1, 0), (1, 4), (4, 0), (8, 1))
    for (place, name), (number, (dose, related)) in itertools.product(enumerate(sets), enumerate(targets)):
        yield audit(dose, related, name=name, model=f"m{10 * place + number}")
