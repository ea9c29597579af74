"""The report of a real model: every method's number by how often a set was read, verdicts, and what words tell."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar

from nonmember.reports.core import formats
from nonmember.reports.core.grid import FALSE, INVALID, RANGE, Block, Cell, Number, Row, dash
from nonmember.reports.core.report import Filled, Glance, Part, Report, tables
from nonmember.reports.core.worlds import Scope, select
from nonmember.reports.declared.tables import Table
from nonmember.reports.papers.real_model.published import PUBLISHED, comparisons
from nonmember.reports.papers.real_model.settings import (
    LAMBDA,
    LATER,
    LORA,
    LORA_CONTROLS,
    K,
    by_setting,
    by_training,
)
from nonmember.reports.planted.audits import dose_of, estimate_of, invalid, named
from nonmember.reports.planted.contestants import ARENA, Entry, contestants, doses
from nonmember.reports.planted.tables import AT_A_GLANCE, SIGNED, USUAL, cells_of_glance, power, spread, verdicts
from nonmember.reports.render.blocks import filled
from nonmember.results.load import Run

ASKED, DUPLICATION = "asked", "duplication"  # of conf/report/smollm.yaml


def _numbers(scope: Scope) -> Filled:
    """Rows: contestants. Columns: readings."""
    world, entered = scope.world.name, contestants(scope)
    if not entered:
        return tables(None)
    every = [0, *doses(entered)]
    rows = tuple(Row(one.name, tuple(_spread(one.of([dose]), world) for dose in every)) for one in entered)
    block = Block("numbers", world, "Statistics by what was read", "statistic, sets read", tuple(map(named, every)),
                  rows, ("value", "lowest", "highest"))  # fmt: skip
    return tables(filled(block, (f"Mean over the sets, lowest and highest. {SIGNED}",)))


def _spread(entries: Sequence[Entry], world: str) -> Cell:
    return spread([one.value for one in entries], tuple(one.run.anchor for one in entries), world)


def _readings(scope: Scope) -> Filled:
    """The dose meter's estimates, a row for each set."""
    world = scope.world.name
    runs = [
        run for run in select(scope.runs, method="dose", sweep=tuple(scope.sweeps[ARENA])) if dose_of(run) is not None
    ]
    every = sorted({dose for run in runs if (dose := dose_of(run)) is not None})
    rows = tuple(
        Row(domain, tuple(_estimate(select(runs, domain=domain), dose, world) for dose in every))
        for domain in sorted({run.domain for run in runs})
    )
    block = Block("readings", world, "Readings as the dose meter estimates them", "set, read", tuple(map(named, every)),
                  rows, ("value", "low", "high"))  # fmt: skip
    return tables(
        filled(block, ("An interval of 95%; an open end is a dash. A dash alone: no result, or no estimate.",))
    )


def _estimate(runs: Sequence[Run], dose: int, world: str) -> Cell:
    run = next((run for run in runs if dose_of(run) == dose), None)
    if run is None or estimate_of(run) is None:
        return Cell(tuple(dash(world) for _ in range(3)), (), RANGE)
    ends = (estimate_of(run), run.statistics.ci_low, run.statistics.ci_high)
    return Cell(tuple(
        dash(world) if end is None else Number(formats.decimals(end, 1), end, world, (run.anchor,)) for end in ends
    ), (), RANGE)  # fmt: skip


def _power(scope: Scope) -> Filled:
    return tables(power(scope, USUAL))


def _verdicts(scope: Scope) -> Filled:
    return tables(*verdicts(scope))


def _asked(scope: Scope) -> Filled:
    """A row for each method that asks the model, a column for each reading."""
    world, runs = scope.world.name, scope.of(ASKED)
    every = sorted({dose for run in runs if (dose := dose_of(run)) is not None})
    rows = tuple(
        Row(method, tuple(_answer([run for run in runs if _method(run) == method], dose, world) for dose in every))
        for method in dict.fromkeys(map(_method, runs))
    )
    block = Block(ASKED, world, "Verdicts of methods that ask", "method, set read", tuple(map(named, every)), rows,
                  ("verdict",))  # fmt: skip
    reasons = dict.fromkeys(
        f"{_method(run)}, {named(dose)}: {' '.join(run.verdict.warnings)}"
        for dose in every
        for run in runs
        if dose_of(run) == dose and invalid(run)
    )
    return tables(filled(block, tuple(reasons)))


