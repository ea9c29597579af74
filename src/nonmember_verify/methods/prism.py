"""PRISM: the bootstrap of Delta = rho(reference, target) - rho(distilled, target)."""

from __future__ import annotations

import math

import numpy as np
from scipy import stats

from nonmember_verify import resampling
from nonmember_verify.bundle import MIN_CLUSTERS, Audit, FloatArray
from nonmember_verify.methods.t_tests import difference_by_clusters
from nonmember_verify.report import Report
from nonmember_verify.resampling import correlation, interval_of, num_reached
from nonmember_verify.verdicts import NON_MEMBERSHIP, Conclusion, gates_hold, is_reference_the_target

MIN_DOCUMENTS = 30
MAX_UNDEFINED = 0.01
SENSITIVITY_MARGIN = 0.1
GATES = {"ce", "kl", "kl_third", "nll_third", "reference_gain", "rank_correlation", "distinct", "spread"}
# gate -> its bound
OF_CLEARANCE = {"delta": "min_delta", "target_gain": "max_target_gain", "third_kind": "max_third_auc"}
ONE_SIDED = 0.05  # level of the upper bound on what the target gains on the suspect set beyond third text


def recompute(audit: Audit, report: Report) -> Conclusion:
    suspect, settings = audit.groups["suspect"], audit.settings
    if "distilled" not in suspect.values:
        if is_reference_the_target(audit):
            why = "no distilled reference was made: reference and target are one"
            report.unchecked("statistic, interval and p", why)
        else:
            report.failed("statistic, interval and p", "the scores of the distilled reference are missing.")
        return Conclusion("invalid")
    clusters = audit.clusters("suspect")
    if clusters is not None and int(clusters.max()) + 1 < MIN_CLUSTERS:
        return Conclusion("invalid")
    reference, target, distilled = (suspect.values[role] for role in ("reference", "target", "distilled"))
    metric, details = settings["rank_metric"], audit.details
    rho = [correlation(item, target, metric) for item in (reference, distilled)]
    rng, blocks = audit.rng(), list[FloatArray]()

    def reached(more: int) -> int:
        first, second = resampling.resampled([reference, distilled], target, metric, rng, more, clusters)
        blocks.append(first - second)
        return num_reached(blocks[-1], settings["margin"])

    p, number = resampling.until_decided(reached, settings["num_resamples"], audit.alpha)
    distribution = np.concatenate(blocks)
    low, high = interval_of(distribution, audit.alpha)
    report.numbers("p", audit.beside(p=p), f"from {number:,} resamples with the seed", tolerance=0.0)
    further = {
        "num_resamples": float(number),
        "rho_reference_target": rho[0],
        "rho_distilled_target": rho[1],
        "rho_distilled_reference": correlation(distilled, reference, metric),
        "p_value_at_margin_0.1": (1 + num_reached(distribution, SENSITIVITY_MARGIN)) / (number + 1),
    }
    pairs = audit.beside(Delta=rho[0] - rho[1], low=low, high=high)
    pairs |= {name: (details[name], value) for name, value in further.items()}
    origin = f"from the scores, {number:,} resamples with the seed"
    report.numbers("statistic, interval and further numbers", pairs, origin)
    decision = NON_MEMBERSHIP if p < audit.alpha else "inconclusive"
    if len(suspect) < MIN_DOCUMENTS or np.isnan(distribution).mean() > MAX_UNDEFINED:
        decision = "invalid"
    taken: list[str] = []
    if settings.get("gates"):
        failed, expected = {name for name, gate in details.get("gates", {}).items() if not gate["passed"]}, set(GATES)
        if failed - OF_CLEARANCE.keys():
            decision = "invalid"
        elif failed and decision == NON_MEMBERSHIP:
            decision = "inconclusive"
        if decision != "invalid":
            asked = OF_CLEARANCE.keys() - (set() if p < audit.alpha else {"delta"})
            expected |= {name for name in asked if settings["gates"].get(OF_CLEARANCE[name]) is not None}
        _, taken = gates_hold(audit, _gates(audit, rho[0]), expected, report)
        if not _check_power(audit, report) and decision == NON_MEMBERSHIP:
            decision = "inconclusive"
    return Conclusion(decision, stated_gates=taken)


def _of_distillation(audit: Audit) -> dict[str, float]:
    """What it changed, on the suspect documents and on third text; columns of losses hold log-likelihoods."""

    def rise(group: str, what: str) -> float:
        values = audit.groups[group].values
        return float(np.mean(values[f"{what}/distilled"] - values[f"{what}/reference"]))

    return {
        "ce": rise("suspect", "loss"),
        "kl": -rise("suspect", "kl"),
        "kl_third": rise("third", "kl"),
        "nll_third": -rise("third", "loss"),
    }


def _check_power(audit: Audit, report: Report) -> bool:
    """Whether the test could have cleared the set, where the question asks for it; else nothing is cleared."""
    stated, gates = audit.details.get("power"), audit.settings["gates"]
    delta, agreement = (gates.get(name) for name in ("min_third_delta", "min_third_agreement"))
    if stated is None or (delta is None and agreement is None):
        if stated is not None or delta is not None or agreement is not None:
            report.failed("power", "the question asks for it and it is not there, or the other way round.")
        return True
    third, found, metric = audit.groups["third"].values, _of_distillation(audit), audit.settings["rank_metric"]
    rho = [correlation(third[role], third["target"], metric) for role in ("reference", "distilled")]
    least = [-math.inf if bound is None else bound for bound in (delta, agreement)]
    numbers = {
        "rho_reference_target": rho[0],
        "rho_distilled_target": rho[1],
        "kl_fall": found["kl"],
        "kl_fall_third": -found["kl_third"],
        "has_power": bool(rho[0] - rho[1] > least[0] and rho[0] > least[1]),
    }
    pairs = {name: (stated[name], value) for name, value in numbers.items()}
    report.numbers("power", pairs, "from the scores on third text")
    return bool(numbers["has_power"])


def _gates(audit: Audit, rho: float) -> dict[str, float | None]:
    groups = [audit.groups[name] for name in ("suspect", "third")]
    suspect = groups[0].values
    leads = [group.values["loss/target"] - group.values["loss/reference"] for group in groups]
    gain, variance, df = difference_by_clusters(leads, [group.by_appearance for group in groups])
    scores = [suspect[role] for role in ("target", "reference", "distilled")]
    return {
        **_of_distillation(audit),
        "reference_gain": float(np.mean(leads[1]) - np.mean(leads[0])),
        "target_gain": gain + float(stats.t.ppf(1 - ONE_SIDED, df)) * math.sqrt(variance) if variance else gain,
        "rank_correlation": rho if math.isfinite(rho) else 1.0,
        "spread": min(float(np.std(item)) / max(abs(float(np.mean(item))), 1e-12) for item in scores),
        "delta": audit.statistics["value"],
    }
