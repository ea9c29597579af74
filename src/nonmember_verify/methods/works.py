"""Methods that compare a value of suspect works with that of clean ones: DE-COP and its baselines, name cloze, prefix
completion."""

from __future__ import annotations

import numpy as np
from scipy import special, stats

from nonmember_verify.bundle import Audit, FloatArray
from nonmember_verify.methods.answers import answers_of, valid_share
from nonmember_verify.methods.conclusion import INVALID, MEMBERSHIP, Conclusion
from nonmember_verify.methods.draws import OWN_RESAMPLES, check_interval, generator, room_of_p
from nonmember_verify.methods.prism import check_distribution
from nonmember_verify.ranks import interval_of
from nonmember_verify.report import Report
from nonmember_verify.tails import t_above, welch

DECOP = {
    MEMBERSHIP: (
        "The model tells the suspect works from paraphrases of them better than it does the clean ones, as it would if "
        "it had been trained on them. The groups may differ in age, fame and style, which looks the same. This speaks "
        "of the group, not of a single work, and is no legal conclusion."
    ),
    "inconclusive": (
        "The test found no evidence of membership. This is not evidence that the works were not used for training."
    ),
    "invalid": INVALID,
}
NAME_CLOZE = {
    MEMBERSHIP: (
        "{found} There is statistical evidence that the target knows the names of the suspect group better than those "
        "of the clean group. The two may differ in age and fame; about a single work this says nothing."
    ),
    "inconclusive": (
        "{found} That is not evidently more than of the clean group. It is the absence of extraction by this question "
        "and nothing else: not that the documents were not read."
    ),
    "score_only": "{found} There is no clean group to compare with, and names can be guessed: nothing follows.",
    "invalid": INVALID,
}
PREFIX = {
    MEMBERSHIP: (
        "{found} There is statistical evidence that the target reproduces the suspect set more often than the clean "
        "one. What it reproduces it has read, in this work or where it is quoted; about the rest this says nothing."
    ),
    "inconclusive": (
        "{found} That is not evidently more than of the clean set. It shows the absence of extraction by this prompt "
        "and nothing else: not that the documents were not read."
    ),
    "score_only": "{found} There is no clean set to compare with. What was not reproduced may well have been read.",
    "invalid": INVALID,
}
BASELINES = (
    "None about membership: the numbers say how well each score tells these two groups of works apart, whatever the "
    "cause. Groups of different age differ in their language, too."
)
MIN_WORKS, MIN_PREFIX = 5, 2


def decop(audit: Audit, report: Report) -> Conclusion:
    settings = audit.settings
    if settings["calibrate"]:
        report.unchecked(
            "statistic, interval and p", "calibration needs the letters' probabilities, which are not here"
        )
        return Conclusion(audit.result["verdict"]["decision"], None)
    groups, invalid = [], False
    for name in ("suspect", "heldout"):
        answers, group = answers_of(audit, name, "decop"), audit.groups[name]
        invalid |= valid_share(answers) < settings["min_valid_share"]
        by_unit: dict[int, list[bool]] = {}
        for unit, document in zip(group.units.tolist(), group.documents, strict=True):
            by_unit.setdefault(unit, []).extend(correct for _, correct in answers[document])
        groups.append(np.array([float(np.mean(ones)) for ones in by_unit.values() if ones]))
        invalid |= len(by_unit) < MIN_WORKS
    if any(len(one) < 2 for one in groups):
        return Conclusion("invalid", INVALID)
    p, difference = _compared(audit, groups[0], groups[1], audit.rng(), report)
    decision = MEMBERSHIP if p is not None and p < audit.alpha and difference > 0 else "inconclusive"
    decision = "invalid" if invalid or p is None else decision
    return Conclusion(decision, DECOP[decision])


def name_cloze(audit: Audit, report: Report) -> Conclusion:
    groups = {name: one for name, one in audit.groups.items() if name in ("suspect", "heldout")}
    works = [one.by_unit(one.values["cloze"]) if len(one) else np.zeros(0) for one in groups.values()]
    hits = round(float(groups["suspect"].values["cloze"].sum()))
    told = f"{hits} of {len(groups['suspect'])} names were given."
    report.unchecked("share of answers as told", "whether answers are single words needs their text")
    invalid = any(len(one) < MIN_WORKS for one in works) or any(
        audit.details[name]["num_documents"]
        and audit.details[name]["share_as_told"] < audit.settings["min_valid_share"]
        for name in groups
    )
    decision = "score_only"
    if len(works) == 2 and min(map(len, works)) >= 2:
        p, difference = _compared(audit, works[0], works[1], audit.rng(), report)
        decision = MEMBERSHIP if p is not None and p < audit.alpha and difference > 0 else "inconclusive"
    else:
        report.numbers("statistic", {"share": (audit.statistics["value"], float(works[0].mean()))}, "from the answers")
    decision = "invalid" if invalid else decision
    return Conclusion(decision, NAME_CLOZE[decision].format(found=told))


def _compared(
    audit: Audit, first: FloatArray, second: FloatArray, rng: np.random.Generator, report: Report
) -> tuple[float | None, float]:  # fmt: skip
    """Welch's two-sided p and the difference of the means."""
    stated, number = audit.statistics, audit.settings["num_resamples"]
    distribution, _ = _bootstrap(first, second, number, rng)
    low, high = interval_of(distribution, audit.alpha)
    difference = float(first.mean() - second.mean())
    p = None
    if max(np.ptp(first), np.ptp(second)) > 1e-15:
        t, df = welch(first.tolist(), second.tolist())
        p = 2 * t_above(abs(t), df)
    report.numbers(
        "statistic, interval and p",
        {"difference": (stated["value"], difference), "p": (stated["p_value"], p),
         "low": (stated["ci_low"], low), "high": (stated["ci_high"], high)},
        f"from the answers, {number:,} resamples with the seed",
    )  # fmt: skip
    check_distribution(audit, distribution, report)
    own, _ = _bootstrap(first, second, OWN_RESAMPLES, generator(first, second))
    check_interval((stated["ci_low"], stated["ci_high"]), own, audit.alpha, number, report)
    if p is not None:
        other = float(stats.ttest_ind(first, second, equal_var=False).pvalue)
        report.numbers("p, by another way", {"p": (stated["p_value"], other)}, "by scipy's own test", tolerance=1e-8)
    return p, difference


