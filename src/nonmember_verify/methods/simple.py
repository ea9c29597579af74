"""Methods whose test is one t, one rank correlation, or one mean: order test, PaCoST, rank agreement, rank shift."""

from __future__ import annotations

import numpy as np
from scipy import stats

from nonmember_verify.bundle import Audit, FloatArray
from nonmember_verify.methods.conclusion import INVALID, MEMBERSHIP, Conclusion
from nonmember_verify.methods.draws import OWN_RESAMPLES, check_interval, generator
from nonmember_verify.methods.paired_t import check_t
from nonmember_verify.methods.prism import check_distribution
from nonmember_verify.ranks import correlation, interval_of, resampled, weighted
from nonmember_verify.report import Report
from nonmember_verify.tails import exact_t, t_above

ORDER = {
    MEMBERSHIP: (
        "There is statistical evidence that the target was trained on the suspect file in this order, provided that "
        "its examples were exchangeable before training: not sorted by date, length or topic, and none going on where "
        "another ends. It says nothing about single examples."
    ),
    "inconclusive": (
        "The test found no evidence that the target was trained on the file in this order. This is not evidence that "
        "the file was not used: training on its examples in another order leaves nothing for this test to see."
    ),
    "invalid": INVALID,
}
PACOST = {
    MEMBERSHIP: (
        "There is statistical evidence that the suspect set as a whole was used for training, provided that rephrasing "
        "by itself costs no confidence; it usually does, which looks the same. It says nothing about single documents."
    ),
    "inconclusive": (
        "The test found no evidence of membership. This is not evidence that the dataset was not used for training."
    ),
    "invalid": INVALID,
}
RANK_AGREEMENT = (
    "None: a rank correlation has no decision rule of its own. Compare it between targets, on the same documents."
)
RANK_SHIFT = "None: the slope shows reading only in so far as it is steeper than that of two models that did not read."
MIN_PACOST = 30


def order(audit: Audit, report: Report) -> Conclusion:
    values = audit.groups["suspect"].values
    number = len(values["canonical"])
    factor = float(np.sqrt(number / (number - 1))) if audit.settings["compat"] else 1.0
    differences = values["canonical"] - values["mean_shuffled"]
    check_t(audit, differences, report, larger=True, factor=factor)
    p = audit.statistics["p_value"]
    if audit.statistics["value"] is None or p is None:
        return Conclusion("invalid", INVALID)
    decision = MEMBERSHIP if p < audit.alpha else "inconclusive"
    if audit.settings["control"]:
        found = exact_t((values["control/canonical"] - values["control/mean_shuffled"]).tolist())
        control = 1.0 if found is None else t_above(found[0] * factor, number - 1)
        report.numbers("control", {"p": (audit.details["control"]["p_value"], control)}, "from exact sums")
        if control < audit.alpha:
            decision = "invalid"
    return Conclusion(decision, ORDER[decision])


def pacost(audit: Audit, report: Report) -> Conclusion:
    values = audit.groups["suspect"].values
    names = ("original", "rephrased")
    check_t(audit, values["original"] - values["rephrased"], report, larger=True)
    mass = float(np.median(np.concatenate([values[name] + values[f"{name}_no"] for name in names])))
    report.numbers("answers", {"median_answer_mass": (audit.details["median_answer_mass"], mass)}, "from the scores")
    decision = MEMBERSHIP if audit.statistics["p_value"] < audit.alpha else "inconclusive"
    if (
        len(values["original"]) < MIN_PACOST
        or mass < audit.settings["min_answer_mass"]
        or all(np.ptp(values[name]) == 0 for name in names)
        or all(np.array_equal(values[name], values[f"{name}_no"]) for name in names)
    ):
        decision = "invalid"
    return Conclusion(decision, PACOST[decision])


def rank_agreement(audit: Audit, report: Report) -> Conclusion:
    values = audit.groups["suspect"].values
    _correlation(audit, values["reference"], values["target"], audit.settings["rank_metric"], report)
    return Conclusion("score_only" if audit.statistics["value"] is not None else "invalid", RANK_AGREEMENT)


def rank_shift(audit: Audit, report: Report) -> Conclusion:
    values = audit.groups["suspect"].values
    shift = stats.rankdata(-values["target"]) - stats.rankdata(-values["reference"])
    _correlation(audit, -values["reference"], shift, "spearman", report)
    return Conclusion("score_only" if audit.statistics["value"] is not None else "invalid", RANK_SHIFT)


def _correlation(audit: Audit, x: FloatArray, y: FloatArray, metric: str, report: Report) -> None:
    number, stated = audit.settings["num_resamples"], audit.statistics
    (distribution,) = resampled([x], y, metric, audit.rng(), number)
    low, high = interval_of(distribution, audit.alpha)
    rho = correlation(x, y, metric)
    report.numbers(
        "statistic and interval",
        {"rho": (stated["value"], rho), "low": (stated["ci_low"], low), "high": (stated["ci_high"], high)},
        f"from {number:,} resamples with the seed",
    )  # fmt: skip
    check_distribution(audit, distribution, report)
    if metric == "spearman" and np.ptp(x) > 0 and np.ptp(y) > 0:
        (own,) = weighted([x], y, generator(x, y), OWN_RESAMPLES)
        check_interval((stated["ci_low"], stated["ci_high"]), own, audit.alpha, number, report)
        other = float(stats.spearmanr(x, y).statistic)
        report.numbers("statistic, by another way", {"rho": (stated["value"], other)}, "by scipy's own")
    report.require("p", stated["p_value"] is None, "none is stated, as it should.", "one is stated without a test.")
