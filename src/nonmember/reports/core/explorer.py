"""The rows of the page's explorer: one per result, its interval drawn on an axis that all share."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from nonmember.reports.core import formats
from nonmember.reports.core.grid import Block, Numeral, TableCell, TableRow
from nonmember.results.load import Run
from nonmember.results.readings import false_claim
from nonmember.results.result import AuditResult, Statistics

AXIS_WIDTH, ROW_HEIGHT, MARGIN = 160, 18, 5
VERDICTS = {
    "evidence_of_non_membership": ("●", "evidence of non-membership"),
    "evidence_of_membership": ("▲", "evidence of membership"),
    "inconclusive": ("○", "inconclusive"),
    "score_only": ("–", "score only"),
    "invalid": ("⊘", "invalid"),
}
TRUTHS = {"member": "member", "non_member": "non-member"}


@dataclass(frozen=True)
class IntervalAxis:
    """What all intervals share. ticks: values that are written above it."""

    low: float
    high: float
    ticks: tuple[float, ...]

    def x(self, value: float) -> float:
        """Pixels from the left; values beyond the ends stay at them."""
        share = (min(max(value, self.low), self.high) - self.low) / (self.high - self.low)
        return round(MARGIN + share * (AXIS_WIDTH - 2 * MARGIN), 2)


@dataclass(frozen=True)
class Shown:
    """A row of the explorer."""

    run: Run
    result: AuditResult
    interval: Markup
    sign: str
    verdict: str
    truth: str
    false: str


def statistics_of(runs: Sequence[Run]) -> str:
    """What the intervals that are drawn are of: Delta for prism, rho for rank_agreement and rank_shift."""
    widest_first = sorted({(run.statistics.bounds, run.statistics.name) for run in runs if has_place(run.statistics)})
    return ", ".join(
        f"{name} for {formats.listed(sorted({run.question.method for run in runs if run.statistics.name == name}))}"
        for _, name in widest_first
    )


def axis_of(runs: Sequence[Run]) -> IntervalAxis:
    """From half to half beyond what there is, within -1 and 1; zero is always on it."""
    ends = [end for run in runs if has_place(run.statistics) for end in _ends(run.result)]
    low, high = min([0.0, *ends]), max([0.0, *ends])
    low, high = max(-1.0, _down(low)), min(1.0, -_down(-high))
    high = high if high > low else low + 0.5
    steps = round((high - low) / 0.5)
    return IntervalAxis(low, high, tuple(low + 0.5 * step for step in range(steps + 1)))


def has_place(statistics: Statistics) -> bool:
    """Whether the statistic is bounded as differences of correlations are, or more narrowly."""
    return statistics.bounds is not None and statistics.bounds[0] >= -2 and statistics.bounds[1] <= 2


def _down(value: float) -> float:
    """The next multiple of a half that is not larger."""
    return 0.5 * math.floor(value / 0.5)


def _ends(result: AuditResult) -> list[float]:
    return [
        v
        for v in (result.statistics.value, result.statistics.ci_low, result.statistics.ci_high)
        if v is not None and formats.exists(v)
    ]


def row_of(run: Run, axis: IntervalAxis) -> Shown:
    result = run.result
    sign, verdict = VERDICTS.get(result.verdict.decision, ("?", result.verdict.decision))
    truth = TRUTHS.get(result.question.truth or "", result.question.truth or "unknown")
    return Shown(run, result, interval_picture(result, axis), sign, verdict, truth, false_claim(result))


def interval_picture(result: AuditResult, axis: IntervalAxis) -> Markup:
    """Point and interval; nothing where the statistic has no place on the common axis."""
    middle, zero = ROW_HEIGHT / 2, axis.x(0)
    parts = [Markup('<line class="zero" x1="{0}" x2="{0}" y1="0" y2="{1}"/>').format(zero, ROW_HEIGHT)]
    if has_place(result.statistics) and result.statistics.value is not None:
        if result.statistics.ci_low is not None and result.statistics.ci_high is not None:
            ends = axis.x(result.statistics.ci_low), axis.x(result.statistics.ci_high)
            parts.append(Markup('<line class="bar" x1="{0}" x2="{1}" y1="{2}" y2="{2}"/>').format(*ends, middle))
        parts.append(Markup('<circle cx="{}" cy="{}" r="3"/>').format(axis.x(result.statistics.value), middle))
    return Markup("").join(parts)


# The user's own audits, shown before those of the published sweeps ----------------------------------------------------

OWN = "own"  # the world of one's own models and documents, as results record it; and the key of the table
COLUMNS = ("p", "verdict", "statistic", "interval", "method", "documents", "truth")
NOTE = (
    "Audits of your own models and documents. Each has a page, `audit.html`, beside its `result.json`. The tables "
    "below leave them out."
)


def is_own(run: Run, sweeps: Collection[str]) -> bool:
    """sweeps: those that have tables of their own."""
    return run.question.world == OWN and run.question.sweep not in sweeps


def table_of_own(runs: Sequence[Run]) -> Block | None:
    """A row per audit; None where there is none."""
    if not runs:
        return None
    about = [(run.question.subject, run.question.method) for run in runs]  # the method has a column of its own
    rows = [
        TableRow(item[0] if about.count(item) == 1 else f"{item[0]} ({run.question.cell})", _cells(run))
        for item, run in zip(about, runs, strict=True)
    ]
    return Block(OWN, "", "Your audits", "set under model", COLUMNS, tuple(rows), ("audit",), notes=(NOTE,))


def _cells(run: Run) -> tuple[TableCell, ...]:
    result, anchors = run.result, (run.anchor,)
    _, verdict = VERDICTS.get(result.verdict.decision, ("?", result.verdict.decision))
    value, interval = formats.statistic(result.statistics)
    first = [
        (formats.p_value(result.statistics.p_value, result.question.alpha), result.statistics.p_value),
        (verdict, None),
        (value if value == formats.DASH else f"{result.statistics.name} {value}", result.statistics.value),
    ]
    others = [
        interval or formats.DASH,
        result.question.method,
        f"{result.statistics.num_documents:,}",
        (result.question.truth or "unknown").replace("_", "-"),
    ]
    linked = [TableCell((Numeral(text, value, OWN, anchors),)) for text, value in first]
    return (*linked, *(TableCell((Numeral(text, None, OWN),)) for text in others))
