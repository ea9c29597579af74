"""Calibrated clearance: Delta against those of planted controls.

The audit makes the jackknife from how often each document counts; here documents are left out one by one, and ranked
anew each time.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from scipy import optimize, special, stats

from nonmember_verify.bundle import Audit, FloatArray, Group
from nonmember_verify.methods.prism import gates_of, rise
from nonmember_verify.report import Report
from nonmember_verify.resampling import correlation
from nonmember_verify.verdicts import NON_MEMBERSHIP, Conclusion, gates_hold, shams_hold

MIN_DOCUMENTS = 30
GATES = {"ce", "ce_share", "kl", "kl_third", "nll_third", "rank_correlation", "layout"}
END = 2.0  # of the scale of Delta
SMALLEST_STEP = 1e-6

Reading = tuple[float, int]  # share, exposures


def recompute(audit: Audit, report: Report) -> Conclusion:
    settings, suspect, details = audit.settings, audit.groups["suspect"], audit.details
    metric, names = settings["rank_metric"], _named("distilled", len(settings["distillation_seeds"]))
    two_way = TwoWay.of(suspect, "reference", "target", names, metric)
    low, high = two_way.interval(audit.alpha)
    controls, alike = _controls(audit, metric, len(names))
    read = {reading: deltas for reading, deltas in controls.items() if reading[1]}
    untouched = [delta for reading, deltas in controls.items() if not reading[1] for delta in deltas]
    exclude = (settings["exclude"]["share"], settings["exclude"]["exposures"])
    if exclude not in read:
        planted = ", ".join(map(_label, read))
        report.failed("excluded reading", f"{_label(exclude)} is none of those that controls read ({planted}).")
    heavier = [item for item in read if item[0] >= exclude[0] and item[1] >= exclude[1]]
    extra = (settings["controls"]["deviation"] ** 2, settings["controls"]["deviation_df"] or math.inf)
    bounds = {item: _bound(read, item, settings["content"], settings["confidence"], extra) for item in heavier}
    limit, p = max(bounds.values()), max(_p_value(two_way.delta, read, item, extra) for item in heavier)
    by_label = {_label(item): deltas for item, deltas in controls.items()}
    pairs = audit.beside(Delta=two_way.delta) | {
        "deltas of the seeds": (details["deltas_by_seed"], two_way.deltas.tolist()),
        "deltas of the controls": (details["control_deltas"], by_label),
    }
    report.numbers("statistic and controls", pairs, "from the scores")
    margins = {name: item["bound"] for name, item in details["margins"].items()}
    pairs = audit.beside(p=p) | {
        "margin": (details["margin"], limit),
        "margins": (margins, {_label(item): bound for item, bound in bounds.items()}),
    }
    pairs |= audit.beside(low=low, high=high)
    origin = "from the controls, and by leaving out each document in turn"
    report.numbers("p, margin and interval", pairs, origin, tolerance=1e-6)
    report.ok("p, margin and interval, by other draws", "they are made without draws: no seed changes them.")
    report.unchecked(
        "what no verdict rests on",
        "resampled statistics, PRISM's own test beside it and the detection curve are taken as stated",
    )
    gates = _gates(audit, names, alike, metric)
    if len(names) > 1:
        gates["seeds"] = float(np.std(two_way.deltas, ddof=1))
    if untouched:
        gates["separation"] = float(np.mean(untouched)) - max(float(np.mean(read[item])) for item in heavier)
    holds, taken = gates_hold(audit, gates, GATES | gates.keys(), report)
    shams = {name: _of_model(audit, name, alike, metric) for name in details["shams"]}
    holds &= shams_hold(audit, shams, report, settings["shams"])
    part = "this dataset" if exclude[0] == 1 else f"{exclude[0]:.0%} of this dataset"
    words = {"share": part, "exposures": exclude[1]}
    if not holds or len(suspect) < MIN_DOCUMENTS:
        return Conclusion("invalid", words, taken)
    return Conclusion(NON_MEMBERSHIP if two_way.delta > limit and p < audit.alpha else "inconclusive", words, taken)


# Delta of several distilled references --------------------------------------------------------------------------------


@dataclass(frozen=True)
class TwoWay:
    whole: FloatArray  # [1 + S] correlations with the target, of the reference and then of each distilled reference
    without: FloatArray  # [1 + S, G] the same without each cluster of documents

    @classmethod
    def of(cls, group: Group, reference: str, target: str, distilled: list[str], metric: str) -> TwoWay:
        scores = [group.values[name] for name in (reference, *distilled)]
        aim, clusters = group.values[target], group.by_appearance
        kept = [np.ones(len(aim), bool), *(clusters != left_out for left_out in range(int(clusters.max()) + 1))]
        rho = np.array([[correlation(item[rows], aim[rows], metric) for rows in kept] for item in scores])
        return cls(rho[:, 0], rho[:, 1:])

    @property
    def deltas(self) -> FloatArray:
        return np.asarray(self.whole[0] - self.whole[1:])

    @property
    def delta(self) -> float:
        return float(self.whole[0]) - float(self.whole[1:].mean())

    def _variance(self, without: FloatArray, slope: float) -> tuple[float, float]:
        """Of an estimate that is `without` without each cluster, and its degrees of freedom."""
        num_seeds, number = self.without.shape[0] - 1, self.without.shape[1]
        jackknife = (number - 1) / number * math.fsum((without - without.mean()) ** 2)
        if num_seeds == 1:
            return jackknife, number - 1.0
        seeds = slope**2 * float(np.var(self.whole[1:], ddof=1)) / num_seeds
        table = self.without[1:]
        rest = table - table.mean(axis=0) - table.mean(axis=1)[:, None] + table.mean()
        own = math.fsum((rest**2).ravel()) * (number - 1) / (number * num_seeds * (num_seeds - 1))
        documents = max(jackknife - slope**2 * own, 0.0)
        spread = jackknife**2 / (number - 1) + seeds**2 / (num_seeds - 1)
        return documents + seeds, (documents + seeds) ** 2 / spread if spread > 0 else number - 1.0

    def tail(self, margin: float) -> float:
        """One-sided p of Delta <= margin, on Fisher's scale; NaN where it is undefined."""

        def beyond(reference: float, distilled: float) -> float:
            item, other = math.atanh(reference), math.atanh(distilled)
            steep = margin / math.sqrt(4 - margin**2)
            return item - other - math.asinh(steep * math.cosh(item + other)) - math.atanh(margin / 2)

        reference, distilled = float(self.whole[0]), float(self.whole[1:].mean())
        try:
            whole = beyond(reference, distilled)
            pairs = zip(self.without[0].tolist(), self.without[1:].mean(axis=0).tolist(), strict=True)
            without = np.array([beyond(*pair) for pair in pairs])
        except ValueError:  # a correlation of 1 or -1
            return math.nan
        total, steep = math.atanh(reference) + math.atanh(distilled), margin / math.sqrt(4 - margin**2)
        slope = (1 + steep * math.sinh(total) / math.sqrt(1 + (steep * math.cosh(total)) ** 2)) / (1 - distilled**2)
        variance, df = self._variance(without, slope)
        if not variance > 0:
            return math.nan
        unbiased = whole - (len(without) - 1) * float((without - whole).mean())
        return float(stats.t.sf(unbiased / math.sqrt(variance), df))

    def interval(self, alpha: float) -> tuple[float | None, float | None]:
        """The margins rejected on neither side at alpha / 2. The tail need not rise all the way, so where its ends are
        looked for is part of what the interval is: from Delta outwards, by steps that begin with the standard error of
        Delta and double (docs/methods/clearance.md)."""
        if math.isnan(self.tail(self.delta)):
            return None, None
        variance, _ = self._variance(self.without[0] - self.without[1:].mean(axis=0), 1.0)
        first = max(math.sqrt(variance), SMALLEST_STEP)

        def crossing(excess: Callable[[float], float], step: float) -> float:
            inner, outer = self.delta, self.delta + step
            while abs(outer) < END:
                if excess(outer) <= 0:
                    return float(optimize.brentq(excess, inner, outer, xtol=1e-12)) if excess(inner) > 0 else inner
                inner, step = outer, 2 * step
                outer += step
            return math.copysign(END, step)

        return (
            crossing(lambda margin: self.tail(margin) - alpha / 2, -first),
            crossing(lambda margin: 1 - alpha / 2 - self.tail(margin), first),
        )


