"""Results of the calibration study that no audit has made."""

from __future__ import annotations

import itertools
import random

import made_up

READINGS = {
    "s0": (0, 1.0),
    "s1": (1, 1.0),
    "s3": (4, 1.0),
    "s4": (8, 1.0),
    "s5": (12, 1.0),
    "s7": (12, 0.25),
    "g1": (0, 1.0),
    "u1": (0, 1.0),
}
HALF = {"pandas": "chosen", "numpy": "reported"}
PLANTED = [(1.0, 4), (1.0, 8), (1.0, 12), (0.25, 12)]


def gate(passed):
    return {"value": 0.1 if passed else -0.1, "bound": 0.0, "upper": False, "passed": passed}


def clearance(case="s0", p=0.01, domain="numpy", delta=0.1, verdict="inconclusive", prism_p=0.2, size=100, **more):
    """p: of the hypothesis that the target read any planted reading or more; or by reading."""
    ps = p if isinstance(p, dict) else dict.fromkeys(PLANTED, p)
    exposures, share = READINGS[case]
    details = {
        "prism": {"statistic": delta, "p_value": prism_p},
        "control_deltas": {"0x": [0.02, 0.04], "8x": [-0.1, -0.12]},
        "margins": {"8x": {"bound": -0.05, "mean": -0.11, "spread": 0.01, "df": 2}},
        "detection": {"points": [{"share": s, "exposures": float(e), "p_at_least": ps[s, e]} for s, e in PLANTED]},
        "gates": {"ce": gate(True), "kl": gate(verdict != "invalid")},
        "shams": {
            "sham_noise": {"refused": True, "gates": {"ce": gate(False), "kl": gate(True)}},
            "sham_unrelated": {"refused": True, "gates": {"ce": gate(False), "kl": gate(False)}},
        },
        "share_of_seeds": 0.2,
    }
    size_name = "large" if size > 100 else "small"
    return made_up.result(
        method="clearance",
        world="study",
        sweep=more.pop("sweep", "calibration"),
        corpus=f"{domain}-{size_name}",
        num_documents=size,
        data={"half": HALF[domain], "case": case, "exposures": exposures, "share": share, "domain": domain},
        details=details | more.pop("details", {}),
        statistic=delta,
        verdict=verdict,
        p_value=max(ps.values()),
        truth=None,
        **more,
    )


def rival(method, case, p, domain="numpy"):
    exposures, share = READINGS[case]
    return made_up.result(
        method=method,
        world="study",
        sweep="calibration_rivals",
        corpus=f"{domain}-small",
        num_documents=100,
        data={"half": HALF[domain], "case": case, "exposures": exposures, "share": share, "domain": domain},
        p_value=p,
        details={},
        verdict="score_only",
    )


def everything():
    rng = random.Random(0)
    for domain, case, size in itertools.product(HALF, READINGS, (100, 500)):
        yield clearance(case, rng.random(), domain, rng.gauss(0, 0.1), size=size, prism_p=rng.random())
    for domain, case, method in itertools.product(HALF, READINGS, ("paired_t", "llm_di")):
        yield rival(method, case, rng.random(), domain)
