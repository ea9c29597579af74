"""What every contestant needs, finds at equal errors, says and costs; and what other studies measured of those without
results here."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from nonmember.advice.contestants import CONTESTANTS, Contestant
from nonmember.advice.measured import MeasuredPower, Says, measured
from nonmember.reports.core.grid import FALSE, Block, TableCell, TableRow, dash
from nonmember.reports.core.worlds import Scope
from nonmember.reports.planted.audits import (
    CLUSTERED,
    QUANTITIES,
    AuditGroup,
    cleared,
    found,
    named,
    no_rate,
    number_cell,
    rate_of,
)
from nonmember.reports.planted.contestants import (
    CLAIMS,
    ERRORS,
    NOTHING,
    SIZES,
    TOKENS,
    ArenaContestant,
    Needs,
    by_name,
    columns_of,
    contestants,
    doses,
    fewer_unread,
    found_cell,
    needs_of,
    numbers,
    situation_of,
)
from nonmember.reports.render.blocks import cross_table, filled
from nonmember.results.load import Run

DECIDES = {"non_membership": ("not read", cleared), "membership": ("read", found)}
USUAL = ERRORS[-1]
ABOVE = (
    "A method that does not lie above the blind baseline, which uses no model, has shown no membership signal: the "
    "baseline's number is the same whether or not the target has read the set."
)
EQUAL = (
    "Of sets that were read so often, how many have a statistic above that of all but {:.0%} of the unread ones; with "
    "fewer unread sets than that allows, above all of them. The threshold is one for all sets, found on these very "
    "audits; gates are not asked."
)
AT_A_GLANCE = ("contestants", "audits")
NEEDS, COSTS = ("reads of the model", "needs beside", "may say"), ("trains", "tokens trained", "tokens read")
FOLLOWS = "no model at hand follows instructions"
Quoted = tuple[Contestant, Says, dict[int, MeasuredPower]]
IN_ITS_STUDY, NOT_HERE = "see its own study, below", "not here"


def not_here(scope: Scope) -> list[Contestant]:
    """What `advise` knows and the arena has no results of: scores are there, and of the dose meter the own base's."""
    present = {"score", *(item.method for item in contestants(scope))}
    return [item for item in CONTESTANTS if item.name not in present or item.setting == "another base"]


def overview(scope: Scope) -> Block | None:
    """Every contestant with what it needs, what it finds and what it costs; and those of which nothing was measured."""
    world, entered = scope.world.name, contestants(scope)
    every = doses(entered)
    if not every:
        return None
    situation, no_cell = situation_of(100), TableCell((dash(world),))
    rows: dict[str, tuple[TableCell, ...]] = {
        item.name: (
            *_needs(item.needs, world),
            *(_counted(item, dose, world) for dose in every),
            _false(item, world),
            *_costs(item.needs, world),
        )
        for item in entered
    }
    for method in not_here(scope):
        needs, why = needs_of(method, situation), number_cell(_why_not(method), None, world)
        rows[method.title] = (*_needs(needs, world), why, *(no_cell,) * len(every), *_costs(needs, world))
    columns = (*NEEDS, *map(named, every), "false verdicts", *COSTS)
    notes = (
        f"Found at {USUAL:.0%} false positives, of the sets read so often; intervals below. False verdicts: of "
        "membership where nothing was read, of non-membership where something was, by the method's own rule.",
        fewer_unread(entered),
        "Trains: models, of which controls serve all sets of a study together. Tokens: as `nonmember advise` reckons "
        f"them for 100 texts of {TOKENS} tokens, and of controls beside them the text that they are trained on; what "
        "is asked of an endpoint costs a request for each text and pass.",
        "Held-out text is of the same draw here. Text of another date there is none of in this world: a comparison "
        "with it finds the date (the sweeps years and releases_rivals).",
        "Top log-probabilities: contestants by top-k loss see of each place what its k largest log-probabilities fix, "
        "cut from whole distributions; an endpoint would be asked once for each token, which no client here does.",
    )
    made = tuple(TableRow(name, cells) for name, cells in rows.items())
    title = "Method and what it takes"
    return filled(Block("methods", world, title, "contestant", columns, made, ("value",)), notes)


def _needs(needs: Needs, world: str) -> tuple[TableCell, ...]:
    beside = ", ".join(needs.beside) or NOTHING
    return tuple(number_cell(text, None, world) for text in (needs.access, beside, needs.says))


def _counted(item: ArenaContestant, dose: int, world: str) -> TableCell:
    share, runs = item.found([dose], USUAL), [entry.run for entry in item.of([dose])]
    if share is None:
        return TableCell((dash(world),))
    return number_cell(f"{round(share.share * len(runs))} of {len(runs)}", share.share, world, runs)


