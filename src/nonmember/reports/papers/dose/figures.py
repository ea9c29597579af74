"""Figures of the dose study: verdicts by what was read, and estimates against the truth."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas

from nonmember.reports.core import formats
from nonmember.reports.core.grid import FALSE, Block, Cell, Figure, Number, Row, dash
from nonmember.reports.core.worlds import Scope
from nonmember.reports.papers.dose.cells import (
    MUCH_RELATED,
    OWN_BASE,
    QUANTITIES,
    cleared,
    dose_of,
    doses,
    estimate_of,
    found,
    invalid,
    named,
    of_own_base,
    rate,
    rate_cell,
    related_of,
    runs_of,
    with_dose,
)
from nonmember.reports.render.blocks import filled
from nonmember.reports.render.figures import (
    MARKERS,
    QUIET,
    colour,
    figure_of,
    legend_below,
    panels,
    size_of_panels,
)
from nonmember.results.load import Run

VERDICTS = {"evidence of non-membership": cleared, "evidence of membership": found}
MIDDLE = "{} ({} to {})"
JITTER = 0.045  # on the scale of log(1 + x)


def power(scope: Scope) -> Figure | None:
    """Share of audits with either verdict, by what was read; a panel for targets of other bases."""
    world = scope.world
    bases = {
        "own base": of_own_base(scope, "reported"),
        "other bases": [run for run in runs_of(scope, "stand_in") if run.get("base") != OWN_BASE],
    }
    bases = {name: runs for name, runs in bases.items() if runs}
    planted = doses([run for runs in bases.values() for run in runs])
    if not planted:
        return None

    def cell(runs: Sequence[Run], verdict: str, dose: int) -> Cell:
        false = verdict == "evidence of membership" if not dose else verdict == "evidence of non-membership"
        return rate_cell(rate(with_dose(runs, dose), VERDICTS[verdict]), world.name, FALSE if false else "")

    rows = tuple(
        Row(f"{verdict}, {name}", tuple(cell(runs, verdict, dose) for dose in planted))
        for name, runs in bases.items()
        for verdict in VERDICTS
    )
    block = filled(Block(f"numbers-power-{formats.slug(world.name)}", world.name, "Verdicts by what was read",
                         "verdict, base", tuple(map(named, planted)), rows, QUANTITIES), [])  # fmt: skip
    assert block is not None

    def paint(canvas: Canvas) -> None:
        for axis, runs in zip(panels(canvas, list(bases)), bases.values(), strict=True):
            for place, (verdict, decides) in enumerate(VERDICTS.items()):
                here = {dose: rate(with_dose(runs, dose), decides) for dose in planted}
                shown = {planted.index(dose): one.share for dose, one in here.items() if one.runs}
                ends = [(one.share - one.interval.low, one.interval.high - one.share) for one in shown.values()]
                axis.errorbar([x + (place - 0.5) * 0.1 for x in shown], [one.share for one in shown.values()],
                              yerr=np.maximum(np.array(ends).T, 0), color=colour(place), label=verdict,
                              marker=MARKERS[place], elinewidth=1)  # fmt: skip
            axis.axhline(0.05, color=QUIET, linewidth=0.8, linestyle=(0, (4, 3)))
            axis.set(ylim=(-0.03, 1.03), xticks=range(len(planted)), xlabel="what the target has read of the set")
            axis.set_xticklabels([named(dose) for dose in planted])
        canvas.axes[0].set_ylabel("share of audits")
        legend_below(canvas, canvas.axes[0])

    alt = (
        "Share of audits with evidence of non-membership and of membership, with 95% intervals, by how often the "
        "target has read the set: nothing at the left, where only the former is right; elsewhere only the latter is. "
        f"Panels: {formats.listed(list(bases))}."
    )
    return figure_of("power", world, "Verdicts by what was read", alt, block, size_of_panels(len(bases)), paint)


KINDS = {
    "sibling set read less often": (False, False),
    f"sibling set read {MUCH_RELATED} times or more": (True, False),
    "invalid": (None, True),
}  # name -> whether much related text was read, and whether a gate refuses; None: either


def readings(scope: Scope) -> Figure | None:
    """Estimated against true readings, a dot per audit."""
    world = scope.world
    points = [(run, dose, value) for run in of_own_base(scope, "reported")
              if (dose := dose_of(run)) is not None and (value := estimate_of(run)) is not None]  # fmt: skip
    if not points:
        return None
    planted = doses([run for run, _, _ in points])
    kinds = {name: [one for one in points if _is_of(one[0], *wanted)] for name, wanted in KINDS.items()}
    kinds = {name: here for name, here in kinds.items() if here}
    rows = tuple(Row(name, tuple(_middle(here, dose, world.name) for dose in planted)) for name, here in kinds.items())
    block = filled(Block(f"numbers-readings-{formats.slug(world.name)}", world.name, "Estimated readings", "audits",
                         tuple(map(named, planted)), rows, ("median", "low", "high")), [])  # fmt: skip
    assert block is not None

    def paint(canvas: Canvas) -> None:
        axis = canvas.subplots()
        for place, (name, here) in enumerate(kinds.items()):
            jitter = np.random.default_rng(place).uniform(-JITTER, JITTER, (2, len(here)))
            axis.plot(np.log1p([dose for _, dose, _ in here]) + jitter[0], np.log1p([value for *_, value in here]),
                      linestyle="", marker=MARKERS[place], markersize=3, alpha=0.5, color=colour(place),
                      label=name)  # fmt: skip
        _scaled(axis, planted)
        legend_below(canvas, axis, columns=2)

    alt = (
        "How often the meter says that the set was read against how often it was read, a dot per audit, both on a "
        "scale of log(1 + x); right estimates lie on the diagonal. Medians, fifth and ninety-fifth percentiles are in "
        "the table."
    )
    return figure_of("readings", world, "Estimated and true readings", alt, block, (5.2, 4.2), paint)


def _is_of(run: Run, related: bool | None, refused: bool) -> bool:
    return invalid(run) is refused and related in (None, related_of(run) >= MUCH_RELATED)


def _middle(here: Sequence[tuple[Run, int, float]], dose: int, world: str) -> Cell:
    """Median, fifth and ninety-fifth percentile."""
    values = [value for _, one, value in here if one == dose]
    if not values:
        return Cell(tuple(dash(world) for _ in range(3)), (), MIDDLE)
    anchors = tuple(run.anchor for run, one, _ in here if one == dose)
    ends = np.quantile(values, (0.5, 0.05, 0.95))
    return Cell(tuple(Number(formats.decimals(float(one), 2), float(one), world, anchors) for one in ends), (), MIDDLE)


def _scaled(axis: Axes, planted: Sequence[int]) -> None:
    """Both axes in readings, evenly in log(1 + x), with the diagonal."""
    most = math.log1p(max(planted)) + 0.1
    axis.plot((0, most), (0, most), color=QUIET, linewidth=0.7, zorder=0)
    places = [math.log1p(dose) for dose in planted]
    axis.set(xticks=places, yticks=places, xlabel="readings", ylabel="estimated readings")
    axis.set_xticklabels([str(dose) for dose in planted])
    axis.set_yticklabels([str(dose) for dose in planted])
