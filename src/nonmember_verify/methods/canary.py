"""Canaries and identifiers: ranks of published variants among others, and the private file where it is revealed."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from fractions import Fraction

import numpy as np

from nonmember_verify.bundle import Audit
from nonmember_verify.canaries import PrivateFile
from nonmember_verify.commitments import commitment
from nonmember_verify.identifiers import alternatives, find
from nonmember_verify.report import Report, is_below
from nonmember_verify.verdicts import MEMBERSHIP, Conclusion

OF_TEXTS_TOGETHER = ("Lira", "Recall")  # scores of a text that depend on those beside it


def recompute(audit: Audit, report: Report) -> Conclusion:
    """The number of secret variants that score as high as the published one, and how rarely chance gives so few."""
    check_score_by_itself(audit, report)
    return _by_ranks(audit, "private", report)


def _by_ranks(audit: Audit, beside: str, report: Report) -> Conclusion:
    published, private = (audit.groups[name] for name in ("suspect", beside))
    others: dict[int, list[float]] = {}
    for unit, value in zip(private.units.tolist(), private.values["target"].tolist(), strict=True):
        others.setdefault(unit, []).append(value)
    pairs = [
        (value, np.array(others[unit]))
        for unit, value in zip(published.units.tolist(), published.values["target"].tolist(), strict=True)
        if unit in others
    ]
    if not pairs:
        return Conclusion("invalid")
    ranks = [1 + int((other >= value).sum()) for value, other in pairs]
    sizes = [len(other) + 1 for _, other in pairs]
    below = Fraction(0)
    for value, other in pairs:
        below += Fraction(int((other < value).sum()), len(other))
    _check_units(audit, published.units.tolist(), private.units.tolist(), report)
    stated = audit.statistics
    report.numbers(
        "statistic and ranks",
        {
            "share below": (stated["value"], float(below / len(pairs))),
            "ranks": (audit.details["ranks"], ranks),
            "variants": (audit.details["num_variants"], sizes),
        },
        "from the scores",
    )
    p = _rank_sum_p(sum(ranks), sizes)
    report.numbers("p", {"p": (stated["p_value"], p)}, "from the ranks, in fractions")
    return Conclusion(MEMBERSHIP if is_below(audit.alpha, stated["p_value"], p) else "inconclusive")


def identifiers(audit: Audit, report: Report) -> Conclusion:
    """The same of identifiers and as many alternatives of each as the question asks for, by sums over their tokens."""
    kinds = {how["score"]["kind"] for columns in audit.described["columns"].values() for how in columns.values()}
    if kinds != {"LogProbability"}:
        report.failed("score", f"identifiers are scored by LogProbability, and {', '.join(sorted(kinds))} is stated.")
    published, others = (audit.described["documents"][name] for name in ("suspect", "alternatives"))
    if len(others) != audit.settings["num_alternatives"] * len(published):
        report.failed("alternatives", f"there are {len(others)} of {len(published)} identifiers: not as many as asked.")
    if sum(audit.details["forms"].values()) != len(audit.groups["suspect"]):
        report.failed("forms", f"those stated ({dict(audit.details['forms'])}) are not as many as were scored.")
    return _by_ranks(audit, "alternatives", report)


def check_drawn(audit: Audit, documents: Iterable[tuple[str, str]], secret: bytes, report: Report) -> None:
    """That the identifiers are those of the documents (ids and texts), by form, and their alternatives those that the
    seed draws."""
    found, _ = find(documents)
    names: dict[str, list[str]] = {"suspect": [], "alternatives": []}
    pairs, forms = set(), Counter[str]()
    for item in found:
        drawn = alternatives(item, audit.settings["num_alternatives"], audit.question["seed"])
        for index, text in enumerate([item.text, *drawn]):
            name = commitment(secret, f"{item.name}#{index}", item.context + text)
            names["alternatives" if index else "suspect"].append(name)
            if name in audit.units:
                pairs.add((item.name, audit.units[name][1]))
                forms[item.form] += not index
    wrong = [f"the {group} set" for group, items in names.items() if audit.described["documents"].get(group) != items]
    if not len(pairs) == len({first for first, _ in pairs}) == len({unit for _, unit in pairs}):
        wrong.append("strings are counted with another identifier than theirs")
    if forms != dict(audit.details["forms"].items()):
        wrong.append(f"by form there are {dict(forms)}")
    report.require_none(
        "identifiers",
        wrong,
        f"the {len(found)} are those of the documents, and their alternatives those that the seed draws.",
        "not what the documents and the seed give: ",
    )


def check_score_by_itself(audit: Audit, report: Report) -> None:
    score = audit.settings["score"]
    if score["kind"] in OF_TEXTS_TOGETHER and score.get("filler") is None:  # a filler proposes words by itself
        report.failed("score", f"{score['kind']} depends on the texts that are scored together.")


def _check_units(audit: Audit, published: list[int], private: list[int], report: Report) -> None:
    """That no canary lacks its published variant or its private ones, but for variants that could not be scored, and
    none has two that were published: who tells them apart otherwise chooses the ranks."""
    num_excluded = sum(map(len, audit.result["exclusions"]["documents"].values()))
    alone = set(published) ^ set(private)
    if len(alone) > num_excluded or len(set(published)) < len(published):
        report.failed(
            "canaries", f"{len(alone)} have no published variant or no private one, or some have several published."
        )


def _rank_sum_p(total: int, sizes: list[int]) -> float:
    """P(sum of ranks <= total), each uniform on 1 to its size: whole numbers of cases, by inclusion and exclusion."""
    room, number = total - len(sizes), len(sizes)
    signed = {0: 1}  # the product of 1 - x^size, as far as it counts
    for size in sizes:
        shifted = {power + size: -sign for power, sign in signed.items() if power + size <= room}
        for power, sign in shifted.items():
            signed[power] = signed.get(power, 0) + sign
    cases = sum(sign * math.comb(room - power + number, number) for power, sign in signed.items())
    return float(Fraction(cases, math.prod(sizes)))


def check_commitment(audit: Audit, digest: str, report: Report) -> None:
    """That the private file of this hash is the committed one."""
    stated = audit.settings["commitment"]
    if stated is None:
        report.unchecked(
            "commitment", f"the audit was given none; compare this hash of the file with what was made public: {digest}"
        )
    else:
        report.require(
            "commitment",
            stated == digest,
            f"the private file has the hash {digest}, to which the audit was committed.",
            f"the private file has the hash {digest}, and the audit was committed to {stated}.",
        )


def check_revealed(audit: Audit, private: PrivateFile, digest: str, secret: bytes | None, report: Report) -> None:
    """That the private file is the committed one, and the audit of its variants. That its key chose the published ones
    was checked when it was read. digest: of the file."""
    check_commitment(audit, digest, report)
    report.ok("choice", f"the key in the private file chose the {len(private.canaries)} published variants.")
    if secret is None:
        report.unchecked("variants", "that the scored ones are those of the file needs --secret")
        return
    found: dict[str, list[str]] = {"suspect": [], "private": []}
    by_canary = []
    for item in private.canaries:
        names = [commitment(secret, f"{item.name}/{index}", text) for index, text in enumerate(item.variants)]
        by_canary.append({audit.units[name][1] for name in names if name in audit.units})
        for index, name in enumerate(names):
            found["suspect" if index == item.published else "private"].append(name)
    wrong = [f"the {name} set" for name, items in found.items() if audit.described["documents"].get(name) != items]
    if max(map(len, by_canary)) > 1 or sum(map(len, by_canary)) > len(set().union(*by_canary)):
        wrong.append("variants of one canary are counted with those of another")
    report.require_none(
        "variants",
        wrong,
        f"all {sum(map(len, found.values()))} are those of the private file, published and private ones apart.",
        "not the variants of the private file: ",
    )