def _method(run: Run) -> str:
    """And, where answers were no text, what was taken for one."""
    by_letters = run.question.settings.get("reading") == "probabilities"  # the data's `reading` is another
    return f"{run.question.method}, by probabilities of letters" if by_letters else run.question.method


def _answer(runs: Sequence[Run], dose: int, world: str) -> Cell:
    run = next((run for run in runs if dose_of(run) == dose), None)
    if run is None:
        return Cell((dash(world),))
    value, decision = run.statistics.value, run.verdict.decision.replace("_", " ")
    told = decision if value is None else f"{decision}, {run.statistics.name} {formats.decimals(value)}"
    return Cell((Number(told, value, world, (run.anchor,)),))


P_OF_FILE = Table(
    ["domain", "draw"], "duplication", "{p_value:tested}", ["p"], sweep=DUPLICATION, title="p",
    corner="set; times read", names={"draw": "draw {}", "duplication": "{}"},
    said=["A test reads {statistics.details.num_tokens_read:n,range} tokens."],
)  # fmt: skip
OF_FILES = (P_OF_FILE, replace(P_OF_FILE, cell="{value:+.2}", numbers=["t"], part="t", title="t", said=()))

PARTS = (
    Part(
        "readings", "How often was it read",
        "The dose meter, with controls of the same base planted at the same doses.",
        fill=_readings, made_by=(ARENA,),
    ),
    Part(
        "numbers", "Every method by what was read",
        "One number of each audit, and single scores by themselves, less the reference's, and beside held-out text.",
        fill=_numbers, made_by=(ARENA,),
    ),
    Part(
        "power", "What is found at equal errors", "As in the arena; of so few unread sets none may lie above.",
        fill=_power, made_by=(ARENA,),
    ),
    Part(
        "verdicts", "How often verdicts err",
        "By each method's own rule. At the left end every claim of membership is false; everywhere else every "
        "clearance is.",
        fill=_verdicts, made_by=(ARENA,),
    ),
    Part(
        "settings", "PRISM at other settings",
        "K of Min-K%++, and lambda of the distillation. All else as above: K = 0.2 and lambda = 0.7.",
        fill=by_setting, made_by=(K, LAMBDA),
    ),
    Part(
        "trained", "Read in other training",
        "The same sets under targets that went on training on other text after them, two fifths as much again (then "
        "other text), or that read them by LoRA, a document at a time. References and controls are as above; where a "
        "row says so, controls were trained as the target was.",
        fill=by_training, made_by=(LATER, LORA, LORA_CONTROLS),
    ),
    Part(
        "asked", "Methods that ask in words",
        "What a model too weak for a method gives is invalid; why stands below.",
        fill=_asked, made_by=(ASKED,),
    ),
    Part(
        "order", "The order test",
        "One-sided p and t of the test on a file of some 120 lines of 20 words, which the target has read so many "
        "times in its order beside other text; several files (draws), which are the same lines in other orders.",
        fill=lambda scope: tables(*(table.block(scope) for table in OF_FILES)), made_by=(DUPLICATION,),
    ),
    Part(
        "published", "What the published model had read",
        "Documentation of releases of 2020 and 2021, of which copies lie all over the web, against what the newest "
        "releases (November 2026) alone have. That the older texts were read is likely, and not known. The classes "
        "differ in date: what the blind baseline tells apart needs no reading, and what lies between older and older, "
        "or newer and newer text, is chance.",
        fill=comparisons, made_by=(PUBLISHED,),
    ),
)  # fmt: skip


class RealModelReport(Report):
    methods: ClassVar = (
        "dose", "prism", "paired_t", "difference_in_differences", "llm_di", "fsd", "kds", "blind", "levels",
        "name_cloze", "prefix_completion", "mc_pdd", "pacost", "decop", "order",
    )  # fmt: skip
    parts: ClassVar = PARTS
    glance: ClassVar = Glance(AT_A_GLANCE, cells_of_glance, "Of the methods that read probabilities.")
    notes: ClassVar = (
        "Readings are those of the continuation. What the published model had read before, nobody knows.",
        "A dash is a cell without a result. It is never a zero.",
    )
    marks: ClassVar = {FALSE: "what was planted says otherwise", INVALID: "invalid"}