def _false(item: ArenaContestant, world: str) -> TableCell:
    """Clearances of what was read, and the rest of what was not."""
    if not item.claims:
        return number_cell("no verdict", None, world)
    wrong = [
        entry.run
        for claim in item.claims
        for entry in item.entries
        if bool(entry.dose) is (claim == "non_membership") and DECIDES[claim][1](entry.run)
    ]
    return number_cell(str(len(wrong)), len(wrong), world, wrong, FALSE if wrong else "")


def _costs(needs: Needs, world: str) -> tuple[TableCell, ...]:
    if needs.cost is None:
        return (TableCell((dash(world),)),) * len(COSTS)
    cost = needs.cost
    models, trained = [f"{cost.tuned}"] * bool(cost.tuned), [f"{cost.trained:,}"] * bool(cost.trained)
    if cost.controls:
        models, trained = [f"{cost.controls} controls", *models], ["their text", *trained]
    texts = (" and ".join(models) or "0", " and ".join(trained) or "0", f"{cost.read:,}")
    values = (cost.models, cost.trained, cost.read)
    return tuple(number_cell(text, value, world) for text, value in zip(texts, values, strict=True))


def _why_not(method: Contestant) -> str:
    if any(need.name == "follows" for need in method.needs):
        return FOLLOWS
    return IN_ITS_STUDY if any(_quoted(method)) else NOT_HERE


def quoted(scope: Scope) -> Block | None:
    """What was measured of methods that the arena has no results of, in studies of their own."""
    world = scope.world.name
    rows = {
        f"{method.title}: {CLAIMS[says]}": (method, says, cells)
        for method in not_here(scope)
        for says, cells in _quoted(method)
    }

    def share(dose: int) -> Callable[[Quoted], TableCell]:
        def cell(row: Quoted) -> TableCell:
            method, says, cells = row
            if (item := cells.get(dose)) is None:
                return no_rate(world)
            is_false = dose == 0 if says == "membership" else dose >= method.excludes
            return rate_of(item.count, item.of, (item.low, item.high), world, is_false=is_false)

        return cell

    def source(row: Quoted) -> TableCell:
        first = next(iter(row[2].values()))
        table = first.cell.partition(",")[0].partition(":")[0]
        return number_cell(f"{first.study.partition(':')[0]} ({table})", None, world)

    every = sorted({dose for _, _, cells in rows.values() for dose in cells})
    columns = {named(dose): share(dose) for dose in every} | {"from": source}
    notes = (
        "Verdicts by each method's own rule, on other sets and other targets than above; intervals as there. Canaries: "
        "by the copies of each.",
    )
    return cross_table("quoted", world, "From studies of their own", "verdict", rows, columns, QUANTITIES, notes)


def _quoted(method: Contestant) -> list[tuple[Says, dict[int, MeasuredPower]]]:
    return [(says, cells) for says in method.says if (cells := measured(method.name, method.setting, says))]


def cells_of_glance(scope: Scope) -> Iterator[TableCell]:
    entered = contestants(scope)
    for number in (len(entered), len({run.path for item in entered for run in item.runs})):
        yield number_cell(str(number), number, scope.world.name)


def power(scope: Scope, error: float) -> Block | None:
    entered, world = contestants(scope), scope.world.name
    key, title = f"found-{error * 100:.0f}", f"Found at {error:.0%} false positives"
    notes = (EQUAL.format(error), fewer_unread(entered), ABOVE, CLUSTERED)
    return cross_table(
        key,
        world,
        title,
        "contestant, sets read",
        by_name(entered),
        columns_of(doses(entered)),
        QUANTITIES,
        notes,
        lambda item, dose: found_cell(item, [dose], error, world),
    )


def verdicts(scope: Scope) -> list[Block | None]:
    """By each method's own rule: on the arena's sets, and by number of documents."""
    entered, world = contestants(scope), scope.world.name
    columns = columns_of([0, *doses(entered)])
    note = (
        "Methods without a verdict are not shown. PRISM with its world's gates, of which micro worlds have none, as "
        "its paper; LLM-DI at its paper's level; the dose meter's claim is of one reading or more."
    )
    title = "Verdicts by what was read"
    by_size = {
        f"{name}, {number}": row
        for number in numbers(scope)
        for name, row in _claims(contestants(scope, SIZES, number)).items()
    }

    def cell(row: tuple[ArenaContestant, Callable[[Run], bool]], dose: int) -> TableCell:
        item, decides = row
        return AuditGroup([entry.run for entry in item.of([dose])], world).verdict(decides, dose)

    return [
        cross_table(key, world, title + more, corner, rows, columns, QUANTITIES, (note, CLUSTERED), cell)
        for key, more, corner, rows in (
            ("verdicts", "", "verdict", _claims(entered)),
            ("verdicts-sizes", " and number of documents", "verdict, documents", by_size),
        )
    ]


def _claims(entered: Sequence[ArenaContestant]) -> dict[str, tuple[ArenaContestant, Callable[[Run], bool]]]:
    claims = ((item, *DECIDES[claim]) for item in entered for claim in item.claims)
    return {f"{item.name}: {verdict}": (item, decides) for item, verdict, decides in claims}