# Controls -------------------------------------------------------------------------------------------------------------


def _named(role: str, number: int) -> list[str]:
    return [role if index == 0 else f"{role}/{index + 1}" for index in range(number)]


def _label(reading: Reading) -> str:
    return f"{reading[1]}x" if reading[0] == 1 else f"{reading[1]}x{reading[0]:.0%}"


def _controls(audit: Audit, metric: str, num_seeds: int) -> tuple[dict[Reading, list[float]], list[str]]:
    """Their deltas, and the roles of the models that are distilled of them."""
    values, asked = audit.groups["suspect"].values, audit.settings["controls"]
    deltas: dict[Reading, list[float]] = {(item["share"], item["exposures"]): [] for item in asked["readings"]}
    alike: list[str] = []
    for reading, own in deltas.items():
        for role in (f"control-{_label(reading)}-{seed}" for seed in asked["seeds"]):
            distilled = _named(f"{role}/distilled", num_seeds)
            first, *others = (correlation(values[name], values[role], metric) for name in ("reference", *distilled))
            own.append(first - float(np.mean(others)))
            alike += distilled
    return deltas, alike


def _spread(controls: Mapping[Reading, list[float]], at: Reading) -> tuple[float, int, float, int]:
    """Mean and number of the controls at a reading; pooled variance of all and its degrees of freedom."""
    df = sum(len(deltas) - 1 for deltas in controls.values())
    squares = math.fsum((item - math.fsum(items) / len(items)) ** 2 for items in controls.values() for item in items)
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
    return float(stats.t.cdf((mean - delta) / math.sqrt(total), df_total))


