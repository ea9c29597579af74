"""What the numbers allow: gates, a verdict and its claim; and what stands against it for reasons that numbers do not
show."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from nonmember_verify.bundle import Audit
from nonmember_verify.known import BOUNDS, CONCLUSIONS, INVALID, SENTENCES, claim, has_drawn_p, least_of
from nonmember_verify.report import Report, agree

NON_MEMBERSHIP, MEMBERSHIP = "evidence_of_non_membership", "evidence_of_membership"
MOST_EXCLUDED = 0.2  # share of documents; with more, no audit is valid
FOLDS = 5  # sets of fewer documents are not looked at for their layout
MAX_BLIND = 0.6  # AUC of words, characters or years


@dataclass(frozen=True)
class Conclusion:
    decision: str  # that the numbers allow
    words: Mapping[str, Any] = field(default_factory=dict)  # what its claim is completed with
    stated_gates: Sequence[str] = ()  # gates whose numbers are taken as stated


def check_verdict(audit: Audit, found: Conclusion, report: Report) -> None:
    stated, decision, method = audit.result["verdict"], found.decision, audit.question["method"]
    allowed = claim(method, decision, **found.words)
    excluded, total = audit.result["exclusions"]["documents"], sum(map(len, audit.described["documents"].values()))
    if audit.described["thresholds"]["max_excluded"] != MOST_EXCLUDED:
        report.failed("thresholds", f"more than {MOST_EXCLUDED:.0%} of documents may never be excluded.")
    too_few = any(left_out and len(audit.groups[name]) < least_of(method) for name, left_out in excluded.items())
    num_excluded = sum(map(len, excluded.values()))
    if not _layout_holds(audit, report) or too_few or (num_excluded / total if total else 1.0) > MOST_EXCLUDED:
        decision, allowed = "invalid", INVALID
    if stated["decision"] == "invalid" != decision:
        known = tuple(_other_reasons(audit, decision))
        if reasons := [item for item in stated["warnings"] if item.startswith(known)]:
            report.unchecked("verdict", f"invalid, for a reason that needs text or models: {reasons[0]}")
            decision, allowed = "invalid", INVALID
    report.require(
        "verdict",
        stated["decision"] == decision,
        f"{decision}, as the numbers say.",
        f"{stated['decision']} is stated, and the numbers say {decision}.",
    )
    if stated["decision"] == decision:
        report.require(
            "claim",
            stated["allowed_claim"] in (allowed, INVALID if decision == "invalid" else allowed),
            f'"{stated["allowed_claim"]}"',
            f"what is claimed is more, or other, than {decision} allows, which is: {allowed}",
        )
    _check_answer(audit, decision, report)
    if found.stated_gates:
        report.unchecked("verdict", f"as far as it depends on {', '.join(found.stated_gates)}, taken as stated")


def _check_answer(audit: Audit, decision: str, report: Report) -> None:
    """That the answer in words says what the verdict does, about these documents."""
    answer, stated, question = audit.result["answer"], audit.statistics, audit.question
    target = f'the target "{question["target"]}"' if question["target"] else "the target"
    counted = {"canary": "canaries", "identifiers": "identifiers"}.get(question["method"], "")
    documents = f'these {stated["num_documents"]} {counted or "documents"} ("{question["corpus"]}")'
    documents = f"text that holds {documents}" if counted else documents
    p = "p undefined" if stated["p_value"] is None else f"p = {stated['p_value']:.2g}"
    claim = audit.result["verdict"]["allowed_claim"]
    often, proviso = "", re.search(r", provided that [^.:]*", claim)
    if question["method"] == "dose" and decision == MEMBERSHIP:
        low, high = (f"{stated[end]:.2g}" if stated[end] is not None else "more" for end in ("ci_low", "ci_high"))
        often, p = f", about {stated['value']:.2g} times", f"interval {low} to {high}; {p}"
    says = SENTENCES[decision].format(
        target=target,
        documents=documents,
        p=p,
        often=often,
        proviso=proviso[0] if proviso else "",
        claim=f"{claim[:1].lower()}{claim[1:]}",
    )
    same = answer["conclusion"] == CONCLUSIONS[decision] and answer["sentence"] == says
    same &= answer["p"] == (None if decision in ("invalid", "score_only") else stated["p_value"])
    same &= answer["p_error"] == (None if answer["p"] is None else stated["p_error"])
    same &= stated["p_error"] is None or has_drawn_p(question["method"])
    same &= answer["hypothesis"] == question["null_hypothesis"]
    same &= answer["documents"]["number"] == stated["num_documents"]
    same &= answer["target"]["name"] == question["target"] and answer["documents"]["name"] == question["corpus"]
    told = f'"{answer["sentence"]}"'
    report.require("answer", same, told, f"{told} is not what the verdict and the numbers say, which is: {says}")


def _other_reasons(audit: Audit, decision: str) -> Iterator[str]:
    """How the reasons begin that numbers in a bundle do not show, where nothing in it speaks against them."""
    if is_reference_the_target(audit):
        yield "The reference is the target"
    yield "The target has read the third text"
    is_measured = "kl_after" in audit.result["health"]["training"]
    if decision == NON_MEMBERSHIP and not audit.settings.get("gates") and not is_measured:
        yield "The health of the distilled reference was not"


def is_reference_the_target(audit: Audit) -> bool:
    """Whether their recipes are of the same weights, in whatever precision these are read, and with or without a
    beginning-of-text token."""
    found = [_weights(audit.described["recipes"].get(role, {})) for role in ("reference", "target")]
    return bool(found[0]) and found[0] == found[1]


def _weights(recipe: Mapping[str, Any]) -> dict[str, Any]:
    pretrained = recipe.get("pretrained")
    if not isinstance(pretrained, Mapping):
        return {name: item for name, item in recipe.items() if name != "bos"}
    of_reading = ("dtype", "quantization", "bos")
    return {"pretrained": {name: item for name, item in pretrained.items() if name not in of_reading}}


def _layout_holds(audit: Audit, report: Report) -> bool:
    """Whether text alone distinguishes the sets no better than the question allows."""
    committed = audit.described["documents"]
    if audit.question["method"] == "holdout":  # whose key put the documents into the sets
        return True
    compared = {name: len(audit.groups[name]) for name in ("heldout", "unseen") if name in audit.groups}
    bound = audit.described["thresholds"]["max_layout_auc"] if len(committed) > 1 else None
    layout = audit.details.get("layout_auc") or {}
    asked = {name for name, size in compared.items() if min(size, len(audit.groups["suspect"])) >= FOLDS}
    if len(committed) > 1 and str(bound) != audit.described["identity"]["parts"].get("max_layout_auc", "None"):
        report.failed("thresholds", f"the bound on layout is {bound!r}, which is not that of the question.")
    if bound is None:
        if audit.described["receipt"] is None and compared:
            report.unchecked("layout", "no bound is stated for it, and no seal shows that none was asked for")
    elif layout.keys() != asked:
        report.failed(
            "layout", f"it was to be checked (at most {bound:g}), and its number is missing or of other sets."
        )
    elif layout:
        report.unchecked("layout", "how well layout alone tells the sets apart is taken as stated, since it needs text")
        blind = audit.details.get("blind_auc") or {}
        if "heldout" in asked and audit.result["verdict"]["decision"] != "score_only" and not blind:
            report.failed("layout", "the blind baseline was to be computed too, and its numbers are missing.")
        return all(auc <= bound for auc in layout.values()) and all(auc <= MAX_BLIND for auc in blind.values())
    return True


# Gates ----------------------------------------------------------------------------------------------------------------


def gates_hold(
    audit: Audit, found: Mapping[str, float | None], expected: set[str], report: Report
) -> tuple[bool, list[str]]:
    """Whether all gates of the result hold, by the numbers found here where there are any; and which are taken as
    stated. found: name -> number.   expected: gates that must be there."""
    stated: Mapping[str, Any] = audit.details.get("gates", {})
    if missing := expected - set(stated):
        report.failed("gates", f"{', '.join(sorted(missing))} is missing, though the question has its bound.")
    wrong, bounds = [], _bounds(audit)
    for name, gate in stated.items():
        value, bound, upper = gate["value"], gate["bound"], gate["upper"]
        if name in found and not agree(value, found[name], tolerance=1e-7):
            wrong.append(f"{name} is stated as {value!r} and comes out as {found[name]!r}")
        asked = next((item for item in BOUNDS[name] if item in bounds), None)
        if asked is None or not agree(bound, bounds[asked], tolerance=1e-7) or upper != asked.startswith("max_"):
            wrong.append(f"{name} has the bound {bound!r}, which is not that of the question")
        if (value is not None and (value < bound if upper else value > bound)) != gate["passed"]:
            wrong.append(f"{name} is {value!r} with the bound {bound!r}, and passed is {gate['passed']}")
    recomputed = [name for name in stated if name in found]
    if wrong or recomputed:
        report.require_none("gates", wrong, f"{', '.join(recomputed)} from the scores, and whether they hold.")
    taken = [name for name in stated if name not in recomputed]
    for name in taken:
        report.unchecked(f"gate {name}", "its number is taken as stated")
    return all(gate["passed"] for gate in stated.values()) and not wrong, taken


def _bounds(audit: Audit) -> Mapping[str, Any]:
    """Those of the question; where it says so, of the divergence's fall and of the target's gain by where the reference
    starts."""
    bounds = dict(audit.settings["gates"])
    near, share = bounds.get("near_kl"), bounds.get("max_gain_of_start")
    if near is None and share is None:
        return bounds
    start = float(np.mean(audit.groups["suspect"].values["kl/reference"]))
    if near is not None:
        bounds["min_kl_gain"] = min(bounds["min_kl_gain"], start - near)
    if share is not None and bounds.get("max_target_gain") is not None:
        bounds["max_target_gain"] = min(bounds["max_target_gain"], share * start)
    return bounds
