"""What every contestant needs, finds and costs; and what other studies measured of those that have no results here."""

from __future__ import annotations

from nonmember.advice.contestants import Contestant as Advised
from nonmember.advice.measured import Measured, Says, measured
from nonmember.reports.core.grid import FALSE, Block, Cell, Choice, Number, Row, dash
from nonmember.reports.core.worlds import Scope
from nonmember.reports.papers.arena.contestants import TOKENS, Contestant, contestants, doses
from nonmember.reports.papers.arena.needs import ACCESS, CLAIMS, NOTHING, Needs, needs_of, not_here, situation_of
from nonmember.reports.papers.arena.tables import DECIDES, USUAL, fewer_unread, no_rate, runs_of, words
from nonmember.reports.planted.audits import QUANTITIES, RATE, named, percent
from nonmember.reports.render.blocks import filled

NEEDS, COSTS = ("reads of the model", "needs beside", "may say"), ("trains", "tokens trained", "tokens read")
FOLLOWS = "no model at hand follows instructions"
IN_ITS_STUDY, NOT_HERE = "see its own study, below", "not here"


def overview(scope: Scope) -> Block | None:
    """Every contestant with what it needs, what it finds and what it costs; and those of which nothing was measured."""
    world, entered = scope.world.name, contestants(scope)
    every = doses(entered)
    if not every:
        return None
    situation = situation_of(100, TOKENS)
    rows = [
        Row(one.name, (*_needs(one.needs, world), *(_counted(one, dose, world) for dose in every), _false(one, world),
                       *_costs(one.needs, world)))
        for one in entered
    ]  # fmt: skip
    for method in not_here(one.method for one in entered):
        why = words(_why_not(method), world)
        needs = needs_of(method, situation)
        cells = (why, *(Cell((dash(world),)) for _ in every[1:]), Cell((dash(world),)))
        rows.append(Row(method.title, (*_needs(needs, world), *cells, *_costs(needs, world))))
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
    had = dict.fromkeys(entry for row in rows for entry in row.cells[1].ours[0].text.split(", ") if entry != NOTHING)
    choices = (
        Choice(NEEDS[0], tuple(ACCESS.values()), is_rising=True),
        Choice(NEEDS[1], tuple(had), is_list=True),
        Choice(NEEDS[2], tuple(dict.fromkeys(row.cells[2].ours[0].text for row in rows))),
    )
    block = Block("methods", world, "Method and what it takes", "contestant", columns, tuple(rows), ("value",),
                  choices=choices)  # fmt: skip
    return filled(block, notes)


def _needs(needs: Needs, world: str) -> tuple[Cell, ...]:
    return tuple(words(text, world) for text in (needs.access, needs.beside_in_words, needs.says))


def _counted(one: Contestant, dose: int, world: str) -> Cell:
    share, runs = one.found([dose], USUAL), runs_of(one.entries, [dose])
    if share is None:
        return Cell((dash(world),))
    return Cell((Number(f"{round(share.share * len(runs))} of {len(runs)}", share.share, world,
                        tuple(run.anchor for run in runs)),))  # fmt: skip


def _false(one: Contestant, world: str) -> Cell:
    wrong = [
        run for claim in one.claims
        for run in (entry.run for entry in one.entries if (entry.dose > 0) is (claim == "non_membership"))
        if DECIDES[claim][1](run)
    ]  # fmt: skip
    if not one.claims:
        return words("no verdict", world)
    return Cell((Number(str(len(wrong)), float(len(wrong)), world, tuple(run.anchor for run in wrong),
                        mark=FALSE if wrong else ""),))  # fmt: skip


def _costs(needs: Needs, world: str) -> tuple[Cell, ...]:
    if needs.cost is None:
        return tuple(Cell((dash(world),)) for _ in COSTS)
    cost = needs.cost
    models, trained = f"{cost.tuned}" * bool(cost.tuned), f"{cost.trained:,}" * bool(cost.trained)
    if cost.controls:
        models = " and ".join(filter(None, (f"{cost.controls} controls", models)))
        trained = " and ".join(filter(None, ("their text", trained)))
    values = ((models or "0", float(cost.models)), (trained or "0", float(cost.trained)),
              (f"{cost.read:,}", float(cost.read)))  # fmt: skip
    return tuple(Cell((Number(text, value, world),)) for text, value in values)


def _why_not(method: Advised) -> str:
    if any(need.name == "follows" for need in method.needs):
        return FOLLOWS
    return IN_ITS_STUDY if any(_quoted(method)) else NOT_HERE


def quoted(scope: Scope) -> Block | None:
    """What was measured of methods that the arena has no results of, in studies of their own."""
    world = scope.world.name
    here = not_here(one.method for one in contestants(scope))
    tables = [(method, says, cells) for method in here for says, cells in _quoted(method)]
    every = sorted({dose for _, _, cells in tables for dose in cells})
    rows = []
    for method, says, cells in tables:
        wrong = {dose for dose in every if (dose == 0 if says == "membership" else dose >= method.excludes)}
        made = [_share(cells.get(dose), world, dose in wrong) for dose in every]
        first = next(iter(cells.values()))
        source = f"{first.study.partition(':')[0]} ({first.cell.partition(',')[0].partition(':')[0]})"
        rows.append(Row(f"{method.title}: {CLAIMS[says]}", (*made, words(source, world))))
    columns = (*map(named, every), "from")
    notes = ("Verdicts by each method's own rule, on other sets and other targets than above; intervals as there.",)
    return filled(Block("quoted", world, "From studies of their own", "verdict", columns, tuple(rows), QUANTITIES),
                  notes) if rows else None  # fmt: skip


def _quoted(method: Advised) -> list[tuple[Says, dict[int, Measured]]]:
    return [(says, cells) for says in method.says if (cells := measured(method.name, method.setting, says))]


def _share(one: Measured | None, world: str, is_false: bool) -> Cell:
    if one is None:
        return no_rate(world)
    mark = FALSE if is_false and one.count else ""
    ends = [dash(world) if end is None else Number(percent(end), end, world) for end in (one.low, one.high)]
    count, of = (Number(str(value), float(value), world, mark=mark * (place == 0))
                 for place, value in enumerate((one.count, one.of)))  # fmt: skip
    return Cell((count, of, *ends), (), RATE)
