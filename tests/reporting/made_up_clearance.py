"""Results of calibrated clearance that no audit has made: Deltas by what was read, judged by the real rules."""

from __future__ import annotations

import itertools
import random
from typing import Any

import made_up

from nonmember.methods.clearance.clearance import Clearance, _curve_details, _margin_details, role_of
from nonmember.records.exposure import Exposure
from nonmember.results.result import AuditResult
from nonmember.stats.detection import detection_curve
from nonmember.stats.margins import margin

READINGS = (*(Exposure(1.0, exposures) for exposures in (0, 1, 4, 12)), Exposure(0.5, 8))
SETS = ("numpy-small", "pandas-small", "scipy-large")
EXCLUDED = Exposure(1.0, 4)
GATES = {
    "ce": (0.2, 0.0, False),
    "kl": (0.1, 0.0, False),
    "kl_third": (0.02, 0.1, True),
    "rank_correlation": (0.7, 0.2, False),
    "seeds": (0.02, 0.1, True),
    "layout": (0.55, 0.7, True),
}


CONTROLS = [role_of(reading, seed) for reading in READINGS for seed in (31, 32)]


def mean_delta(reading: Exposure) -> float:
    return 0.25 - 0.02 * reading.exposures * reading.share


def gate(name: str, value: float | None = None) -> dict[str, Any]:
    usual, bound, upper = GATES[name]
    value = usual if value is None else value
    return {"value": value, "bound": bound, "upper": upper, "passed": (value < bound) == upper}


def controls(seed: int = 0, spread: float = 0.01, num: int = 2) -> dict[str, list[float]]:
    rng = random.Random(seed)
    return {item.label: [mean_delta(item) + rng.gauss(0, spread) for _ in range(num)] for item in READINGS}


def clearance(
    delta: float = 0.24,
    read: Exposure | None = None,
    truth: str | None = "non_member",
    control_deltas: dict[str, list[float]] | None = None,
    exclude: Exposure = EXCLUDED,
    alpha: float = 0.05,
    gates: dict[str, float] | None = None,
    refused: bool = True,
    prism_p: float = 1e-4,
    **more: Any,
) -> AuditResult:
    """A result as the method makes it, of a target with this Delta. gates: name -> a value other than the usual."""
    control_deltas = control_deltas or controls()
    place = {item.label: (item.share, float(item.exposures)) for item in READINGS}
    planted = {place[label]: deltas for label, deltas in control_deltas.items() if place[label][1]}
    untouched = [delta for label, deltas in control_deltas.items() if not place[label][1] for delta in deltas]
    curve = detection_curve(delta, planted, untouched, alpha=alpha)
    margins = {
        item.label: margin(planted, place[item.label], content=1 - alpha, confidence=None)
        for item in READINGS
        if item.exposures and item.at_least(exclude)
    }
    limit = max(bound.bound for bound in margins.values())
    p = next(item.p_at_least for item in curve.points if (item.share, item.dose) == place[exclude.label])
    told = {name: gate(name, (gates or {}).get(name)) for name in GATES}
    valid = refused and all(item["passed"] for item in told.values())
    verdict = "invalid" if not valid else made_up_verdict(delta > limit and p < alpha)
    untouched_label = "target" if truth is None else "micro_s+0x"
    sham = {"refused": refused, "gates": {name: gate(name) for name in list(GATES)[:-2]}}
    sham["gates"] |= {"ce": gate("ce", -0.1 if refused else 0.3)}
    details = {
        "excluded_reading": exclude.label,
        "margin": limit,
        "p_value_beyond_margin": p / 2,
        "margins": {name: _margin_details(bound) for name, bound in margins.items()},
        "prism": {"statistic": delta, "p_value": prism_p},
        "deltas_by_seed": [delta - 0.01, delta + 0.01],
        "standard_error": 0.03,
        "share_of_seeds": 0.1,
        "control_deltas": control_deltas,
        "heldout_delta": None,
        "gates": told,
        "shams": {"sham_unrelated": sham, "sham_noise": sham},
        "detection": _curve_details(curve),
    }
    values = {
        "method": Clearance.name,
        "world": "study",
        "sweep": "calibration",
        "statistic": delta,
        "p_value": p,
        "ci_low": delta - 0.06,
        "ci_high": delta + 0.06,
        "alpha": alpha,
        "verdict": verdict,
        "truth": truth,
        "target": f"micro_s+{read.label}" if read else untouched_label,
        "num_documents": 100,
        "corpus": more.pop("corpus", "numpy-small"),
    }
    readings = [{"kind": "Exposure", "share": item.share, "exposures": item.exposures} for item in READINGS]
    settings = {"controls": {"kind": "PlantedControls", "readings": readings}, "distillation_seeds": [1, 2]}
    keys = dict.fromkeys(roles(), "0" * 16) | more.pop("keys", {})
    settings |= more.pop("settings", {})
    return made_up.result(settings=settings, keys=keys, details=details | more.pop("details", {}), **values | more)


def roles() -> list[str]:
    """Target and controls, each with two distilled references."""
    models = {"target": "distilled"} | {role: f"{role}/distilled" for role in CONTROLS}
    return [name for model, distilled in models.items() for name in (model, distilled, f"{distilled}/2")]


def made_up_verdict(clears: bool) -> str:
    return "evidence_of_non_membership" if clears else "inconclusive"


def everything() -> list[AuditResult]:
    """A small study: three sets, targets with every reading and one that is what it is."""
    rng = random.Random(1)
    results = []
    for index, (name, read) in enumerate(itertools.product(SETS, (None, *READINGS[1:]))):
        seed = SETS.index(name)
        delta = mean_delta(read or READINGS[0]) + rng.gauss(0, 0.01)
        results.append(
            clearance(
                delta,
                read,
                "member" if read else "non_member",
                controls(seed),
                corpus=name,
                data={"set": name, "case": f"s{index}"},
                prism_p=rng.uniform(1e-4, 0.01),
            )
        )
        if read is None:
            results.append(
                clearance(
                    delta,
                    None,
                    "non_member",
                    controls(seed),
                    corpus=name,
                    target="micro_m",
                    gates={"kl_third": 0.2 if seed == 1 else 0.0},
                    data={"set": name},
                )
            )
    return results
