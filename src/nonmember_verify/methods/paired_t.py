"""The paired t-test of scores under target and distilled reference."""

from __future__ import annotations

import math

import numpy as np

from nonmember_verify.bundle import Audit
from nonmember_verify.methods.conclusion import Conclusion
from nonmember_verify.report import Report
from nonmember_verify.tails import exact_t, t_below

CLAIM = "None: this baseline is known to fail in both directions (PRISM, table 10). Shown for comparison."


def recompute(audit: Audit, report: Report) -> Conclusion:
    values = audit.groups["suspect"].values
    check_t(audit, values["target"] - values["distilled"], report, larger=False)
    return Conclusion("score_only", CLAIM)


def check_t(audit: Audit, differences: np.ndarray, report: Report, *, larger: bool, factor: float = 1.0) -> None:
    """t and p of the result. larger: whether large differences are evidence.   factor: on t."""
    number = len(differences)
    mean = differences.mean()
    sd = differences.std(ddof=1)
    found = exact_t(differences.tolist())
    if found is None or sd == 0:
        report.unchecked("statistic and p", "all differences are equal, and t is undefined")
        return
    stated = audit.statistics
    sign = 1.0 if larger else -1.0

    def p(t: float) -> float:
        return t_below(-sign * t, number - 1)

    plain = float(mean / (sd / math.sqrt(number))) * factor
    report.numbers(
        "statistic and p",
        {"t": (stated["value"], plain), "p": (stated["p_value"], p(plain)),
         "mean difference": (audit.details["mean_difference"], float(mean))},
        "from the scores",
    )  # fmt: skip
    exact = found[0] * factor
    report.numbers(
        "statistic and p, by another way",
        {"t": (stated["value"], exact), "p": (stated["p_value"], p(exact))},
        "from exact sums and the incomplete beta function",
    )
    report.require("interval", stated["ci_low"] is None and stated["ci_high"] is None, "none is stated, as it should.",
                   "one is stated, and the test has none.")  # fmt: skip
