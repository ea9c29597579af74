"""What of KDS's report is computed: how scores of a set go with the share of it that the target has read.

Shapes: D draws, L levels. A level is the share c of a set that was read.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from matplotlib.figure import Figure as Canvas

from nonmember.records import FloatArray
from nonmember.reports.core import formats
from nonmember.reports.core.grid import PAIR, RANGE, Block, Figure, TableCell
from nonmember.reports.core.numbers import Value, counted, detail, mean_of
from nonmember.reports.core.worlds import Scope, by_domain, one_target, select
from nonmember.reports.declared.cells import computed
from nonmember.reports.declared.report import DeclaredReport, Filled, Glance, figures, tables
from nonmember.reports.render.blocks import block_of
from nonmember.reports.render.figures import (
    PlotLine,
    draw_line,
    figure_of,
    legend_below,
    lines_of,
    panels,
    size_of_panels,
    zero_line,
)
from nonmember.results.load import Run
from nonmember.results.result import AuditResult
from nonmember.stats.contamination import Consistency, consistency, level_correlation

KDS, ORDER_T, WITH_FSD = "KDS", "SRCT", " + FSD"
ALPHA = 0.05  # of two draws that are told apart

# ------------------------------------------------------------------------------------------ from results


def kernel_divergence(result: AuditResult) -> float | None:
    """S; an invalid one is none."""
    return result.statistics.value if result.verdict.decision != "invalid" else None


@dataclass(frozen=True, eq=False)
class ReadLevels:
    """What one score says of one set."""

    levels: tuple[float, ...]  # [L] ascending
    scores_DL: FloatArray  # of draws that have all of them
    runs: tuple[Run, ...]  # whose they are

    def anchors(self, level: float | None = None) -> list[str]:
        return [run.anchor for run in self.runs if level is None or run.question.data.get("rate") == level]

    def consistency(self) -> Consistency | None:
        """None for a single draw."""
        return consistency(self.levels, self.scores_DL, alpha=ALPHA) if len(self.scores_DL) > 1 else None


Rows = Mapping[str, Mapping[str, ReadLevels]]  # score, or what else -> set -> what it says of it


def levels_of(runs: Sequence[Run], value: Value) -> ReadLevels | None:
    """The largest part of the results in which every draw has every level; of one recipe, at least two levels."""
    by_draw: dict[tuple[Any, int], dict[float, Run]] = {}
    for run in runs:
        level = run.question.data.get("rate")
        if isinstance(level, int | float) and formats.exists(value(run.result)):
            by_draw.setdefault((run.get("draw"), run.question.seed), {})[float(level)] = run
    draws = sorted(by_draw.values(), key=len, reverse=True)
    common = [sorted(set.intersection(*map(set, draws[:num]))) for num in range(1, len(draws) + 1)]
    parts = [(num * len(levels), num, levels) for num, levels in enumerate(common, start=1) if len(levels) > 1]
    if not parts:
        return None
    _, num, levels = max(parts, key=lambda part: part[:2])
    used = [[draw[level] for level in levels] for draw in draws[:num]]
    scores = np.array([[value(run.result) for run in draw] for draw in used], dtype=np.float64)
    return ReadLevels(tuple(levels), scores, tuple(run for draw in used for run in draw))


def one_recipe(runs: Sequence[Run]) -> list[Run]:
    """Of one recipe and size, that of most results: no score compares beyond these."""

    def recipe(run: Run) -> str:
        size = run.question.data.get("num_documents", run.statistics.num_documents)
        return json.dumps([run.question.settings, run.question.target, size], sort_keys=True, default=str)

    usual = Counter(map(recipe, runs)).most_common(1)
    return [run for run in runs if recipe(run) == usual[0][0]]


def scores_of(scope: Scope, runs: Sequence[Run]) -> dict[str, Value]:
    """Printed name -> where a result has it, each the higher the more was read; KDS last, as in the poster."""
    details, names = [run.statistics.details for run in runs], scope.names["scores"]
    found = {
        kind: {key for item in details if isinstance(item.get(kind), Mapping) for key in item[kind]}
        for kind in ("baselines", "fsd")
    }
    others = sorted(set.union(*found.values()) - set(names))
    scores = {
        names.get(key, key) + suffix: detail(kind, key)
        for key in (*names, *others)
        for kind, suffix in (("baselines", ""), ("fsd", WITH_FSD))
        if key in found[kind]
    }
    order = {ORDER_T: detail("order_t")} if any("order_t" in item for item in details) else {}
    return scores | order | {KDS: kernel_divergence}


# ------------------------------------------------------------------------------- what the tables go over


@dataclass(frozen=True)
class Study:
    """The rows of a section's tables."""

    scope: Scope
    key: str  # of the section
    runs: Sequence[Run]  # all of its results
    corner: str = "score"  # what the rows are
    # Row -> its results, and what they are judged by, where rows are not the scores of all.
    groups: Mapping[str, tuple[Sequence[Run], Value]] = field(default_factory=dict)
    model: str = ""  # where the section has a study of each of several targets: of which this is one

    @cached_property
    def sets(self) -> tuple[str, ...]:
        return tuple(by_domain(self.scope, self.key, self.runs))

    @cached_property
    def rows(self) -> Rows:
        groups = self.groups or {name: (self.runs, value) for name, value in scores_of(self.scope, self.runs).items()}
        rows: dict[str, dict[str, ReadLevels]] = {name: {} for name in groups}
        for name, (runs, value) in groups.items():
            for item, of_set in by_domain(self.scope, self.key, runs).items():
                if levels := levels_of(one_recipe(of_set), value):
                    rows[name][item] = levels
        return rows

    @property
    def target(self) -> str:
        names = self.scope.world.targets
        labels = dict.fromkeys(str(run.question.target) for run in self.runs)
        return formats.listed([names.get(label, label) for label in labels])

    def say_draws(self) -> str:
        """How many draws and levels, of how many documents, and what was left out."""
        used = [levels for row in self.rows.values() for levels in row.values()]
        if not used:
            return ""
        draws, levels = {len(item.scores_DL) for item in used}, {len(item.levels) for item in used}
        sizes = {run.statistics.num_documents for item in used for run in item.runs}
        left = len(self.runs) - len({anchor for item in used for anchor in item.anchors()})
        invalid = "invalid, of another recipe, or of a draw or a level that is not complete"
        aside = f" {left} of {len(self.runs)} results are left out: {invalid}." if left else ""
        return (
            f"{formats.counts(draws)} draw{'s' * (draws != {1})} of {formats.counts(levels)} levels, "
            f"{formats.counts(sizes)} documents a set.{aside}"
        )


