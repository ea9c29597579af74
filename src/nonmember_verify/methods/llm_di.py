"""LLM dataset inference: does a linear model that learned to tell two sets apart still do so on fresh documents?"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from scipy import special, stats

from nonmember_verify.bundle import Audit, FloatArray, IntArray
from nonmember_verify.methods.t_tests import mean_by_clusters
from nonmember_verify.report import Report
from nonmember_verify.resampling import generator
from nonmember_verify.verdicts import MEMBERSHIP, Conclusion

TOLERANCE = 1e-6
FRACTIONS = (0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6)  # of tokens
QUANTITIES = ("ppl_ratio", "ppl_difference", "loss_ratio", "loss_difference")  # of perturbed texts
OWN_SPLITS = 20
CHOSEN = 1e-6  # chance below which the audit's splits were not drawn as the verifier's are


def recompute(audit: Audit, report: Report) -> Conclusion:
    settings, rng = audit.settings, audit.rng()
    columns = list(_features(settings))
    if audit.has_few_clusters("suspect", "heldout"):
        return Conclusion("invalid")
    suspect, heldout = (
        np.column_stack([audit.groups[name].values[column] for column in columns]) for name in ("suspect", "heldout")
    )
    sizes = [min(settings["fit_size"], len(item) // 2) for item in (suspect, heldout)]
    clusters = [audit.clusters(name) for name in ("suspect", "heldout")]
    if any(item is not None for item in clusters):  # in a set without any each document is one by itself
        sets = zip(clusters, (suspect, heldout), strict=True)
        clusters = [np.arange(len(item)) if of is None else of for of, item in sets]
    if settings["compat"]:
        suspect, heldout = (_treated(item, item, settings) for item in (suspect, heldout))
    found = [_split(suspect, heldout, clusters, sizes, settings, rng) for _ in range(settings["num_splits"])]
    p_values = [p for _, p in found]
    combined = _combined(p_values)
    pairs = audit.beside(**{"median t": float(np.median([t for t, _ in found])), "p": combined})
    pairs["p of the splits"] = (audit.details["p_values"], p_values)
    origin = "from the scores, splits with the seed, by a second implementation"
    report.numbers("statistic and p", pairs, origin, tolerance=TOLERANCE)
    own_rng = generator(suspect[:, 0], heldout[:, 0])
    own = [_split(suspect, heldout, clusters, sizes, settings, own_rng) for _ in range(max(OWN_SPLITS, len(found)))]
    _check_by_other_splits(audit, [t for t, _ in found], own, report)
    return Conclusion(MEMBERSHIP if combined < audit.alpha else "inconclusive")


def _features(settings: Mapping[str, Any]) -> Iterator[str]:
    """Columns of the scores that the question asks for, in their order."""
    yield from ("perplexity", *(f"{kind}({share:g})" for kind in ("maxk", "mink") for share in FRACTIONS), "zlib")
    yield from (f"{name}_{quantity}" for name in settings["perturbations"] for quantity in QUANTITIES)
    yield from ("ref_ratio", "ref_diff") if settings["reference_features"] else ()


def _combined(p_values: list[float]) -> float:
    return -math.expm1(math.fsum(math.log1p(-p) if p < 1 else -math.inf for p in p_values))


def _check_by_other_splits(audit: Audit, stated: list[float], own: list[tuple[float, float]], report: Report) -> None:
    """stated: t of the audit's splits.   own: t and p of the verifier's. Splits are drawn alike, so that the ones must
    lie among the others (rank-sum test)."""
    chance = float(stats.mannwhitneyu(stated, [t for t, _ in own], method="exact").pvalue)
    p, found = audit.statistics["p_value"], _combined([p for _, p in own[: len(stated)]])
    median = f"median t is {np.median([t for t, _ in own]):.3f} and p {found:.4f} with splits of the verifier's own"
    report.require(
        "t, by other splits",
        chance >= CHOSEN,
        f"{median} ({np.median(stated):.3f} and {p:.4f} are stated).",
        f"{median}, and {np.median(stated):.3f} and {p:.4f} are stated: more than the splits explain; the seed was "
        "chosen, or the numbers were changed.",
    )
    if (found < audit.alpha) != (p < audit.alpha):
        report.unchecked(
            "p and the seed",
            f"the verdict depends on the splits ({p:.4f}, and {found:.4f} by others); only a seal shows that the seed "
            "was not chosen for it",
        )


def _split(
    suspect: FloatArray,
    heldout: FloatArray,
    clusters: list[IntArray | None],
    sizes: list[int],
    settings: Mapping[str, Any],
    rng: np.random.Generator,
) -> tuple[float, float]:
    """t and p of one split."""
    sets = zip((suspect, heldout), clusters, sizes, strict=True)
    orders = [(item, *_order(len(item), of, size, rng)) for item, of, size in sets]
    fit = [item[order[:size]] for item, order, size in orders]
    rest = [item[order[size:]] for item, order, size in orders]
    of_rest = [None if of is None else of[order[size:]] for of, (_, order, size) in zip(clusters, orders, strict=True)]
    scale_of = suspect
    if not settings["compat"]:
        whole = np.concatenate(fit)
        fit, rest = ([_treated(item, whole, settings) for item in items] for items in (fit, rest))
        scale_of = fit[0]
    rounding = 4 * np.finfo(np.float64).eps * np.abs(scale_of).max(axis=0)
    varies = np.ptp(scale_of, axis=0) > rounding
    mean, deviation = scale_of.mean(axis=0)[varies], scale_of.std(axis=0)[varies]

    def scaled(item: FloatArray) -> FloatArray:
        return np.column_stack([(item[:, varies] - mean) / deviation, np.ones(len(item))])

    weights = _logistic(
        np.vstack([scaled(item) for item in fit]),
        np.repeat([0.0, 1.0], [len(item) for item in fit]),
        settings["learning_rate"],
        settings["num_steps"],
    )
    logits = [scaled(item) @ weights for item in rest]
    if settings["trim_predictions"]:
        kept = [_kept(item, settings["tail_fraction"]) for item in logits]
        logits = [item[places] for item, places in zip(logits, kept, strict=True)]
        of_rest = [None if of is None else of[places] for of, places in zip(of_rest, kept, strict=True)]
    if of_rest[0] is not None and of_rest[1] is not None:
        return _welch_by_clusters(logits, [of_rest[0], of_rest[1]])
    test = stats.ttest_ind(*logits, equal_var=settings["equal_variances"], alternative="less")
    return float(test.statistic), float(test.pvalue)


def _treated(features: FloatArray, of: FloatArray, settings: Mapping[str, Any]) -> FloatArray:
    mode, tail = settings["outliers"], int(len(of) * settings["tail_fraction"] / 2)
    if mode == "keep" or tail == 0:
        return features
    order = np.sort(of, axis=0)
    if mode == "clip":
        return np.minimum(np.maximum(features, order[tail - 1]), order[-tail])
    outside = (features < order[tail]) | (features > order[-tail - 1])
    return np.where(outside, of.mean(axis=0) if mode == "mean" else 0.0, features)


def _logistic(design: FloatArray, labels: FloatArray, rate: float, steps: int) -> FloatArray:
    """Adam on the mean logistic loss, from zeros."""
    weights, first, second = np.zeros(design.shape[1]), np.zeros(design.shape[1]), np.zeros(design.shape[1])
    for step in range(1, steps + 1):
        gradient = design.T @ (special.expit(design @ weights) - labels) / len(labels)
        first = 0.9 * first + 0.1 * gradient
        second = 0.999 * second + 0.001 * gradient * gradient
        weights = weights - rate * (first / (1 - 0.9**step)) / (np.sqrt(second / (1 - 0.999**step)) + 1e-8)
    return weights


def _kept(logits: FloatArray, tail_fraction: float) -> IntArray:
    """Places of what is no outlier."""
    tail = int(len(logits) * tail_fraction / 2)
    return np.sort(np.argsort(logits, kind="stable")[tail : len(logits) - tail])


def _order(number: int, clusters: IntArray | None, size: int, rng: np.random.Generator) -> tuple[IntArray, int]:
    """Documents in random order, cluster by cluster, and how many of the first ones are learnt from."""
    if clusters is None:
        return rng.permutation(number), size
    mixed = rng.permutation(int(clusters.max()) + 1)
    members = [np.flatnonzero(clusters == item) for item in mixed.tolist()]
    cut = len(members[0])
    for item in members[1:-2]:
        if cut + len(item) > size:
            break
        cut += len(item)
    return np.concatenate(members), cut


def _welch_by_clusters(logits: list[FloatArray], clusters: list[IntArray]) -> tuple[float, float]:
    """t and p of suspect below held-out, with variances by leaving out each cluster in turn."""
    if any(len(set(of.tolist())) < 2 for of in clusters):
        return math.nan, 1.0
    (mean, *own), (mean_other, *other) = (mean_by_clusters(*item) for item in zip(logits, clusters, strict=True))
    rounding = 4 * np.finfo(np.float64).eps * max(float(np.abs(item).max()) for item in logits)
    if max(math.sqrt(own[0]), math.sqrt(other[0])) <= rounding:
        return math.nan, 1.0
    variance = own[0] + other[0]
    t = (mean - mean_other) / math.sqrt(variance)
    return t, float(stats.t.cdf(t, variance**2 / sum(share**2 / free for share, free, _ in (own, other))))
