"""Negative controls beside every table: can text alone separate the halves, and how do the tests behave under the null?

Blind baseline: AUC of a classifier that sees the texts only. A/A: two disjoint halves of text that no model read.
"""

from __future__ import annotations

from collections.abc import Mapping

from nonmember.reports.core import formats
from nonmember.reports.core.grid import INTERVAL, Block, Numeral, TableCell, TableRow
from nonmember.reports.core.numbers import HIGH, LOW, P_VALUE, STATISTIC, number
from nonmember.reports.core.worlds import Scope

NOT_RUN = "not run"
# name of the row, method, half of the suspect set, whether only under the untouched target
CONTROLS = (
    ("Blind AUC, a against b", "blind", "a", False),
    ("Blind AUC, b1 against b2", "blind", "b1", False),
    ("A/A, LLM-DI b1 against b2: p", "llm_di", "b1", False),
    ("A/A, PRISM on b1, untouched: p", "prism", "b1", True),
    ("A/A, PRISM on b2, untouched: p", "prism", "b2", True),
)


def control_rows(scope: Scope, domains: Mapping[str, str]) -> tuple[TableRow, ...]:
    """A row per control, a cell per domain."""
    return tuple(
        TableRow(name, tuple(_cell(scope, domain, method, half, untouched) for domain in domains))
        for name, method, half, untouched in CONTROLS
    )


def _cell(scope: Scope, domain: str, method: str, half: str, untouched: bool) -> TableCell:
    only = {"target": scope.world.untouched} if untouched else {}
    runs = scope.of("controls", method=method, half=half, domain=domain, **only)
    world = scope.world.name
    if not runs:
        return TableCell((Numeral(NOT_RUN, None, world),))
    if method != "blind":
        return TableCell((number(runs, world, P_VALUE, formats.p_value),))
    parts = tuple(number(runs, world, value, lambda v: formats.decimals(v, 2)) for value in (STATISTIC, LOW, HIGH))
    return TableCell(parts, (), INTERVAL) if not parts[1].missing else TableCell(parts[:1])


def were_run(scope: Scope) -> bool:
    return bool(scope.of("controls"))


def not_run(scope: Scope) -> str:
    command = scope.world.command.format(sweep=scope.sweep_of("controls"))
    return f"Controls (blind AUC, A/A halves): not run in this world; `{command}` runs them."


def controls_block(scope: Scope, domains: Mapping[str, str], key: str) -> Block:
    """The controls as a table of their own, where the columns of the table they qualify are not domains."""
    rows = control_rows(scope, domains)
    key = f"controls-of-{key}-{formats.slug(scope.world.name)}"
    return Block(
        key, scope.world.name, f"Controls, {scope.world.title}", "", tuple(domains.values()), rows, ("control",)
    )
