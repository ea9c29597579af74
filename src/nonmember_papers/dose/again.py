"""What becomes of the dose study's audits with other features, and on fewer documents. No gate is asked."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from matplotlib.figure import Figure as Canvas

from nonmember.reports.core.documents import read_values
from nonmember.reports.core.grid import Block, TableCell
from nonmember.reports.core.report import Filled, figures, tables
from nonmember.reports.core.worlds import Scope
from nonmember.reports.planted.audits import (
    MIXED,
    QUANTITIES,
    dose_of,
    hits_cell,
    is_reader,
    is_unread,
    median_cell,
    near,
    of_own_base,
    percent,
    reads_related,
)
from nonmember.reports.planted.rereading import (
    RereadAudit,
    measured,
    measured_on,
    panel_between,
    panel_shape,
    pooled,
    read_again,
)
from nonmember.reports.render.blocks import cross_table
from nonmember.reports.render.figures import draw_shares, figure_of, legend_below, log_axis, share_axis, shares_of
from nonmember.results.load import Run

SIZES = (50, 100, 200, 500)
SETS = {"reported": "sets of 100, reported half", "large": "sets of 500"}
ASIDE = "No gate is asked here, so that rates may differ a little from those of the audits."
Answer = Callable[[Sequence[RereadAudit], str], TableCell]  # by audits and world


def _rate(is_counted: Callable[[Run], bool], decides: Callable[[RereadAudit], bool], is_false: bool = False) -> Answer:
    def cell(again: Sequence[RereadAudit], world: str) -> TableCell:
        counted = [item for item in again if is_counted(item.run)]
        return hits_cell([item.run for item in counted], list(map(decides, counted)), world, is_false)

    return cell


RATES = {
    "power": _rate(is_unread, lambda item: item.cleared),
    "false clearance": _rate(is_reader, lambda item: item.cleared, is_false=True),
    "false membership, with related reading": _rate(
        lambda run: is_unread(run) and reads_related(run), lambda item: item.found, is_false=True
    ),
    "within a factor of 1.5": _rate(is_reader, lambda item: near(item.reading.estimate, dose_of(item.run) or 0)),
}


# ----------------------------------------------------------------------------------------------- features


def ablation(scope: Scope, halves: Mapping[str, str]) -> Filled:
    """Each feature alone, all of them, and all but one."""
    return tables(*(_ablation(scope, key, halves[key]) for key in ("reported", "chosen")))


def _ablation(scope: Scope, key: str, half: str) -> Block | None:
    known = [(run, found) for run in of_own_base(scope, key) if (found := measured(run)) is not None]
    if not known:
        return None
    names = tuple(name for name in known[0][1].target if all(name in item.target for _, item in known))
    shapes = pooled([run for run, _ in known], names)

    def read(panel: Sequence[str]) -> list[RereadAudit]:
        again = (read_again(run, found, panel, shapes.shape(panel, run.domain)) for run, found in known)
        return [item for item in again if item is not None]

    panels = {f"all {len(names)}": names} | {f"{name} alone": (name,) for name in names}
    panels |= left_out(names) if key == "reported" else _of_reported(scope, names)
    notes = (
        "The shape of the errors is pooled from the controls of all other libraries of this half, never from those of "
        f"the library that is judged. {ASIDE}",
    )
    rows = {name: read(panel) for name, panel in panels.items()}
    return cross_table(
        f"ablation-{key}",
        scope.world.name,
        f"By feature: {half}",
        "features",
        rows,
        RATES,
        QUANTITIES,
        notes,
        lambda again, answer: answer(again, scope.world.name),
    )


def left_out(names: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """All but one; of two that would be the other alone."""
    few = len(names) <= 2
    return {} if few else {f"all but {name}": tuple(item for item in names if item != name) for name in names}


def _of_reported(scope: Scope, names: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """The features that audits of the reported half use, where these are some of those."""
    found = (measured(run) for run in of_own_base(scope, "reported"))
    used = next((tuple(item.target) for item in found if item is not None), ())
    return {f"the {len(used)} of the reported half": used} if used and set(used) < set(names) else {}


# -------------------------------------------------------------------------------------------------- sizes


def sizes(scope: Scope) -> Filled:
    """Power and the smallest cleared dose by the number of documents."""
    again: dict[str, dict[int, list[RereadAudit]]] = {}
    read: dict[str, str] = {}
    why_not: Counter[str] = Counter()
    world = scope.world
    for key, name in SETS.items():
        for run in of_own_base(scope, key):
            for number, item in _on_fewer(run, read, why_not).items():
                again.setdefault(name, {}).setdefault(number, []).append(item)
    left = tuple(f"{world.title}: {number} results left out: {why}." for why, number in why_not.items())
    again = {name: dict(sorted(by_size.items())) for name, by_size in again.items()}
    rows = {
        f"{number} documents, {name}": found for name, by_size in again.items() for number, found in by_size.items()
    }
    columns: dict[str, Answer] = {
        "median cleared dose, nothing read": _median_cleared,
        **{name: RATES[name] for name in ("power", "false clearance", "within a factor of 1.5")},
    }
    notes = (
        "The first documents in the order of the SHA-256 of their ids, scored as they were; the third text is whole. "
        f"{ASIDE}",
    )
    block = cross_table(
        "size",
        world.name,
        "By number of documents",
        "documents",
        rows,
        columns,
        MIXED,
        notes,
        lambda audits, answer: answer(audits, world.name),
    )
    if block is None:
        return figures(notes=left)
    powers = [replace(row, cells=row.cells[1:2]) for row in block.rows]

    def paint(canvas: Canvas) -> None:
        axis, lines = canvas.subplots(), iter(powers)
        for index, (name, by_size) in enumerate(again.items()):
            points = [point for number in by_size for point in shares_of(next(lines), [number])]
            if points:
                draw_shares(axis, name, points, index)
        share_axis(axis)
        axis.set(xlabel="documents", ylabel="share of unread sets cleared")
        log_axis(axis, SIZES, list(map(str, SIZES)))
        axis.set_xlim(40, 600)
        legend_below(canvas, axis)

    text = "; ".join(f"{row.name} {percent(share)}" for row in powers for _, share, *_ in shares_of(row, [0]))
    alt = (
        f"Share of unread sets that are cleared of one reading, with 95% intervals, by the number of documents: {text}."
    )
    drawn = figure_of("size", world, "Power by number of documents", alt, block, (5.2, 3.2), paint, read)
    return figures(drawn, notes=left)


def _median_cleared(again: Sequence[RereadAudit], world: str) -> TableCell:
    unread = [item for item in again if is_unread(item.run)]
    return median_cell([item.cleared_dose for item in unread], [item.run for item in unread], world)


def _on_fewer(run: Run, read: dict[str, str], why_not: Counter[str]) -> dict[int, RereadAudit]:
    """By number of documents. read: gets the file and its SHA-256.   why_not: is told where there is none."""
    try:
        values = read_values(run)
    except ValueError as error:
        why_not[str(error)] += 1
        return {}
    fewer = {number: measured_on(run, values, number) for number in SIZES}
    again = {
        number: read_again(run, of, list(of.target), panel_shape(run), panel_between(run))
        for number, of in fewer.items()
        if of is not None
    }
    found = {number: item for number, item in again.items() if item is not None}
    if found:
        read[values.path] = values.sha256
    else:
        why_not["their features cannot be made again from the scores beside them"] += 1
    return found
