"""MC-PDD: does the target guess specific words of one set more often than those of another?"""

from __future__ import annotations

import numpy as np

from nonmember_verify.bundle import Audit, FloatArray
from nonmember_verify.methods.answers import PRECONDITION, answers_of, valid_share
from nonmember_verify.methods.conclusion import MEMBERSHIP, NON_MEMBERSHIP, Conclusion
from nonmember_verify.methods.draws import OWN_RESAMPLES, room_of_p
from nonmember_verify.methods.prism import check_distribution
from nonmember_verify.report import Report

PROVIDED = (
    "provided that the two corpora differ in nothing else that makes specific words easy to guess, such as date, fame, "
    "genre or duplication. It says nothing about single documents."
)
CLAIMS = {
    MEMBERSHIP: (
        "The target guesses specific words of the suspect set more often than those of text it has not read. This is "
        f"statistical evidence that the suspect set as a whole was used for training, {PROVIDED}"
    ),
    NON_MEMBERSHIP: (
        "The target guesses specific words of the suspect set less often than those of text it has read. This is "
        f"statistical evidence that the suspect set as a whole was not used for training, {PROVIDED}"
    ),
    "inconclusive": "No significant difference was found. This is evidence neither of membership nor of the contrary.",
    "invalid": PRECONDITION,
}
MIN_DOCUMENTS = 30


def recompute(audit: Audit, report: Report) -> Conclusion:
    settings, stated, rng = audit.settings, audit.statistics, audit.rng()
    number, alpha = settings["num_resamples"], audit.alpha
    sides = ("heldout", "suspect") if settings["reference"] == "non_member" else ("suspect", "heldout")
    less, more = (_hits(audit, name) for name in sides)
    p, distribution = _rates(less, more, number, rng)
    low, high = np.quantile(distribution, (alpha, 1 - alpha))
    difference = _rate(less) - _rate(more)
    report.numbers(
        "statistic, interval and p",
        {"difference": (stated["value"], difference), "p": (stated["p_value"], p),
         "upper bound": (stated["ci_high"], float(high)), "lower bound": (audit.details["lower"], float(low))},
        f"from {number:,} resamples with the seed",
    )  # fmt: skip
    check_distribution(audit, distribution, report)
    own = np.random.Generator(np.random.Philox(len(distribution)))
    other = _drawn_one_by_one(less, own) - _drawn_one_by_one(more, own)
    found = (1 + int((other >= -1e-12).sum())) / (OWN_RESAMPLES + 1)
    room = room_of_p(p, number)
    report.require(
        "p, by other draws", abs(found - stated["p_value"]) <= room, f"p is {found:.4f} with the verifier's own draws.",
        f"p is {found:.4f} with the verifier's own draws, and {stated['p_value']:.4f} is stated.",
    )  # fmt: skip
    invalid = False
    for name in audit.groups:
        asked = answers_of(audit, name, "hits")
        invalid |= len(asked) < MIN_DOCUMENTS or 1 - valid_share(asked) > settings["max_invalid"]
    if settings["control"]:
        p_control, _ = _rates(_hits(audit, f"{sides[0]}_control"), _hits(audit, f"{sides[1]}_control"), number, rng)
        report.numbers("control", {"p": (audit.details["control"]["p_value"], p_control)}, "with the seed")
        invalid |= p_control < alpha
    decision = "inconclusive"
    if invalid:
        decision = "invalid"
    elif p < alpha:
        decision = MEMBERSHIP if settings["reference"] == "non_member" else NON_MEMBERSHIP
    return Conclusion(decision, CLAIMS[decision])


def _hits(audit: Audit, name: str) -> np.ndarray:
    """[units, 2] hits and questions."""
    answers = answers_of(audit, name, "hits")
    sums: dict[int, list[int]] = {}
    group = audit.groups[name]
    for unit, document in zip(group.units.tolist(), group.documents, strict=True):
        own = sums.setdefault(unit, [0, 0])
        own[0] += sum(correct for _, correct in answers[document])
        own[1] += len(answers[document])
    return np.array(list(sums.values()), dtype=np.int64)


def _rate(hits: np.ndarray) -> float:
    return float(hits[:, 0].sum() / hits[:, 1].sum())


def _rates(less: np.ndarray, more: np.ndarray, number: int, rng: np.random.Generator) -> tuple[float, FloatArray]:
    """p and the resampled differences, units of a kind drawn together."""
    sums = []
    for side in (less, more):
        kinds, counts = np.unique(side, axis=0, return_counts=True)
        sums.append((rng.multinomial(len(side), counts / counts.sum(), size=number) @ kinds).T)
    (hits, asked), (other_hits, other_asked) = sums
    reached = int((hits * other_asked >= other_hits * asked).sum())
    return (1 + reached) / (number + 1), np.asarray(hits / asked - other_hits / other_asked)


def _drawn_one_by_one(side: np.ndarray, rng: np.random.Generator) -> FloatArray:
    rows = side[rng.integers(len(side), size=(OWN_RESAMPLES, len(side)))].sum(axis=1)
    return np.asarray(rows[:, 0] / rows[:, 1])
