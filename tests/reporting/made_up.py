"""Results that no audit has made."""

from __future__ import annotations

import dataclasses
import itertools
import math
import random
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from flat_results import upgraded
from nonmember.results.result import AuditResult

DOMAINS = ("scipy", "sympy", "torch")
MEMBER, UNTOUCHED = "target+12xA", "target"
MEMBERS = (MEMBER, "target+2xA")

DISTILLATION = {
    "kind": "Distillation",
    "lambda_": 0.7,
    "tau": 2.0,
    "max_tokens": 512,
    "optimization": {"learning_rate": 0.003, "batch_size": 16, "epochs": 1},
}
SCORE = {"kind": "MinKPlusPlus", "k": 0.2, "compat": "none"}


EMPTY: dict[str, Any] = {"heldout": None, "details": {}, "dropped": {}, "excluded": {}, "made": {}}


def result(**given: Any) -> AuditResult:
    """A PRISM result, told flat as earlier versions wrote it; what is not given is empty. `data` and `settings` are
    merged."""
    plain: dict[str, Any] = {
        "method": "prism",
        "target": UNTOUCHED,
        "reference": "reference",
        "world": "micro",
        "sweep": "table2",
        "num_documents": 150,
        "num_excluded": 0,
        "num_tokens": 15_000,
        "alpha": 0.05,
        "seed": 1234,
        "score": "minkpp(0.2)",
        "statistic": 0.25,
        "p_value": 1e-4,
        "ci_low": 0.15,
        "ci_high": 0.35,
        "rho_reference_target": 0.85,
        "rho_distilled_target": 0.60,
        "verdict": "evidence_of_non_membership",
        "allowed_claim": "There is statistical evidence that the target was not trained on this dataset as a whole.",
        "truth": "non_member",
        "warnings": (),
        "keys": {"audit": "0123456789abcdef", "corpus": "c" * 16},
        "versions": {"nonmember": "0.1.0", "python": "3.11.2"},
        "capability": {"target": {"nll": 4.2, "num_parameters": 7e5}, "reference": {"nll": 4.1, "num_parameters": 1e6}},
        "health": {"ce_before": 4.2, "ce_after": 4.0},
        "seconds": 12.5,
    }
    data = {"domain": "scipy", "half": "a", "num_documents": None, "draw": 0} | dict(given.pop("data", {}))
    settings = merged(
        {
            "score": SCORE,
            "distillation": DISTILLATION,
            "rank_metric": "spearman",
            "num_resamples": 10_000,
            "alpha": 0.05,
            "margin": 0.0,
        },
        given.pop("settings", {}),
    )
    values = plain | given
    values["data"] = {"label": f"{data['domain']}-{data['half']}"} | data
    values["settings"] = {"method": values["method"], **settings}
    values.setdefault("corpus", values["data"]["label"])
    values.setdefault("cell", ",".join(f"{name}={value}" for name, value in data.items()))
    return upgraded(EMPTY | values)


def merged(one: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, Any]:
    out = dict(one)
    for name, value in other.items():
        both = isinstance(value, Mapping) and isinstance(out.get(name), Mapping)
        out[name] = merged(out[name], value) if both else value
    return out


def write(folder: Path, *results: AuditResult) -> Path:
    """As audits leave them: <folder>/<sweep>/<number>/result.json."""
    for number, item in enumerate(results):
        path = folder / (item.question.sweep or "audits") / f"{number:04}" / "result.json"
        path.parent.mkdir(parents=True)
        item.save(path)
    return folder


# ---------------------------------------------------------------------------------- a whole world of them


def prism(rng: random.Random, target: str, domain: str, sweep: str, **more: Any) -> AuditResult:
    member = target in MEMBERS and dict(more.get("data", {})).get("half", "a") == "a"
    delta = rng.gauss(0.02 if member else 0.25, 0.04)
    p = min(1.0, max(1e-4, math.exp(-abs(delta) * 40) if delta > 0 else rng.uniform(0.5, 1)))
    top = rng.uniform(0.4, 0.6) if member else rng.uniform(0.75, 0.9)
    return result(
        target=target,
        sweep=sweep,
        statistic=delta,
        p_value=p,
        ci_low=delta - 0.09,
        ci_high=delta + 0.09,
        rho_reference_target=top,
        rho_distilled_target=top - delta,
        truth="member" if member else "non_member",
        verdict="evidence_of_non_membership" if p < 0.05 else "inconclusive",
        **more | {"data": {"domain": domain, **dict(more.get("data", {}))}},
    )


