"""What a published model had read before: two classes of text that differ in date, and each class against itself."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from nonmember.reports.core.report import Filled, tables
from nonmember.reports.core.worlds import Scope, select
from nonmember.reports.planted.tables import SIGNED, compared
from nonmember.reports.render.blocks import filled
from nonmember.results.load import Run

PUBLISHED = "published"  # of conf/report/smollm.yaml
COMPARISONS = {  # data.classes, in world=published
    "older_newer": "older against newer",
    "both_older": "older against older",
    "both_newer": "newer against newer",
}
MEMBERSHIP = "evidence_of_membership"


def comparisons(scope: Scope) -> Filled:
    """Rows: methods, then single scores less those of the other text. Columns: what is compared with what."""
    runs = scope.of(PUBLISHED)
    columns = {name: partial(_is_of, classes) for classes, name in COMPARISONS.items()}
    title = "Older and newer text under the model as it was published"
    block = compared("published", title, "statistic, compared", scope, runs, ("less_heldout",), columns)
    return tables(filled(block, _notes(runs)) if block else None)


def _is_of(classes: str, run: Run) -> bool:
    return run.get("classes") == classes


def _notes(runs: Sequence[Run]) -> tuple[str, ...]:
    decided = select(runs, method="llm_di")
    accused = [
        f"{sum(run.verdict.decision == MEMBERSHIP for run in here)} of {len(here)} ({name})"
        for classes, name in COMPARISONS.items()
        if (here := select(decided, classes=classes))
    ]
    libraries = len({run.domain for run in runs})
    notes = (f"Mean over {libraries} libraries, lowest and highest. {SIGNED}",)
    return (*notes, f"LLM-DI by its own rule takes for read: {'; '.join(accused)}.") if accused else notes