def _bootstrap(
    first: FloatArray, second: FloatArray, number: int, rng: np.random.Generator
) -> tuple[FloatArray, FloatArray]:  # fmt: skip
    """[B] differences of the means and areas under the ROC curve of drawn works."""
    drawn = [one[rng.integers(len(one), size=(number, len(one)))] for one in (first, second)]
    above = stats.rankdata(np.concatenate(drawn, axis=1), axis=1)[:, : len(first)].sum(axis=1)
    auc = (above - len(first) * (len(first) + 1) / 2) / (len(first) * len(second))
    return np.asarray(drawn[0].mean(axis=1) - drawn[1].mean(axis=1)), auc


def decop_baselines(audit: Audit, report: Report) -> Conclusion:
    column = next(iter(audit.described["columns"]["suspect"]))
    first, second = (audit.groups[name].by_unit(audit.groups[name].values[column]) for name in ("suspect", "heldout"))
    stated, number = audit.statistics, audit.settings["num_resamples"]
    _, aucs = _bootstrap(first, second, number, audit.rng())
    low, high = interval_of(aucs, audit.alpha)
    auc = _auc(first, second)
    t, df = welch(first.tolist(), second.tolist())
    report.numbers(
        "statistic, interval and p",
        {"AUC": (stated["value"], auc), "p": (stated["p_value"], 2 * t_above(abs(t), df)),
         "low": (stated["ci_low"], low), "high": (stated["ci_high"], high)},
        f"from the scores, {number:,} resamples with the seed", tolerance=1e-8,
    )  # fmt: skip
    _, own = _bootstrap(first, second, OWN_RESAMPLES, generator(first, second))
    check_interval((stated["ci_low"], stated["ci_high"]), own, audit.alpha, number, report)
    report.unchecked("the other scores", "what stands in the details of further scores is taken as stated")
    return Conclusion("score_only", BASELINES)


def _auc(first: FloatArray, second: FloatArray) -> float:
    wins = (first[:, None] > second).sum() + 0.5 * (first[:, None] == second).sum()
    return float(wins / (len(first) * len(second)))


# Prefix completion ----------------------------------------------------------------------------------------------------


def prefix_completion(audit: Audit, report: Report) -> Conclusion:
    groups, stated = audit.groups, audit.statistics
    values = groups["suspect"].values["completion"]
    hits, number, alpha = round(float(values.sum())), len(values), audit.alpha
    # Clopper and Pearson's bounds, from the incomplete beta function.
    low = float(special.betaincinv(hits, number - hits + 1, alpha / 2)) if hits else 0.0
    high = float(special.betaincinv(hits + 1, number - hits, 1 - alpha / 2)) if hits < number else 1.0
    report.numbers(
        "statistic and interval",
        {"share": (stated["value"], hits / number), "low": (stated["ci_low"], low), "high": (stated["ci_high"], high)},
        "from the answers", tolerance=1e-8,
    )  # fmt: skip
    told = f"{hits} of {number} passages were reproduced."
    invalid = any(len(one) < MIN_PREFIX for one in groups.values())
    if "heldout" not in groups:
        decision = "invalid" if invalid else "score_only"
        return Conclusion(decision, PREFIX[decision].format(found=told))
    works = [one.by_unit(one.values["completion"]) for one in groups.values()]
    p = _permuted(audit, works[0], works[1], report)
    decision = MEMBERSHIP if p < alpha else "inconclusive"
    decision = "invalid" if invalid else decision
    return Conclusion(decision, PREFIX[decision].format(found=told))


def _permuted(audit: Audit, first: FloatArray, second: FloatArray, report: Report) -> float:
    stated, number = audit.statistics["p_value"], audit.settings["num_permutations"]
    both = np.concatenate([first, second])
    if np.isin(both, (0, 1)).all():
        hits, total = int(both.sum()), len(both)
        p = float(stats.hypergeom.sf(int(first.sum()) - 1, total, hits, len(first)))
        report.numbers("p", {"p": (stated, p)}, "by the hypergeometric distribution", tolerance=1e-8)
        return p
    p = float(
        stats.permutation_test(
            (first, second), lambda x, y, axis: x.mean(axis=axis) - y.mean(axis=axis), vectorized=True,
            n_resamples=number, alternative="greater", rng=audit.rng(),
        ).pvalue
    )  # fmt: skip
    report.numbers("p", {"p": (stated, p)}, "by permutations with the seed")
    rng = np.random.Generator(np.random.Philox(len(both)))
    orders = np.argsort(rng.random((OWN_RESAMPLES, len(both))), axis=1)[:, : len(first)]
    found = (1 + int((both[orders].sum(axis=1) >= first.sum() - 1e-12).sum())) / (OWN_RESAMPLES + 1)
    room = room_of_p(p, number)
    report.require("p, by other draws", abs(found - stated) <= room, f"p is {found:.4f} with the verifier's own.",
                   f"p is {found:.4f} with the verifier's own permutations, and {stated:.4f} is stated.")  # fmt: skip
    return p
