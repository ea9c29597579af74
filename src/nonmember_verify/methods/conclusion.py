"""What the numbers allow: a verdict and its claim; and what stands against it for reasons that numbers do not show."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from nonmember_verify.bundle import Audit
from nonmember_verify.report import Report, agree

NON_MEMBERSHIP, MEMBERSHIP = "evidence_of_non_membership", "evidence_of_membership"
# Gate -> where the question has its bound (the first that is there), and whether that is an upper one.
BOUNDS: Mapping[str, tuple[tuple[str, bool], ...]] = {
    "ce": (("min_ce_gain", False),),
    "ce_share": (("min_ce_share", False),),
    "kl": (("min_kl_gain", False),),
    "kl_third": (("max_kl_rise", True),),
    "nll_third": (("max_nll_rise", True),),
    "reference_gain": (("max_reference_gain", True),),
    "rank_correlation": (("max_rank_correlation", True), ("min_rank_correlation", False)),
    "distinct": (("min_distinct", False),),
    "spread": (("min_spread", False),),
    "delta": (("min_delta", False),),
    "seeds": (("max_seed_sd", True),),
    "separation": (("min_separation", False),),
    "order": (("min_order", False),),
    "fit": (("min_fit", False),),
    "base": (("max_base_distance", True),),
    "shift": (("max_shift", True),),
    "weights": (("max_weight_ratio", True),),
    "layout": (("max_layout_auc", True),),
}
INVALID = "A precondition of the test failed; nothing may be concluded."


@dataclass(frozen=True)
class Conclusion:
    """decision: that the numbers allow.   claim: of this decision; None where it is not known here.
    stated_gates: gates whose numbers are taken as stated."""

    decision: str
    claim: str | None
    stated_gates: Sequence[str] = field(default=())


def gates_hold(
    audit: Audit, found: Mapping[str, float | None], report: Report, why: Mapping[str, str]
) -> tuple[bool, list[str]]:  # fmt: skip
    """Whether all gates of the result hold, by the numbers found here where there are any; and which are taken as
    stated. found: name -> number.   why: of others, why their numbers are taken as stated."""
    stated: Mapping[str, Any] = audit.details.get("gates", {})
    return _hold(audit, stated, found, report, why, "gates")


def _hold(
    audit: Audit, stated: Mapping[str, Any], found: Mapping[str, float | None], report: Report, why: Mapping[str, str],
    what: str,
) -> tuple[bool, list[str]]:  # fmt: skip
    wrong, taken = [], []
    for name, gate in stated.items():
        if name not in BOUNDS:  # of a later version
            taken.append(name)
            continue
        if name in found:
            if not agree(gate["value"], found[name], tolerance=1e-7):
                wrong.append(f"{name} is stated as {gate['value']!r} and comes out as {found[name]!r}")
        else:
            taken.append(name)
        asked = [one for one in BOUNDS[name] if one[0] in audit.settings["gates"]]
        if not asked or (gate["bound"], gate["upper"]) != (audit.settings["gates"][asked[0][0]], asked[0][1]):
            wrong.append(f"{name} has the bound {gate['bound']!r}, which is not that of the question")
        value = gate["value"]
        holds = value is not None and (value < gate["bound"] if gate["upper"] else value > gate["bound"])
        if holds != gate["passed"]:
            wrong.append(f"{name} is {value!r} with the bound {gate['bound']!r}, and passed is {gate['passed']}")
    recomputed = [name for name in stated if name in found and name in BOUNDS]
    if wrong:
        report.failed(what, f"{'; '.join(wrong[:3])}.")
    elif recomputed:
        report.ok(what, f"{', '.join(recomputed)} from the scores, and whether they hold.")
    for name in taken:
        known = "its number is taken as stated" if name in BOUNDS else "it is unknown to this verifier"
        report.unchecked(f"gate {name}", why.get(name, known))
    return all(gate["passed"] for gate in stated.values()) and not wrong, taken


def shams_hold(
    audit: Audit, found: Mapping[str, Mapping[str, float]], report: Report, expected: bool
) -> bool:  # fmt: skip
    """Whether the gates refuse every sham, by the numbers found here."""
    stated: Mapping[str, Any] = audit.details["shams"]
    if expected and len(stated) < 2:
        report.failed("shams", "the gates were to be put to two shams, and they are not there.")
        return False
    refused = True
    for name, told in stated.items():
        _hold(audit, told["gates"], found[name], report, {}, f"sham {name}")
        by_gates = any(not gate["passed"] for gate in told["gates"].values())
        if by_gates != told["refused"]:
            report.failed(f"sham {name}", f"refused is {told['refused']}, and its gates say {by_gates}.")
        refused &= by_gates
    return refused
