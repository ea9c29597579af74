"""The report of the arena: what each contestant needs, what it finds at equal errors, how often verdicts err, costs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from nonmember.reports.core.grid import FALSE, Cell, Number
from nonmember.reports.core.report import Filled, Glance, Part, Report, tables
from nonmember.reports.core.worlds import Scope
from nonmember.reports.papers.arena import figures
from nonmember.reports.papers.arena.contestants import ARENA, ERRORS, SIZES, contestants, doses, numbers
from nonmember.reports.papers.arena.overview import overview, quoted
from nonmember.reports.papers.arena.tables import by_kind, by_size, cost_and_power, costs, power, verdicts

NOTHING = "no results for this table yet."
LIGHT = (1, 2)  # readings at which contestants differ most


def _overview(scope: Scope) -> Filled:
    return tables(overview(scope))


def _power(scope: Scope) -> Filled:
    """The usual error as a figure with its numbers, the others as tables."""
    *strict, usual = (power(scope, error) for error in ERRORS)
    shown = () if usual is None else (figures.power(scope, usual),)
    return Filled(NOTHING, tuple(one for one in strict if one is not None), shown)


def _sizes(scope: Scope) -> Filled:
    block, found = by_size(scope), numbers(scope)
    if block is None:
        return tables(None)
    most = contestants(scope, SIZES, found[-1])
    return Filled(NOTHING, (), (figures.sizes(scope, block, found, most),))


def _kinds(scope: Scope) -> Filled:
    planted = doses(contestants(scope))
    light = [dose for dose in LIGHT if dose in planted]
    return tables(by_kind(scope, light) if light else None)


def _verdicts(scope: Scope) -> Filled:
    return tables(*verdicts(scope))


def _costs(scope: Scope) -> Filled:
    planted = doses(contestants(scope))
    if not planted:
        return tables(costs(scope))
    dose = LIGHT[-1] if LIGHT[-1] in planted else planted[0]
    block, beside = costs(scope), cost_and_power(scope, dose)
    shown = () if beside is None else (figures.cost_against_power(scope, beside, dose),)
    return Filled(NOTHING, () if block is None else (block,), shown)


def _quoted(scope: Scope) -> Filled:
    return tables(quoted(scope))


PARTS = (
    Part(
        "methods", "Which method with what you have",
        "Every contestant: what it needs, what it finds of sets read so often, what it costs. Choose what you have to "
        "see what is left.",
        fill=_overview, made_by=(ARENA,),
    ),
    Part(
        "power", "What is found at equal errors",
        "The same targets and sets by every contestant: how many of the sets that were read so often stand out from "
        "the unread ones, whatever the method's own rule says.",
        fill=_power, made_by=(ARENA,),
    ),
    Part(
        "sizes", "By number of documents",
        "Sets of 500 texts, and the first 150 and 50 of each, under targets of their own.",
        fill=_sizes, made_by=(SIZES,),
    ),
    Part(
        "kinds", "By kind of text",
        "Libraries whose documentation the sets are from, or kinds of prose.",
        fill=_kinds, made_by=(ARENA,),
    ),
    Part(
        "verdicts", "How often verdicts err",
        "By each method's own rule. At the left end every claim of membership is false; everywhere else every "
        "clearance is.",
        fill=_verdicts, made_by=(ARENA, SIZES),
    ),
    Part(
        "costs", "What it costs", "Cost beside power: the cheapest that finds enough.",
        fill=_costs, made_by=(ARENA, SIZES),
    ),
    Part(
        "quoted", "Measured elsewhere",
        "Methods that were not put to these sets: calibrated clearance, whose controls are trained for each set; the "
        "order test, whose sets are files in an order.",
        fill=_quoted,
        notes=(
            "Without measured power: DE-COP, MC-PDD, name cloze, prefix completion and PaCoST, which prompt a model. "
            "No model at hand follows instructions well enough: models of a million parameters do not, and a "
            "continuation of SmolLM2-135M-Instruct answered none of DE-COP's questions with a letter.",
        ),
    ),
)  # fmt: skip
AT_A_GLANCE = ("contestants", "audits")


def cells_of_glance(scope: Scope) -> Iterator[Cell]:
    entered = contestants(scope)
    audits = {run.path for one in entered for run in one.runs}
    for number in (len(entered), len(audits)):
        yield Cell((Number(str(number), float(number), scope.world.name),))


class ArenaReport(Report):
    methods: ClassVar = (
        "dose", "prism", "paired_t", "difference_in_differences", "llm_di", "fsd", "kds", "blind", "levels",
    )  # fmt: skip
    parts: ClassVar = PARTS
    glance: ClassVar = Glance(AT_A_GLANCE, cells_of_glance, "On the arena's questions alone.")
    notes: ClassVar = (
        "Truth is known in this world: every model was trained here, on text that its recipe names.",
        "A dash is a cell without a result. It is never a zero.",
    )
    marks: ClassVar = {FALSE: "the truth says otherwise"}
    lists_used: ClassVar = True  # the studies have twice as many
