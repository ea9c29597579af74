"""Tables beside the paper's: references that are truly too weak, table 2 with its spread over seeds, and LLM-DI on
classes that differ in time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from nonmember.reports.core import formats
from nonmember.reports.core.grid import INTERVAL, PAIR, RANGE, Block, Number
from nonmember.reports.core.numbers import (
    P_VALUE,
    STATISTIC,
    detail,
    mark_of,
    number,
    over_draws,
    p_number,
    with_interval,
)
from nonmember.reports.core.report import Filled, tables
from nonmember.reports.core.worlds import Scope, select
from nonmember.reports.papers.fsd.beyond import CLASSES
from nonmember.reports.papers.prism.tables import RHO_DISTILLED, RHO_REFERENCE, not_held_out
from nonmember.reports.render.blocks import MakeCell, filled, rows_of, say_medians, say_missing
from nonmember.results.load import Run

WITH_P = f"{INTERVAL}, p {{}}"
CLEARED = "evidence_of_non_membership"
MEDIAN_OF_SPLITS = detail("median_p_value")


def weak_references(scope: Scope) -> Filled:
    """A row per set and reference, a column per target: Delta and p; the two correlations."""
    runs = not_held_out(scope.of("weak", method="prism"))
    world = scope.world.name
    references, targets = (_present(scope, kind, runs) for kind in ("reference", "target"))
    domains = _present(scope, "domain", runs)
    rows = {f"{domain}\n{reference}": f"{name}, {printed}"
            for domain, name in domains.items() for reference, printed in references.items()}  # fmt: skip

    def at(row: str, target: str) -> list[Run]:
        domain, _, reference = row.partition("\n")
        return select(runs, domain=domain, reference=reference, target=target)

    def deltas(row: str, target: str) -> tuple[Number, ...]:
        return (*with_interval(at(row, target), world), p_number(at(row, target), world))

    def correlations(row: str, target: str) -> tuple[Number, ...]:
        return tuple(over_draws(at(row, target), world, value, formats.decimals)[0]
                     for value in (RHO_REFERENCE, RHO_DISTILLED))  # fmt: skip

    corner = "set, reference"
    return tables(
        _block(scope, "weak", "Delta and p", corner, targets, rows, deltas, WITH_P, ("Delta", "lower", "upper", "p")),
        _block(scope, "weak-rho", "Correlations", corner, targets, rows, correlations, PAIR, ("rho_RT", "rho_DT")),
    )


def seeds(scope: Scope) -> Filled:
    """Table 2 over seeds of the distillation: median, lowest and highest; how many of them clear the set."""
    runs = not_held_out(scope.of("spread", method="prism"))
    world = scope.world.name
    domains = _present(scope, "domain", runs)
    targets = {label: name for label, name in scope.world.found("target", runs, "table2").items()
               if select(runs, target=label)}  # fmt: skip

    def p_values(target: str, domain: str) -> tuple[Number, ...]:
        here = select(runs, target=target, domain=domain)
        ends = tuple(
            replace(one, mark=mark_of(one.value, here)) if one.value is not None else one
            for one in over_draws(here, world, P_VALUE)
        )
        cleared = sum(run.verdict.decision == CLEARED for run in here)
        counts = (Number(str(number), float(number), world) for number in (cleared, len(here)))
        return (*ends, *counts)

    def deltas(target: str, domain: str) -> tuple[Number, ...]:
        return over_draws(select(runs, target=target, domain=domain), world, STATISTIC, formats.signed)

    ends = ("median", "lowest", "highest")
    return tables(
        _block(scope, "spread", "p over seeds", "target", domains, targets, p_values, f"{RANGE}, {{}} of {{}}",
               (*ends, "cleared", "seeds")),
        _block(scope, "spread-delta", "Delta over seeds", "target", domains, targets, deltas, RANGE, ends),
    )  # fmt: skip


def releases(scope: Scope) -> Filled:
    """A row per library and what its members are told apart from, a column per target: LLM-DI's p."""
    runs = scope.of("releases", method="llm_di")
    targets, domains = _present(scope, "target", runs), _present(scope, "domain", runs)
    rows = {f"{domain}\n{against}": f"{name} against {of}"
            for domain, name in domains.items() for against, of in CLASSES.items()}  # fmt: skip

    def p_values(row: str, target: str) -> tuple[Number, ...]:
        domain, _, against = row.partition("\n")
        here = select(runs, domain=domain, against=against, target=target)
        return p_number(here, scope.world.name), number(here, scope.world.name, MEDIAN_OF_SPLITS, formats.p_value)

    quantities = ("p", "median of the splits' p")
    return tables(_block(scope, "releases", "LLM-DI", "members", targets, rows, p_values, PAIR, quantities))


def _present(scope: Scope, kind: str, runs: Sequence[Run]) -> dict[str, str]:
    """The labels of `kind` that these results have, in printed order."""
    return {label: name for label, name in scope.world.found(kind, runs).items() if select(runs, **{kind: label})}


def _block(
    scope: Scope, key: str, what: str, corner: str, columns: Mapping[str, str], rows: Mapping[str, str],
    make: MakeCell, template: str, quantities: tuple[str, ...],
) -> Block | None:  # fmt: skip
    """None where no result fills any cell."""
    made = rows_of(rows, columns, make, template)
    name = f"{key}-{formats.slug(scope.world.name)}"
    bare = Block(
        name, scope.world.name, f"{what}. {scope.world.title}", corner, tuple(columns.values()), made, quantities
    )
    return filled(bare, [say_medians(made), say_missing(bare)])
