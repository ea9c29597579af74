"""Difference in differences: one t over clusters, and its permutations."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
from scipy import stats

from nonmember_verify import resampling
from nonmember_verify.bundle import MIN_CLUSTERS, Audit, FloatArray, IntArray
from nonmember_verify.envelope import plain
from nonmember_verify.known import least_of
from nonmember_verify.methods.canary import check_score_by_itself
from nonmember_verify.report import Report, agree
from nonmember_verify.verdicts import MEMBERSHIP, Conclusion

NUM_LISTED = 10  # most extractable documents
ROUNDING = 1e-15  # of scores near 1: standard errors below this many times the largest are none


def difference_in_differences(audit: Audit, report: Report) -> Conclusion:
    """Is the target's score, less the reference's where there is one, higher on suspect than on held-out text?"""
    groups, stated = [audit.groups[name] for name in ("suspect", "heldout")], audit.statistics
    gains = [group.values["target"] - group.values.get("reference", 0.0) for group in groups]
    clusters = [group.by_appearance for group in groups]
    difference, variance, df = difference_by_clusters(gains, clusters)
    if math.sqrt(variance) <= ROUNDING * max(float(np.abs(gain).max()) for gain in gains):
        report.numbers("statistic", audit.beside(difference=difference), "from the scores")
        report.require("p", stated["p_value"] is None, "none, as nothing varies.", "one is stated, and nothing varies.")
        return Conclusion("invalid")
    number, statistic = audit.settings["num_permutations"], _t_of(gains, clusters)
    sizes = [int(of.max()) + 1 for of in clusters]
    if (strata := audit.table.get("stratum")) is None:
        units = np.arange(sizes[0], dtype=float), np.arange(sizes[0], sum(sizes), dtype=float)
        p, draws = resampling.permuted(*units, statistic, number, audit.alpha, audit.rng())
    else:  # a document's; groups stand one below the other
        of = np.concatenate([clusters[0], clusters[1] + sizes[0]])
        strata = np.asarray(strata)[np.unique(of, return_index=True)[1]]
        p, draws = resampling.permuted_within_strata(strata, sizes[0], statistic, number, audit.alpha, audit.rng())
    reach = float(stats.t.ppf(1 - audit.alpha / 2, df)) * math.sqrt(variance)
    pairs = audit.beside(difference=difference, low=difference - reach, high=difference + reach)
    report.numbers("statistic and interval", pairs, "from the scores, by exact sums over clusters")
    report.numbers("p", audit.beside(p=p), f"from {f'{draws:,}' if draws else 'all'} permutations of clusters")
    method = audit.question["method"]
    few = 2 if method == "holdout" else MIN_CLUSTERS
    enough = min(map(len, groups)) >= least_of(method) and min(sizes) >= few
    return Conclusion("invalid" if not enough else MEMBERSHIP if p < audit.alpha else "inconclusive")


def _t_of(gains: list[FloatArray], clusters: list[IntArray]) -> resampling.Statistic:
    """t of two groups of drawn clusters, numbered through both sets."""
    sums = np.concatenate([np.bincount(of, weights=gain) for of, gain in zip(clusters, gains, strict=True)])
    sizes = np.concatenate([np.bincount(of) for of in clusters]).astype(np.float64)

    def mean_and_variance(drawn: FloatArray) -> tuple[FloatArray, FloatArray]:
        index = drawn.astype(np.int64)
        whole, count = sums[index].sum(axis=-1, keepdims=True), sizes[index].sum(axis=-1, keepdims=True)
        without = (whole - sums[index]) / (count - sizes[index]) - whole / count
        return (whole / count)[..., 0], (without**2).sum(axis=-1) * (1 - 1 / index.shape[-1])

    def t(first: FloatArray, second: FloatArray, axis: int) -> FloatArray:
        (mean, variance), (other, of_other) = mean_and_variance(first), mean_and_variance(second)
        return np.asarray((mean - other) / np.sqrt(variance + of_other + np.finfo(np.float64).tiny))

    return t


def difference_by_clusters(values: list[FloatArray], clusters: list[IntArray]) -> tuple[float, float, float]:
    """Of the means of two sets: the difference, its variance by leaving out each cluster in turn, and Satterthwaite's
    degrees of freedom; NaN where nothing varies."""
    (mean, *own), (other_mean, *other) = map(_mean_by_clusters, values, clusters)
    variance = own[0] + other[0]
    df = variance**2 / sum(share**2 / free for share, free in (own, other)) if variance else math.nan
    return mean - other_mean, variance, df


def _mean_by_clusters(values: FloatArray, clusters: IntArray) -> tuple[float, float, float]:
    """Mean of the documents, its variance, and that one's degrees of freedom; without rounding."""
    numbers = [Fraction(item) for item in values.tolist()]
    whole = sum(numbers, Fraction(0))
    mean = whole / len(numbers)
    members: dict[int, list[Fraction]] = {}
    for number, cluster in zip(numbers, clusters.tolist(), strict=True):
        members.setdefault(cluster, []).append(number)
    without = [(whole - sum(item, Fraction(0))) / (len(numbers) - len(item)) for item in members.values()]
    squares = sum(((item - mean) ** 2 for item in without), Fraction(0))
    free = Fraction(len(numbers) ** 2, sum(len(item) ** 2 for item in members.values())) - 1
    return float(mean), float(squares * (len(members) - 1) / len(members)), float(free)


