"""Results of the dose study that no audit has made."""

from __future__ import annotations

import dataclasses
import itertools
import math

import made_up
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from nonmember.records.exposure import Exposure
from nonmember.results.load import Run
from nonmember.results.result import AuditedModel

READINGS = ((0, 0), (0, 0), (0, 4), (1, 0), (1, 4), (2, 1), (4, 0), (4, 2), (8, 1), (12, 0))  # dose, related
SLOPES = {"first": (0.1, 0.02), "second": (0.05, 0.2)}  # what log(1 + x) of the set and of related text adds
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
    features=None,
    controls=(),
    share=1.0,
    alpha=0.05,
    exclude=1,
    panel="v1",
    **data,
):
    """verdict: cleared, found, or as results have it.   model: the key of the target."""
    details = {
        "cleared_dose": cleared,
        "excluded_dose": exclude,
        "panel": panel,
        "own_base": True,
        "features": features or {},
        "controls": list(controls),
    }
    quantities = {
        "features": {item: {"score": {}, "quantity": "level"} for item in features or {}},
        "shape": None,
        "between": None,
        "version": panel,
    }
    made = made_up.result(
        method="dose",
        world="dose_study",
        sweep=sweep,
        corpus=name,
        num_documents=100,
        alpha=alpha,
        data={"half": "reported", "set": name, "domain": name.partition("-")[0], "base": "s", "place": 0, "run": 302}
        | data,
        settings={"exclude": exclude, "panel": quantities},
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


def traces(dose, related, noise):
    """Features of a model that read so."""
    return {
        name: set_slope * math.log1p(dose) + text_slope * math.log1p(related / (1 + dose)) + item
        for (name, (set_slope, text_slope)), item in zip(SLOPES.items(), noise, strict=True)
    }


def traced(dose=0, related=0, name="scipy-a", seed=0, **more):
    """An audit with features of its controls (the same for all audits of a set) and of its target."""
    by_set, own = np.random.default_rng(sum(name.encode())), np.random.default_rng(1000 + seed)
    controls = [
        {
            "role": f"control-{index}",
            "dose": x,
            "related": r,
            "reading": float(x),
            "features": traces(x, r, by_set.normal(0, 0.004, 2)),
        }
        for index, (x, r) in enumerate(READINGS)
    ]
    return audit(
        dose,
        related,
        name=name,
        features=traces(dose, related, own.normal(0, 0.004, 2)),
        controls=controls,
        model=f"m{seed}",
        **more,
    )


def study(sweep="dose_reported"):
    """Three libraries, two sets each, six targets."""
    sets = [f"{library}-{half}" for library in ("scipy", "sympy", "torch") for half in "ab"]
    targets = ((0, 0), (0, 4), (1, 0), (1, 4), (4, 0), (8, 1))
    for (place, name), (number, (dose, related)) in itertools.product(enumerate(sets), enumerate(targets)):
        yield traced(dose, related, name, 10 * place + number, sweep=sweep)


def with_scores(folder, made, num_documents=60):
    """As a run whose scores of documents give its features, on all of them; the first half of these documents, in the
    order of their hashes, says the same."""
    rng = np.random.default_rng(0)
    ids = [f"document {index}" for index in range(num_documents)]
    third = [f"third {index}" for index in range(20)]
    reference = rng.normal(-3, 1, num_documents + len(third))
    details = made.statistics.details
    columns = {"doc_id": ids + third, "group": ["suspect"] * num_documents + ["third"] * len(third)}
    models = {"target": details["features"], **{item["role"]: item["features"] for item in details["controls"]}}
    for score in details["features"]:
        columns[f"reference/{score}"] = reference
        for role, features in models.items():
            columns[f"{role}/{score}"] = reference + np.r_[np.full(num_documents, features[score]), np.zeros(20)]
    folder.mkdir()
    pq.write_table(pa.table(columns), folder / "scores.parquet")
    return Run(made, f"audits/{folder.name}/result.json", "0" * 64, folder)
