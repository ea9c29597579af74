"""Verdicts in words and signs, and the table of the user's own audits."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from nonmember.reports.core import formats
from nonmember.reports.core.grid import Block, Numeral, TableCell, TableRow
from nonmember.results.load import Run

VERDICTS = {
    "evidence_of_non_membership": ("●", "not used"),
    "evidence_of_membership": ("▲", "used"),
    "inconclusive": ("○", "no answer"),
    "score_only": ("–", "score only"),
    "invalid": ("⊘", "invalid"),
}
TRUTHS = {"member": "member", "non_member": "non-member"}


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
