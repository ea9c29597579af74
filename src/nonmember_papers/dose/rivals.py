"""The dose meter beside other methods and single scores: what each needs, its verdicts, and power at equal errors."""

from __future__ import annotations

import math
import statistics
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure as Canvas

from nonmember.records.groups import SUSPECT, THIRD
from nonmember.reports.core import formats
from nonmember.reports.core.documents import DocumentValues, read_values
from nonmember.reports.core.grid import Block, Figure, TableCell, dash
from nonmember.reports.core.published import PublishedTable, published_tables
from nonmember.reports.core.report import Filled, tables
from nonmember.reports.core.worlds import Scope, select
from nonmember.reports.planted.audits import (
    CONFIDENCE,
    FACTOR,
    MIXED,
    QUANTITIES,
    SIGNS,
    AuditEntry,
    AuditGroup,
    cleared,
    dose_of,
    found,
    is_near,
    is_reader,
    model_of,
    named,
    no_rate,
    number_cell,
    of_own_base,
    question_of,
    rate_of,
    read,
    share_cell,
    told_apart,
)
from nonmember.reports.planted.rereading import REFERENCE, TARGET
from nonmember.reports.render.blocks import cross_table
from nonmember.reports.render.figures import (
    MARKERS,
    colour,
    figure_of,
    legend_below,
    log_axis,
    panels,
    share_axis,
    shares_of,
)
from nonmember.results.load import Run
from nonmember.stats.proportions import exact_interval

KEYS = ("rivals", "rivals_heldout")  # of conf/report/dose.yaml
ERROR = 0.05  # false positives, or false clearances, at which all are compared
METER = "dose meter"
METHODS = {  # by method: name, and what it needs besides target and suspect set
    "prism": ("PRISM", "unread reference, distilled"),
    "paired_t": ("paired t", "unread reference, distilled"),
    "kds": ("KDS", "weights to tune"),
    "fsd": ("FSD", "weights to tune, two unread texts of the same kind"),
    "llm_di": ("LLM-DI", "unread text of the same kind"),
}
SCORES = {"loss": "loss", "Min-K%++": "minkpp(1)"}  # printed name -> column of scores.parquet
AGAINST = {  # how a score becomes a statistic -> what that needs
    "": "nothing",
    " less reference": "unread reference",
    " less reference and third text": "unread reference, unread third text of any kind",
}
FOUND, CLEARED = "found", "cleared"
# Whose verdict is counted: row -> method and decision.
VERDICTS: Mapping[str, tuple[str, Callable[[Run], bool]]] = {
    f"{METER}: not read": ("dose", cleared),
    "PRISM: not read": ("prism", cleared),
    f"{METER}: read": ("dose", found),
    "LLM-DI: read": ("llm_di", found),
}


@dataclass(frozen=True)
class Rival:
    """A method, or a score, with its audits."""

    name: str
    needs: str  # besides the target and the suspect set
    entries: tuple[AuditEntry, ...]
    method: str = ""  # as results call it; empty for scores, which need no audit

    @property
    def runs(self) -> list[Run]:
        return [item.run for item in self.entries]

    def cell(self, measure: str, dose: int, world: str) -> TableCell:
        """Found: of sets read so often, how many lie above all but 5% of the unread ones. Cleared: of unread sets, how
        many lie below all but 5% of the sets that were read so often."""
        read, unread = ([item for item in self.entries if item.dose == wanted] for wanted in (dose, 0))
        if measure == CLEARED:
            read, unread = ([replace(item, value=-item.value) for item in entries] for entries in (unread, read))
        share = told_apart(read, unread, ERROR)
        return no_rate(world) if share is None else share_cell(share, [item.run for item in read], world)


# -------------------------------------------------------------------------------------- who is compared


def rivals(scope: Scope) -> Filled:
    """On the audits of the reported half that other methods were run on: same target, same set, each counted once."""
    others = [run for key in KEYS for run in select(scope.runs, sweep=tuple(scope.sweeps[key]))]
    asked = {question_of(run) for run in others if run.question.method in METHODS}
    known = [run for run in of_own_base(scope, "reported") if dose_of(run) is not None]
    meter = {question_of(run): run for run in known if question_of(run) in asked}
    if not meter:
        return tables()
    needs = "planted controls of the base, unread reference, unread third text"
    compared = [Rival(METER, needs, _entries(meter.values(), "dose"), "dose")]
    for method, (name, needs) in METHODS.items():
        runs = {question_of(run): run for run in select(others, method=method) if question_of(run) in meter}
        compared += [Rival(name, needs, entries, method)] if (entries := _entries(runs.values(), method)) else []
    of_scores, read, notes = _scores(list(meter.values()))
    compared = [item for item in (*compared, *of_scores) if item.entries]
    if num_alone := len(asked - set(meter)):
        notes.append(f"{num_alone} pairs of target and set left out, which the dose meter was not asked about.")
    world, every = scope.world.name, _told_apart(compared, scope.world.name)
    blocks = (_overview(compared, world), _on_common_sets(compared, world), _verdicts(compared, world), _clearance())
    drawn = None if every is None else _figure(compared, every, scope, read)
    return tables(*blocks, drawn, notes=notes)


