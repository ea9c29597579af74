"""Numbers of several audits in one cell: a row for each method and each single score, a column for each question."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from nonmember.reports.core import formats
from nonmember.reports.core.grid import RANGE, Block, Cell, Number, Row, dash
from nonmember.reports.core.worlds import Scope, select
from nonmember.reports.papers.arena.contestants import BESIDE, LEVELS, SCORES, SHORT, sign_of, tests_of
from nonmember.results.load import Run

SIGNED = "Signs are such that a higher number speaks for reading."


def compared(
    key: str, title: str, corner: str, scope: Scope, runs: Sequence[Run], beside: Sequence[str],
    columns: Mapping[str, Callable[[Run], bool]],
) -> Block | None:  # fmt: skip
    """beside: what single scores are less, keys of `BESIDE`.   columns: title -> whether it is about a result."""
    world = scope.world.name
    rows = []
    for name, values in _rows(scope, runs, beside):
        if values:
            of_columns = [[(value, run.anchor) for run, value in values if is_in(run)] for is_in in columns.values()]
            rows.append(Row(name, tuple(
                spread([value for value, _ in found], tuple(anchor for _, anchor in found), world)
                for found in of_columns
            )))  # fmt: skip
    return (
        Block(key, world, title, corner, tuple(columns), tuple(rows), ("value", "lowest", "highest")) if rows else None
    )


def _rows(scope: Scope, runs: Sequence[Run], beside: Sequence[str]) -> Iterator[tuple[str, list[tuple[Run, float]]]]:
    """Printed name, and the results with their numbers."""
    for method, _, name, of_test in tests_of(scope, runs):
        yield name, [(run, sign_of(method) * value) for run in of_test if (value := run.statistics.value) is not None]
    for score, single in SCORES.items():
        for told in beside:
            yield (
                f"{single.name} less {' and '.join(SHORT[one] for one in BESIDE[told])}",
                [
                    (run, value)
                    for run in select(runs, method=LEVELS)
                    if (value := run.statistics.details.get(told, {}).get(score)) is not None
                ],
            )


def spread(values: Sequence[float], anchors: tuple[str, ...], world: str) -> Cell:
    """Mean, lowest and highest; of one value that alone."""
    if not values:
        return Cell((dash(world),))
    ends = (sum(values) / len(values), min(values), max(values)) if len(values) > 1 else tuple(values)
    numbers = tuple(Number(formats.signed(one), one, world, anchors) for one in ends)
    return Cell(numbers, (), RANGE if len(values) > 1 else "{}")
