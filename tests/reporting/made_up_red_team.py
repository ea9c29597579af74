"""Results of the red team that no audit has made."""

from __future__ import annotations

import random

import made_up

SETS = ("scipy-small", "numpy-small")
ATTACKS = ("none", "sham", "noise", "wrapped", "weak")
METHODS = ("prism", "clearance", "paired_t")


def attacked(method="clearance", attack="sham", read=True, of="scipy-small", verdict="inconclusive", **more):
    """A result; p agrees with a claim, and Delta lies above a margin of .1 with one."""
    clears = verdict == "evidence_of_non_membership"
    p = more.pop("p_value", 0.01 if clears else 0.6)
    gates = {
        "ce": {"value": 0.1, "bound": 0.0, "upper": False, "passed": verdict != "invalid"},
        "kl": {"value": 0.1, "bound": 0.0, "upper": False, "passed": True},
    }
    details = {"margin": 0.1, "gates": gates, "shams": {"sham_noise": {"refused": True}}}
    return made_up.result(
        method=method,
        world="study",
        sweep=more.pop("sweep", "red_team"),
        verdict=verdict,
        p_value=p,
        statistic=more.pop("statistic", 0.25 if clears else 0.02),
        truth="member" if read else "non_member",
        details=(details if method == "clearance" else {}) | more.pop("details", {}),
        data={
            "attack": attack,
            "read": "often" if read else "never",
            "label": of,
            "set": of,
            "domain": of.partition("-")[0],
        }
        | more.pop("data", {}),
        **more,
    )


def everything():
    """Both sets under a few attacks; passages under one."""
    rng = random.Random(0)
    verdicts = {
        "prism": ("evidence_of_non_membership", "inconclusive"),
        "clearance": ("evidence_of_non_membership", "inconclusive", "invalid"),
        "paired_t": ("score_only",),
    }
    for of in SETS:
        for attack in ATTACKS:
            for method in METHODS:
                for read in (True, False):
                    yield attacked(method, attack, read, of, rng.choice(verdicts[method]))
    for method in METHODS:
        yield attacked(method, "paraphrases", True, "passages", verdicts[method][0], sweep="red_team_paraphrases")
