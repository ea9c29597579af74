"""What of the report of a real model is computed: numbers by how often a set was read, and what words tell."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from nonmember.reports.core import formats
from nonmember.reports.core.grid import FALSE, INVALID, RANGE, Block, Numeral, TableCell, dash
from nonmember.reports.core.report import Glance, tables
from nonmember.reports.core.worlds import Scope, select
from nonmember.reports.declared.report import DeclaredReport
from nonmember.reports.planted import audits
from nonmember.reports.planted.audits import cleared, dose_of, estimate_of, found, invalid, named, number_cell, runs_of
from nonmember.reports.planted.contestants import contestants, doses, sign_of
from nonmember.reports.planted.tables import (
    AT_A_GLANCE,
    SIGNED,
    USUAL,
    by_name,
    cells_of_glance,
    columns_of,
    compared,
    power,
    spread,
    verdicts,
)
from nonmember.reports.render.blocks import cross_table
from nonmember.results.load import Run

SETTINGS = {"k": ("score.k", "K"), "lambda": ("distillation.lambda_", "lambda")}
TRAINED = {"later": "then other text", "lora": "by LoRA", "lora_controls": "by LoRA, as its controls"}
CLASSES = {  # data.classes, in world=published
    "older_newer": "older against newer",
    "both_older": "older against older",
    "both_newer": "newer against newer",
}


def with_dose(runs: Sequence[Run], dose: int) -> list[Run]:
    return [run for run in runs if dose_of(run) == dose]


# ------------------------------------------------------------------------------------- by what was read


def numbers(scope: Scope) -> Block | None:
    entered, world = contestants(scope), scope.world.name
    return cross_table(
        "numbers",
        world,
        "Statistics by what was read",
        "statistic, sets read",
        by_name(entered),
        columns_of([0, *doses(entered)]),
        ("value", "lowest", "highest"),
        [f"Mean over the sets, lowest and highest. {SIGNED}"],
        lambda item, dose: spread(
            [entry.value for entry in item.of([dose])], tuple(entry.run.anchor for entry in item.of([dose])), world
        ),
    )


def readings(scope: Scope) -> Block | None:
    """The dose meter's estimates, a row for each set."""
    world = scope.world.name
    runs = [run for run in runs_of(scope, "arena") if dose_of(run) is not None]

    def cell(domain: str, dose: int) -> TableCell:
        run = next(iter(with_dose(select(runs, domain=domain), dose)), None)
        if run is None or estimate_of(run) is None:
            return TableCell((dash(world),) * 3, (), RANGE)
        ends = (estimate_of(run), run.statistics.ci_low, run.statistics.ci_high)
        numbers = (Numeral(formats.decimals(end, 1), end, world, () if end is None else (run.anchor,)) for end in ends)
        return TableCell(tuple(numbers), (), RANGE)

    domains = {domain: domain for domain in sorted({run.domain for run in runs})}
    note = "An interval of 95%; an open end is a dash. A dash alone: no result, or no estimate."
    return cross_table(
        "readings",
        world,
        "Readings as the dose meter estimates them",
        "set, read",
        domains,
        columns_of(audits.doses(runs)),
        ("value", "low", "high"),
        [note],
        cell,
    )


# ------------------------------------------------------------------- other settings, and other training


def answer(runs: Sequence[Run], world: str, sign: int = 1) -> TableCell:
    """The statistic of the first, and its p."""
    if not runs or (value := runs[0].statistics.value) is None:
        return TableCell((dash(world),))
    run, p = runs[0], runs[0].statistics.p_value
    is_wrong = (cleared(run) and bool(dose_of(run))) or (found(run) and not dose_of(run))
    text = formats.signed(sign * value) + ("" if p is None else f" ({formats.p_value(p)})")
    return number_cell(text, sign * value, world, [run], FALSE if is_wrong else INVALID if invalid(run) else "")


