"""Difference in differences: is the target's score less the reference's higher on suspect than on held-out text?"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from nonmember_verify.bundle import Audit, FloatArray
from nonmember_verify.methods.conclusion import INVALID, MEMBERSHIP, Conclusion
from nonmember_verify.report import Report
from nonmember_verify.tails import t_above, t_quantile

CLAIMS = {
    MEMBERSHIP: (
        "There is statistical evidence that the suspect set as a whole was used for training, provided that suspect "
        "and held-out text are draws from one distribution and the reference has read neither."
    ),
    "inconclusive": (
        "The test found no evidence of membership. This is not evidence that the dataset was not used for training."
    ),
    "invalid": INVALID,
}
MIN_DOCUMENTS, MIN_CLUSTERS = 30, 10
ROUNDING = 1e-15  # of scores near 1: standard errors below this many times the largest are none


def recompute(audit: Audit, report: Report) -> Conclusion:
    groups = [audit.groups[name] for name in ("suspect", "heldout")]
    gains = [group.values["target"] - group.values["reference"] for group in groups]
    stated, details = audit.statistics, audit.details
    parts = [_mean(gain, group.by_appearance) for gain, group in zip(gains, groups, strict=True)]
    difference = parts[0][0] - parts[1][0]
    variance = sum(share for _, share, _, _ in parts)
    told = {
        "difference": (stated["value"], difference),
        "means": ([details["mean"][group.name] for group in groups], [mean for mean, *_ in parts]),
        "clusters": (
            [float(details["num_clusters"][group.name]) for group in groups],
            [float(number) for *_, number in parts],
        ),
    }
    if math.sqrt(variance) <= ROUNDING * max(float(np.abs(gain).max()) for gain in gains):
        report.numbers("statistic", told, "from the scores")
        report.require("p", stated["p_value"] is None, "none, as nothing varies.", "one is stated, and nothing varies.")
        return Conclusion("invalid", CLAIMS["invalid"])
    t = difference / math.sqrt(variance)
    df = variance**2 / sum(share**2 / free for _, share, free, _ in parts)
    p, reach = t_above(t, df), t_quantile(1 - audit.alpha / 2, df) * math.sqrt(variance)
    spread = math.sqrt(sum(_variance(gain) for gain in gains) / 2)
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
    decision = ("inconclusive", MEMBERSHIP)[p < audit.alpha] if enough else "invalid"
    return Conclusion(decision, CLAIMS[decision])


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


def _variance(values: FloatArray) -> float:
    return math.fsum((values - values.mean()) ** 2) / (len(values) - 1)
