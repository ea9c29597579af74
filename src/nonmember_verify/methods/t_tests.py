"""Difference in differences: one t over clusters, and its permutations."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
from scipy import stats

from nonmember_verify import resampling
from nonmember_verify.bundle import MIN_CLUSTERS, Audit, FloatArray, IntArray
from nonmember_verify.commitments import commitment
from nonmember_verify.envelope import plain
from nonmember_verify.holdout import Draw
from nonmember_verify.known import least_of
from nonmember_verify.methods.canary import check_commitment, check_score_by_itself
from nonmember_verify.report import Report, agree
from nonmember_verify.verdicts import MEMBERSHIP, Conclusion

NUM_LISTED = 10  # most extractable documents
ROUNDING = 1e-15  # of scores near 1: standard errors below this many times the largest are none


# Difference in differences --------------------------------------------------------------------------------------------


def difference_in_differences(audit: Audit, report: Report) -> Conclusion:
    """Is the target's score, less the reference's where there is one, higher on suspect than on held-out text?"""
    groups, stated = [audit.groups[name] for name in ("suspect", "heldout")], audit.statistics
    gains = [group.values["target"] - group.values.get("reference", 0.0) for group in groups]
    clusters = [group.by_appearance for group in groups]
    parts = [mean_by_clusters(*pair) for pair in zip(gains, clusters, strict=True)]
    (mean, *own), (mean_other, *other) = parts
    difference, variance = mean - mean_other, own[0] + other[0]
    if math.sqrt(variance) <= ROUNDING * max(float(np.abs(gain).max()) for gain in gains):
        report.numbers("statistic", audit.beside(difference=difference), "from the scores")
        report.require("p", stated["p_value"] is None, "none, as nothing varies.", "one is stated, and nothing varies.")
        return Conclusion("invalid")
    df = variance**2 / sum(share**2 / free for share, free, _ in (own, other))
    number, p, draws = audit.settings["num_permutations"], 1.0, None
    statistic = _t_of(gains, clusters)
    sizes = tuple(len(np.unique(of)) for of in clusters)
    drawn_from = np.arange(sizes[0], dtype=float), np.arange(sizes[0], sum(sizes), dtype=float)
    if (strata := audit.table.get("stratum")) is not None:  # a document's; groups stand one below the other
        of = np.concatenate([clusters[0], clusters[1] + sizes[0]])
        strata = np.asarray(strata)[np.unique(of, return_index=True)[1]]
        p, draws = resampling.permuted_within_strata(strata, sizes[0], statistic, number, audit.alpha, audit.rng())
    elif math.comb(sum(sizes), sizes[0]) <= number:
        p = resampling.permuted(*drawn_from, statistic, np.inf, None)
    else:
        p, draws = resampling.permuted_until_decided(*drawn_from, statistic, number, audit.alpha, audit.rng())
    reach = float(stats.t.ppf(1 - audit.alpha / 2, df)) * math.sqrt(variance)
    pairs = audit.beside(difference=difference, low=difference - reach, high=difference + reach)
    report.numbers("statistic and interval", pairs, "from the scores, by exact sums over clusters")
    report.numbers("p", audit.beside(p=p), f"from {f'{draws:,}' if draws else 'all'} permutations of clusters")
    method = audit.question["method"]
    few = 2 if method == "holdout" else MIN_CLUSTERS
    enough = min(map(len, groups)) >= least_of(method) and min(own[2], other[2]) >= few
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


# Sealed hold-out ------------------------------------------------------------------------------------------------------


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


def check_draw(audit: Audit, draw: Draw, digest: str, secret: bytes | None, report: Report) -> None:
    """That the private file is the committed one, and the audit of its documents and clusters. That its key drew the
    published ones was checked when it was read. digest: of the file."""
    check_commitment(audit, digest, report)
    report.ok("choice", f"the key in the private file drew the {sum(i.published for i in draw.documents)} published.")
    if secret is None:
        report.unchecked("documents of the draw", "that the scored ones are those of the file needs --secret")
        return
    names = {item: commitment(secret, item.name, item.text) for item in draw.documents}
    wrong = [
        f"the {group} set"
        for group, published in (("suspect", True), ("heldout", False))
        if audit.described["documents"].get(group) != [names[i] for i in draw.documents if i.published == published]
    ]
    strata = dict(zip(audit.table["document"], audit.table.get("stratum", [0] * len(names)), strict=False))
    for what, of_draw, of_audit in (
        ("clusters", [item.cluster for item in names], audit.units),
        ("strata", [item.stratum for item in names], strata),
    ):
        known = ((own, of_audit[name]) for own, name in zip(of_draw, names.values(), strict=True) if name in of_audit)
        pairs = set(known)
        if not len(pairs) == len({own for own, _ in pairs}) == len({found for _, found in pairs}):
            wrong.append(f"documents are not counted by the {what} of the draw")
    report.require_none(
        "documents of the draw", wrong, f"all {len(names)} are those of the private file.", "not those of the file: "
    )
