"""FSD: how well the change of a score by tuning ranks members above others."""

from __future__ import annotations

import numpy as np

from nonmember_verify.bundle import Audit, FloatArray
from nonmember_verify.methods.answers import PRECONDITION
from nonmember_verify.methods.conclusion import Conclusion
from nonmember_verify.methods.draws import OWN_RESAMPLES, check_interval, generator
from nonmember_verify.methods.prism import check_distribution
from nonmember_verify.ranks import interval_of
from nonmember_verify.report import Report

CLAIM = (
    "None about a single document or the set: FSD ranks documents, and the AUC says how well on these two labelled "
    "sets. A threshold needs labelled documents of the same kind."
)
MIN_DOCUMENTS = 30


def recompute(audit: Audit, report: Report) -> Conclusion:
    members, others = (audit.groups[name] for name in ("suspect", "heldout"))
    score = audit.question["score"] or next(iter(audit.details["scores"]))
    first, second = (one.values[f"target/{score}"] - one.values[f"tuned/{score}"] for one in (members, others))
    stated, number = audit.statistics, audit.settings["num_resamples"]
    units: dict[int, int] = {}
    clusters = np.array(
        [units.setdefault(unit, len(units)) for unit in [*members.units.tolist(), *others.units.tolist()]]
    )
    wins = (first[:, None] > second).astype(np.float64) + 0.5 * (first[:, None] == second)
    drawn = audit.rng().integers(len(units), size=(number, len(units)))
    weights = np.zeros((number, len(units)))
    np.add.at(weights, (np.arange(number)[:, None], drawn), 1.0)
    aucs = _aucs(wins, weights[:, clusters])
    low, high = interval_of(aucs, audit.alpha)
    report.numbers(
        "statistic and interval",
        {"AUC": (stated["value"], float(wins.mean())),
         "low": (stated["ci_low"], low), "high": (stated["ci_high"], high)},
        f"from the scores, {number:,} resamples with the seed", tolerance=1e-8,
    )  # fmt: skip
    check_distribution(audit, aucs, report)
    shares = np.full(len(units), 1 / len(units))
    others_drawn = generator(first, second).multinomial(len(units), shares, size=OWN_RESAMPLES).astype(np.float64)
    own = _aucs(wins, others_drawn[:, clusters])
    check_interval((stated["ci_low"], stated["ci_high"]), own, audit.alpha, number, report)
    report.unchecked("blind baseline and leaks", "they read the documents, and the bundle holds no text")
    invalid = min(len(members), len(others)) < MIN_DOCUMENTS
    return Conclusion("invalid" if invalid else "score_only", PRECONDITION if invalid else CLAIM)


def _aucs(wins: FloatArray, weights: FloatArray) -> FloatArray:
    """[B] where each document counts as often as it was drawn. wins: [members, others].   weights: [B, both]."""
    own, other = weights[:, : len(wins)], weights[:, len(wins) :]
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(((own @ wins) * other).sum(axis=1) / (own.sum(axis=1) * other.sum(axis=1)))
