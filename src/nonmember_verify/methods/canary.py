"""Canaries and identifiers: ranks of published variants among others, and the private file where it is revealed."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from fractions import Fraction

import numpy as np

from nonmember_verify.bundle import Audit
from nonmember_verify.canaries import Text
from nonmember_verify.commitments import commitment
from nonmember_verify.identifiers import alternatives, find
from nonmember_verify.report import Report, is_below, is_one_to_one
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
    below = sum((Fraction(int((other < value).sum()), len(other)) for value, other in pairs), Fraction(0))
    _check_units(audit, published.units.tolist(), private.units.tolist(), report)
    found = {
        "share below": (audit.statistics["value"], float(below / len(pairs))),
        "ranks": (audit.details["ranks"], ranks),
        "variants": (audit.details["num_variants"], sizes),
    }
    report.numbers("statistic and ranks", found, "from the scores")
    p = _rank_sum_p(sum(ranks), sizes)
    report.numbers("p", audit.beside(p=p), "from the ranks, in fractions")
    return Conclusion(MEMBERSHIP if is_below(audit.alpha, audit.statistics["p_value"], p) else "inconclusive")


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
    texts = [
        Text("alternatives" if index else "suspect", f"{item.name}#{index}", item.context + text, item.name)
        for item in found
        for index, text in enumerate(
            [item.text, *alternatives(item, audit.settings["num_alternatives"], audit.question["seed"])]
        )
    ]
    names = _check_texts("identifiers", audit, texts, secret, "documents and the seed", report)
    scored = [item.form for item in found if names[f"{item.name}#0"] in audit.units]
    if Counter(scored) != dict(audit.details["forms"].items()):
        report.failed("forms", f"by form there are {dict(Counter(scored))}.")


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
        what = "have no published variant or no private one, or some have several published"
        report.failed("canaries", f"{len(alone)} {what}.")


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


def check_revealed(audit: Audit, texts: list[Text], digest: str, secret: bytes | None, report: Report) -> None:
    """That the private file is the committed one, and the audit of its texts. That its key chose the published ones was
    checked when it was read. digest: of the file."""
    stated = audit.settings["commitment"]
    if stated is None:
        why = f"the audit was given none; compare this hash of the file with what was made public: {digest}"
        report.unchecked("commitment", why)
    else:
        hashed = f"the private file has the hash {digest}"
        told, otherwise = "to which the audit was committed", f"and the audit was committed to {stated}"
        report.require("commitment", stated == digest, f"{hashed}, {told}.", f"{hashed}, {otherwise}.")
    published = sum(item.group == "suspect" for item in texts)
    report.ok("choice", f"the key in the private file chose the {published} published texts.")
    if secret is None:
        report.unchecked("texts of the private file", "that the scored ones are those of the file needs --secret")
    else:
        _check_texts("texts of the private file", audit, texts, secret, "private file", report)


def _check_texts(
    label: str, audit: Audit, texts: list[Text], secret: bytes, source: str, report: Report
) -> dict[str, str]:
    """That the audit is of these texts, and counts them as what they belong to. Returns their commitments by name."""
    names = {item.name: commitment(secret, item.name, item.text) for item in texts}
    sets: dict[str, list[str]] = {name: [] for name in audit.described["documents"]}
    for item in texts:
        sets.setdefault(item.group, []).append(names[item.name])
    wrong = [f"the {name} set" for name, items in sets.items() if audit.described["documents"].get(name) != items]
    units = {document: unit for document, (_, unit) in audit.units.items()}
    strata = dict(zip(audit.table["document"], audit.table.get("stratum", [0] * len(names)), strict=False))
    for what, counted in (("unit", units), ("stratum", strata)):
        pairs = ((getattr(item, what), counted.get(names[item.name])) for item in texts)
        if not is_one_to_one(pair for pair in pairs if pair[1] is not None):
            wrong.append(f"some are counted with those of another {what}")
    told = f"the {len(sets['suspect'])} are those of the {source}, and so are those that they are compared with."
    report.require_none(label, wrong, told, f"not those of the {source}: ")
    return names