def _doses(compared: Sequence[Rival]) -> list[int]:
    """Planted, but none, ascending."""
    return sorted({item.dose for rival in compared for item in rival.entries if item.dose})


def _entries(runs: Iterable[Run], method: str) -> tuple[AuditEntry, ...]:
    sign = SIGNS.get(method, 1)
    return tuple(
        AuditEntry(run, sign * value, dose, model_of(run))
        for run in runs
        if (value := run.statistics.value) is not None and math.isfinite(value) and (dose := dose_of(run)) is not None
    )


def _scores(meter: Sequence[Run]) -> tuple[list[Rival], dict[str, str], list[str]]:
    """From the files beside the meter's audits, path -> SHA-256, with what was left out."""
    entries: dict[tuple[str, str], list[AuditEntry]] = {}
    read: dict[str, str] = {}
    why_not: Counter[str] = Counter()
    columns = [f"{role}/{score}" for score in SCORES.values() for role in (TARGET, REFERENCE)]
    for run in meter:
        try:
            values = read_values(run, columns)
        except ValueError as error:
            why_not[str(error)] += 1
            continue
        read[values.path] = values.sha256
        for name, score in SCORES.items():
            for (against, needs), value in zip(AGAINST.items(), statistics_of(values, score), strict=True):
                item = AuditEntry(run, value, dose_of(run) or 0, model_of(run))
                entries.setdefault((name + against, needs), []).append(item)
    scores = [Rival(name, needs, tuple(of)) for (name, needs), of in entries.items()]
    return scores, read, [f"Scores of {number} audits left out: {why}." for why, number in why_not.items()]


def statistics_of(values: DocumentValues, score: str) -> tuple[float, float, float]:
    """Mean over the set of the target's score; less the reference's; and less the same on the third text. Documents
    without a score are left out."""

    def own(group: str) -> Any:
        return values.columns[group][f"{TARGET}/{score}"]

    def gain(group: str) -> float:
        return float(np.nanmean(own(group) - values.columns[group][f"{REFERENCE}/{score}"]))

    return float(np.nanmean(own(SUSPECT))), gain(SUSPECT), gain(SUSPECT) - gain(THIRD)


# -------------------------------------------------------------------------------------------------- tables


def _overview(compared: Sequence[Rival], world: str) -> Block | None:
    def seconds(rival: Rival) -> TableCell:
        if not rival.method:
            return TableCell((dash(world),))
        middle = statistics.median(run.result.provenance.seconds for run in rival.runs)
        return number_cell(formats.decimals(middle, 1), middle, world, rival.runs)

    def of_dose(rival: Rival) -> TableCell:
        readers = AuditGroup(rival.runs, world).where(is_reader)
        return readers.rate(is_near) if rival.name == METER else TableCell((dash(world),))

    columns: dict[str, Callable[[Rival], TableCell]] = {
        "needs besides target and set": lambda rival: number_cell(rival.needs, None, world, rival.runs),
        "audits": lambda rival: AuditGroup(rival.runs, world).count(),
        f"dose within a factor of {FACTOR:g}": of_dose,
        "seconds an audit": seconds,
    }
    notes = (
        "Only the dose meter says how often a set was read. The factor: of sets read once or more.",
        "Seconds: median, wall clock on one core that other work may share, with whatever was found in the store. So "
        "targets are not in it, nor are the dose meter's fifteen controls, one training of a minute each for all sets "
        "together. The paired t finds PRISM's distilled reference; alone it takes as long as PRISM. Scores need a "
        "forward pass over the documents and no audit: they are those that the dose meter's audits keep.",
        "FSD and LLM-DI were run on sets of the libraries of which enough text is left that no model has read.",
    )
    rows = {item.name: item for item in compared}
    return cross_table("rivals", world, "Methods side by side", "method", rows, columns, MIXED, notes)


def _told_apart(compared: Sequence[Rival], world: str, of: str = "") -> Block | None:
    """of: the libraries whose sets it is about, where not all."""
    notes = (
        "Found, at 5% false positives: of sets that were read so often, how many have a statistic above that of all "
        "but 5% of the unread ones. Cleared, at 5% false clearances: of unread sets, how many have one below that of "
        "all but 5% of the sets that were read so often.",
        "The threshold is one for all sets, found on these very audits; intervals find it anew in each resample. The "
        "dose meter's statistic is its estimate, which unlike the others is made of what controls show on the same "
        "set; its gates are not asked. Ties are not told apart.",
    )
    rows = {f"{measure}: {rival.name}": (rival, measure) for measure in (FOUND, CLEARED) for rival in compared}
    columns = {named(dose): dose for dose in _doses(compared)}
    key, title = "rivals-power" + ("-common" if of else ""), "Told apart at equal errors" + (f": {of}" if of else "")
    return cross_table(
        key,
        world,
        title,
        "by statistic, sets read",
        rows,
        columns,
        QUANTITIES,
        notes,
        lambda row, dose: row[0].cell(row[1], dose, world),
    )


