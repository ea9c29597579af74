"""What a published model had read before: two classes of text that differ in date, and each class against itself."""

from __future__ import annotations

from collections.abc import Sequence

from nonmember.reports.core.grid import RANGE, Block, Cell, Number, Row, dash
from nonmember.reports.core.report import Filled, tables
from nonmember.reports.core.worlds import Scope, select
from nonmember.reports.papers.arena.contestants import LEVELS, SCORES, sign_of
from nonmember.reports.render import formats
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
    told: dict[str, list[tuple[Run, float]]] = {}
    for method, name in scope.names["methods"].items():
        told[name] = [
            (run, sign_of(method) * run.statistics.value)
            for run in select(runs, method=method)
            if run.statistics.value is not None
        ]
    for score, single in SCORES.items():
        told[f"{single.name} less held-out"] = [
            (run, value)
            for run in select(runs, method=LEVELS)
            if (value := run.statistics.details.get("less_heldout", {}).get(score)) is not None
        ]
    world = scope.world.name
    rows = tuple(
        Row(name, tuple(_cell(found, one, world) for one in COMPARISONS)) for name, found in told.items() if found
    )
    block = Block("published", world, "Older and newer text under the model as it was published", "statistic, compared",
                  tuple(COMPARISONS.values()), rows, ("value", "lowest", "highest"))  # fmt: skip
    return tables(filled(block, _notes(runs)) if rows else None)


def _cell(found: Sequence[tuple[Run, float]], comparison: str, world: str) -> Cell:
    values = [(value, run.anchor) for run, value in found if run.get("classes") == comparison]
    return spread([value for value, _ in values], tuple(anchor for _, anchor in values), world)


def spread(values: Sequence[float], anchors: tuple[str, ...], world: str) -> Cell:
    """Mean, lowest and highest; of one value that alone."""
    if not values:
        return Cell((dash(world),))
    ends = (sum(values) / len(values), min(values), max(values)) if len(values) > 1 else tuple(values)
    numbers = tuple(Number(formats.signed(one), one, world, anchors) for one in ends)
    return Cell(numbers, (), RANGE if len(values) > 1 else "{}")


def _notes(runs: Sequence[Run]) -> tuple[str, ...]:
    decided = select(runs, method="llm_di")
    accused = [
        f"{sum(run.verdict.decision == MEMBERSHIP for run in here)} of {len(here)} ({name})"
        for classes, name in COMPARISONS.items()
        if (here := select(decided, classes=classes))
    ]
    libraries = len({run.domain for run in runs})
    notes = (
        f"Mean over {libraries} libraries, lowest and highest. Signs are such that a higher number speaks for reading.",
    )
    return (*notes, f"LLM-DI by its own rule takes for read: {'; '.join(accused)}.") if accused else notes