def everything(scope: Scope, key: str) -> Study:
    return Study(scope, key, one_target(scope, scope.of(key)))


def by_age(scope: Scope, key: str, *more: str, is_older: bool) -> list[Study]:
    """Of each target by itself, sets whose members are older than their non-members, those that the world names for
    table 1; or the others. more: keys of further sweeps."""
    older = scope.world.domains_of.get("table1", ())
    runs = [run for sweep in (key, *more) for run in scope.of(sweep) if (run.domain in older) == is_older]
    targets = dict.fromkeys(str(run.question.target) for run in runs)
    is_alone = len(targets) == 1
    return [Study(scope, key, select(runs, target=name), model="" if is_alone else name) for name in targets]


BY_TARGET: dict[str, Value] = {
    KDS: kernel_divergence,
    "Min-K%++": detail("baselines", "minkpp(0.2)"),
    ORDER_T: detail("order_t"),
}
NUM_EPOCHS = "training.optimization.epochs"
EPOCHS = {1: "one epoch", 4: "four epochs"}


def by_target_and_epochs(scope: Scope) -> Study:
    """KDS, the best of the simple means and the order test by target and epochs of tuning: what each shows of one that
    has read, beside what it shows of one that has read neither pool."""
    groups: dict[str, tuple[Sequence[Run], Value]] = {}
    runs = scope.of("epochs")
    for target, epochs in sorted({(str(run.question.target), int(run.get(NUM_EPOCHS))) for run in runs}):
        of_target = [run for run in runs if (run.question.target, run.get(NUM_EPOCHS)) == (target, epochs)]
        for name, value in BY_TARGET.items():
            is_touched = name == KDS  # by the tuning
            if (is_touched or epochs == 1) and any(formats.exists(value(run.result)) for run in of_target):
                row = f"{name}, {scope.world.targets.get(target, target)}"
                groups[f"{row}, {EPOCHS.get(epochs, epochs)}" if is_touched else row] = of_target, value
    return Study(scope, "epochs", runs, "score and target", groups)


