"""LLM dataset inference: does a linear model that learned to tell two sets apart still do so on fresh documents?"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from scipy import special, stats

from nonmember_verify.bundle import Audit, FloatArray
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
    suspect, heldout = (
        np.column_stack([audit.groups[name].values[column] for column in columns]) for name in ("suspect", "heldout")
    )
    sizes = [min(settings["fit_size"], len(item) // 2) for item in (suspect, heldout)]
    if settings["compat"]:
        suspect, heldout = (_treated(item, item, settings) for item in (suspect, heldout))
    found = [_split(suspect, heldout, sizes, settings, rng) for _ in range(settings["num_splits"])]
    p_values = [p for _, p in found]
    combined = _combined(p_values)
    pairs = audit.beside(**{"median t": float(np.median([t for t, _ in found])), "p": combined})
    pairs["p of the splits"] = (audit.details["p_values"], p_values)
    origin = "from the scores, splits with the seed, by a second implementation"
    report.numbers("statistic and p", pairs, origin, tolerance=TOLERANCE)
    own_rng = generator(suspect[:, 0], heldout[:, 0])
    own = [_split(suspect, heldout, sizes, settings, own_rng) for _ in range(max(OWN_SPLITS, len(found)))]
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
    suspect: FloatArray, heldout: FloatArray, sizes: list[int], settings: Mapping[str, Any], rng: np.random.Generator
) -> tuple[float, float]:
    """t and p of one split."""
    mixed = [rng.permutation(item) for item in (suspect, heldout)]
    fit = [item[:size] for item, size in zip(mixed, sizes, strict=True)]
    rest = [item[size:] for item, size in zip(mixed, sizes, strict=True)]
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
        np.repeat([0.0, 1.0], sizes),
        settings["learning_rate"],
        settings["num_steps"],
    )
    logits = [scaled(item) @ weights for item in rest]
    if settings["trim_predictions"]:
        logits = [_trimmed(item, settings["tail_fraction"]) for item in logits]
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


def _trimmed(logits: FloatArray, tail_fraction: float) -> FloatArray:
    tail = int(len(logits) * tail_fraction / 2)
    return np.sort(logits)[tail : len(logits) - tail]
