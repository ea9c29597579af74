"""Several datasets audited under one target: what may be said of each, of all together, and where to look first.

Holm's adjustment guards claims about each set, the intersection-union test the claim about all of them, Benjamini and
Hochberg's a list to look at (stats/multiplicity.py). A claim also needs the verdict of its own audit, so that an audit
with a failed gate supports none.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from nonmember.results.result import AuditResult
from nonmember.stats.multiplicity import benjamini_hochberg, holm, intersection_union

CLAIMING = {"evidence_of_non_membership", "evidence_of_membership"}

EACH = (
    "Each (Holm): of every set listed one may claim what its audit allows; the probability that any of these claims is "
    "false is at most alpha, however the tests depend on each other."
)
ALL = (
    "All: the same of all sets at once, allowed where the largest p is below alpha and every audit has the verdict. It "
    "needs no adjustment."
)
SCREENING = (
    "Screening (Benjamini-Hochberg): a list to look at more closely, of which at most the share alpha is false on "
    "average where the tests do not hinder each other. It supports no claim about any one set."
)


@dataclass(frozen=True)
class Tested:
    """One set. p: the largest of its audits, where there were several (settings, seeds, draws); 1 for an invalid or
    undefined one.   claimed: whether every audit has a verdict that claims something.   holm, bh: adjusted p."""

    p: float
    claimed: bool
    holm: float
    bh: float
    results: tuple[AuditResult, ...]


@dataclass(frozen=True)
class SetFamily:
    """The sets that one method tested under one target with one reference. alpha: the smallest of its audits."""

    method: str
    target: str
    reference: str
    alpha: float
    sets: Mapping[str, Tested]

    def name(self, among: Sequence[SetFamily]) -> str:
        """The target, with the method and the reference where they differ."""
        method = f"{self.method}: " if len({item.method for item in among}) > 1 else ""
        reference = f", reference {self.reference}" if len({item.reference for item in among}) > 1 else ""
        return f"{method}{self.target}{reference}"

    @property
    def each(self) -> list[str]:
        return [name for name, item in self.sets.items() if item.claimed and item.holm < self.alpha]

    @property
    def largest(self) -> float:
        return intersection_union([item.p for item in self.sets.values()])

    @property
    def all_together(self) -> bool:
        return self.largest < self.alpha and all(item.claimed for item in self.sets.values())

    @property
    def screened(self) -> list[str]:
        return [name for name, item in self.sets.items() if item.claimed and item.bh < self.alpha]


def families(results: Iterable[AuditResult]) -> list[SetFamily]:
    """Of two sets or more, in the order in which their first results come; of tests alone, not of scores."""
    found: dict[tuple[str, str, str], dict[str, list[AuditResult]]] = {}
    for result in results:
        asked = result.question
        if asked.claim is not None and result.verdict.decision != "score_only":
            key = (asked.method, asked.target or "", asked.reference or "")
            found.setdefault(key, {}).setdefault(asked.corpus, []).append(result)
    return [_family(key, sets) for key, sets in found.items() if len(sets) > 1]


def _family(key: tuple[str, str, str], sets: Mapping[str, list[AuditResult]]) -> SetFamily:
    p_values = [max(map(_p_value, results)) for results in sets.values()]
    tested = {
        name: Tested(p, all(item.verdict.decision in CLAIMING for item in results), adjusted, screened, tuple(results))
        for (name, results), p, adjusted, screened in zip(
            sets.items(), p_values, holm(p_values), benjamini_hochberg(p_values), strict=True
        )
    }
    return SetFamily(*key, min(item.question.alpha for results in sets.values() for item in results), tested)


def _p_value(result: AuditResult) -> float:
    p = result.statistics.p_value
    return 1.0 if p is None or result.verdict.decision == "invalid" else p
