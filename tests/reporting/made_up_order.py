"""Results of the order test that no audit has made."""

from __future__ import annotations

import itertools
import random

import made_up
from scipy import stats

DOMAINS = ("scipy", "sympy")
SHARDS = 50


def order(
    t=2.5, sweep="order_duplication", duplication=4, draw=0, num_shards=SHARDS, num_orders=50, chunk=None, **more
):
    """A result of the order test; p follows from t. chunk: examples a document, None for the whole file."""
    p = more.pop("p_value", float(stats.t.sf(t, num_shards - 1)))
    values = {
        "method": "order",
        "target": f"target+{duplication}xfile",
        "reference": None,
        "statistic": t,
        "p_value": p,
        "ci_low": None,
        "ci_high": None,
        "truth": "member" if duplication else "non_member",
        "score": "",
        "verdict": "evidence_of_membership" if p < 0.05 else "inconclusive",
        "rho_reference_target": None,
        "rho_distilled_target": None,
        "num_documents": num_shards,
    }
    data = {"domain": "scipy", "duplication": duplication, "draw": draw, "examples_per_document": chunk}
    details = {"num_tokens_of_file": 12_500, "num_tokens_read": 12_500 * (num_orders + 1), "num_shards": num_shards}
    return made_up.result(
        sweep=sweep,
        data=data | more.pop("data", {}),
        details=details | more.pop("details", {}),
        settings={"num_shards": num_shards, "num_orders": num_orders},
        **values | more,
    )


def everything():
    """All sweeps of the micro world."""
    rng = random.Random(0)
    for domain, draw in itertools.product(DOMAINS, range(3)):
        here = {"domain": domain}
        for times in (0, 1, 2, 4, 10, 50):
            yield order(rng.gauss(times**0.6, 1), duplication=times, draw=draw, data=here)
        for chunk in (1, 2, 6, None):
            yield order(rng.gauss(min(chunk or 9, 9) / 3, 1), "order_chunks", 10, draw, chunk=chunk, data=here)
    for domain, draw in itertools.product(DOMAINS, range(20)):
        yield order(rng.gauss(0, 1), "order_null", 0, draw, data={"domain": domain})
    for domain, shards, orders in itertools.product(DOMAINS, (10, 20, 50, 100), (5, 50, 250)):
        yield order(rng.gauss(3, 1), "order_shards", 4, 0, shards, orders, data={"domain": domain})
