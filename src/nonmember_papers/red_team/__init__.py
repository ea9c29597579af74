"""What of the red team's report is computed: what methods made of attacks, in a word, and which gates stopped it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar

from matplotlib.figure import Figure as Canvas
from matplotlib.patches import Rectangle

from nonmember.reports.core import formats
from nonmember.reports.core.grid import FALSE, INVALID, MISSED, Block, Figure, Numeral, TableCell, dash
from nonmember.reports.core.numbers import P_VALUE, STATISTIC, counted, detail
from nonmember.reports.core.report import Filled, Glance, figures, tables
from nonmember.reports.core.worlds import Scope, select
from nonmember.reports.declared.cells import CellTemplate
from nonmember.reports.declared.report import DeclaredReport
from nonmember.reports.render.blocks import block_of
from nonmember.reports.render.figures import COLOURS, QUIET, figure_of
from nonmember.results.load import Run
from nonmember.results.result import AuditResult

FOOLED, REFUSED, RIGHT, NO_POWER = "fooled", "refused", "right", "no power"
BLUE, VERMILION, GREEN, *_ = COLOURS
COLOUR_OF = {FOOLED: VERMILION, REFUSED: BLUE, NO_POWER: QUIET, RIGHT: GREEN}  # worst first
MARK_OF = {FOOLED: FALSE, REFUSED: INVALID, NO_POWER: MISSED, RIGHT: ""}
MARGIN = detail("margin")
READ = {"member": "read", "non_member": "not read"}
NUMBERS = {  # method and what stands in a cell, by column
    "PRISM: Delta": ("prism", "{value:+.3}"),
    "PRISM: p": ("prism", "{p_value:p}"),
    "Clearance: Delta": ("clearance", "{value:+.3}"),
    "margin": ("clearance", "{statistics.details.margin:+.3}"),
    "Clearance: p": ("clearance", "{p_value:p}"),
}

# ----------------------------------------------------------------------------------------- of one result


def outcome(result: AuditResult) -> str:
    """Against the truth: a wrong claim, none because a gate failed, none for lack of evidence, or as it should be.

    Of a baseline that only scores, what its p-value would say if it were believed.
    """
    decision, p = result.verdict.decision, P_VALUE(result)
    if decision == "invalid":
        return REFUSED
    if decision == "score_only":
        decision = _claim(p is not None and p < result.question.alpha)
    return _of_claim(decision, result.question.truth)


def without_gates(result: AuditResult) -> str:
    """What the numbers of a refused clearance would have said."""
    delta, margin, p = STATISTIC(result), MARGIN(result), P_VALUE(result)
    if delta is None or margin is None or p is None:
        return ""
    return _of_claim(_claim(delta > margin and p < result.question.alpha), result.question.truth)


def _claim(clears: bool) -> str:
    return "evidence_of_non_membership" if clears else "inconclusive"


def _of_claim(claim: str, truth: str | None) -> str:
    """Silence about a set that was read is right: the method convicts nobody."""
    if truth == "member":
        return FOOLED if claim == "evidence_of_non_membership" else RIGHT
    if claim == "inconclusive":
        return NO_POWER
    return RIGHT if claim == "evidence_of_non_membership" else FOOLED


def failed_gates(result: AuditResult) -> list[str]:
    """The gates that failed, and the shams that passed them all."""
    gates, shams = (_mapping(result.statistics.details.get(name)) for name in ("gates", "shams"))
    failed = [name for name, gate in gates.items() if not _mapping(gate).get("passed", True)]
    return failed + [f"{name} passed" for name, sham in shams.items() if not _mapping(sham).get("refused")]


def _mapping(found: object) -> Mapping[str, Any]:
    return found if isinstance(found, Mapping) else {}


# ---------------------------------------------------------------------------------------------- of a world


def attacks(scope: Scope) -> dict[str, list[Run]]:
    """Printed name of an attack -> its results, in the order of the report, those unknown to it at the end."""
    runs, known = [run for key in scope.sweeps for run in scope.of(key)], scope.names["attacks"]
    labels = dict.fromkeys([*known, *sorted({str(run.get("attack")) for run in runs})])
    return {known.get(label, label): of_attack for label in labels if (of_attack := select(runs, attack=label))}


def by_set(scope: Scope) -> dict[str, list[Run]]:
    """Attack and set -> its results."""
    return {
        f"{name}, {label}": select(runs, label=label)
        for name, runs in attacks(scope).items()
        for label in dict.fromkeys(str(run.get("label")) for run in runs)
    }


def grid(
    scope: Scope,
    key: str,
    title: str,
    rows: Mapping[str, Sequence[Run]],
    methods: Sequence[str],
    cell: Callable[[Sequence[Run], str], TableCell],
    numbers: str,
    note: str,
) -> Block | None:
    """A row per attack, a column per method and truth; rows without any cell are left out."""
    columns = [(method, truth) for method in methods for truth in READ]
    names = [f"{scope.names['methods'][method]}, {READ[truth]}" for method, truth in columns]
    cells = {
        name: [cell(select(runs, method=method, truth=truth), scope.world.name) for method, truth in columns]
        for name, runs in rows.items()
    }
    some = {name: row for name, row in cells.items() if not all(item.missing for item in row)}
    corner = "attack" if key == "verdicts" else "attack, set"
    return block_of(scope, key, title, corner, names, some, (numbers,), [note], dash_is_missing=key != "gates")


def word_cell(runs: Sequence[Run], world: str) -> TableCell:
    """One word where all sets agree, else each with its number."""
    if not runs:
        return TableCell((dash(world),))
    found = Counter(outcome(run.result) for run in runs)
    texts = [f"{kind} {found[kind]}" if len(found) > 1 else kind for kind in COLOUR_OF if found[kind]]
    note = "; ".join(f"{run.get('label')}: {outcome(run.result)}" for run in runs)
    anchors = tuple(run.anchor for run in runs)
    return TableCell((Numeral(", ".join(texts), found[FOOLED] / len(runs), world, anchors, note=note),))


def gates_cell(runs: Sequence[Run], world: str) -> TableCell:
    """Which gates stopped an audit, and what its numbers would have said."""
    refused = [run for run in runs if run.verdict.decision == "invalid"]
    if not refused:
        return TableCell((dash(world),))
    failed = list(dict.fromkeys(gate for run in refused for gate in failed_gates(run.result)))
    without = formats.listed(list(dict.fromkeys(filter(None, (without_gates(run.result) for run in refused)))))
    text = f"{', '.join(failed) or 'too few documents'}; else {without}" if without else ", ".join(failed)
    return TableCell((Numeral(text, float(len(failed)), world, tuple(run.anchor for run in refused)),))


def gates(scope: Scope) -> Filled:
    title = "Gates that failed, and the outcome without gates"
    note = "A dash: not refused. Rows without a refusal are left out."
    block = grid(scope, "gates", title, by_set(scope), ["clearance"], gates_cell, "number of failed gates", note)
    return tables(block, nothing="no audit was refused.")


def numbers(scope: Scope) -> Filled:
    """Delta and p of PRISM; Delta, margin and p of clearance. A row per attack and set."""

    def cell(runs: Sequence[Run], template: str) -> TableCell:
        made = CellTemplate(template).cell(runs, scope)
        kinds = {outcome(run.result) for run in runs} if template == "{p_value:p}" and not made.missing else {RIGHT}
        mark = MARK_OF[next(kind for kind in COLOUR_OF if kind in kinds)]
        return replace(made, ours=tuple(replace(item, mark=mark) for item in made.ours))

    return tables(
        *(
            block_of(
                scope,
                f"numbers-{formats.slug(read)}",
                f"Targets that have {read} the set",
                "attack, set",
                NUMBERS,
                {
                    name: [
                        cell(select(runs, method=method, truth=truth), template)
                        for method, template in NUMBERS.values()
                    ]
                    for name, runs in by_set(scope).items()
                },
                ("number",),
            )
            for truth, read in READ.items()
        )
    )


def verdicts(scope: Scope) -> Figure | None:
    """The outcome of every attack in a word, and in the colour of the worst."""
    methods, note = list(scope.names["methods"]), "Where sets differ, each outcome with the number of sets."
    block = grid(scope, "verdicts", "Outcome by attack", attacks(scope), methods, word_cell, "share fooled", note)
    if block is None:
        return None
    num_rows, num_columns = len(block.rows), len(block.columns)

    def paint(canvas: Canvas) -> None:
        axis = canvas.subplots()
        for y, row in enumerate(block.rows):
            for x, cell in enumerate(row.cells):
                text = cell.ours[0].text
                colour = next((colour for kind, colour in COLOUR_OF.items() if kind in text), None)
                axis.add_patch(
                    Rectangle((x, y), 1, 1, facecolor=colour or "none", alpha=0.25 if colour else 1, edgecolor="none")
                )
                axis.text(x + 0.5, y + 0.5, text, ha="center", va="center", fontsize=7.5)
        axis.set(xlim=(0, num_columns), ylim=(num_rows, 0))
        axis.set_xticks([x + 0.5 for x in range(num_columns)], [name.replace(", ", "\n") for name in block.columns])
        axis.set_yticks([y + 0.5 for y in range(num_rows)], [row.name for row in block.rows])
        axis.tick_params(length=0, top=False, labeltop=True, bottom=False, labelbottom=False)
        for line in range(1, num_rows):
            axis.axhline(line, color=QUIET, linewidth=0.3)
        for line in range(1, num_columns):
            axis.axvline(line, color=QUIET, linewidth=0.8 if line % 2 == 0 else 0.3)
        axis.spines[["left", "bottom"]].set_visible(False)

    alt = (
        "A grid: a row per attack, a column per method for targets that have read the set and for targets that have "
        "not; in each cell whether the method was fooled, refused, had no power or was right."
    )
    size = (2.4 + 1.05 * num_columns, 0.7 + 0.32 * num_rows)
    return figure_of("grid", scope.world, "Attack by method", alt, block, size, paint)


COUNTED = {
    "read: PRISM fooled": ("prism", "member", FOOLED),
    "clearance fooled": ("clearance", "member", FOOLED),
    "clearance refused": ("clearance", "member", REFUSED),
    "not read: PRISM clears": ("prism", "non_member", RIGHT),
    "clearance clears": ("clearance", "non_member", RIGHT),
}


def cells_of_glance(scope: Scope) -> Iterator[TableCell]:
    attacked = [run for runs in attacks(scope).values() for run in runs if run.get("attack") != "none"]
    for method, truth, kind in COUNTED.values():
        of = select(attacked, method=method, truth=truth)
        yield counted(sum(outcome(run.result) == kind for run in of), len(of), scope.world.name)


class RedTeamReport(DeclaredReport):
    """names: attacks and methods, by their keys in the results."""

    special: ClassVar = {"verdicts": lambda scope: figures(verdicts(scope)), "numbers": numbers, "gates": gates}

    def first_numbers(self) -> Glance:
        return Glance(tuple(COUNTED), cells_of_glance, self.glance_note)
