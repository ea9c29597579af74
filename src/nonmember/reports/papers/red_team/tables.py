"""Ways to be fooled, for one world: what methods made of attacks, the numbers behind it, and which gates stopped it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from nonmember.reports.core import formats
from nonmember.reports.core.grid import FALSE, INVALID, MISSED, Block, Cell, Number, Row, dash
from nonmember.reports.core.numbers import P_VALUE, STATISTIC, Value, detail, number
from nonmember.reports.core.report import Filled, tables
from nonmember.reports.core.worlds import Scope, select
from nonmember.reports.render.blocks import filled, say_missing
from nonmember.results.load import Run
from nonmember.results.result import AuditResult

FOOLED, REFUSED, RIGHT, NO_POWER = "fooled", "refused", "right", "no power"
OUTCOMES = (FOOLED, REFUSED, NO_POWER, RIGHT)  # worst first
MARK_OF = {FOOLED: FALSE, REFUSED: INVALID, NO_POWER: MISSED}
SWEEPS = ("attacks", "paraphrases")
MARGIN = detail("margin")
READ = {"member": "read", "non_member": "not read"}

Cells = Callable[[Sequence[Run]], Cell]


# ----------------------------------------------------------------------------------------- of one result


def says(result: AuditResult) -> str:
    """The verdict; of a baseline that only scores, what its p-value would say if it were believed."""
    if result.verdict.decision != "score_only":
        return result.verdict.decision
    significant = result.statistics.p_value is not None and result.statistics.p_value < result.question.alpha
    return "evidence_of_non_membership" if significant else "inconclusive"


def outcome(result: AuditResult) -> str:
    """Against the truth: a wrong claim, none because a gate failed, none for lack of evidence, or as it should be."""
    return REFUSED if result.verdict.decision == "invalid" else _of_claim(says(result), result.question.truth)


def without_gates(result: AuditResult) -> str:
    """What the numbers of a refused clearance would have said."""
    delta, margin, p = STATISTIC(result), MARGIN(result), P_VALUE(result)
    if delta is None or margin is None or p is None:
        return ""
    clears = delta > margin and p < result.question.alpha
    return _of_claim("evidence_of_non_membership" if clears else "inconclusive", result.question.truth)


def _of_claim(claim: str, truth: str | None) -> str:
    """Silence about a set that was read is right: the method convicts nobody."""
    if truth == "member":
        return FOOLED if claim == "evidence_of_non_membership" else RIGHT
    if claim == "inconclusive":
        return NO_POWER
    return RIGHT if claim == "evidence_of_non_membership" else FOOLED


def failed_gates(result: AuditResult) -> list[str]:
    """The gates that failed, and the shams that passed them all."""
    gates, shams = result.statistics.details.get("gates"), result.statistics.details.get("shams")
    failed = [name for name, gate in _mapping(gates).items() if not _mapping(gate).get("passed", True)]
    return failed + [f"{name} passed" for name, sham in _mapping(shams).items() if not _mapping(sham).get("refused")]


def _mapping(found: object) -> Mapping[str, Any]:
    return found if isinstance(found, Mapping) else {}


# ---------------------------------------------------------------------------------------------- of a world


@dataclass(frozen=True)
class Column:
    """One method on targets of one truth."""

    method: str
    truth: str
    name: str


def attacks(scope: Scope) -> dict[str, list[Run]]:
    """Printed name of an attack -> its results, in the order of the report, those unknown to it at the end."""
    runs = [run for key in SWEEPS for run in scope.of(key)]
    known = scope.names["attacks"]
    found = dict.fromkeys([*known, *sorted({str(run.get("attack")) for run in runs} - set(known))])
    named = {known.get(label, label): select(runs, attack=label) for label in found}
    return {name: here for name, here in named.items() if here}


def columns(scope: Scope, methods: Sequence[str] | None = None) -> list[Column]:
    names = scope.names["methods"]
    return [
        Column(method, truth, f"{names[method]}, {read}")
        for method in (names if methods is None else methods)
        for truth, read in READ.items()
    ]


def of_column(runs: Sequence[Run], column: Column) -> list[Run]:
    return select(runs, method=column.method, truth=column.truth)


def verdicts(scope: Scope) -> Block | None:
    """A row per attack, a column per method and truth: the outcome in a word."""
    wanted, world = columns(scope), scope.world
    rows = tuple(
        Row(name, tuple(word_cell(of_column(runs, column), scope) for column in wanted))
        for name, runs in attacks(scope).items()
    )
    bare = Block(f"verdicts-{formats.slug(world.name)}", world.name, f"Outcome by attack. {world.title}", "attack",
                 tuple(one.name for one in wanted), rows, ("share fooled",))  # fmt: skip
    return filled(bare, [SETS, say_missing(bare)])


SETS = "Where sets differ, each outcome with the number of sets."


def word_cell(runs: Sequence[Run], scope: Scope) -> Cell:
    """One word where all sets agree, else each with its number."""
    if not runs:
        return Cell((dash(scope.world.name),))
    found = Counter(outcome(run.result) for run in runs)
    words = [f"{word} {found[word]}" if len(found) > 1 else word for word in OUTCOMES if found[word]]
    note = "; ".join(f"{run.get('label')}: {outcome(run.result)}" for run in runs)
    share = found[FOOLED] / len(runs)
    anchors = tuple(run.anchor for run in runs)
    return Cell((Number(", ".join(words), share, scope.world.name, anchors, note=note),))


def numbers(scope: Scope) -> Filled:
    """Delta and p of PRISM; Delta, margin and p of clearance. A row per attack and set."""
    world = scope.world.name

    def cell(value: Value, form: Callable[[float | None], str]) -> Cells:
        return lambda here: Cell((number(here, world, value, form),))

    def p_cell(here: Sequence[Run]) -> Cell:
        made = number(here, world, P_VALUE, formats.p_value)
        worst = min((outcome(run.result) for run in here), key=OUTCOMES.index, default=RIGHT)
        return Cell((replace(made, mark="" if made.missing else MARK_OF.get(worst, "")),))

    prism, clearance = (scope.names["methods"][method] for method in ("prism", "clearance"))
    shown: dict[str, tuple[str, Cells]] = {
        f"{prism}: Delta": ("prism", cell(STATISTIC, formats.signed)),
        f"{prism}: p": ("prism", p_cell),
        f"{clearance}: Delta": ("clearance", cell(STATISTIC, formats.signed)),
        "margin": ("clearance", cell(MARGIN, formats.signed)),
        f"{clearance}: p": ("clearance", p_cell),
    }
    blocks = []
    for truth, read in READ.items():
        rows = tuple(
            Row(name, tuple(cells(select(runs, method=method, truth=truth)) for method, cells in shown.values()))
            for name, runs in _by_set(scope).items()
        )
        key = f"numbers-{formats.slug(read)}-{formats.slug(world)}"
        title = f"Targets that have {read} the set. {scope.world.title}"
        bare = Block(key, world, title, "attack, set", tuple(shown), rows, ("number",))
        blocks.append(filled(bare, [say_missing(bare)]))
    return tables(*blocks)


def gates(scope: Scope) -> Filled:
    """Which gates stopped an audit, and what its numbers would have said. A row per attack and set."""
    wanted = columns(scope, ("clearance",))
    rows = tuple(
        Row(name, tuple(_gates_cell(of_column(runs, column), scope) for column in wanted))
        for name, runs in _by_set(scope).items()
    )
    refused = tuple(row for row in rows if any(not cell.missing for cell in row.cells))
    bare = Block(f"gates-{formats.slug(scope.world.name)}", scope.world.name,
                 f"Gates that failed, and the outcome without gates. {scope.world.title}", "attack, set",
                 tuple(one.name for one in wanted), refused, ("number of failed gates",))  # fmt: skip
    return tables(filled(bare, [REFUSALS]), nothing="no audit was refused.")


REFUSALS = "A dash: not refused. Rows without a refusal are left out."


def _gates_cell(runs: Sequence[Run], scope: Scope) -> Cell:
    refused = [run for run in runs if run.verdict.decision == "invalid"]
    if not refused:
        return Cell((dash(scope.world.name),))
    failed = list(dict.fromkeys(gate for run in refused for gate in failed_gates(run.result)))
    without = formats.listed(list(dict.fromkeys(filter(None, (without_gates(run.result) for run in refused)))))
    text = f"{', '.join(failed) or 'too few documents'}; else {without}" if without else ", ".join(failed)
    return Cell((Number(text, float(len(failed)), scope.world.name, tuple(run.anchor for run in refused)),))


def _by_set(scope: Scope) -> dict[str, list[Run]]:
    """Attack and set -> its results."""
    return {
        f"{name}, {label}": select(runs, label=label)
        for name, runs in attacks(scope).items()
        for label in dict.fromkeys(str(run.get("label")) for run in runs)
    }
