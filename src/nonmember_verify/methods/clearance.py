"""Calibrated clearance: Delta against those of planted controls.

The audit makes the jackknife and the bootstrap from how often each document counts; here documents are left out and
drawn one by one, and ranked anew each time. Its tails come from scipy's distributions, those here from integrals.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from nonmember_verify.bundle import Audit, FloatArray, Group
from nonmember_verify.methods.conclusion import INVALID, NON_MEMBERSHIP, Conclusion, gates_hold, shams_hold
from nonmember_verify.methods.draws import OWN_RESAMPLES, check_interval, generator, room_of_p
from nonmember_verify.methods.prism import check_distribution
from nonmember_verify.methods.two_way import TwoWay
from nonmember_verify.ranks import correlation, interval_of, p_of, resampled, weighted
from nonmember_verify.report import Report
from nonmember_verify.tails import noncentral_t_quantile, t_below, t_quantile

MIN_DOCUMENTS = 30
INCONCLUSIVE = (
    "The target agrees with the distilled references no worse than models that read the documents do. This is not "
    "evidence that the dataset was used for training."
)
READS_TEXT = {"layout": "it looks at the layout of the documents, and the bundle holds no text"}

Reading = tuple[float, int]  # share, exposures


def recompute(audit: Audit, report: Report) -> Conclusion:
    settings, suspect, details = audit.settings, audit.groups["suspect"], audit.details
    metric, seeds = settings["rank_metric"], settings["distillation_seeds"]
    rng, stated = audit.rng(), audit.statistics
    names = _named("distilled", len(seeds))
    two_way = TwoWay.of(suspect, "reference", "target", names, metric)
    distribution = two_way.resampled(settings["num_resamples"], rng)
    low, high = two_way.interval(audit.alpha)
    controls = _controls(audit, suspect, metric, len(seeds))
    read = {reading: deltas for reading, deltas in controls.items() if reading[1]}
    untouched = [delta for reading, deltas in controls.items() if not reading[1] for delta in deltas]
    exclude = (settings["exclude"]["share"], settings["exclude"]["exposures"])
    heavier = [one for one in read if one[0] >= exclude[0] and one[1] >= exclude[1]]
    controls_of = settings["controls"]
    extra = (controls_of["deviation"] ** 2, controls_of["deviation_df"] or math.inf)
    bounds = {
        one: _bound(read, one, settings["content"], settings["confidence"], extra) for one in heavier
    }  # fmt: skip
    p = max(_p_value(two_way.delta, read, one, extra) for one in heavier)
    report.numbers(
        "statistic and controls",
        {
            "Delta": (stated["value"], two_way.delta),
            "deltas of the seeds": (details["deltas_by_seed"], two_way.deltas.tolist()),
            "deltas of the controls": (
                details["control_deltas"], {_label(one): deltas for one, deltas in controls.items()}
            ),
        },
        "from the scores",
    )  # fmt: skip
    limit = max(bounds.values())
    report.numbers(
        "p and margin",
        {"p": (stated["p_value"], p), "margin": (details["margin"], limit),
         "margins": ({name: one["bound"] for name, one in details["margins"].items()},
                     {_label(one): bound for one, bound in bounds.items()})},
        "from the controls, by incomplete beta functions and integrals", tolerance=1e-6,
    )  # fmt: skip
    report.numbers(
        "interval", {"low": (stated["ci_low"], low), "high": (stated["ci_high"], high)},
        "by leaving out each document in turn", tolerance=1e-6,
    )  # fmt: skip
    check_distribution(audit, distribution, report)
    values = suspect.values
    first, second = resampled(
        [values["reference"], values["distilled"]], values["target"], metric, rng, settings["num_resamples"]
    )
    prism = correlation(values["reference"], values["target"], metric) - correlation(
        values["distilled"], values["target"], metric
    )
    report.numbers(
        "PRISM's own test beside it",
        {"Delta": (details["prism"]["statistic"], prism),
         "p": (details["prism"]["p_value"], p_of(first - second, 0.0))},
        "with the seed",
    )  # fmt: skip
    _by_other_draws(audit, suspect, names, metric, report)
    alike = [name for role in _control_roles(audit) for name in _named(f"{role}/distilled", len(seeds))]
    separation = [float(np.mean(read[one])) for one in heavier]
    found = _gates(audit, names, alike, metric)
    if len(seeds) > 1:
        found["seeds"] = float(np.std(two_way.deltas, ddof=1))
    if untouched:
        found["separation"] = float(np.mean(untouched)) - max(separation)
    holds, taken = gates_hold(audit, found, report, READS_TEXT)
    missing = ({"ce", "ce_share", "kl", "kl_third", "nll_third", "rank_correlation", "layout"} | found.keys()) - set(
        details["gates"]
    )
    if missing:
        report.failed("gates", f"{', '.join(sorted(missing))} is missing, though the question has its bound.")
    holds &= shams_hold(
        audit, {name: _of_model(audit, name, alike, metric) for name in details["shams"]}, report, settings["shams"]
    )
    report.unchecked("detection curve", "which lighter readings would be noticed is taken as stated")
    if not holds or len(suspect) < MIN_DOCUMENTS:
        return Conclusion("invalid", INVALID, taken)
    if two_way.delta > limit and p < audit.alpha:
        return Conclusion(NON_MEMBERSHIP, _claim(exclude), taken)
    return Conclusion("inconclusive", INCONCLUSIVE, taken)


def _by_other_draws(audit: Audit, suspect: Group, names: list[str], metric: str, report: Report) -> None:
    """p, margin and interval are made without draws, so that no seed can be chosen for them. What is drawn stands
    beside them: the resampled statistics, and PRISM's own p."""
    if metric != "spearman":
        report.unchecked("what is drawn, by other draws", "only for Spearman's correlation there is a second way")
        return
    values, number, stated = suspect.values, audit.settings["num_resamples"], audit.distribution
    scores = [values["reference"], *(values[name] for name in names)]
    rng = generator(*scores, values["target"])
    rho = weighted(scores, values["target"], rng, OWN_RESAMPLES, suspect.by_appearance)
    seeds = rng.integers(len(names), size=(OWN_RESAMPLES, len(names)))
    own = rho[0] - np.take_along_axis(rho[1:].T, seeds, axis=1).mean(axis=1)
    if stated is not None:
        check_interval(interval_of(stated, audit.alpha), own, audit.alpha, number, report, "resampled statistics")
    first, second = weighted(scores[:2], values["target"], rng, OWN_RESAMPLES)
    found, p = p_of(first - second, 0.0), audit.details["prism"]["p_value"]
    report.require(
        "PRISM's own test, by other draws", abs(found - p) <= room_of_p(p, number),
        f"p is {found:.4f} with draws of the verifier's own and another algorithm ({p:.4f} is stated).",
        f"p is {found:.4f} with draws of the verifier's own, and {p:.4f} is stated: more than the draws explain.",
    )  # fmt: skip
    report.ok("p, margin and interval, by other draws", "they are made without draws: no seed changes them.")