BANDWIDTHS = {"pre_only": "the bandwidth of the kernel before for both", "per_kernel_median": "a bandwidth per kernel"}


def _bandwidth(run: Run) -> str:
    kind, gamma = run.get("bandwidth"), run.get("gamma")
    return f"gamma {gamma:g} for both" if kind == "fixed" else BANDWIDTHS.get(kind, str(kind))


def _batch(run: Run) -> str:
    size = int(run.get("training.optimization.batch_size"))
    return "one step over all documents" if size >= run.statistics.num_documents else f"batches of {size}"


SETTINGS: dict[str, Callable[[Run], str]] = {
    "bandwidth": _bandwidth,
    "layer": lambda run: f"hidden state {formats.decimals(run.get('layer'), 0)}",
    "training.optimization.batch_size": _batch,
    NUM_EPOCHS: lambda run: f"{run.get(NUM_EPOCHS)} epochs",
    "compat": lambda run: "dropout in the second pass" if run.get("compat") else "no dropout in the second pass",
}


def by_setting(scope: Scope) -> Study:
    """KDS by how a result's settings differ from the usual ones."""
    runs = one_target(scope, scope.of("ablation"))
    usual = {name: Counter(run.get(name) for run in runs).most_common(1)[0][0] for name in SETTINGS if runs}
    groups: dict[tuple[int, str], list[Run]] = {}
    for run in runs:
        differ = [name for name in SETTINGS if run.get(name) != usual[name]]
        rank = 1 + list(SETTINGS).index(differ[0]) if differ else 0
        groups.setdefault((rank, ", ".join(SETTINGS[name](run) for name in differ) or "as it is"), []).append(run)
    named = {name: (of_setting, kernel_divergence) for (_, name), of_setting in sorted(groups.items())}
    return Study(scope, "ablation", runs, "setting", named)


# ------------------------------------------------------------------------------------------- the tables


@dataclass(frozen=True)
class Measure:
    """Numbers that stand for the levels of a set. values: None at all where they do not exist."""

    part: str
    title: str
    numbers: Sequence[str]
    template: str
    values: Callable[[ReadLevels], Sequence[float | str]]


def correlation(levels: ReadLevels) -> Sequence[float]:
    found = level_correlation(levels.levels, levels.scores_DL)
    return found.spearman, found.pearson


def of_each_draw(levels: ReadLevels) -> Sequence[float]:
    found = level_correlation(levels.levels, levels.scores_DL)
    return found.spearman_mean, found.spearman_sd, found.pearson_mean, found.pearson_sd


def rise_and_gap(levels: ReadLevels) -> Sequence[float | str]:
    """How far from the lowest level to the highest, and the smallest gap that tells two draws apart."""
    if (found := levels.consistency()) is None:
        return ()
    return *rise_at(levels, -1), found.smallest_gap if np.isfinite(found.smallest_gap) else "none"


CORRELATION = Measure("", "Correlation of the mean over draws", ("Spearman", "Pearson"), PAIR, correlation)
OF_DRAWS = ("Spearman, mean", "sd", "Pearson, mean", "sd")
EACH_DRAW = Measure("draws", "Correlation of each draw", OF_DRAWS, "{} ± {} / {} ± {}", of_each_draw)
GAPS = Measure("gaps", "Rise and smallest gap", ("rise in sd of a draw", "gap in c"), "{:+.1} / {:.2}", rise_and_gap)


def table(study: Study, measure: Measure) -> Block | None:
    """A row for each of the study's, a column for each set; of the correlation also its average over the sets."""
    world, columns = study.scope.world.name, study.sets

    def cell(levels: ReadLevels | None) -> TableCell:
        if levels is None:
            return computed(measure.template, (), world)
        num = len(levels.scores_DL)
        note = f"{num} draw{'s' * (num > 1)} of {len(levels.levels)} levels"
        return computed(measure.template, measure.values(levels), world, levels.anchors(), note)

    rows = {name: [cell(row.get(item)) for item in columns] for name, row in study.rows.items()}
    notes = [f"Target: {study.target}.", study.say_draws()]
    title = ", ".join(filter(None, (measure.title, study.model and study.target)))
    if measure is CORRELATION and columns:
        notes += [say_signs(rows, columns) if study.corner == "score" else "", say_averages(rows)]
        rows = {name: [*cells, mean_of(cells, world)] for name, cells in rows.items()}
        columns = (*columns, "average")
    key = "-".join(filter(None, (study.key, measure.part, study.model and formats.slug(study.model))))
    return block_of(study.scope, key, title, study.corner, columns, rows, measure.numbers, notes)


