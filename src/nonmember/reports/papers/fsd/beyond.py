"""Two studies beside the paper's: classes that differ in time with known truth, and its protocol beside a clean one."""

from __future__ import annotations

from collections.abc import Callable

from nonmember.reports.core.report import Filled, tables
from nonmember.reports.core.worlds import Scope, by_domain, select
from nonmember.reports.papers.fsd.grids import AUC, Column, Grid, gains, scores_of, table, target_columns
from nonmember.results.load import Run

CLASSES = {"older": "others of that release", "newer": "the newer release"}
SPLITS = {"cluster": "split by article", "document": "split by document, as in the paper"}


def releases(scope: Scope) -> Filled:
    """A row per library and what its members are told apart from, a column per target."""
    runs = scope.of("releases")
    sets = {
        f"{name} against {of}": here
        for name, all_of_it in by_domain(scope, "releases", runs).items()
        for against, of in CLASSES.items()
        if (here := select(all_of_it, against=against))
    }
    grid = Grid(scope, "releases", sets, target_columns(scope, runs, "releases"), scores_of(scope, runs))
    return tables(table(grid, AUC), gains(grid))


def protocols(scope: Scope) -> Filled:
    """A row per set, a column per target and split."""
    runs = scope.of("protocol")
    targets = {label: name for label, name in scope.world.found("target", runs).items() if select(runs, target=label)}
    columns = [Column(f"{name}, {split}", _under(label, by)) for label, name in targets.items()
               for by, split in SPLITS.items()]  # fmt: skip
    grid = Grid(scope, "protocol", by_domain(scope, "protocol", runs), columns, scores_of(scope, runs))
    return tables(table(grid, AUC), gains(grid))


def _under(target: str, split_by: str) -> Callable[[Run], bool]:
    return lambda run: run.question.target == target and run.get("split_by") == split_by
