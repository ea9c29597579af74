"""One's own audits, which a report shows before those of the published sweeps."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from nonmember.methods import method_named
from nonmember.reports.core.explorer import VERDICTS
from nonmember.reports.core.grid import Block, Cell, Number, Row
from nonmember.reports.render import formats
from nonmember.results.load import Run
from nonmember.results.result import AuditResult

OWN = "own"  # the world of one's own models and documents, as results record it; and the key of the table
COLUMNS = ("p", "verdict", "statistic", "interval", "method", "documents", "truth")
NOTE = (
    "Audits of one's own models and documents. Each has a page, `audit.html` beside its `result.json`; they stand in "
    "no table below."
)


def is_own(run: Run, published_sweeps: Collection[str]) -> bool:
    return run.result.world == OWN and run.result.sweep not in published_sweeps


def table_of_own(runs: Sequence[Run]) -> Block | None:
    """A row per audit; None where there is none."""
    if not runs:
        return None
    about = [(_name(run.result), run.result.method) for run in runs]  # the method has a column of its own
    rows = [
        Row(one[0] if about.count(one) == 1 else f"{one[0]} ({run.result.cell})", _cells(run))
        for one, run in zip(about, runs, strict=True)
    ]
    return Block(OWN, "", "Your audits", "set under model", COLUMNS, tuple(rows), ("audit",), notes=(NOTE,))


def _name(result: AuditResult) -> str:
    return f"{result.corpus} under {result.target}" if result.target else result.corpus


def _cells(run: Run) -> tuple[Cell, ...]:
    result, anchors = run.result, (run.anchor,)
    _, verdict = VERDICTS.get(result.verdict, ("?", result.verdict))
    statistic = f"{method_named(result.method).statistic_name} {formats.signed(result.statistic)}"
    first = [
        (formats.p_value(result.p_value), result.p_value),
        (verdict, None),
        (statistic if result.statistic is not None else formats.DASH, result.statistic),
    ]
    others = [
        formats.interval(result.ci_low, result.ci_high),
        result.method,
        f"{result.num_documents:,}",
        (result.truth or "unknown").replace("_", "-"),
    ]
    linked = [Cell((Number(text, value, OWN, anchors),)) for text, value in first]
    return (*linked, *(Cell((Number(text, None, OWN),)) for text in others))