def say_signs(rows: Mapping[str, Sequence[TableCell]], sets: Sequence[str]) -> str:
    """Which scores fall where they should rise."""
    falling = {
        name: [item for item, cell in zip(sets, cells, strict=True) if (cell.ours[0].value or 0) < 0]
        for name, cells in rows.items()
    }
    falls = [f"{name} on {formats.listed(where)}" for name, where in falling.items() if where]
    return f"Falls as c rises: {'; '.join(falls)}." if falls else "No score falls as c rises."


def say_averages(rows: Mapping[str, Sequence[TableCell]]) -> str:
    """Over how many sets."""
    counts = {name: sum(not cell.missing for cell in cells) for name, cells in rows.items()}
    of = max(counts.values())
    fewer = [f"{name} {num}" for name, num in counts.items() if 0 < num < of]
    aside = f"; fewer: {', '.join(fewer)}, which do not compare with the others" if fewer else ""
    return f"The average is over the {of} set{'s' * (of > 1)} with a number{aside}." if of else ""


def shown(
    *studies: Study,
    measures: Sequence[Measure] = (CORRELATION, EACH_DRAW, GAPS),
    nothing: str = "no results for this table yet.",
) -> Filled:
    return tables(*(table(study, measure) for study in studies for measure in measures), nothing=nothing)


# ------------------------------------------------------------------------------------- level by level

AtLevel = Callable[[ReadLevels, int], Sequence[float]]
MEAN_AND_ENDS = ["mean", "lowest", "highest"]


def mean_and_ends(levels: ReadLevels, index: int) -> Sequence[float]:
    scores = levels.scores_DL[:, index]
    return scores.mean(), scores.min(), scores.max()


def rise_at(levels: ReadLevels, index: int) -> Sequence[float]:
    """Above the lowest level, in standard deviations of a draw."""
    found = levels.consistency()
    return ((found.mean[index] - found.mean[0]) / found.pooled_sd if found and found.pooled_sd else np.nan,)


def spread_at(levels: ReadLevels, index: int) -> Sequence[float]:
    found = levels.consistency()
    return (found.mean[index], found.sd[index], found.variation[index]) if found else ()


def rows_of(
    lines: Mapping[str, ReadLevels], template: str, values: AtLevel, world: str
) -> dict[str, dict[float, TableCell]]:
    """Line -> share read -> its numbers there, for each share that any line has."""
    shares = sorted({share for levels in lines.values() for share in levels.levels})

    def cell(levels: ReadLevels, share: float) -> TableCell:
        found = values(levels, levels.levels.index(share)) if share in levels.levels else ()
        return computed(template, found, world, levels.anchors(share))

    return {name: {share: cell(levels, share) for share in shares} for name, levels in lines.items()}


def consistencies(scope: Scope) -> Filled:
    """Rise and gap; and S by level: mean and standard deviation over draws, and the one by the other."""
    study = everything(scope, "consistency")
    sets = study.rows[KDS]
    rows = rows_of(sets, "{} ± {} ({})", spread_at, scope.world.name)
    by_share = {f"{share:g}": [row[share] for row in rows.values()] for row in rows.values() for share in row}
    peaks = {name: levels.levels[int(levels.scores_DL.mean(axis=0).argmax())] for name, levels in sets.items()}
    early = [f"{name} at c = {peak:g}" for name, peak in peaks.items() if peak < sets[name].levels[-1]]
    notes = [f"Highest before the end: {', '.join(early)}."] if early else []
    numbers = ("mean", "sd", "sd / |mean|")
    return tables(
        table(study, GAPS), block_of(scope, "consistency-spread", "S at each c", "c", sets, by_share, numbers, notes)
    )