def _claim(exclude: Reading) -> str:
    share = "this dataset" if exclude[0] == 1 else f"{exclude[0]:.0%} of this dataset"
    return (
        f"There is statistical evidence that the target did not read {share} {exclude[1]} times or more, in the way "
        "the planted controls did. Lighter readings are not excluded; see the detection curve. It says nothing about "
        "single documents."
    )


# Controls -------------------------------------------------------------------------------------------------------------


def _named(role: str, number: int) -> list[str]:
    return [role if place == 0 else f"{role}/{place + 1}" for place in range(number)]


def _label(reading: Reading) -> str:
    return f"{reading[1]}x" if reading[0] == 1 else f"{reading[1]}x{reading[0]:.0%}"


def _readings(audit: Audit) -> list[Reading]:
    return [(one["share"], one["exposures"]) for one in audit.settings["controls"]["readings"]]


def _control_roles(audit: Audit) -> list[str]:
    seeds = audit.settings["controls"]["seeds"]
    return [f"control-{_label(reading)}-{seed}" for reading in _readings(audit) for seed in seeds]


def _controls(audit: Audit, suspect: Group, metric: str, num_seeds: int) -> dict[Reading, list[float]]:
    values = suspect.values

    def delta(role: str) -> float:
        own = [correlation(values[name], values[role], metric) for name in _named(f"{role}/distilled", num_seeds)]
        return correlation(values["reference"], values[role], metric) - float(np.mean(own))

    seeds = audit.settings["controls"]["seeds"]
    return {reading: [delta(f"control-{_label(reading)}-{seed}") for seed in seeds] for reading in _readings(audit)}


