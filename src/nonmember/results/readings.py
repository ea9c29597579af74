"""What an audit's target and controls have read, and whether its verdict contradicts it."""

from __future__ import annotations

from nonmember.records.exposure import Exposure
from nonmember.results.result import AuditResult


def planted(result: AuditResult) -> dict[str, Exposure]:
    """Label -> exposure of the controls of an audit, lighter ones first: by exposures, then by share."""
    planted = {model.exposure for model in result.question.controls.values() if model.exposure is not None}
    return {item.label: item for item in sorted(planted, key=lambda item: (item.exposures, item.share))}


def excluded(result: AuditResult) -> Exposure | None:
    """The lightest exposure that a clearance excludes."""
    return planted(result).get(str(result.statistics.details.get("excluded_reading")))


def read_by_target(result: AuditResult) -> Exposure | None:
    """Of a member; None where it is not known how much, or where it read nothing."""
    return result.question.target_exposure if result.question.truth == "member" else None


def read_so_much(result: AuditResult) -> bool:
    """Whether the target read what the audit is to exclude, or more; a member of which this is not known did."""
    if result.question.truth != "member":
        return False
    read, limit = read_by_target(result), excluded(result)
    return read is None or limit is None or read.at_least(limit)


def false_claim(result: AuditResult) -> str:
    """What is wrong with a verdict that contradicts the known truth: "false clearance", "false alarm" or nothing.

    A target that read less than a clearance excludes is rightly cleared of that.
    """
    match result.verdict.decision, result.question.truth:
        case "evidence_of_non_membership", "member":
            return "false clearance" if read_so_much(result) else ""
        case "evidence_of_membership", "non_member":
            return "false alarm"
    return ""