def _on_common_sets(compared: Sequence[Rival], world: str) -> Block | None:
    """The same on the sets that every method was run on, where those are not all."""
    sets = [{item.corpus for item in rival.entries} for rival in compared]
    common = set.intersection(*sets)
    if not common or common == set.union(*sets):
        return None
    libraries = sorted({item.rpartition("-")[0] for item in common})
    on_common = [
        replace(item, entries=tuple(entry for entry in item.entries if entry.corpus in common)) for item in compared
    ]
    return _told_apart(on_common, world, formats.listed(libraries))


def _verdicts(compared: Sequence[Rival], world: str) -> Block | None:
    runs = {rival.method: rival.runs for rival in compared if rival.method}

    def cell(row: tuple[str, Callable[[Run], bool]], dose: int) -> TableCell:
        method, decides = row
        return AuditGroup(runs[method], world).where(read(dose)).verdict(decides, dose)

    levels = formats.listed([f"{level:g}" for level in sorted({run.question.alpha for run in runs.get("llm_di", [])})])
    notes = (
        "By each method's own rule. PRISM without gates, as in its paper; the dose meter's claim is of one reading or "
        "more. The paired t, KDS and FSD have no verdict."
        + (f" LLM-DI at its paper's level of {levels}." if levels else ""),
    )
    rows = {name: row for name, row in VERDICTS.items() if row[0] in runs}
    columns = {named(dose): dose for dose in (0, *_doses(compared))}
    return cross_table(
        "rivals-verdicts", world, "Verdicts by what was read", "verdict", rows, columns, QUANTITIES, notes, cell
    )


def _clearance() -> Block | None:
    """As its study found it, in a world of its own."""
    table: PublishedTable = published_tables(Path(__file__).parent / "published.txt")["clearance"]

    def cell(row: str, column: str) -> TableCell:
        if not (counts := table.get(row, column)):
            return no_rate("study")
        count, of = map(int, counts)
        return rate_of(count, of, exact_interval(count, of, 1 - CONFIDENCE), "study")

    notes = (
        "Not the same audits: other sets, other targets. From docs/results/calibration/report.md, the reported half: "
        "of models that had read the set so often, how many were cleared of eight readings or more. Below eight "
        "readings no clearance is false. An audit trains six controls and fourteen distilled references. In brackets "
        "exact 95% intervals.",
    )
    rows, columns = ({name: name for name in names} for names in (table.rows, table.columns))
    title = "Calibrated clearance, from its own study"
    return cross_table("rivals-clearance", "study", title, "cleared", rows, columns, QUANTITIES, notes, cell)


# ------------------------------------------------------------------------------------------------- figure


def _figure(compared: Sequence[Rival], block: Block, scope: Scope, read: Mapping[str, str]) -> Figure | None:
    """A line per method: what is found of sets read so often, and what is cleared of so many readings. Of the scores
    those with the least and with the most beside them."""
    *_, most = AGAINST
    shown = [item.name for item in compared if item.method or item.name.endswith(most) or item.name in SCORES]
    rows, doses = {row.name: row for row in block.rows}, _doses(compared)

    def paint(canvas: Canvas) -> None:
        titles = {FOUND: f"found at {ERROR:.0%} false positives", CLEARED: f"cleared at {ERROR:.0%} false clearances"}
        axes = list(panels(canvas, list(titles.values())))
        for axis, measure in zip(axes, titles, strict=True):
            for index, name in enumerate(shown):
                points = shares_of(rows[f"{measure}: {name}"], doses)
                axis.plot(
                    [x for x, *_ in points], [share for _, share, *_ in points], label=name, **_style(name, index)
                )
            share_axis(axis, ERROR)
            log_axis(axis, doses, list(map(named, doses)))
        axes[0].set(ylabel="share of audits", xlabel="how often these sets were read")
        axes[1].set(xlabel="what these unread sets are cleared of")
        legend_below(canvas, axes[0], columns=3)

    alt = (
        f"Two panels over {formats.listed(list(map(named, doses)))}, on a logarithmic scale, with a line per method. "
        "Left: share of sets read so often whose statistic lies above that of all but 5% of the unread ones. Right: "
        "share of unread sets whose statistic lies below that of all but 5% of those read so often."
    )
    return figure_of("rivals", scope.world, "Told apart at equal errors", alt, block, (6.8, 4.1), paint, read)


def _style(name: str, index: int) -> dict[str, Any]:
    """Scores are thin, in one colour each, and dotted where nothing stands beside them; the meter lies on top."""
    score = next((number for number, score in enumerate(SCORES) if name.startswith(score)), None)
    if score is not None:
        index = len(METHODS) + 1 + score
        return {
            "color": colour(index),
            "marker": MARKERS[index],
            "linewidth": 1,
            "markersize": 3.5,
            "linestyle": ":" if name in SCORES else "-",
        }
    style = {"color": colour(index), "marker": MARKERS[index % len(MARKERS)]}
    return style | {"linewidth": 2.4, "zorder": 3} if name == METER else style
