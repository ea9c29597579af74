"""What a model read, by its label: 4x, 8x50%, micro_s+8x50%. What an audit's controls read stands in its settings."""

from __future__ import annotations

import re
from typing import Any

from nonmember.results.result import AuditResult
from nonmember.training.planting import Exposure

# Of a model: the last thing it was continued with, with the half of a set that this was (target+12xA).
LABEL = re.compile(r"(?:^|\+)(\d+)x(?:(\d+)%)?[A-Za-z]*$")


def reading_of(label: str) -> Exposure | None:
    """None where the label tells of none. Shares are as exact as the label."""
    found = LABEL.search(label)
    if found is None:
        return None
    share = int(found[2]) / 100 if found[2] else 1.0
    return Exposure(share, int(found[1])) if 0 < share <= 1 else None


def planted(result: AuditResult) -> dict[str, Exposure]:
    """Label -> reading of the controls of an audit, lighter ones first: by exposures, then by share."""
    controls: Any = result.settings.get("controls") or {}
    told = [Exposure(float(one["share"]), int(one["exposures"])) for one in controls.get("readings", ())]
    return {one.label: one for one in sorted(told, key=lambda one: (one.exposures, one.share))}


def excluded(result: AuditResult) -> Exposure | None:
    """The lightest reading that a clearance excludes."""
    return planted(result).get(str(result.details.get("excluded_reading")))


def read_by_target(result: AuditResult) -> Exposure | None:
    """Of a member; None where the target's label does not tell, or where it read nothing."""
    if result.truth != "member" or result.target is None:
        return None
    return planted(result).get(result.target.rpartition("+")[2]) or reading_of(result.target)


def read_so_much(result: AuditResult) -> bool:
    """Whether the target read what the audit is to exclude, or more; a member of which this is not known did."""
    if result.truth != "member":
        return False
    read, limit = read_by_target(result), excluded(result)
    return read is None or limit is None or read.at_least(limit)
