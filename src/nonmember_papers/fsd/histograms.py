"""Figures 2, 3 and 5 of FSD for one world: how the values of single documents are distributed in the two classes.

Under the target that read the members, and below it under one that has read neither set: what tuning does without
membership. Drawn from scores.parquet beside the results; where that cannot be had, a note says so.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from matplotlib.axes import Axes
from matplotlib.colors import to_rgba
from matplotlib.figure import Figure as Canvas
from matplotlib.ticker import MaxNLocator

from nonmember.records import FloatArray
from nonmember.reports.core import formats
from nonmember.reports.core.grid import Block, Figure, Numeral, TableCell
from nonmember.reports.core.numbers import detail
from nonmember.reports.core.worlds import Scope, by_domain, one_target, select
from nonmember.reports.declared.report import Filled, figures
from nonmember.reports.render.blocks import block_of
from nonmember.reports.render.figures import QUIET, colour, figure_of, legend_below
from nonmember.results.load import Run
from nonmember.results.result import RESULT, SCORES
from nonmember.runtime.files import file_hash
from nonmember_papers.fsd.differences import say_differences

KEY = "figure2"
PERPLEXITY, MIN_K = "perplexity", "mink(0.2)"  # the paper's
BEFORE, AFTER = "target", "tuned"  # the model that a column is under
COLUMNS = tuple(f"{model}/{score}" for model in (BEFORE, AFTER) for score in (PERPLEXITY, MIN_K))
CLASSES = {"suspect": "members", "heldout": "non-members"}
COUNTS = {"suspect": detail("num_members"), "heldout": detail("num_nonmembers")}

MOST_BINS = 24
OUTER = 0.01  # of the documents at either end: the outermost bins hold them, and what lies beyond
QUANTILES = {"5%": 0.05, "25%": 0.25, "median": 0.5, "75%": 0.75, "95%": 0.95}
LATER, EARLIER = 2, 8  # indices of colours; those of the classes are 0 and 1
FILL, DASHES = 0.22, (0, (3, 1.5))


@dataclass(frozen=True)
class Audited:
    """One target on one set."""

    name: str  # of the target, as printed
    run: Run
    values: Mapping[str, Mapping[str, FloatArray]]  # class -> column -> a value per document, NaN where undefined

    def score(self, group: str, score: str, model: str = BEFORE) -> FloatArray:
        return self.values[group][f"{model}/{score}"]

    def perplexity(self, group: str, model: str = BEFORE) -> FloatArray:
        """Itself; its score is -ppl, so that members lie high."""
        return -self.score(group, PERPLEXITY, model)

    def fsd(self, group: str, score: str) -> FloatArray:
        """As everywhere here, higher for members."""
        return self.score(group, score, BEFORE) - self.score(group, score, AFTER)


@dataclass(frozen=True)
class Series:
    """One histogram."""

    name: str
    values: FloatArray
    index: int  # of its colour

    @property
    def defined(self) -> FloatArray:
        return self.values[np.isfinite(self.values)]


@dataclass(frozen=True)
class HistogramPanel:
    # target, name: of its rows in the table
    target: str
    name: str
    quantity: str  # on its axis; panels of one quantity have common bins
    run: str  # the result it is from
    series: tuple[Series, ...]
    inside: str = ""  # what is written into it


Panels = Sequence[Sequence[HistogramPanel]]  # a row of them per target


def histograms(scope: Scope) -> Filled:
    """Two figures a set, and notes on what cannot be drawn."""
    runs = scope.of(KEY)
    sets = by_domain(scope, KEY, one_target(scope, runs)) if runs else {}
    world = scope.world.title
    drawn: list[Figure | None] = []
    notes: list[str] = []
    why_not: dict[str, list[str]] = defaultdict(list)
    for name, results in sets.items():
        if not results:
            why_not["there is no result yet"].append(name)
        shown = {name_of(scope, run): run for run in results[:1]}
        shown |= {f"{name_of(scope, run)} (control)": run for run in untouched_beside(scope, results, runs)}
        audited = []
        for target, run in shown.items():
            try:
                audited.append(Audited(target, run, values_of(run)))
            except ValueError as error:
                why_not[str(error)].append(f"{name} under {target}")
        if any(item.run is results[0] for item in audited):  # a control alone says nothing
            drawn += [figure_2(scope, name, audited), figures_3_and_5(scope, name, audited)]
            notes += [f"{world}: {name}, the first of {len(results)} results."] if len(results) > 1 else []
    notes += [f"{world}: not drawn for {formats.listed(cells)}: {why}." for why, cells in why_not.items()]
    return figures(*drawn, notes=notes)


def name_of(scope: Scope, run: Run) -> str:
    return scope.world.targets.get(str(run.question.target), str(run.question.target))


def untouched_beside(scope: Scope, results: Sequence[Run], runs: Sequence[Run]) -> list[Run]:
    """The result on the same set of the target that has read neither class, where there is one and it is another."""
    domains = tuple(run.domain for run in results[:1])
    controls = select(runs, target=scope.world.untouched, domain=domains, truth="non_member")
    return [run for run in controls[:1] if run.anchor != results[0].anchor]


def values_of(run: Run) -> dict[str, dict[str, FloatArray]]:
    """Of scores.parquet. Raises ValueError with the reason where they cannot be had, or are of other documents."""
    path = run.folder / SCORES if run.folder is not None else None
    if path is None or not path.is_file():
        raise ValueError(f"there is no {SCORES} beside the result")
    try:
        table = pq.ParquetFile(path).read()
        groups = np.array(table["group"].to_pylist())
        columns = {name: table[name].cast(pa.float64()).to_numpy() for name in COLUMNS}
    except (OSError, KeyError, ValueError, pa.ArrowException) as error:
        raise ValueError(f"{SCORES} cannot be read ({str(error).splitlines()[0]})") from error
    if any(np.sum(groups == group) != count(run.result) for group, count in COUNTS.items()):
        raise ValueError("the values beside the result are of other documents than it counts")
    return {group: {name: column[groups == group] for name, column in columns.items()} for group in COUNTS}


def figure_2(scope: Scope, name: str, audited: Sequence[Audited]) -> Figure | None:
    """A panel a class."""

    def panel(audit: Audited, group: str) -> HistogramPanel:
        before = Series("before tuning", audit.perplexity(group), EARLIER)
        after = Series("after", audit.perplexity(group, AFTER), LATER)
        name = CLASSES[group]
        return HistogramPanel(audit.name, name, "perplexity", audit.run.anchor, (before, after), inside=name)

    what = f"Perplexity of members and of non-members of {name} before and after tuning on unseen documents"
    rows = [[panel(audit, group) for group in CLASSES] for audit in audited]
    return drawn_from(scope, "figure2", "Figure 2", name, what, audited, rows)


def figures_3_and_5(scope: Scope, name: str, audited: Sequence[Audited]) -> Figure | None:
    """A panel a quantity."""
    ppl, min_k = (scope.names["each"].get(score, score) for score in (PERPLEXITY, MIN_K))

    def row(audit: Audited) -> list[HistogramPanel]:
        quantities = {
            ppl: audit.perplexity,
            f"FSD by {ppl}": lambda group: audit.fsd(group, PERPLEXITY),
            min_k: lambda group: audit.score(group, MIN_K),
            f"FSD by {min_k}": lambda group: audit.fsd(group, MIN_K),
        }

        def panel(quantity: str) -> HistogramPanel:
            series = (
                Series(name, quantities[quantity](group), index) for index, (group, name) in enumerate(CLASSES.items())
            )
            return HistogramPanel(audit.name, quantity, quantity, audit.run.anchor, tuple(series))

        return list(map(panel, quantities))

    what = (
        f"Members and non-members of {name}: {ppl}, {min_k}, and how far the score of either falls by tuning on unseen "
        "documents (FSD); all but ppl higher for members"
    )
    return drawn_from(scope, "figure3", "Figures 3 and 5", name, what, audited, [row(audit) for audit in audited])


# --------------------------------------------------------------------------------------- picture and table


def drawn_from(
    scope: Scope, key: str, title: str, name: str, what: str, audited: Sequence[Audited], rows: Panels
) -> Figure | None:
    """A row of panels per target, below each other."""
    bins = bins_of(rows)
    wide = len(rows[0])

    def paint(canvas: Canvas) -> None:
        axes = canvas.subplots(len(rows), wide, sharex="col", sharey=True, squeeze=False)
        for axis, panel in zip(axes.flat, (panel for row in rows for panel in row), strict=True):
            histogram(axis, panel, bins[panel.quantity])
        for axis, row in zip(axes[:, 0], rows, strict=True):
            axis.set_title(row[0].target)
            axis.set_ylabel("documents")
        for axis, panel in zip(axes[-1], rows[-1], strict=True):
            axis.set_xlabel(panel.quantity)
        legend_below(canvas, axes[0, 0])

    control = " The control has read neither class." if len(audited) > 1 else ""
    alt = f"{what}.{control} The outermost bins also hold what lies beyond them."
    slug = f"{key}-{formats.slug(name)}"
    size = (8.3 if wide > 2 else 5.6, 1.8 * len(rows) + 0.75)
    block = numbers(scope, name, audited, rows)
    files = [(item.run.path.removesuffix(RESULT) + SCORES, item.run.folder) for item in audited]
    read = {name: file_hash(folder / SCORES) for name, folder in files if folder is not None}
    return figure_of(slug, scope.world, f"{title}, {name}", alt, block, size, paint, read)


def bins_of(rows: Panels) -> dict[str, FloatArray]:
    """Quantity -> edges at round numbers, common to all panels that show it."""
    values: dict[str, list[FloatArray]] = defaultdict(list)
    for panel in (panel for row in rows for panel in row):
        values[panel.quantity] += [series.defined for series in panel.series]
    return {quantity: edges_of(np.concatenate(found)) for quantity, found in values.items()}


def edges_of(values: FloatArray) -> FloatArray:
    """Round numbers about all but the outermost of the values."""
    low, high = np.quantile(values, (OUTER, 1 - OUTER)) if len(values) else (0.0, 1.0)
    return np.asarray(MaxNLocator(MOST_BINS, steps=[1, 2, 2.5, 5, 10]).tick_values(low, high), dtype=np.float64)


def counted_in(edges: FloatArray, values: FloatArray) -> FloatArray:
    """How many values lie in each bin; those beyond the ends are counted in the outermost."""
    return np.histogram(np.clip(values, edges[0], edges[-1]), edges)[0].astype(np.float64)


def histogram(axis: Axes, panel: HistogramPanel, edges: FloatArray) -> None:
    for second, series in enumerate(panel.series):
        ink = colour(series.index)
        axis.stairs(
            counted_in(edges, series.defined),
            edges,
            fill=True,
            facecolor=to_rgba(ink, FILL),
            edgecolor=ink,
            linewidth=1.2,
            linestyle=DASHES if second else "-",
            label=series.name,
        )
    if edges[0] < 0 < edges[-1]:
        axis.axvline(0, color=QUIET, linewidth=0.7, zorder=0)
    axis.annotate(panel.inside, (1, 1), xycoords="axes fraction", ha="right", va="top", color=QUIET)


def numbers(scope: Scope, name: str, audited: Sequence[Audited], rows: Panels) -> Block | None:
    """Quantiles of every histogram: its bins would be as many columns, and other ones for every quantity."""
    world = scope.world.name

    def cells(panel: HistogramPanel, values: FloatArray) -> list[TableCell]:
        many = Numeral(formats.count(len(values)), float(len(values)), world, (panel.run,))
        ends = [Numeral(formats.decimals(end), end, world, (panel.run,)) for end in quantiles(values)]
        return [TableCell((item,)) for item in (many, *ends)]

    shown = {
        f"{panel.target}: {panel.name}, {series.name}": cells(panel, series.defined)
        for panels in rows
        for panel in panels
        for series in panel.series
    }
    notes, columns = say_differences({name: [item.run for item in audited]}), ("documents", *QUANTILES)
    title = "Quantiles of the documents"
    return block_of(scope, "", title, "shown", columns, shown, ["number"], notes, dash_is_missing=False)


def quantiles(values: FloatArray) -> list[float]:
    """NaN, printed as a dash, of nothing."""
    return np.quantile(values, list(QUANTILES.values())).tolist() if len(values) else [np.nan] * len(QUANTILES)