def _spread(controls: Mapping[Reading, list[float]], at: Reading) -> tuple[float, int, float, int]:
    """Mean and number of the controls at a reading; pooled variance of all and its degrees of freedom."""
    df = sum(len(deltas) - 1 for deltas in controls.values())
    squares = math.fsum((one - math.fsum(ones) / len(ones)) ** 2 for ones in controls.values() for one in ones)
    own = controls[at]
    return math.fsum(own) / len(own), len(own), squares / df, df


def _with_extra(variance: float, df: float, extra: tuple[float, float]) -> tuple[float, float]:
    if not extra[0]:
        return variance, df
    total = variance + extra[0]
    return total, total**2 / (variance**2 / df + extra[0] ** 2 / extra[1])


def _p_value(delta: float, controls: Mapping[Reading, list[float]], at: Reading, extra: tuple[float, float]) -> float:
    mean, number, variance, df = _spread(controls, at)
    total, df_total = _with_extra(variance * (1 + 1 / number), df, extra)
    return t_below((mean - delta) / math.sqrt(total), df_total)


def _bound(
    controls: Mapping[Reading, list[float]], at: Reading, content: float, confidence: float | None,
    extra: tuple[float, float],
) -> float:  # fmt: skip
    mean, number, variance, df = _spread(controls, at)
    if confidence is None:
        total, df_total = _with_extra(variance * (1 + 1 / number), df, extra)
        return mean + t_quantile(content, df_total) * math.sqrt(total)
    from scipy import special

    total, df_total = _with_extra(variance, df, extra)
    worth = number * total / variance  # how many controls would have so exact a mean
    root = math.sqrt(worth)
    factor = noncentral_t_quantile(confidence, df_total, float(special.ndtri(content)) * root) / root
    return mean + factor * math.sqrt(total)


# Gates ----------------------------------------------------------------------------------------------------------------


def _change(values: Mapping[str, FloatArray], what: str, role: str) -> float:
    sign = -1.0 if what == "loss" else 1.0
    return sign * float(np.mean(values[f"{what}/{role}"] - values[f"{what}/reference"]))


def _of_model(audit: Audit, role: str, alike: list[str], metric: str) -> dict[str, float]:
    suspect, third = (audit.groups[name].values for name in ("suspect", "third"))
    ce = -_change(suspect, "loss", role)
    others = float(np.mean([-_change(suspect, "loss", other) for other in alike]))
    return {
        "ce": ce,
        "ce_share": ce / others if others > 0 else 0.0,
        "kl": -_change(suspect, "kl", role),
        "kl_third": _change(third, "kl", role),
        "nll_third": _change(third, "loss", role),
        "rank_correlation": correlation(suspect[role], suspect["reference"], metric),
    }


def _gates(audit: Audit, names: list[str], alike: list[str], metric: str) -> dict[str, float | None]:
    """Of each gate the worst over the seeds."""
    stated: Mapping[str, Any] = audit.details["gates"]
    by_seed = [_of_model(audit, name, alike, metric) for name in names]
    return {
        name: (max if stated[name]["upper"] else min)(one[name] for one in by_seed)
        for name in by_seed[0]
        if name in stated
    }
