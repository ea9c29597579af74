"""The dose meter beside other methods: tables, and power by dose as a figure."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas

from nonmember.reports.core import formats
from nonmember.reports.core.grid import FALSE, Block, Cell, Figure, Number, Row, dash
from nonmember.reports.core.report import Filled
from nonmember.reports.core.worlds import Scope
from nonmember.reports.papers.dose.cells import (
    CONFIDENCE,
    FACTOR,
    QUANTITIES,
    RATE,
    cleared,
    count_cell,
    found,
    named,
    percent,
    rate,
    rate_cell,
    readers,
    share_cell,
    with_dose,
)
from nonmember.reports.papers.dose.rivals import AGAINST, ERROR, METER, METHODS, SCORES, Comparison, Rival, comparison
from nonmember.reports.papers.dose.tables import CLUSTERED, MIXED, is_near
from nonmember.reports.render.blocks import filled
from nonmember.reports.render.figures import MARKERS, QUIET, colour, figure_of, legend_below, panels
from nonmember.results.load import Run
from nonmember.stats.proportions import exact_interval

FOUND, CLEARED = "found", "cleared"
PANELS = {FOUND: f"found at {ERROR:.0%} false positives", CLEARED: f"cleared at {ERROR:.0%} false clearances"}
# Whose verdict is counted: row -> method, decision, and whether the decision is false where something was read.
VERDICTS: Mapping[str, tuple[str, Callable[[Run], bool], bool]] = {
    f"{METER}: not read": ("dose", cleared, True),
    "PRISM: not read": ("prism", cleared, True),
    f"{METER}: read": ("dose", found, False),
    "LLM-DI: read": ("llm_di", found, False),
}
# Calibrated clearance on other sets: cleared of how many, by readings. docs/results/calibration/report.md, "Cleared, by
# what was read", the reported half.
CLEARANCE: Mapping[str, Mapping[int, tuple[int, int]]] = {
    "clearance of 8x": {0: (63, 74), 1: (5, 6), 2: (5, 6), 4: (6, 13), 8: (0, 14), 12: (0, 14)},
    "clearance of 8x, own base": {0: (17, 20), 4: (4, 6), 8: (1, 7), 12: (0, 7)},
}
CLEARANCE_WORLD = "study"


def rivals(scope: Scope) -> Filled:
    """What each method needs and takes, its verdicts, and what its statistic tells apart at equal errors."""
    compared = comparison(scope)
    if compared is None:
        return Filled("no results for this table yet.")
    world, common = scope.world.name, compared.common
    same = dataclasses.replace(compared, rivals=tuple(one.on(common) for one in compared.rivals)) if common else None
    block = _told_apart(compared, world)
    blocks = (
        _overview(compared, world),
        _told_apart(same, world, common) if same is not None else None,
        _verdicts(compared, world),
        _clearance(),
    )
    shown = () if block is None else (_figure(compared, block, scope),)
    return Filled("", tuple(block for block in blocks if block is not None), shown, compared.notes)


def _overview(compared: Comparison, world: str) -> Block | None:
    columns = ("needs besides target and set", "audits", f"dose within a factor of {FACTOR:g}", "seconds an audit")

    def cells(rival: Rival) -> tuple[Cell, ...]:
        anchors = tuple(run.anchor for run in rival.runs)
        seconds = rival.seconds
        return (
            Cell((Number(rival.needs, None, world, anchors),)),
            count_cell(rival.runs, world),
            rate_cell(rate(readers(rival.runs), is_near), world) if rival.name == METER else Cell((dash(world),)),
            Cell((dash(world) if seconds is None else Number(formats.decimals(seconds, 1), seconds, world, anchors),)),
        )

    notes = (
        "Only the dose meter says how often a set was read. The factor: of sets read once or more.",
        "Seconds: median, wall clock on one core that other work may share, with whatever was found in the store. So "
        "targets are not in it, nor are the dose meter's fifteen controls, one training of a minute each for all sets "
        "together. The paired t finds PRISM's distilled reference; alone it takes as long as PRISM. Scores need a "
        "forward pass over the documents and no audit: they are those that the dose meter's audits keep.",
        "FSD and LLM-DI were run on sets of the libraries of which enough text is left that no model has read.",
    )
    rows = tuple(Row(rival.name, cells(rival)) for rival in compared.rivals)
    return filled(Block("rivals", world, "Methods side by side", "method", columns, rows, MIXED), notes)


def _told_apart(compared: Comparison, world: str, sets: frozenset[str] = frozenset()) -> Block | None:
    """sets: those that it is about, where not all."""

    def cell(rival: Rival, measure: str, dose: int) -> Cell:
        share = rival.found(dose) if measure == FOUND else rival.cleared(dose)
        if share is None:
            return Cell(tuple(dash(world) for _ in QUANTITIES), (), RATE)
        return share_cell(share, [one.run for one in rival.read(dose if measure == FOUND else 0)], world)

    notes = (
        "Found, at 5% false positives: of sets that were read so often, how many have a statistic above that of all "
        "but 5% of the unread ones. Cleared, at 5% false clearances: of unread sets, how many have one below that of "
        "all but 5% of the sets that were read so often.",
        "The threshold is one for all sets, found on these very audits; intervals find it anew in each resample. The "
        "dose meter's statistic is its estimate, which unlike the others is made of what controls show on the same "
        "set; its gates are not asked. Ties are not told apart.",
        CLUSTERED,
    )
    libraries = sorted({one.rpartition("-")[0] for one in sets})
    title = "Told apart at equal errors" + (f": {formats.listed(libraries)}" if sets else "")
    rows = tuple(
        Row(f"{measure}: {rival.name}", tuple(cell(rival, measure, dose) for dose in compared.doses))
        for measure in (FOUND, CLEARED)
        for rival in compared.rivals
    )
    key, columns = "rivals-power" + ("-common" if sets else ""), tuple(named(dose) for dose in compared.doses)
    return filled(Block(key, world, title, "by statistic, sets read", columns, rows, QUANTITIES), notes)


def _verdicts(compared: Comparison, world: str) -> Block | None:
    every, runs = [0, *compared.doses], {rival.method: rival.runs for rival in compared.rivals if rival.method}

    def cell(method: str, decides: Callable[[Run], bool], false_if_read: bool, dose: int) -> Cell:
        mark = FALSE if (dose > 0) is false_if_read else ""
        return rate_cell(rate(with_dose(runs[method], dose), decides), world, mark)

    rows = tuple(
        Row(name, tuple(cell(*verdict, dose) for dose in every))
        for name, verdict in VERDICTS.items()
        if verdict[0] in runs
    )
    levels = sorted({run.question.alpha for run in runs.get("llm_di", [])})
    notes = (
        "By each method's own rule. PRISM without gates, as in its paper; the dose meter's claim is of one reading or "
        "more. The paired t, KDS and FSD have no verdict."
        + (f" LLM-DI at its paper's level of {formats.listed([f'{level:g}' for level in levels])}." if levels else ""),
        CLUSTERED,
    )
    columns = tuple(map(named, every))
    return filled(Block("rivals-verdicts", world, "Verdicts by what was read", "verdict", columns, rows, QUANTITIES),
                  notes)  # fmt: skip


def _clearance() -> Block:
    """As its study found it."""
    doses = sorted({dose for row in CLEARANCE.values() for dose in row})

    def cell(counted: tuple[int, int] | None) -> Cell:
        if counted is None:
            return Cell(tuple(dash(CLEARANCE_WORLD) for _ in QUANTITIES), (), RATE)
        values = (*map(float, counted), *exact_interval(*counted, 1 - CONFIDENCE))
        texts = (*map(str, counted), *map(percent, values[2:]))
        return Cell(tuple(Number(text, value, CLEARANCE_WORLD) for text, value in zip(texts, values, strict=True)), (),
                    RATE)  # fmt: skip

    rows = tuple(Row(name, tuple(cell(row.get(dose)) for dose in doses)) for name, row in CLEARANCE.items())
    notes = (
        "Not the same audits: other sets, other targets. From docs/results/calibration/report.md, the reported half: "
        "of models that had read the set so often, how many were cleared of eight readings or more. Below eight "
        "readings no clearance is false. An audit trains six controls and fourteen distilled references. In brackets "
        "exact 95% intervals.",
    )
    return Block("rivals-clearance", CLEARANCE_WORLD, "Calibrated clearance, from its own study", "cleared",
                 tuple(map(named, doses)), rows, QUANTITIES, notes=notes)  # fmt: skip


# ------------------------------------------------------------------------------------------------- figure


def _figure(compared: Comparison, block: Block, scope: Scope) -> Figure:
    """A line per method: what is found of sets read so often, and what is cleared of so many readings."""
    shown = [place for place, rival in enumerate(compared.rivals) if rival.method or rival.name in _shown_scores()]

    def paint(canvas: Canvas) -> None:
        axes = list(panels(canvas, list(PANELS.values())))
        for panel, axis in enumerate(axes):
            for place in shown:
                row = block.rows[panel * len(compared.rivals) + place]
                _line(axis, compared.doses, row, compared.rivals[place].name, shown.index(place))
            axis.axhline(ERROR, color=QUIET, linewidth=0.8, linestyle=(0, (4, 3)))
            axis.set(xscale="log", ylim=(-0.03, 1.03), xticks=compared.doses)
            axis.set_xticks([], minor=True)
            axis.set_xticklabels([named(dose) for dose in compared.doses])
        axes[0].set(ylabel="share of audits", xlabel="how often these sets were read")
        axes[1].set(xlabel="what these unread sets are cleared of")
        legend_below(canvas, axes[0], columns=3)

    alt = (
        f"Two panels over {formats.listed([named(dose) for dose in compared.doses])}, on a logarithmic scale, with a "
        "line per method. Left: share of sets read so often whose statistic lies above that of all but 5% of the "
        "unread ones. Right: share of unread sets whose statistic lies below that of all but 5% of those read so often."
    )
    made = figure_of("rivals", scope.world, "Told apart at equal errors", alt, block, (6.8, 4.1), paint)
    return dataclasses.replace(made, read=compared.read)


def _shown_scores() -> set[str]:
    """Of the scores, those with the least and with the most beside them."""
    least, *_, most = AGAINST
    return {score + against for score in SCORES for against in (least, most)}


def _line(axis: Axes, doses: Sequence[int], row: Row, name: str, place: int) -> None:
    """Scores are thin, in one colour each, and dotted where nothing stands beside them; the meter lies on top."""
    pairs = [(dose, cell.ours[0].value, cell.ours[1].value) for dose, cell in zip(doses, row.cells, strict=True)]
    points = [(dose, num / of) for dose, num, of in pairs if num is not None and of]
    score = next((score for score in SCORES if name.startswith(score)), None)
    style: dict[str, Any] = {"color": colour(place), "marker": MARKERS[place % len(MARKERS)]}
    if score is not None:
        number = len(METHODS) + 1 + list(SCORES).index(score)
        style = {"color": colour(number), "marker": MARKERS[number], "linewidth": 1, "markersize": 3.5,
                 "linestyle": ":" if name == score else "-"}  # fmt: skip
    elif name == METER:
        style |= {"linewidth": 2.4, "zorder": 3}
    axis.plot([dose for dose, _ in points], [share for _, share in points], label=name, **style)