def _bound(
    controls: Mapping[Reading, list[float]],
    at: Reading,
    content: float,
    confidence: float | None,
    extra: tuple[float, float],
) -> float:
    mean, number, variance, df = _spread(controls, at)
    if confidence is None:
        total, df_total = _with_extra(variance * (1 + 1 / number), df, extra)
        return mean + float(stats.t.ppf(content, df_total)) * math.sqrt(total)
    total, df_total = _with_extra(variance, df, extra)
    root = math.sqrt(number * total / variance)  # of how many controls would have so exact a mean
    factor = float(stats.nct.ppf(confidence, df_total, special.ndtri(content) * root)) / root
    return mean + factor * math.sqrt(total)


# Gates ----------------------------------------------------------------------------------------------------------------


def _of_model(audit: Audit, role: str, alike: list[str], metric: str) -> dict[str, float]:
    suspect, found = audit.groups["suspect"].values, gates_of(audit, role)
    others = float(np.mean([rise(suspect, "loss", other) for other in alike]))
    return {
        **found,
        "ce_share": found["ce"] / others if others > 0 else 0.0,
        "rank_correlation": correlation(suspect[role], suspect["reference"], metric),
    }


def _gates(audit: Audit, names: list[str], alike: list[str], metric: str) -> dict[str, float | None]:
    """Of each gate the worst over the seeds."""
    stated = audit.details["gates"]
    by_seed = [_of_model(audit, name, alike, metric) for name in names]
    named = (name for name in by_seed[0] if name in stated)
    return {name: (max if stated[name]["upper"] else min)(item[name] for item in by_seed) for name in named}
