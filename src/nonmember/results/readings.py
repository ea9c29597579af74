"""Whether a verdict contradicts what is known to have been read."""

from __future__ import annotations

from nonmember.results.result import AuditResult


def false_claim(result: AuditResult) -> str:
    """What is wrong with a verdict that contradicts the known truth: "false clearance", "false alarm" or nothing."""
    match result.verdict.decision, result.question.truth:
        case "evidence_of_non_membership", "member":
            return "false clearance"
        case "evidence_of_membership", "non_member":
            return "false alarm"
    return ""