def everything(seed: int = 0) -> Iterator[AuditResult]:
    """All sweeps of the micro world, with numbers of about the right size."""
    rng = random.Random(seed)
    targets = (MEMBER, "target+2xA", "target+general", UNTOUCHED, "micro_m", "micro_l")
    pair = (UNTOUCHED, MEMBER)
    for domain in DOMAINS:
        for target in targets:
            yield prism(rng, target, domain, "table2")
            yield result(
                method="paired_t",
                sweep="table10",
                target=target,
                data={"domain": domain},
                statistic=rng.gauss(-3, 3),
                p_value=10 ** rng.uniform(-30, 0),
                ci_low=None,
                ci_high=None,
                rho_reference_target=None,
                rho_distilled_target=None,
                verdict="score_only",
                truth="member" if target in MEMBERS else "non_member",
            )
        yield prism(rng, MEMBER, domain, "table3", data={"half": "b"})
        for reference in ("micro_xs", "micro_s2", "reference", "micro_l", "micro_olmo", "micro_llama"):
            yield prism(rng, "micro_olmo", domain, "table11", reference=reference)
            for target in pair:
                yield prism(rng, target, domain, "reference", reference=reference)
        for target, reference in itertools.product(pair, ("micro_xs", "micro_s2", "reference")):
            yield prism(rng, target, domain, "table5", reference=reference)
        for target, reference in itertools.product(pair, ("micro_s2", "reference", "micro_l")):
            yield agreement(rng, target, domain, "table1", reference=reference)
        for target, kind in itertools.product(pair, ("Loss", "Zlib", "DcPdd", "MinK", "MinKPlusPlus")):
            yield agreement(rng, target, domain, "table7", settings={"score": {"kind": kind}})
        for target, method in itertools.product(pair, ("llm_di", "pacost")):
            yield convicting(rng, method, target, domain, "table4")
        for metric in ("spearman", "kendall"):
            yield prism(rng, UNTOUCHED, domain, "table12", settings={"rank_metric": metric})
        for size, draw in itertools.product((30, 50, 75, 100, 150, 200, 300), range(3)):
            item = prism(rng, UNTOUCHED, domain, "size", data={"half": "ab", "num_documents": size, "draw": draw})
            p = min(1.0, max(1e-4, math.exp(-size / 15) * rng.uniform(0.5, 2)))
            yield dataclasses.replace(
                item, statistics=dataclasses.replace(item.statistics, num_documents=size, p_value=p)
            )
        for target, k in itertools.product(pair, range(1, 11)):
            yield prism(rng, target, domain, "k", settings={"score": {"k": k / 10}})
        for target, tau in itertools.product(pair, (0.5, 1.0, 2.0, 3.0, 4.0, 6.0)):
            yield prism(rng, target, domain, "tau", settings={"distillation": {"tau": tau, "lambda_": 0.5}})
        for target, weight in itertools.product(pair, range(11)):
            yield prism(rng, target, domain, "lambda", settings={"distillation": {"lambda_": weight / 10}})
        for target, number in itertools.product(pair, range(1, 6)):
            yield prism(rng, target, domain, "seed", seed=number)
        for target, slope in ((MEMBER, -0.6), ("target+general", -0.15), ("micro_m", -0.25)):
            yield shift(rng, target, domain, slope)
        yield from controls(rng, domain)


def each_sweep() -> list[AuditResult]:
    """Of everything: each sweep in one domain, for every kind of table and picture, and the others in two sweeps."""
    whole = ("table2", "controls")
    return [item for item in everything() if item.question.sweep in whole or item.question.data["domain"] == DOMAINS[0]]


def agreement(rng: random.Random, target: str, domain: str, sweep: str, **more: Any) -> AuditResult:
    rho = rng.uniform(0.35, 0.5) if target == MEMBER else rng.uniform(0.75, 0.9)
    return result(
        method="rank_agreement",
        sweep=sweep,
        target=target,
        statistic=rho,
        rho_reference_target=rho,
        rho_distilled_target=None,
        p_value=None,
        ci_low=rho - 0.05,
        ci_high=rho + 0.05,
        verdict="score_only",
        truth="member" if target == MEMBER else "non_member",
        data={"domain": domain},
        **more,
    )


def convicting(rng: random.Random, method: str, target: str, domain: str, sweep: str, **more: Any) -> AuditResult:
    p = rng.uniform(0.001, 0.2) if target == MEMBER else rng.uniform(0.2, 1)
    return result(
        method=method,
        sweep=sweep,
        target=target,
        reference=None,
        heldout=f"{domain}-b",
        p_value=p,
        statistic=rng.gauss(0, 1),
        ci_low=None,
        ci_high=None,
        rho_reference_target=None,
        rho_distilled_target=None,
        truth="member" if target == MEMBER else "non_member",
        verdict="evidence_of_membership" if p < 0.05 else "inconclusive",
        details={"median_p_value": p / 2, "p_values": [p / 2] * 10},
        data={"domain": domain, **more},
    )


def shift(rng: random.Random, target: str, domain: str, slope: float) -> AuditResult:
    points = [[x := rng.gauss(1.5, 0.4), 150 * slope * (x - 1.5) + rng.gauss(0, 25)] for _ in range(150)]
    bins = [
        {
            "x": 0.9 + 0.15 * i,
            "mean": 150 * slope * (0.15 * i - 0.6),
            "low": 150 * slope * (0.15 * i - 0.6) - 12,
            "high": 150 * slope * (0.15 * i - 0.6) + 12,
            "count": 15,
        }
        for i in range(10)
    ]
    return result(
        method="rank_shift",
        sweep="rank_shift",
        target=target,
        reference=UNTOUCHED,
        statistic=slope,
        ci_low=slope - 0.1,
        ci_high=slope + 0.1,
        p_value=None,
        rho_distilled_target=None,
        verdict="score_only",
        truth="member" if target == MEMBER else "non_member",
        details={"bins": bins, "points": points},
        data={"domain": domain},
    )


def controls(rng: random.Random, domain: str) -> Iterator[AuditResult]:
    for half, other in (("a", "b"), ("b1", "b2")):
        auc = rng.uniform(0.46, 0.56)
        yield result(
            method="blind",
            sweep="controls",
            target=None,
            reference=None,
            heldout=f"{domain}-{other}",
            statistic=auc,
            ci_low=auc - 0.06,
            ci_high=auc + 0.06,
            p_value=None,
            rho_reference_target=None,
            rho_distilled_target=None,
            truth=None,
            verdict="score_only",
            details={"auc": {"words": auc, "characters": auc - 0.01, "years": 0.5}},
            data={"domain": domain, "half": half},
        )
    yield convicting(rng, "llm_di", UNTOUCHED, domain, "controls", half="b1")
    for half in ("b1", "b2"):
        yield prism(rng, UNTOUCHED, domain, "controls", data={"half": half})
