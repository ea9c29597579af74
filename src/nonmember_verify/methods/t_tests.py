"""Methods whose test is one t: paired t-test, order test, PaCoST, difference in differences."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from nonmember_verify.bundle import Audit, FloatArray
from nonmember_verify.report import Report
from nonmember_verify.tails import exact_t, t_above, t_below, t_quantile
from nonmember_verify.verdicts import MEMBERSHIP, Conclusion

MIN_DOCUMENTS, MIN_CLUSTERS = 30, 10
ROUNDING = 1e-15  # of scores near 1: standard errors below this many times the largest are none


def paired_t(audit: Audit, report: Report) -> Conclusion:
    values = audit.groups["suspect"].values
    _check_t(audit, values["target"] - values["distilled"], report, larger=False)
    return Conclusion("score_only")


def order(audit: Audit, report: Report) -> Conclusion:
    values = audit.groups["suspect"].values
    number = len(values["canonical"])
    factor = math.sqrt(number / (number - 1)) if audit.settings["compat"] else 1.0
    _check_t(audit, values["canonical"] - values["mean_shuffled"], report, larger=True, factor=factor)
    p = audit.statistics["p_value"]
    if audit.statistics["value"] is None or p is None:
        return Conclusion("invalid")
    decision = MEMBERSHIP if p < audit.alpha else "inconclusive"
    if audit.settings["control"]:
        found = exact_t((values["control/canonical"] - values["control/mean_shuffled"]).tolist())
        control = 1.0 if found is None else t_above(found[0] * factor, number - 1)
        report.numbers("control", {"p": (audit.details["control"]["p_value"], control)}, "from exact sums")
        if control < audit.alpha:
            decision = "invalid"
    return Conclusion(decision)


def pacost(audit: Audit, report: Report) -> Conclusion:
    values = audit.groups["suspect"].values
    names = ("original", "rephrased")
    _check_t(audit, values["original"] - values["rephrased"], report, larger=True)
    mass = float(np.median(np.concatenate([values[name] + values[f"{name}_no"] for name in names])))
    report.numbers("answers", {"median_answer_mass": (audit.details["median_answer_mass"], mass)}, "from the scores")
    decision = MEMBERSHIP if audit.statistics["p_value"] < audit.alpha else "inconclusive"
    if (
        len(values["original"]) < MIN_DOCUMENTS
        or mass < audit.settings["min_answer_mass"]
        or all(np.ptp(values[name]) == 0 for name in names)
        or all(np.array_equal(values[name], values[f"{name}_no"]) for name in names)
    ):
        decision = "invalid"
    return Conclusion(decision)


def _check_t(audit: Audit, differences: FloatArray, report: Report, *, larger: bool, factor: float = 1.0) -> None:
    """t and p of the result. larger: whether large differences are evidence.   factor: on t."""
    number, stated = len(differences), audit.statistics
    found = exact_t(differences.tolist())
    if found is None or differences.std(ddof=1) == 0:
        report.unchecked("statistic and p", "all differences are equal, and t is undefined")
        return
    t, mean = found[0] * factor, found[1]
    p = t_above(t, number - 1) if larger else t_below(t, number - 1)
    report.numbers(
        "statistic and p",
        {"t": (stated["value"], t), "p": (stated["p_value"], p),
         "mean difference": (audit.details["mean_difference"], mean)},
        "from the scores, by exact sums and the incomplete beta function",
    )  # fmt: skip
    report.require("interval", stated["ci_low"] is None and stated["ci_high"] is None, "none is stated, as it should.",
                   "one is stated, and the test has none.")  # fmt: skip


# Difference in differences --------------------------------------------------------------------------------------------


def difference_in_differences(audit: Audit, report: Report) -> Conclusion:
    """Is the target's score less the reference's higher on suspect than on held-out text?"""
    groups = [audit.groups[name] for name in ("suspect", "heldout")]
    gains = [group.values["target"] - group.values["reference"] for group in groups]
    stated, details = audit.statistics, audit.details
    parts = [_mean(gain, group.by_appearance) for gain, group in zip(gains, groups, strict=True)]
    difference = parts[0][0] - parts[1][0]
    variance = sum(share for _, share, _, _ in parts)
    told = {
        "difference": (stated["value"], difference),
        "means": ([details["mean"][group.name] for group in groups], [mean for mean, *_ in parts]),
        "clusters": ([details["num_clusters"][group.name] for group in groups], [number for *_, number in parts]),
    }
    if math.sqrt(variance) <= ROUNDING * max(float(np.abs(gain).max()) for gain in gains):
        report.numbers("statistic", told, "from the scores")
        report.require("p", stated["p_value"] is None, "none, as nothing varies.", "one is stated, and nothing varies.")
        return Conclusion("invalid")
    t = difference / math.sqrt(variance)
    df = variance**2 / sum(share**2 / free for _, share, free, _ in parts)
    p, reach = t_above(t, df), t_quantile(1 - audit.alpha / 2, df) * math.sqrt(variance)
    spread = math.sqrt(sum(float(gain.var(ddof=1)) for gain in gains) / 2)
    report.numbers(
        "statistic, p and interval",
        told
        | {
            "t": (details["t"], t),
            "degrees of freedom": (details["degrees_of_freedom"], df),
            "p": (stated["p_value"], p),
            "interval": ([stated["ci_low"], stated["ci_high"]], [difference - reach, difference + reach]),
            "effect size": (details["effect_size"], difference / spread),
        },
        "from the scores, by exact sums over clusters and the incomplete beta function",
    )
    enough = all(
        len(gain) >= MIN_DOCUMENTS and number >= MIN_CLUSTERS for gain, (*_, number) in zip(gains, parts, strict=True)
    )
    decision = MEMBERSHIP if p < audit.alpha else "inconclusive"
    return Conclusion(decision if enough else "invalid")


def _mean(values: FloatArray, clusters: np.ndarray) -> tuple[float, float, float, int]:
    """Mean of the documents, its variance by leaving out each cluster in turn, that one's degrees of freedom, and the
    number of clusters; without rounding."""
    numbers = [Fraction(one) for one in values.tolist()]
    whole = sum(numbers, Fraction(0))
    mean = whole / len(numbers)
    members: dict[int, list[Fraction]] = {}
    for number, cluster in zip(numbers, clusters.tolist(), strict=True):
        members.setdefault(cluster, []).append(number)
    without = [(whole - sum(one, Fraction(0))) / (len(numbers) - len(one)) for one in members.values()]
    squares = sum(((one - mean) ** 2 for one in without), Fraction(0))
    count = len(members)
    free = Fraction(len(numbers) ** 2, sum(len(one) ** 2 for one in members.values())) - 1
    return float(mean), float(squares * (count - 1) / count), float(free), count
