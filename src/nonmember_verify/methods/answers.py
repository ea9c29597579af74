"""Methods that compare answers about suspect documents with those about clean ones: MC-PDD and DE-COP."""

from __future__ import annotations

import math

import numpy as np
from scipy import stats

from nonmember_verify.bundle import Audit, FloatArray, table_of
from nonmember_verify.envelope import Refused
from nonmember_verify.report import Report, agree
from nonmember_verify.resampling import interval_of, permuted, until_decided
from nonmember_verify.verdicts import MEMBERSHIP, NON_MEMBERSHIP, Conclusion

MIN_DOCUMENTS, MIN_WORKS = 30, 5
FEW_HITS, FEW_PERMUTATIONS = 5, 1999  # hits or misses of a set, below which an exact test decides too


def _answers_of(audit: Audit, group: str, measurement: str) -> dict[str, list[tuple[str, bool]]]:
    """Scored document -> kind of each of its answers, and whether it is right."""
    if not audit.groups[group].documents:
        return {}
    table = table_of(audit.files, f"{audit.folder}/answers.parquet")
    found: dict[str, list[tuple[str, bool]]] = {name: [] for name in audit.groups[group].documents}
    rows = zip(table["group"], table["document"], table["measurement"], table["kind"], table["correct"], strict=True)
    for of_group, document, of_measurement, kind, correct in rows:
        if correct != (kind == "right"):
            raise Refused(f"an answer is called {kind}, and correct is {correct}")
        if of_group == group and of_measurement == measurement and document in found:
            found[document].append((kind, bool(correct)))
    return found


def _check_shares(audit: Audit, measurement: str, report: Report) -> None:
    """That each document's number is the share of right answers among all, those that could not be read too."""
    wrong = []
    for name, group in audit.groups.items():
        if measurement not in group.values:
            continue
        answers = _answers_of(audit, name, measurement)
        for document, stated in zip(group.documents, group.values[measurement].tolist(), strict=True):
            taken = [correct for _, correct in answers[document]]
            if not taken or not agree(stated, sum(taken) / len(taken)):
                wrong.append(f"document {document[:12]} has {stated:g}, and {sum(taken)} of {len(taken)} are right")
    report.require_none("answers", wrong, "each document's share is that of its right answers.")


def _valid_share(answers: dict[str, list[tuple[str, bool]]]) -> float:
    kinds = [kind for items in answers.values() for kind, _ in items]
    return sum(kind in ("right", "wrong") for kind in kinds) / len(kinds) if kinds else math.nan


def _by_unit(audit: Audit, name: str, measurement: str) -> list[list[bool]]:
    """Of each unit whether its answers are right."""
    answers, group = _answers_of(audit, name, measurement), audit.groups[name]
    units: dict[int, list[bool]] = {}
    for unit, document in zip(group.units.tolist(), group.documents, strict=True):
        units.setdefault(unit, []).extend(correct for _, correct in answers[document])
    return list(units.values())


def _stands(less: np.ndarray, more: np.ndarray, alpha: float) -> bool:
    """What an exact test of the units' shares says where a set has few hits, or few misses; True where none has."""
    sides = (less, more)
    if min(min(side[:, 0].sum(), (side[:, 1] - side[:, 0]).sum()) for side in sides) >= FEW_HITS:
        return True
    first, second = (np.sort(side[:, 0] / side[:, 1]) for side in (more, less))
    both = np.concatenate([first, second])
    if np.isin(both, (0, 1)).all():
        p = float(stats.hypergeom.sf(int(first.sum()) - 1, len(both), int(both.sum()), len(first)))
    elif min(len(first), len(second)) == 1:  # which SciPy refuses
        p = float((both >= first[0] if len(first) == 1 else both <= second[0]).mean())
    else:
        p, _ = permuted(first, second, _difference, FEW_PERMUTATIONS, alpha, np.random.default_rng(0))
    return p < alpha


def _difference(first: FloatArray, second: FloatArray, axis: int) -> FloatArray:
    return np.asarray(first.mean(axis=axis) - second.mean(axis=axis))


# MC-PDD ---------------------------------------------------------------------------------------------------------------


