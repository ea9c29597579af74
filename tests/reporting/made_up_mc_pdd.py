"""Results of MC-PDD that no audit has made."""

from __future__ import annotations

import itertools
import random

import made_up

DOMAINS = ("scipy", "sympy")
MEMBER, UNTOUCHED = "chat+12xA", "chat"
SIZES = (125, 100, 75, 50)
SCORES = ("mc_pdd", "perplexity", "zlib", "minkpp(0.2)")


def corpus(rate, number=150, valid=1.0):
    return {
        "hit_rate": rate,
        "num_hits": round(rate * number),
        "num_questions": number,
        "num_documents": number,
        "valid_share": valid,
    }


def mc_pdd(
    suspect=0.5,
    reference=0.35,
    sweep="mc_pdd_models",
    p=0.003,
    candidate="read",
    against="non_member",
    valid=1.0,
    **more,
):
    """A result of the test. suspect, reference: hit rates.   against: what the reference corpus is."""
    difference = reference - suspect if against == "non_member" else suspect - reference
    values = {
        "method": "mc_pdd",
        "target": MEMBER,
        "reference": None,
        "statistic": difference,
        "p_value": p,
        "ci_low": None,
        "ci_high": difference + 0.05,
        "truth": "member" if candidate == "read" else "non_member",
        "verdict": "evidence_of_membership" if p < 0.05 else "inconclusive",
        "rho_reference_target": None,
        "rho_distilled_target": None,
        "score": "",
    }
    data = {"domain": "scipy", "candidate": candidate, "against": "unread", "draw": 0}
    curve = [
        {
            "size": size,
            "difference": difference,
            "p_value": min(1, p * 150 / size),
            "lower": difference - 9 / size,
            "upper": difference + 9 / size,
            "subset": {"p_value": min(1, 2 * p * 150 / size)},
        }
        for size in SIZES
    ]
    details = {
        "suspect": corpus(suspect, valid=valid),
        "heldout": corpus(reference, valid=valid),
        "curve": curve,
        "control": {"p_value": 0.4, "suspect": corpus(0.6), "heldout": corpus(0.59)},
    }
    settings = {"reference": against, "strategy": "max", "num_words": 1, "show_name": False}
    return made_up.result(
        sweep=sweep,
        data=data | more.pop("data", {}),
        details=details | more.pop("details", {}),
        settings=settings | more.pop("settings", {}),
        **values | more,
    )


def contaminated(suspect, reference, candidate, epochs, **more):
    settings = {"epochs": epochs, "mc_pdd": {"reference": "non_member"}, "reference": None}
    told = {"method": "mc_pdd_contaminated", "candidate": candidate, "settings": settings, "truth": None}
    return mc_pdd(suspect, reference, "mc_pdd_contamination", **told | more)


def rivals(domain="scipy"):
    told = {
        "group_auc": {"mean": 0.9, "sd": 0.05},
        "group_best_balanced_acc": {"mean": 0.85, "sd": 0.04},
        "auc": 0.6,
        "best_balanced_acc": 0.58,
    }
    details = {
        "scores": dict.fromkeys(SCORES, told),
        "decision_accuracy": {"mean": 0.75},
        "auroc_blind": 0.55,
        "num_member_groups": 4,
        "num_nonmember_groups": 6,
    }
    return mc_pdd(
        sweep="mc_pdd_rivals", method="mc_pdd_groups", verdict="score_only", data={"domain": domain}, details=details
    )


def everything():
    """All sweeps of the micro world."""
    rng = random.Random(0)
    for domain in DOMAINS:
        here = {"domain": domain}
        for target, read in ((MEMBER, True), (UNTOUCHED, False)):
            rate, p, truth = (0.5, 0.002, "member") if read else (0.36, 0.4, "non_member")
            yield mc_pdd(rate, p=p, target=target, data=here, truth=truth)
        for strategy, number in itertools.product(("max", "random"), (1, 3, 5)):
            yield mc_pdd(sweep="mc_pdd_words", data=here, settings={"strategy": strategy, "num_words": number})
        for number in (1, 2, 3):
            yield mc_pdd(sweep="mc_pdd_masks", data=here, settings={"num_words": number})
        for shown in (False, True):
            yield mc_pdd(sweep="mc_pdd_names", data=here, settings={"show_name": shown})
        for number, draw in itertools.product((150, 50), range(3)):
            yield mc_pdd(sweep="mc_pdd_sizes", p=rng.random(), data=here | {"num_documents": number, "draw": draw})
        for seed in (1, 2, 3):
            yield mc_pdd(0.3, 0.3, "mc_pdd_null", p=rng.random(), candidate="unread_1", data=here, seed=seed)
        for candidate, epochs in itertools.product(("read", "unread_1"), range(6)):
            yield contaminated(0.5 - 0.02 * epochs, 0.3, candidate, epochs, data=here)
        yield rivals(domain)
