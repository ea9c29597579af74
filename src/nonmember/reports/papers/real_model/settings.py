"""A real model: PRISM at other settings, and sets that were read in other training."""

from __future__ import annotations

from collections.abc import Sequence

from nonmember.reports.core import formats
from nonmember.reports.core.grid import FALSE, INVALID, Block, Cell, Number, Row, dash
from nonmember.reports.core.report import Filled, tables
from nonmember.reports.core.worlds import Scope, select
from nonmember.reports.planted.audits import cleared, dose_of, found, invalid, named
from nonmember.reports.planted.contestants import sign_of
from nonmember.reports.planted.tables import SIGNED
from nonmember.reports.render.blocks import filled
from nonmember.results.load import Run

K, LAMBDA, LATER, LORA, LORA_CONTROLS = "k", "lambda", "later", "lora", "lora_controls"  # of conf/report/smollm.yaml
SETTINGS = {K: ("score.k", "K"), LAMBDA: ("distillation.lambda_", "lambda")}
TRAINED = {LATER: "then other text", LORA: "by LoRA", LORA_CONTROLS: "by LoRA, as its controls"}


def by_setting(scope: Scope) -> Filled:
    """A table for each setting: rows are sets with what was read of them, columns its values."""
    return tables(*(_by(scope, key) for key in SETTINGS))


def _by(scope: Scope, key: str) -> Block | None:
    setting, symbol = SETTINGS[key]
    runs, world = select(scope.of(key), method="prism"), scope.world.name
    values = sorted({float(value) for run in runs if (value := run.get(setting)) is not None})
    sets = sorted({(dose, run.domain) for run in runs if (dose := dose_of(run)) is not None})

    def cell(dose: int, domain: str, value: float) -> Cell:
        here = select(runs, domain=domain)
        return _answer([run for run in here if dose_of(run) == dose and run.get(setting) == value], world)

    rows = tuple(
        Row(f"{domain}, {named(dose)}", tuple(cell(dose, domain, value) for value in values)) for dose, domain in sets
    )
    columns = tuple(f"{symbol} = {value:g}" for value in values)
    block = Block(key, world, f"Delta by {symbol}", "set, read", columns, rows, ("Delta",))
    return filled(block, ("In brackets p. Below .05 PRISM says that the set was not read.",))


def by_training(scope: Scope) -> Filled:
    """Rows: methods and how the target was trained. Columns: readings, each of another set."""
    runs, world = {key: scope.of(key) for key in TRAINED}, scope.world.name
    every = sorted({dose for of_key in runs.values() for run in of_key if (dose := dose_of(run)) is not None})
    rows = tuple(
        Row(f"{name}, {trained}", tuple(
            _answer([run for run in here if dose_of(run) == dose], world, sign_of(method)) for dose in every
        ))
        for method, name in scope.names["methods"].items()
        for key, trained in TRAINED.items()
        if (here := select(runs[key], method=method))
    )  # fmt: skip
    block = Block("trained", world, "Statistics by what was read, other training", "method, read",
                  tuple(map(named, every)), rows, ("value",))  # fmt: skip
    return tables(filled(block, (f"In brackets p, where the method has one. {SIGNED}",)))


def _answer(runs: Sequence[Run], world: str, sign: int = 1) -> Cell:
    if not runs or (value := runs[0].statistics.value) is None:
        return Cell((dash(world),))
    run, p = runs[0], runs[0].statistics.p_value
    wrong = (cleared(run) and bool(dose_of(run))) or (found(run) and not dose_of(run))
    text = formats.signed(sign * value) + ("" if p is None else f" ({formats.p_value(p)})")
    mark = FALSE if wrong else INVALID if invalid(run) else ""
    return Cell((Number(text, sign * value, world, (run.anchor,), mark=mark),))
