"""Tables 1 to 12 of PRISM for one world: which results fill which cell. A block, or None where there is nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from nonmember.records.groups import SUSPECT
from nonmember.reports.core import controls, formats, published
from nonmember.reports.core.grid import PAIR, Block, Number, dash
from nonmember.reports.core.numbers import HIGH, LOW, STATISTIC, Value, detail, field, number, p_number
from nonmember.reports.core.published import PublishedTable
from nonmember.reports.core.worlds import Scope, World, select
from nonmember.reports.render.blocks import MakeCell, adjusted, filled, rows_of, say_medians, say_missing, say_tests
from nonmember.results.load import Run
from nonmember.results.result import AuditResult

AGREEMENT = "{} / {} [{}, {}]"
HELD_OUT = "b"
WHOLE_SETS = ("a", "b", "ab")  # halves that table 6 counts; quarters are controls
RHO_REFERENCE, RHO_DISTILLED = detail("rho_reference_target"), detail("rho_distilled_target")
TOKENS = field("num_tokens")


def table_1(scope: Scope) -> Block | None:
    runs = scope.of("table1", method="rank_agreement")
    domains, references = scope.world.found("domain", runs, "table1"), scope.world.found("reference", runs, "table1")

    def make(domain: str, reference: str) -> tuple[Number, ...]:
        return both(scope.world, select(runs, domain=domain, reference=reference), STATISTIC)

    return block(scope, "table1", "set", references, domains, make, PAIR, published.TABLE_1,
                 ("rho, untouched", "rho, trained"), domains)  # fmt: skip


def table_2(scope: Scope) -> Block | None:
    runs = not_held_out(scope.of("table2", method="prism"))
    return by_target(scope, "table2", runs, published.TABLE_2)


def table_3(scope: Scope) -> Block | None:
    runs = scope.of("table3", method="prism", half=HELD_OUT, target=scope.world.member)
    domains = scope.world.found("domain", runs, "table3")

    def make(target: str, domain: str) -> tuple[Number, ...]:
        return (p_number(select(runs, domain=domain), scope.world.name),)

    rows = {scope.world.member: scope.world.targets.get(scope.world.member, scope.world.member)}
    return block(scope, "table3", "target", domains, rows, make, "{}", published.TABLE_3, ("p",), domains, tests=True)


def table_4(scope: Scope) -> Block | None:
    runs = scope.of("table4", method=("llm_di", "pacost"))
    domains = scope.world.found("domain", runs, "table4")

    def make(method: str, domain: str) -> tuple[Number, ...]:
        return both_p(scope.world, select(runs, method=method, domain=domain))

    def median(_: str, domain: str) -> tuple[Number, ...]:
        return both(scope.world, select(runs, method="llm_di", domain=domain), detail("median_p_value"), p=True)

    made = block(scope, "table4", "test", domains, {"llm_di": "LLM-DI", "pacost": "PaCoST"}, make, PAIR,
                 published.TABLE_4, ("p, untouched", "p, trained"), domains, tests=True)  # fmt: skip
    if made is None:
        return None
    return replace(made, rows=(*made.rows, *rows_of({"": "LLM-DI, median of its splits"}, domains, median, PAIR)))


def table_5(scope: Scope) -> Block | None:
    runs = not_held_out(scope.of("table5", method="prism"))
    domains, references = scope.world.found("domain", runs, "table5"), scope.world.found("reference", runs, "table5")

    def make(reference: str, domain: str) -> tuple[Number, ...]:
        return both_p(scope.world, select(runs, reference=reference, domain=domain))

    return block(scope, "table5", "reference", domains, references, make, PAIR, published.TABLE_5,
                 ("p, untouched", "p, trained"), domains, tests=True)  # fmt: skip


def table_6(scope: Scope) -> Block | None:
    """From any result on a whole half: all of them should agree."""
    subsampled = tuple(scope.sweeps["figure3"])
    runs = [run for run in scope.runs if run.question.sweep not in subsampled and run.statistics.num_tokens]
    halves: list[str | None] = [half for half in WHOLE_SETS if select(runs, half=half)] or [None]
    columns = {f"{half}/{what}": f"{what}, half {half}" if half else what
               for half in halves for what in ("documents", "tokens")}  # fmt: skip
    if scope.world.published:
        columns |= {f"{halves[0]}/{what}": what for what in ("documents", "tokens")}
    domains = scope.world.found("domain", select(runs, half=tuple(halves)), "table6")

    def make(domain: str, column: str) -> tuple[Number, ...]:
        half, _, what = column.partition("/")
        of = select(runs, domain=domain, half=None if half == "None" else half)
        return (range_of(of, scope.world.name, documents if what == "documents" else TOKENS),)

    return block(scope, "table6", "set", columns, domains, make, "{}", published.TABLE_6, ("number",), domains)


def table_7(scope: Scope) -> Block | None:
    runs = scope.of("table7", method="rank_agreement")
    domains = scope.world.found("domain", runs, "table7")
    found = dict.fromkeys(str(run.get("score.kind")) for run in runs)
    rows = dict(scope.names["scores"]) | {kind: kind for kind in found if kind not in scope.names["scores"]}

    def make(kind: str, domain: str) -> tuple[Number, ...]:
        pair = both(scope.world, select(runs, score__kind=kind, domain=domain), STATISTIC)
        return (*pair, difference(*pair))

    return block(scope, "table7", "score", domains, rows, make, "{} / {} / {}", published.TABLE_7,
                 ("rho, untouched", "rho, trained", "difference"), domains)  # fmt: skip


def table_8(scope: Scope) -> Block | None:
    runs = not_held_out(scope.of("table8", method="prism"))
    domains, targets = scope.world.found("domain", runs, "table8"), scope.world.found("target", runs, "table8")
    rows_8_and_9 = {
        target: published.TABLE_8.rows[target] | published.TABLE_9.rows[target] for target in published.TABLE_8.rows
    }
    both_tables = PublishedTable(published.TABLE_8.columns + published.TABLE_9.columns, rows_8_and_9)

    def make(target: str, domain: str) -> tuple[Number, ...]:
        return agreement(select(runs, target=target, domain=domain), scope.world.name)

    return block(scope, "table8", "target", domains, targets, make, AGREEMENT, both_tables,
                 ("rho_RT", "rho_DT", "Delta, lower", "Delta, upper"), domains)  # fmt: skip


def table_10(scope: Scope) -> Block | None:
    runs = not_held_out(scope.of("table10", method="paired_t"))
    return by_target(scope, "table10", runs, published.TABLE_10)


def table_11(scope: Scope) -> Block | None:
    runs = not_held_out(scope.of("table11", method="prism"))
    domains, references = scope.world.found("domain", runs, "table11"), scope.world.found("reference", runs, "table11")
    targets = dict.fromkeys(str(run.question.target) for run in runs)

    def name(target: str, domain: str) -> str:
        printed = scope.world.targets.get(target, target)
        return domains[domain] if len(targets) < 2 else f"{domains[domain]}, {printed}"

    rows = {f"{domain}\n{target}": name(target, domain) for domain in domains for target in targets or [""]}

    def make(row: str, reference: str) -> tuple[Number, ...]:
        domain, _, target = row.partition("\n")
        return (p_number(select(runs, domain=domain, target=target, reference=reference), scope.world.name),)

    made = block(scope, "table11", "set", references, rows, make, "{}", published.TABLE_11, ("p",), domains, tests=True)
    if made is None or len(targets) != 1:
        return made
    (target,) = targets
    return replace(made, notes=(f"Target: {scope.world.targets.get(target, target)}.", *made.notes))


def table_12(scope: Scope) -> Block | None:
    runs = not_held_out(scope.of("table12", method="prism"))
    domains = scope.world.found("domain", runs, "table12")
    present = {run.question.target for run in runs}
    targets = {label: name for label, name in scope.world.found("target", runs).items() if label in present}
    metrics = scope.names["rank_metrics"]
    plain = len(targets) == 1
    rows = {f"{metric}\n{target}": printed if plain else f"{printed}, {name}"
            for metric, printed in metrics.items() for target, name in targets.items()}  # fmt: skip

    def make(row: str, domain: str) -> tuple[Number, ...]:
        metric, _, target = row.partition("\n")
        return (p_number(select(runs, rank_metric=metric, target=target, domain=domain), scope.world.name),)

    return block(scope, "table12", "correlation", domains, rows, make, "{}", published.TABLE_12, ("p",), domains,
                 tests=True)  # fmt: skip


# ------------------------------------------------------------------------------------ what they share


def by_target(scope: Scope, key: str, runs: Sequence[Run], paper: PublishedTable) -> Block | None:
    """p by target and domain: tables 2 and 10."""
    domains, targets = scope.world.found("domain", runs, key), scope.world.found("target", runs, key)

    def make(target: str, domain: str) -> tuple[Number, ...]:
        return (p_number(select(runs, target=target, domain=domain), scope.world.name),)

    return block(scope, key, "target", domains, targets, make, "{}", paper, ("p",), domains, tests=True)


def block(
    scope: Scope, key: str, corner: str, columns: Mapping[str, str], rows: Mapping[str, str], make: MakeCell,
    template: str, paper: PublishedTable, quantities: tuple[str, ...], domains: Mapping[str, str], *,
    tests: bool = False,
) -> Block | None:  # fmt: skip
    """A table of one world with everything that belongs under it; None where no result fills any cell."""
    made = rows_of(rows, columns, make, template, paper if scope.world.published else None)
    made = adjusted(made) if tests else made
    by_domain = dict(columns) == dict(domains)
    footer = controls.control_rows(scope, domains) if by_domain and controls.were_run(scope) else ()
    bare = Block(
        f"{key}-{formats.slug(scope.world.name)}", scope.world.name, scope.world.title, corner,
        tuple(columns.values()), made, quantities, footer,
    )  # fmt: skip
    return filled(bare, [say_tests(made) if tests else "", say_medians(made), say_missing(bare), *_asides(scope, key)])


def _asides(scope: Scope, key: str) -> list[str]:
    asides = [] if controls.were_run(scope) else [controls.not_run(scope)]
    if key in scope.sweeps and (sweep := scope.sweep_of(key)) != scope.sweeps[key][0]:
        asides.append(f"From the sweep {sweep}, since {scope.sweeps[key][0]} was not run in this world.")
    return asides


def both(world: World, runs: Sequence[Run], value: Value, *, p: bool = False) -> tuple[Number, ...]:
    """Untouched and trained target, in the paper's order."""
    form = formats.p_value if p else formats.decimals
    return tuple(number(select(runs, target=label), world.name, value, form) for label in world.pair())


