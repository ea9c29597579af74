"""Table 3 of DE-COP for one world: what text alone shows, by prefix completion and name cloze."""

from __future__ import annotations

from collections.abc import Sequence

from nonmember.reports.core import formats
from nonmember.reports.core.grid import INVALID, Block, Cell, Number, Row
from nonmember.reports.core.numbers import P_VALUE, detail, number
from nonmember.reports.core.report import Filled, tables
from nonmember.reports.core.worlds import Scope, by_domain, select
from nonmember.reports.render.blocks import filled, say_medians, say_missing
from nonmember.results.load import Run
from nonmember.results.result import AuditResult

COMPLETION, CLOZE = "prefix_completion", "name_cloze"
TEXT_PROBES = (COMPLETION, CLOZE)
QUANTITIES = ("suspect", "clean", "p")
PAIRS = "{} / {}, p {}"
NOTE = (
    "Mean share, over works, of passages reproduced or of names given: suspect / clean, p of the comparison. A small "
    "share shows nothing."
)


def text_probes(scope: Scope) -> Filled:
    """A row per method with its setting and set, a column per target."""
    runs = [run for run in scope.of("table3") if run.question.method in TEXT_PROBES]
    targets = {name: select(runs, target=label) for label, name in scope.world.found("target", runs).items()}
    columns = {name: here for name, here in targets.items() if here}
    sets = by_domain(scope, "table3", runs)
    rows = tuple(
        Row(f"{name}, {domain}", tuple(
            cell([run for run in here if run in of_domain and printed(run.result) == name], scope.world.name)
            for here in columns.values()
        ))
        for name in sorted({printed(run.result) for run in runs})
        for domain, of_domain in sets.items() if of_domain
    )  # fmt: skip
    bare = Block(f"table3-{formats.slug(scope.world.name)}", scope.world.name, f"Text alone. {scope.world.title}",
                 "method, set", tuple(columns), rows, QUANTITIES)  # fmt: skip
    return tables(filled(bare, [NOTE, say_medians(rows), say_missing(bare)]) if rows else None)


def printed(result: AuditResult) -> str:
    """As the paper calls it."""
    if result.question.method == COMPLETION:
        return f"Completion ({result.question.settings['k']})"
    return "Name cloze with the title" if result.question.settings["with_title"] else "Name cloze"


def cell(runs: Sequence[Run], world: str) -> Cell:
    means = (number(runs, world, detail(name), three) for name in ("mean_suspect", "mean_heldout"))
    p = number(runs, world, P_VALUE, formats.p_value)
    invalid = any(run.verdict.decision == "invalid" for run in runs)
    return Cell(
        (*means, Number(p.text, p.value, world, p.runs, mark=INVALID if invalid else "", note=p.note)), (), PAIRS
    )


def three(value: float | None) -> str:
    return formats.decimals(value, 3)
