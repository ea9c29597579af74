"""Results of the dose study that no audit has made."""

from __future__ import annotations

import dataclasses
import itertools

import made_up

from nonmember.records.exposure import Exposure
from nonmember.results.result import AuditedModel

VERDICTS = {"cleared": "evidence_of_non_membership", "found": "evidence_of_membership"}


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
    """verdict: cleared, found, or as results have it.   model: the key of the target."""
    details = {"cleared_dose": cleared, "panel": "v1"}
    made = made_up.result(
        method="dose",
        world="dose_study",
        sweep=sweep,
        corpus=name,
        num_documents=100,
        data={"half": "reported", "set": name, "domain": name.partition("-")[0], "base": "s", "place": 0, "run": 302}
        | data,
        statistic=float(dose) if estimate is None else estimate,
        p_value=0.5,
        ci_low=low,
        ci_high=high,
        verdict=VERDICTS.get(verdict, verdict),
        truth=None,
        details=details,
        keys={"audit": "0" * 16, "target": model},
    )
    return of_target(made, AuditedModel(Exposure(share, dose), root="micro_s", related=Exposure(1.0, related)))


def of_target(made, target):
    question = dataclasses.replace(made.question, models={**made.question.models, "target": target})
    return dataclasses.replace(made, question=question)


def rival(
    method,
    dose,
    statistic,
    *,
    name="scipy-a",
    model="m0",
    verdict="score_only",
    sweep="dose_rivals",
    seconds=1.0,
    **data,
):
    """An audit by another method."""
    made = made_up.result(
        method=method,
        world="dose_study",
        sweep=sweep,
        corpus=name,
        statistic=statistic,
        data={"half": "reported", "set": name, "domain": name.partition("-")[0], "base": "s", "place": 0, "run": 302}
        | data,
        verdict=VERDICTS.get(verdict, verdict),
        keys={"audit": "0" * 16, "target": model},
        seconds=seconds,
        truth=None,
    )
    return of_target(made, AuditedModel(Exposure(1.0, dose), root="micro_s"))


def study():
    """Three libraries, two sets each, six targets."""
    sets = [f"{library}-{half}" for library in ("scipy", "sympy", "torch") for half in "ab"]
    targets = ((0, 0), (0, 4), (1, 0), (1, 4), (4, 0), (8, 1))
    for (place, name), (number, (dose, related)) in itertools.product(enumerate(sets), enumerate(targets)):
        yield audit(dose, related, name=name, model=f"m{10 * place + number}")
