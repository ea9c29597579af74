"""What a reading of the dose meter says, in words."""

from __future__ import annotations

from collections.abc import Sequence

from nonmember.methods.base import INVALID_CLAIM, Verdict
from nonmember.stats.dose_curve import DoseReading
from nonmember.stats.partial_use import PartialUse


def readings_of(reading: DoseReading, heaviest: float) -> str:
    """As an instrument shows it: "about 3 readings (2.2 to 4.1)", "fewer than 0.6 readings"."""
    if reading.low == 0:
        return "any number of readings" if reading.high is None else f"fewer than {_formatted(reading.high)} readings"
    if reading.low >= heaviest:
        return f"{_formatted(heaviest)} readings or more"
    upper = "more" if reading.high is None else _formatted(reading.high)
    unit = "reading" if _formatted(reading.estimate) == "1" else "readings"
    interval = f"{_formatted(reading.low)} {'or' if upper == 'more' else 'to'} {upper}"
    return f"about {_formatted(reading.estimate)} {unit} ({interval})"


def part_of(regions: Sequence[PartialUse]) -> str:
    """Which part of the set was read, where every number of readings that fits the documents says a part; or empty."""
    fitting = [item for item in regions if item.compatible]
    if not (fitting and all(item.low > 0 and item.high < 1 for item in fitting)):
        return ""
    best = max(fitting, key=lambda item: item.log_likelihood)
    times = "once" if best.dose == 1 else f"{best.dose:g} times"
    return (
        f"Document by document it looks as if a part of the set was read: about {best.share:.0%} of it ({best.low:.0%} "
        f"to {best.high:.0%}), {times} (partial_use)."
    )


def claim_of(verdict: Verdict, reading: DoseReading, exclude: float, exceed: float, heaviest: float) -> str:
    said = readings_of(reading, heaviest)
    if verdict == "invalid":
        return INVALID_CLAIM
    if verdict == "evidence_of_non_membership":
        times = "once" if exclude == 1 else f"{exclude:g} times"
        return (
            f"There is statistical evidence that the target did not read this dataset {times} or more, in the way the "
            f"planted controls did: {said} (p = {reading.p_at_least:.2g} for {times} or more). A small part of it may "
            "have been read. It says nothing about single documents."
        )
    if verdict == "evidence_of_membership":
        fewest = f"{exceed:g} readings or fewer" if exceed else "none"
        return (
            f"There is statistical evidence that the target read this dataset, or text that is more closely related to "
            f"it than the related text the controls read, or such text more often: {said} "
            f"(p = {reading.p_at_most:.2g} for {fewest}). It says nothing about single documents."
        )
    if verdict == "score_only":
        return f"None beyond the number: {said}."
    return f"The audit does not tell whether the dataset was read ({said}). This is not evidence either way."


def _formatted(dose: float) -> str:
    return f"{dose:.2g}" if dose < 10 else f"{dose:.0f}"