def against_share(scope: Scope) -> Filled:
    """S of the target and of the control; then all scores of the target, before and after FSD's tuning."""
    study, control = everything(scope, "levels"), everything(scope, "control")
    divergences = {item.target: item.rows[KDS] for item in (study, control) if item.runs}
    of_kds = {KDS: study.rows[KDS]}
    plain = of_kds | {name: row for name, row in study.rows.items() if not name.endswith(WITH_FSD)}
    tuned = of_kds | {name: row for name, row in study.rows.items() if name.endswith(WITH_FSD)}
    return figures(
        drawn(study, divergences, "s", "S", is_rise=False),
        drawn(study, plain, "scores", "KDS and simple scores") if len(plain) > 1 else None,
        drawn(study, tuned, "fsd", "KDS and FSD of the simple scores") if len(tuned) > 1 else None,
    )


OF_S = (
    "Kernel divergence score against the share of the set that was read: mean over draws, band from lowest to highest, "
    "a panel per set, each with a scale of its own."
)
OF_RISE = (
    "How far each score lies above its value at the lowest share, in standard deviations of a draw, against the share "
    "that was read; a panel per set."
)


def drawn(study: Study, rows: Rows, part: str, title: str, *, is_rise: bool = True) -> Figure | None:
    """A panel for each set, a line for each row; None where no result fills any of it."""
    scope, axis_title = study.scope, "rise in sd of a draw" if is_rise else "S"
    by_set = {item: [name for name, row in rows.items() if item in row] for item in study.sets}
    by_set = {item: names for item, names in by_set.items() if names}
    lines = {f"{item}, {name}": rows[name][item] for item, names in by_set.items() for name in names}
    template, values, numbers = ("{}", rise_at, ["rise, sd"]) if is_rise else (RANGE, mean_and_ends, MEAN_AND_ENDS)
    cells = rows_of(lines, template, values, scope.world.name)
    shares = list(next(iter(cells.values()), {}))
    block = block_of(
        scope,
        "",
        title,
        "set, line",
        [f"{share:g}" for share in shares],
        {name: row.values() for name, row in cells.items()},
        numbers,
        [study.say_draws()],
    )
    if block is None:
        return None
    found = lines_of(block, shares)

    def paint(canvas: Canvas) -> None:
        for axis, (item, names) in zip(panels(canvas, tuple(by_set), sharey=is_rise), by_set.items(), strict=True):
            for index, name in enumerate(names):
                draw_line(axis, PlotLine(name, found[f"{item}, {name}"].points), index, band=not is_rise)
            if is_rise:
                zero_line(axis)
            axis.set(xlabel="share read, c")
        canvas.axes[0].set_ylabel(axis_title)
        legend_below(canvas, canvas.axes[0], columns=6)

    alt = OF_RISE if is_rise else OF_S
    return figure_of(f"levels-{part}", scope.world, title, alt, block, size_of_panels(len(by_set)), paint)


# ---------------------------------------------------------------------------------------- at a glance


def rises(levels: ReadLevels) -> bool:
    return correlation(levels)[0] > 0


def tells_apart(levels: ReadLevels) -> bool:
    found = levels.consistency()
    return found is not None and found.smallest_gap > 0


def cells_of_glance(scope: Scope) -> Iterator[TableCell]:
    """How often KDS and the other scores rise, and tell shares apart; and where nothing was read."""
    main, control = everything(scope, "levels"), everything(scope, "control")
    for study, holds in ((main, rises), (main, tells_apart), (control, tells_apart)):
        for is_kds in (True, False):
            found = [
                holds(levels) for name, row in study.rows.items() if (name == KDS) == is_kds for levels in row.values()
            ]
            yield counted(sum(found), len(found), scope.world.name)


class KdsReport(DeclaredReport):
    """names: scores, by their keys in the results."""

    special: ClassVar = {
        "table1": lambda scope: shown(
            *by_age(scope, "table1", is_older=True),
            measures=(CORRELATION, EACH_DRAW),
            nothing="no benchmark with older members here.",
        ),
        "table2": lambda scope: shown(
            *by_age(scope, "table2", "scripts", is_older=False), measures=(CORRELATION, EACH_DRAW)
        ),
        "levels": against_share,
        "consistency": consistencies,
        "ablation": lambda scope: shown(by_setting(scope)),
        "control": lambda scope: shown(everything(scope, "control")),
        "epochs": lambda scope: shown(by_target_and_epochs(scope)),
    }

    def first_numbers(self) -> Glance:
        columns = ("KDS rises", "others rise", "KDS separates", "others separate", "control: KDS", "control: others")
        return Glance(columns, cells_of_glance, self.glance_note)