def by_setting(scope: Scope, key: str) -> Block | None:
    """Rows are sets with what was read of them, columns values of the setting."""
    (setting, symbol), world = SETTINGS[key], scope.world.name
    runs = select(scope.of(key), method="prism")
    values = sorted({float(value) for run in runs if (value := run.get(setting)) is not None})
    sets = sorted({(dose, run.domain) for run in runs if (dose := dose_of(run)) is not None})
    rows = {f"{domain}, {named(dose)}": with_dose(select(runs, domain=domain), dose) for dose, domain in sets}
    return cross_table(
        key,
        world,
        f"Delta by {symbol}",
        "set, read",
        rows,
        {f"{symbol} = {value:g}": value for value in values},
        ("Delta",),
        ["In brackets p. Below .05 PRISM says that the set was not read."],
        lambda group, value: answer([run for run in group if run.get(setting) == value], world),
    )


def by_training(scope: Scope) -> Block | None:
    """Rows: methods and how the target was trained. Columns: readings, each of another set."""
    runs, world = {key: scope.of(key) for key in TRAINED}, scope.world.name
    rows = {
        f"{name}, {trained}": (of_method, sign_of(method))
        for method, name in scope.names["methods"].items()
        for key, trained in TRAINED.items()
        if (of_method := select(runs[key], method=method))
    }
    return cross_table(
        "trained",
        world,
        "Statistics by what was read, other training",
        "method, read",
        rows,
        columns_of(audits.doses(run for group in runs.values() for run in group)),
        ("value",),
        [f"In brackets p, where the method has one. {SIGNED}"],
        lambda row, dose: answer(with_dose(row[0], dose), world, row[1]),
    )


# ------------------------------------------------------------------------- asked in words, and as published


def asked(scope: Scope) -> Block | None:
    """A row for each method that asks the model, a column for each reading."""
    world, every = scope.world.name, audits.doses(scope.of("asked"))
    rows: dict[str, list[Run]] = {}
    for run in scope.of("asked"):
        by_letters = run.question.settings.get("reading") == "probabilities"  # the data's `reading` is another
        name = f"{run.question.method}, by probabilities of letters" if by_letters else run.question.method
        rows.setdefault(name, []).append(run)

    def cell(runs: Sequence[Run], dose: int) -> TableCell:
        if not (of_dose := with_dose(runs, dose)):
            return TableCell((dash(world),))
        run, value = of_dose[0], of_dose[0].statistics.value
        decision = run.verdict.decision.replace("_", " ")
        text = decision if value is None else f"{decision}, {run.statistics.name} {formats.decimals(value)}"
        return number_cell(text, value, world, [run])

    reasons = dict.fromkeys(
        f"{name}, {named(dose)}: {' '.join(run.verdict.warnings)}"
        for dose in every
        for name, group in rows.items()
        for run in with_dose(group, dose)
        if invalid(run)
    )
    return cross_table(
        "asked",
        world,
        "Verdicts of methods that ask",
        "method, set read",
        rows,
        columns_of(every),
        ("verdict",),
        reasons,
        cell,
    )


def published(scope: Scope) -> Block | None:
    """Two classes of text that differ in date, and each class against itself, under the model as it was published."""
    runs = scope.of("published")
    accused = [
        f"{sum(map(found, of_classes))} of {len(of_classes)} ({name})"
        for classes, name in CLASSES.items()
        if (of_classes := select(runs, method="llm_di", classes=classes))
    ]
    notes = [f"Mean over {len({run.domain for run in runs})} libraries, lowest and highest. {SIGNED}"]
    notes += [f"LLM-DI by its own rule takes for read: {'; '.join(accused)}."] if accused else []
    columns = {name: (lambda run, of=classes: run.get("classes") == of) for classes, name in CLASSES.items()}
    title = "Older and newer text under the model as it was published"
    return compared("published", title, "statistic, compared", scope, runs, ["less_heldout"], columns, notes)


class RealModelReport(DeclaredReport):
    special: ClassVar = {
        "readings": lambda scope: tables(readings(scope)),
        "numbers": lambda scope: tables(numbers(scope)),
        "power": lambda scope: tables(power(scope, USUAL)),
        "verdicts": lambda scope: tables(*verdicts(scope)),
        "settings": lambda scope: tables(*(by_setting(scope, key) for key in SETTINGS)),
        "trained": lambda scope: tables(by_training(scope)),
        "asked": lambda scope: tables(asked(scope)),
        "published": lambda scope: tables(published(scope)),
    }

    def first_numbers(self) -> Glance:
        return Glance(AT_A_GLANCE, cells_of_glance, self.glance_note)
