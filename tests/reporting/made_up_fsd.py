"""Results of FSD that no audit has made."""

from __future__ import annotations

import itertools
import random

import made_up

READ, UNREAD = "target+12xA", "target"
LORA = {"kind": "lora", "rank": 16, "alpha": 32, "dropout": 0.05}
SCORES = ("perplexity", "lowercase", "zlib", "mink(0.2)")


def measures(auc, half=0.05, tpr=0.2):
    return {
        "auc": auc,
        "auc_low": auc - half,
        "auc_high": auc + half,
        "tpr_at_5pct_fpr": tpr,
        "tpr_low": tpr / 2,
        "tpr_high": tpr * 2,
        "tpr_below_5pct_fpr": tpr - 0.01,
        "best_balanced_accuracy": auc - 0.01,
        "balanced_accuracy": auc - 0.02,
        "threshold": -3.0,
    }


def score(base, fsd, **more):
    gain = {"auc": fsd - base, "auc_low": fsd - base - 0.04, "auc_high": fsd - base + 0.04}
    return {"base": measures(base, **more), "fsd": measures(fsd, **more), "gain": gain}


def fsd(sweep="fsd_main", target=READ, scores=None, details=None, data=None, training=None, **more):
    """A result of FSD."""
    scores = scores or {name: score(0.6, 0.8) for name in SCORES}
    plain = {
        "scores": scores,
        "auroc_blind": 0.53,
        "blind": {
            kind: {"auc": auc, "auc_low": auc - 0.05, "auc_high": auc + 0.05}
            for kind, auc in (("words", 0.53), ("characters", 0.52), ("years", 0.5))
        },
        "length_auc": 0.51,
        "num_members": 98,
        "num_nonmembers": 97,
        "num_unseen": 53,
        "num_leaked": {"members": 0, "nonmembers": 0},
        "texts": {"members": {"mean_characters": 509.1}, "nonmembers": {"mean_characters": 498.6}},
        "nll_of_unseen": {"base": 3.2, "tuned": 3.1},
    }
    values = {
        "method": "fsd",
        "reference": None,
        "truth": "non_member" if target == UNREAD else "member",
        "p_value": None,
        "verdict": "score_only",
        "statistic": 0.8,
        "ci_low": 0.75,
        "ci_high": 0.85,
        "rho_reference_target": None,
        "rho_distilled_target": None,
        "score": "perplexity",
    }
    plain_data = {
        "domain": "scipy",
        "nonmember_domain": "scipy",
        "tuning_domain": "scipy",
        "read": "many",
        "tuning": "nonmembers",
        "num_unseen": None,
    }
    settings = {
        "view": "original",
        "training": made_up.merged(
            {"adapter": LORA, "optimization": {"learning_rate": 1e-3, "epochs": 3}}, training or {}
        ),
    }
    settings |= more.pop("settings", {})
    return made_up.result(
        sweep=sweep,
        target=target,
        details=plain | (details or {}),
        data=plain_data | (data or {}),
        settings=settings,
        **values | more,
    )


def one_score(base, value, **more):
    return {"perplexity": score(base, value, **more)}


def everything():
    """All sweeps of the micro world."""
    rng = random.Random(0)

    def some():
        return {name: score(rng.uniform(0.5, 0.7), rng.uniform(0.5, 0.9)) for name in SCORES}

    for domain in made_up.DOMAINS:
        here = {"domain": domain, "nonmember_domain": domain, "tuning_domain": domain}
        for target in (UNREAD, "target+2xA", READ):
            yield fsd(target=target, scores=some(), data=here)
            for other in made_up.DOMAINS:
                yield fsd("fsd_shift", target, some(), data=here | {"nonmember_domain": other})
        yield fsd("fsd_pretraining", UNREAD, some(), data=here | {"read": "once"}, truth="member")
        for tuning in ("nonmembers", "members", "both"):
            yield fsd("fsd_tuning_set", scores=some(), data=here | {"tuning": tuning})
        for view in ("original", "years_deleted", "years_replaced"):
            yield fsd("years", scores=some(), data=here, settings={"view": view})
        for kind in ("lora", "adalora", "ia3"):
            yield fsd("fsd_adapter", scores=some(), data=here, training={"adapter": {"kind": kind}})
        for other in made_up.DOMAINS:
            yield fsd("fsd_domain", scores=some(), data=here | {"tuning_domain": other})
        for rate in (1e-4, 1e-3):
            yield fsd("fsd_lr", scores=some(), data=here, training={"optimization": {"learning_rate": rate}})
        for rank in (8, 16, 32):
            yield fsd("fsd_rank", scores=some(), data=here, training={"adapter": {"rank": rank}})
        for epochs in (1, 2, 3):
            yield fsd("fsd_epochs", scores=some(), data=here, training={"optimization": {"epochs": epochs}})
        for num, draw in itertools.product((10, 20, 40), range(3)):
            yield fsd(
                "fsd_size", scores=some(), data=here | {"num_unseen": num, "draw": draw}, details={"num_unseen": num}
            )
