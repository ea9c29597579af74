"""Methods whose test is one t: paired t-test, order test, PaCoST, difference in differences."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
from scipy import stats

from nonmember_verify.bundle import MIN_CLUSTERS, Audit, FloatArray, IntArray
from nonmember_verify.report import Report, is_below
from nonmember_verify.verdicts import MEMBERSHIP, Conclusion

MIN_DOCUMENTS = 30
ROUNDING = 1e-15  # of scores near 1: standard errors below this many times the largest are none


def paired_t(audit: Audit, report: Report) -> Conclusion:
    values = audit.groups["suspect"].values
    if audit.has_few_clusters("suspect"):
        return Conclusion("invalid")
    _check_t(audit, values["target"], values["distilled"], report, larger=False)
    return Conclusion("score_only")


def order(audit: Audit, report: Report) -> Conclusion:
    values = audit.groups["suspect"].values
    number = len(values["canonical"])
    factor = math.sqrt(number / (number - 1)) if audit.settings["compat"] else 1.0
    p = _check_t(audit, values["canonical"], values["mean_shuffled"], report, larger=True, factor=factor)
    if p is None:
        return Conclusion("invalid")
    decision = MEMBERSHIP if is_below(audit.alpha, audit.statistics["p_value"], p) else "inconclusive"
    if audit.settings["control"]:
        found = exact_t((values["control/canonical"] - values["control/mean_shuffled"]).tolist())
        control = 1.0 if found is None else float(stats.t.sf(found[0] * factor, number - 1))
        report.numbers("control", {"p": (audit.details["control"]["p_value"], control)}, "from exact sums")
        if control < audit.alpha:
            decision = "invalid"
    return Conclusion(decision)


def pacost(audit: Audit, report: Report) -> Conclusion:
    values = audit.groups["suspect"].values
    names = ("original", "rephrased")
    if audit.has_few_clusters("suspect"):
        return Conclusion("invalid")
    p = _check_t(audit, values["original"], values["rephrased"], report, larger=True)
    mass = float(np.median(np.concatenate([values[name] + values[f"{name}_no"] for name in names])))
    report.numbers("answers", {"median_answer_mass": (audit.details["median_answer_mass"], mass)}, "from the scores")
    decision = "inconclusive" if p is None or not is_below(audit.alpha, audit.statistics["p_value"], p) else MEMBERSHIP
    if (
        len(values["original"]) < MIN_DOCUMENTS
        or mass < audit.settings["min_answer_mass"]
        or all(np.ptp(values[name]) == 0 for name in names)
        or all(np.array_equal(values[name], values[f"{name}_no"]) for name in names)
    ):
        decision = "invalid"
    return Conclusion(decision)


def _check_t(
    audit: Audit, x: FloatArray, y: FloatArray, report: Report, *, larger: bool, factor: float = 1.0
) -> float | None:
    """p of x - y, after a look at t and p of the result; None where t is undefined. larger: whether large differences
    are evidence.   factor: on t."""
    differences, stated, clusters = x - y, audit.statistics, audit.clusters("suspect")
    free, found = len(differences) - 1.0, exact_t(differences.tolist())
    rounding = 4 * np.finfo(np.float64).eps * max(float(np.abs(x).max()), float(np.abs(y).max()))
    alike = bool(np.ptp(differences) <= rounding)
    if clusters is not None:
        mean, variance, free, _ = mean_by_clusters(differences, clusters)
        found = (mean / math.sqrt(variance), mean) if math.sqrt(variance) > rounding else None
    if found is None or alike:
        p = 1.0 if larger or not alike or float(differences.mean()) >= -rounding else 0.0
        report.numbers("statistic and p", audit.beside(t=None, p=p), "as all differences are equal")
        return None
    t, mean = found[0] * factor, found[1]
    p = float((stats.t.sf if larger else stats.t.cdf)(t, free))
    pairs = audit.beside(t=t, p=p) | {"mean difference": (audit.details["mean_difference"], mean)}
    report.numbers("statistic and p", pairs, "from the scores, by exact sums")
    report.require(
        "interval",
        stated["ci_low"] is None and stated["ci_high"] is None,
        "none is stated, as it should.",
        "one is stated, and the test has none.",
    )
    return p


def exact_t(differences: Sequence[float]) -> tuple[float, float] | None:
    """(t, mean) of a one-sample t-test, from sums of fractions without rounding; None where all are equal."""
    numbers = [Fraction(float(item)) for item in differences]
    number = len(numbers)
    mean = sum(numbers, Fraction(0)) / number
    squares = sum(((item - mean) ** 2 for item in numbers), Fraction(0))
    if squares == 0:
        return None
    t = float(mean) / math.sqrt(float(squares / (number * (number - 1))))
    return t, float(mean)


# Difference in differences --------------------------------------------------------------------------------------------


def difference_in_differences(audit: Audit, report: Report) -> Conclusion:
    """Is the target's score less the reference's higher on suspect than on held-out text?"""
    groups, stated = [audit.groups[name] for name in ("suspect", "heldout")], audit.statistics
    gains = [group.values["target"] - group.values["reference"] for group in groups]
    parts = [mean_by_clusters(gain, group.by_appearance) for gain, group in zip(gains, groups, strict=True)]
    (mean, *own), (mean_other, *other) = parts
    difference, variance = mean - mean_other, own[0] + other[0]
    if math.sqrt(variance) <= ROUNDING * max(float(np.abs(gain).max()) for gain in gains):
        report.numbers("statistic", audit.beside(difference=difference), "from the scores")
        report.require("p", stated["p_value"] is None, "none, as nothing varies.", "one is stated, and nothing varies.")
        return Conclusion("invalid")
    df = variance**2 / sum(share**2 / free for share, free, _ in (own, other))
    p = float(stats.t.sf(difference / math.sqrt(variance), df))
    reach = float(stats.t.ppf(1 - audit.alpha / 2, df)) * math.sqrt(variance)
    pairs = audit.beside(difference=difference, p=p, low=difference - reach, high=difference + reach)
    report.numbers("statistic, p and interval", pairs, "from the scores, by exact sums over clusters")
    enough = min(map(len, groups)) >= MIN_DOCUMENTS and min(own[2], other[2]) >= MIN_CLUSTERS
    return Conclusion("invalid" if not enough else MEMBERSHIP if p < audit.alpha else "inconclusive")


def mean_by_clusters(values: FloatArray, clusters: IntArray) -> tuple[float, float, float, int]:
    """Mean of the documents, its variance by leaving out each cluster in turn, that one's degrees of freedom, and the
    number of clusters; without rounding."""
    numbers = [Fraction(item) for item in values.tolist()]
    whole = sum(numbers, Fraction(0))
    mean = whole / len(numbers)
    members: dict[int, list[Fraction]] = {}
    for number, cluster in zip(numbers, clusters.tolist(), strict=True):
        members.setdefault(cluster, []).append(number)
    without = [(whole - sum(item, Fraction(0))) / (len(numbers) - len(item)) for item in members.values()]
    squares = sum(((item - mean) ** 2 for item in without), Fraction(0))
    count = len(members)
    free = Fraction(len(numbers) ** 2, sum(len(item) ** 2 for item in members.values())) - 1
    return float(mean), float(squares * (count - 1) / count), float(free), count