def both_p(world: World, runs: Sequence[Run]) -> tuple[Number, ...]:
    return tuple(p_number(select(runs, target=label), world.name) for label in world.pair())


def difference(one: Number, other: Number) -> Number:
    if one.value is None or other.value is None:
        return dash(one.world)
    value = one.value - other.value
    return Number(formats.signed(value), value, one.world, (*one.runs, *other.runs))


def agreement(runs: Sequence[Run], world: str) -> tuple[Number, ...]:
    """rho_RT, rho_DT and the ends of Delta's interval."""
    return (
        *(number(runs, world, value) for value in (RHO_REFERENCE, RHO_DISTILLED)),
        *(number(runs, world, value, formats.signed) for value in (LOW, HIGH)),
    )


def range_of(runs: Sequence[Run], world: str, value: Value) -> Number:
    """The one count all runs agree on, or the range of what they say."""
    found = sorted({int(v) for run in runs if (v := value(run.result)) is not None})
    if not found:
        return dash(world)
    text = formats.count(found[0]) if len(found) == 1 else f"{formats.count(found[0])} to {formats.count(found[-1])}"
    first = tuple(run.anchor for run in runs if value(run.result) in (found[0], found[-1]))
    if len(found) == 1:
        return Number(text, float(found[0]), world, first[:1], note=f"alike in {len(runs)} results")
    note = f"{len(found)} different counts in {len(runs)} results"
    return Number(text, float(found[0]), world, (first[0], first[-1]), note=note)


def not_held_out(runs: Sequence[Run]) -> list[Run]:
    return [run for run in runs if run.get("half") != HELD_OUT]


def documents(result: AuditResult) -> float | None:
    """Of the suspect set, those that have no score included."""
    return result.statistics.num_documents + len(result.exclusions.documents.get(SUSPECT, ()))
