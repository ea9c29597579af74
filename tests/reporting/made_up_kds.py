"""Results of KDS that no audit has made."""

from __future__ import annotations

import itertools
import random

import made_up

READ, UNREAD = "target+12xA", "target"
BASELINES = {"zlib": -0.013, "perplexity": -55.0, "mink(0.2)": -7.5, "minkpp(0.2)": -1.6}
TRAINING = {"kind": "AdapterTuning", "optimization": {"learning_rate": 0.1, "batch_size": 4, "epochs": 1}}
SHARES = (0, 0.25, 0.5, 0.75, 1)
ABLATIONS = (
    {},
    {"bandwidth": "pre_only"},
    {"bandwidth": "fixed", "gamma": 1.0},
    {"layer": 1},
    {"layer": -2},
    {"training": {"optimization": {"batch_size": 100}}},
    {"training": {"optimization": {"epochs": 4}}},
    {"compat": True},
)


def kds(rate=0.5, draw=0, score=-0.9, sweep="kds_main", target=READ, baselines=None, fsd=None, **more):
    """A result of KDS. baselines, fsd: what simpler scores say of the set; None: something."""
    values = {
        "method": "kds",
        "reference": None,
        "truth": None,
        "p_value": None,
        "ci_low": None,
        "ci_high": None,
        "verdict": "score_only",
        "statistic": score,
        "rho_reference_target": None,
        "rho_distilled_target": None,
        "score": "",
        "num_documents": 100,
    }
    data = {"domain": "scipy", "rate": rate, "draw": draw, "num_documents": 100} | more.pop("data", {})
    settings = made_up.merged(
        {"layer": -1, "bandwidth": "per_kernel_median", "gamma": None, "compat": False, "training": TRAINING},
        more.pop("settings", {}),
    )
    details = {
        "baselines": BASELINES if baselines is None else baselines,
        "fsd": dict.fromkeys(BASELINES, -0.1) if fsd is None else fsd,
    } | more.pop("details", {})
    corpus = f"{data['domain']}-read-{rate:g}"
    return made_up.result(
        sweep=sweep, target=target, data=data, settings=settings, details=details, corpus=corpus, **values | more
    )


def series(scores_DL, rates, **more):
    """A result for each draw (row) and level (column)."""
    for draw, row in enumerate(scores_DL):
        for rate, score in zip(rates, row, strict=True):
            yield kds(rate, draw, score, **more)


def everything(shares=SHARES, num_draws=5):
    """All sweeps of the micro world: KDS and Min-K% rise, perplexity falls."""
    rng = random.Random(0)

    def some(slope, start, spread=0.02):
        return lambda c: start + slope * c + rng.gauss(0, spread)

    slopes = {
        "zlib": some(0.0, -0.5),
        "perplexity": some(-0.3, -0.5),
        "mink(0.2)": some(0.4, -0.5),
        "minkpp(0.2)": some(0.2, -0.5),
    }
    sets = list(itertools.product(made_up.DOMAINS, range(num_draws), shares))
    for domain, draw, c in sets:
        told = {name: slope(c) for name, slope in slopes.items()}
        yield kds(c, draw, some(0.4, -1.0)(c), baselines=told, fsd=told, data={"domain": domain})
    for domain, draw, c in itertools.product(made_up.DOMAINS[:2], range(3), SHARES):
        told, here = {name: some(0, -0.5)(c) for name in BASELINES}, {"domain": domain}
        yield kds(c, draw, some(0, -0.8)(c), "kds_control", UNREAD, told, told, data=here)
        for (target, slope), epochs in itertools.product({READ: 0.4, UNREAD: -0.4}.items(), (1, 4)):
            training = {"training": {"optimization": {"epochs": epochs}}}
            yield kds(c, draw, some(slope, -1.0)(c), "kds_epochs", target, told, {}, settings=training, data=here)
        for settings in ABLATIONS:
            yield kds(c, draw, some(0.2, -1.0)(c), "kds_ablation", READ, {}, {}, settings=settings, data=here)