def holdout(audit: Audit, report: Report) -> Conclusion:
    """The same test of published and kept documents, whose values are the target's own."""
    check_score_by_itself(audit, report)
    return difference_in_differences(audit, report)


# Extraction -----------------------------------------------------------------------------------------------------------


def extraction(audit: Audit, report: Report) -> Conclusion:
    """The same test of log p_z, where there is held-out text; and what is stated of passages, from the scores."""
    details, suspect = audit.details, audit.groups["suspect"]
    kind = plain(audit.settings["score"])["kind"]
    if kind != "Extraction":
        report.failed("score", f"its kind is {kind}, which is no log-probability of a passage.")
    wrong = [f"numbers of the {name} set" for name in audit.groups if not _counted(audit, name)]
    log_p, most = suspect.values["target"], details["most_extractable"]
    found = dict(zip(suspect.documents, log_p.tolist(), strict=True))
    highest = np.sort(log_p)[::-1].tolist()
    if len(most) != min(len(highest), NUM_LISTED):
        wrong.append(f"{len(most)} documents are listed as the most extractable")
    for (name, item), value in zip(most.items(), highest, strict=False):
        of_it = found.get(name, value)  # ids of a few characters stay as they are in a bundle
        with np.errstate(over="ignore"):
            says = [float(np.exp(value)), float(np.exp(-value))]
        if of_it != value or not agree([item["probability"], item["tries"] or math.inf], says):
            wrong.append(f"probability or tries of document {name[:12]}")
    report.require_none("passages", wrong, "shares, numbers and the most extractable follow from the scores.")
    if "heldout" in audit.groups:
        return difference_in_differences(audit, report)
    share = float(np.mean(np.exp(log_p) >= 0.001)) if len(log_p) else math.nan
    words = f"Of {share:.1%} of the documents the target would write a passage once in 1,000 tries or more often."
    return Conclusion("invalid" if len(log_p) < least_of("extraction") else "score_only", {"found": words})


def _counted(audit: Audit, group: str) -> bool:
    """Whether the shares and numbers of a set are those of its scores."""
    p, stated = np.exp(audit.groups[group].values["target"]), audit.details[group]
    shares = all(agree(value, np.mean(p >= float(least))) for least, value in stated["share_at_least"].items())
    with np.errstate(divide="ignore"):  # p = 1
        found = {n: int((1 - np.exp(int(n) * np.log1p(-p)) >= 0.5).sum()) for n in stated["num_discoverable"]}
    return bool(shares and found == stated["num_discoverable"] and stated["num_documents"] == len(p))
