"""Numbers as they are printed. A number that does not exist is a dash, and zero is never a dash."""

from __future__ import annotations

import math
import re
from collections.abc import Collection
from typing import TYPE_CHECKING

from nonmember.checks import told_apart

if TYPE_CHECKING:
    from nonmember.results.result import Statistics

VERDICTS = {
    "evidence_of_non_membership": ("●", "not used"),
    "evidence_of_membership": ("▲", "used"),
    "inconclusive": ("○", "no answer"),
    "score_only": ("–", "score only"),
    "invalid": ("⊘", "invalid"),
}
TRUTHS = {"member": "read", "non_member": "not read"}
DASH, MINUS = "–", "−"
SMALLEST_PLAIN_P = 0.001


def exists(value: float | None) -> bool:
    return value is not None and math.isfinite(value)


def decimals(value: float | None, digits: int = 3, *, signed: bool = False) -> str:
    """0.837, −0.022; with `signed` also +0.315."""
    if value is None or not math.isfinite(value):
        return DASH
    text = format(value, f"{'+' if signed else ''}.{digits}f")
    if float(text) == 0:
        text = text.lstrip("+-")
    return text.replace("-", MINUS)


def signed(value: float | None) -> str:
    """+0.315, −0.022."""
    return decimals(value, signed=True)


def p_value(value: float | None, alpha: float | None = None) -> str:
    """0.354, and below a thousandth 1.0e-4, as the paper prints it. alpha: that it must not look equal to."""
    if value is None or not math.isfinite(value):
        return DASH
    if value == 0 or value >= SMALLEST_PLAIN_P:
        return format(value, ".3f") if alpha in (None, value) else told_apart(value, alpha)[0]
    mantissa, _, exponent = format(value, ".1e").partition("e")
    return f"{mantissa}e{int(exponent)}"


def count(value: float | None) -> str:
    return DASH if value is None or not math.isfinite(value) else f"{value:,.0f}"


def counts(values: Collection[float]) -> str:
    """From the lowest to the highest: 3 to 5; one number where they agree."""
    low, high = count(min(values)), count(max(values))
    return low if low == high else f"{low} to {high}"


def interval(low: float | None, high: float | None, digits: int = 3, *, signed: bool = True) -> str:
    """[−0.080, +0.121]; a dash where there is none."""
    if not (exists(low) and exists(high)):
        return DASH
    return f"[{decimals(low, digits, signed=signed)}, {decimals(high, digits, signed=signed)}]"


def statistic(found: Statistics) -> tuple[str, str]:
    """Value and interval as they are printed: readings by two digits, and with no upper end where they have none; with
    signs what can be negative. The interval is empty where there is none."""
    if found.picture == "dose":
        low, high = found.ci_low, found.ci_high
        upper = "or more" if high is None else f"to {_readings(high)}"
        return _readings(found.value), "" if low is None else f"{_readings(low)} {upper}"
    value = decimals(found.value, signed=found.is_signed)
    ends = interval(found.ci_low, found.ci_high, signed=found.is_signed)
    return value, "" if ends == DASH else ends


def _readings(number: float | None) -> str:
    return DASH if number is None else format(number, ".2g" if number < 10 else ".0f")


def listed(names: list[str] | tuple[str, ...]) -> str:
    """a, b and c."""
    return names[0] if len(names) == 1 else " and ".join([", ".join(names[:-1]), names[-1]]) if names else ""


def slug(name: str) -> str:
    """A name for ids and files: letters, digits, dots and dashes."""
    return re.sub(r"[^A-Za-z0-9.-]+", "-", name).strip("-.") or "unnamed"