def mc_pdd(audit: Audit, report: Report) -> Conclusion:
    """Does the target guess specific words of one set more often than those of another?"""
    settings, stated, rng = audit.settings, audit.statistics, audit.rng()
    _check_shares(audit, "hits", report)
    number, alpha = settings["num_resamples"], audit.alpha
    sides = ("heldout", "suspect") if settings["reference"] == "non_member" else ("suspect", "heldout")
    less, more = (_hits(audit, name) for name in sides)
    p, distribution = _rates(less, more, number, alpha, rng)
    number = len(distribution)
    low, high = np.quantile(distribution, (alpha, 1 - alpha))
    difference = float(less[:, 0].sum() / less[:, 1].sum()) - float(more[:, 0].sum() / more[:, 1].sum())
    bounds = {"upper bound": (stated["ci_high"], float(high)), "lower bound": (audit.details["lower"], float(low))}
    pairs = audit.beside(difference=difference, p=p) | bounds
    report.numbers("statistic, interval and p", pairs, f"from {number:,} resamples with the seed")
    invalid = False
    for name in audit.groups:
        asked = _answers_of(audit, name, "hits")
        invalid |= len(asked) < MIN_DOCUMENTS or 1 - _valid_share(asked) > settings["max_invalid"]
    if settings["control"]:
        less_control, more_control = (_hits(audit, f"{name}_control") for name in sides)
        p_control, _ = _rates(less_control, more_control, settings["num_resamples"], alpha, rng)
        report.numbers("control", {"p": (audit.details["control"]["p_value"], p_control)}, "with the seed")
        invalid |= p_control < alpha
    evidence = MEMBERSHIP if settings["reference"] == "non_member" else NON_MEMBERSHIP
    found = p < alpha and _stands(less, more, alpha)
    return Conclusion("invalid" if invalid else evidence if found else "inconclusive")


def _hits(audit: Audit, name: str) -> np.ndarray:
    """[units, 2] hits and questions."""
    return np.array([[sum(items), len(items)] for items in _by_unit(audit, name, "hits")], dtype=np.int64)


def _rates(
    less: np.ndarray, more: np.ndarray, number: int, alpha: float, rng: np.random.Generator
) -> tuple[float, FloatArray]:
    """p and the resampled differences, units of a kind drawn together."""
    blocks = list[FloatArray]()

    def reached(number: int) -> int:
        sums = []
        for side in (less, more):
            kinds, counts = np.unique(side, axis=0, return_counts=True)
            sums.append((rng.multinomial(len(side), counts / counts.sum(), size=number) @ kinds).T)
        (hits, asked), (other_hits, other_asked) = sums
        blocks.append(hits / asked - other_hits / other_asked)
        return int((hits * other_asked >= other_hits * asked).sum())  # whole numbers: the differences are rounded

    p, _ = until_decided(reached, number, alpha)
    return p, np.concatenate(blocks)


# Works ----------------------------------------------------------------------------------------------------------------


def decop(audit: Audit, report: Report) -> Conclusion:
    """Welch's two-sided test on the means of works; invalid where nothing varies."""
    settings = audit.settings
    if settings["calibrate"]:
        report.taken_as_stated("calibration needs the letters' probabilities, which are not here")
        return Conclusion(audit.result["verdict"]["decision"])
    _check_shares(audit, "decop", report)
    works, invalid = [], False
    for name in ("suspect", "heldout"):
        units = _by_unit(audit, name, "decop")
        invalid |= _valid_share(_answers_of(audit, name, "decop")) < settings["min_valid_share"]
        invalid |= len(units) < MIN_WORKS
        works.append(np.array([float(np.mean(items)) for items in units if items]))
    if any(len(item) < 2 for item in works):
        return Conclusion("invalid")
    number, rng = settings["num_resamples"], audit.rng()
    drawn = [item[rng.integers(len(item), size=(number, len(item)))].mean(axis=1) for item in works]
    low, high = interval_of(drawn[0] - drawn[1], audit.alpha)
    difference, p = float(works[0].mean() - works[1].mean()), None
    if max(map(np.ptp, works)) > 1e-15:
        p = float(stats.ttest_ind(*works, equal_var=False).pvalue)
    pairs = audit.beside(difference=difference, p=p, low=low, high=high)
    report.numbers("statistic, interval and p", pairs, f"from the answers, {number:,} resamples with the seed")
    if invalid or p is None:
        return Conclusion("invalid")
    return Conclusion(MEMBERSHIP if p < audit.alpha and difference > 0 else "inconclusive")
