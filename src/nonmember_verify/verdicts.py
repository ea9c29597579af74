"""The verdict and what it lets one claim, from the numbers."""

from __future__ import annotations

from nonmember_verify.bundle import Audit
from nonmember_verify.methods.conclusion import INVALID, Conclusion
from nonmember_verify.report import Report

# How the reasons begin that numbers in a bundle do not show: texts, weights, and what was found before a training.
OTHER_REASONS = ("The reference is the target", "The health of the distilled reference was not")
NO_RATE = ("No learning rate", "None of the learning rates")
MOST_EXCLUDED = 0.2  # share of documents; with more, no audit is valid
FOLDS = 5  # sets of fewer documents are not looked at for their layout


def check_verdict(audit: Audit, found: Conclusion, report: Report) -> None:
    stated = audit.result["verdict"]
    excluded = audit.result["exclusions"]["documents"]
    committed = audit.described["documents"]
    total = sum(map(len, committed.values()))
    share = sum(map(len, excluded.values())) / total if total else 1.0
    decision, claim = found.decision, found.claim
    if audit.described["thresholds"]["max_excluded"] != MOST_EXCLUDED:
        report.failed("thresholds", f"more than {MOST_EXCLUDED:.0%} of documents may never be excluded.")
    if share > MOST_EXCLUDED:
        decision, claim = "invalid", INVALID
    compared = [len(audit.groups[name]) for name in ("heldout", "unseen") if name in audit.groups]
    bound = audit.described["thresholds"]["max_layout_auc"] if len(committed) > 1 else None
    layout = audit.details.get("layout_auc")
    if len(committed) > 1 and str(bound) != audit.described["identity"]["parts"].get("max_layout_auc", "None"):
        report.failed("thresholds", f"the bound on layout is {bound!r}, which is not that of the question.")
    if bound is None and audit.described["receipt"] is None and compared:
        report.unchecked("layout", "no bound is stated for it, and no seal shows that none was asked for")
    if bound is not None and not layout and any(min(one, len(audit.groups["suspect"])) >= FOLDS for one in compared):
        report.failed("layout", f"it was to be looked at (at most {bound:g}), and its number is missing.")
    if bound is not None and layout:
        report.unchecked("layout", "how well layout alone tells the sets apart is taken as stated, since it needs text")
        if any(auc > bound for auc in layout.values()):
            decision, claim = "invalid", INVALID
    if stated["decision"] == "invalid" != decision:
        reasons = [one for one in stated["warnings"] if one.startswith(_other_reasons(audit))]
        if reasons:
            report.unchecked("verdict", f"invalid, for a reason that needs text or models: {reasons[0]}")
            decision, claim = "invalid", INVALID
    report.require(
        "verdict", stated["decision"] == decision, f"{decision}, as the numbers say.",
        f"{stated['decision']} is stated, and the numbers say {decision}.",
    )  # fmt: skip
    if claim is None:
        report.unchecked("claim", "its sentence is not known here")
    elif stated["decision"] == decision:
        report.require(
            "claim", stated["allowed_claim"] == claim, f'"{claim}"',
            f"what is claimed is more, or other, than {decision} allows, which is: {claim}",
        )  # fmt: skip
    if found.stated_gates:
        report.unchecked("verdict", f"as far as it hangs on {', '.join(found.stated_gates)}, taken as stated")


def _other_reasons(audit: Audit) -> tuple[str, ...]:
    ladder = audit.details.get("ladder")
    return (*OTHER_REASONS, *NO_RATE) if ladder and ladder["chosen"] is None else OTHER_REASONS
