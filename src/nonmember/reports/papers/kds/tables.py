"""The tables of KDS for one world: how scores of a set go with the share of it that the target has read.

Shapes: D draws, L levels. A level is the share c of a set that was read.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

from nonmember.reports.core import formats
from nonmember.reports.core.grid import PAIR, Block, Cell, Number, Row, dash
from nonmember.reports.core.numbers import Form, mean_of
from nonmember.reports.core.report import Filled, tables
from nonmember.reports.core.worlds import Scope
from nonmember.reports.papers.kds.studies import (
    AVERAGE,
    KDS,
    MEAN_SD,
    Levels,
    Study,
    benchmarks,
    by_setting,
    by_target_and_epochs,
    everything,
    same_time,
)
from nonmember.reports.render.blocks import filled, say_missing
from nonmember.stats.contamination import level_correlation

# ------------------------------------------------------------------------------------------------- blocks

BOTH = ("Spearman", "Pearson")
Say = Callable[[Levels], tuple[Number, ...]]


def correlations(study: Study) -> Block | None:
    """Of the mean over draws; and its average over the sets."""
    world = study.scope.world.name

    def say(levels: Levels) -> tuple[Number, ...]:
        found = level_correlation(levels.levels, levels.scores_DL)
        num = len(levels.scores_DL)
        note = f"{num} draw{'s' * (num > 1)} of {len(levels.levels)} levels"
        return (printed(found.spearman, world, runs=levels.anchors, note=note), printed(found.pearson, world))

    rows = rows_of(study, say, PAIR)
    rows = tuple(Row(row.name, (*row.cells, mean_of(row.cells, world))) for row in rows) if study.sets else ()
    notes = [say_signs(rows, study.sets) if study.corner == "score" else "", say_averages(rows)]
    return block(study, "", "Correlation of the mean over draws", rows, BOTH, (*study.sets, AVERAGE), notes)


def each_draw(study: Study) -> Block | None:
    world = study.scope.world.name

    def say(levels: Levels) -> tuple[Number, ...]:
        found = level_correlation(levels.levels, levels.scores_DL)
        values = (found.spearman_mean, found.spearman_sd, found.pearson_mean, found.pearson_sd)
        return tuple(printed(value, world, runs=() if place else levels.anchors) for place, value in enumerate(values))

    return block(study, "draws", "Correlation of each draw",
                 rows_of(study, say, f"{MEAN_SD} / {MEAN_SD}"),
                 ("Spearman, mean", "sd", "Pearson, mean", "sd"))  # fmt: skip


def rises(study: Study) -> Block | None:
    """How far from the lowest level to the highest, and the smallest gap that tells two draws apart."""
    world = study.scope.world.name

    def say(levels: Levels) -> tuple[Number, ...]:
        found = levels.consistency()
        if found is None:
            return (dash(world), dash(world))
        rise = (found.mean[-1] - found.mean[0]) / found.pooled_sd if found.pooled_sd > 0 else math.nan
        gap = printed(found.smallest_gap, world, lambda value: formats.decimals(value, 2))
        told = gap if not gap.missing else Number(NO_GAP, None, world)
        return (printed(rise, world, lambda value: formats.decimals(value, 1, signed=True), levels.anchors), told)

    return block(study, "gaps", "Rise and smallest gap",
                 rows_of(study, say, PAIR), ("rise in sd of a draw", "gap in c"))  # fmt: skip


NO_GAP = "none"


def spreads(study: Study) -> Block | None:
    """S by level: mean and standard deviation over draws, and the one by the other."""
    world = study.scope.world.name
    sets = {name: levels for name, levels in study.rows[KDS].items() if levels is not None}
    shares = sorted({level for levels in sets.values() for level in levels.levels})

    def cell(levels: Levels, share: float) -> Cell:
        found = levels.consistency()
        if found is None or share not in levels.levels:
            return Cell((dash(world),) * 3, (), SPREAD)
        place = levels.levels.index(share)
        here = tuple(run.anchor for run in levels.runs if run.question.data.get("rate") == share)
        values = (found.mean[place], found.sd[place], found.variation[place])
        return Cell(tuple(printed(value, world, runs=() if nth else here) for nth, value in enumerate(values)), (),
                    SPREAD)  # fmt: skip

    rows = tuple(Row(f"{share:g}", tuple(cell(levels, share) for levels in sets.values())) for share in shares)
    made = Block(f"{study.key}-spread-{formats.slug(world)}", world,
                 f"S at each c. {study.scope.world.title}", "c", tuple(sets), rows,
                 ("mean", "sd", "sd / |mean|"))  # fmt: skip
    return filled(made, [say_peaks(sets), say_missing(made)])


SPREAD = "{} ± {} ({})"


def rows_of(study: Study, say: Say, template: str) -> tuple[Row, ...]:
    nothing = Cell((dash(study.scope.world.name),) * template.count("{}"), (), template)

    def cell(levels: Levels | None) -> Cell:
        return nothing if levels is None else Cell(say(levels), (), template)

    return tuple(Row(name, tuple(cell(row[one]) for one in study.sets)) for name, row in study.rows.items())


def printed(
    value: float, world: str, form: Form = formats.decimals, runs: tuple[str, ...] = (), note: str = ""
) -> Number:  # fmt: skip
    return Number(form(value), float(value), world, runs, note=note) if math.isfinite(value) else dash(world)


def block(
    study: Study, part: str, what: str, rows: Sequence[Row], quantities: tuple[str, ...],
    columns: tuple[str, ...] | None = None, notes: Sequence[str] = (),
) -> Block | None:  # fmt: skip
    """None where no result fills any cell."""
    world = study.scope.world
    key = "-".join(filter(None, (study.key, part, formats.slug(world.name))))
    bare = Block(key, world.name, f"{what}. {world.title}", study.corner, columns or study.sets, tuple(rows),
                 quantities)  # fmt: skip
    return filled(bare, [f"Target: {target_of(study)}.", say_draws(study), *notes, say_missing(bare)])


# ---------------------------------------------------------------------------------------- what is said


def target_of(study: Study) -> str:
    names = study.scope.world.targets
    labels = dict.fromkeys(str(run.question.target) for run in study.runs)
    return formats.listed([names.get(label, label) for label in labels])


def say_draws(study: Study) -> str:
    """How many draws and levels, of how many documents, and what was left out."""
    used = study.used()
    if not used:
        return ""
    draws, levels = ({count(one) for one in used} for count in (lambda one: len(one.scores_DL),
                                                                lambda one: len(one.levels)))  # fmt: skip
    sizes = {run.statistics.num_documents for one in used for run in one.runs}
    kept = {run.anchor for one in used for run in one.runs}
    text = (
        f"{formats.counts(draws)} draw{'s' * (draws != {1})} of {formats.counts(levels)} levels, "
        f"{formats.counts(sizes)} documents a set."
    )
    if left := len(study.runs) - len(kept):
        text += (
            f" {left} of {len(study.runs)} results are left out: invalid, of another recipe, or of a draw or a level "
            "that is not complete."
        )
    return text


def say_signs(rows: Sequence[Row], sets: Sequence[str]) -> str:
    """Which scores fall where they should rise."""
    falling = {row.name: [name for name, cell in zip(sets, row.cells, strict=False)
                          if (rho := cell.ours[0].value) is not None and rho < 0] for row in rows}  # fmt: skip
    told = [f"{name} on {formats.listed(where)}" for name, where in falling.items() if where]
    return f"Falls as c rises: {'; '.join(told)}." if told else "No score falls as c rises."


def say_peaks(sets: Mapping[str, Levels]) -> str:
    """Where S does not end at its highest."""
    peaks = {name: levels.levels[int(levels.mean_L.argmax())] for name, levels in sets.items()}
    told = [f"{name} at c = {peak:g}" for name, peak in peaks.items() if peak < sets[name].levels[-1]]
    return f"Highest before the end: {', '.join(told)}." if told else ""


def say_averages(rows: Sequence[Row]) -> str:
    """Over how many sets."""
    counts = {row.name: sum(not cell.missing for cell in row.cells[:-1]) for row in rows}
    of = max(counts.values(), default=0)
    fewer = [f"{name} {num}" for name, num in counts.items() if 0 < num < of]
    told = f"; fewer: {', '.join(fewer)}, which do not compare with the others" if fewer else ""
    return f"The average is over the {of} set{'s' * (of > 1)} with a number{told}." if of else ""


# ------------------------------------------------------------------------------------------- the tables


def table_1(scope: Scope) -> Filled:
    study = benchmarks(scope)
    return tables(correlations(study), each_draw(study), nothing="no benchmark with older members here.")


def table_2(scope: Scope) -> Filled:
    study = same_time(scope)
    return tables(correlations(study), each_draw(study))


def consistencies(scope: Scope) -> Filled:
    study = everything(scope, "consistency")
    return tables(rises(study), spreads(study))


def ablations(scope: Scope) -> Filled:
    study = by_setting(scope)
    return tables(correlations(study), each_draw(study), rises(study))


def epochs(scope: Scope) -> Filled:
    study = by_target_and_epochs(scope)
    return tables(correlations(study), each_draw(study), rises(study))


def control(scope: Scope) -> Filled:
    study = everything(scope, "control")
    return tables(correlations(study), each_draw(study), rises(study))
