"""The second report of the dose study: parts of a set, other text beside it, more documents, further changes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, ClassVar

from nonmember.records.exposure import NOT_READ, Exposure
from nonmember.reports.core.grid import FALSE, Block, Cell, Row
from nonmember.reports.core.report import Filled, Glance, Part, Report, tables
from nonmember.reports.core.worlds import Scope
from nonmember.reports.papers.dose import again
from nonmember.reports.papers.dose.cells import (
    cleared,
    cleared_but_for_weights,
    count_cell,
    dose_of,
    estimate_of,
    exposure_of,
    found,
    holds,
    invalid,
    median_cell,
    of_own_base,
    rate,
    rate_cell,
    readers,
    runs_of,
)
from nonmember.reports.papers.dose.tables import CLUSTERED, MIXED, by_label, verdicts
from nonmember.reports.render.blocks import filled
from nonmember.results.load import Run

NO_ATTACK = "none"  # data.attack of an unchanged target


# ------------------------------------------------------------------------------------------------- parts of a set


def parts_of_sets(scope: Scope) -> Filled:
    """Rows: which share of the set was read, how often."""
    world = scope.world.name
    by_exposure: dict[Exposure, list[Run]] = {}
    for run in runs_of(scope, "shares"):
        if (exposure := exposure_of(run)) is not None:
            by_exposure.setdefault(exposure, []).append(run)

    def cells(exposure: Exposure, runs: list[Run]) -> Iterator[Cell]:
        readings = exposure.share * exposure.exposures
        estimates = [value for run in runs if (value := estimate_of(run)) is not None]
        yield count_cell(runs, world)
        yield rate_cell(rate(runs, cleared), world, FALSE if readings and exposure.share == 1 else "")
        yield rate_cell(rate(runs, found), world, "" if readings else FALSE)
        yield count_cell([run for run in runs if invalid(run)], world)
        yield median_cell([readings] * len(runs), runs, world)
        yield median_cell(estimates, runs, world)
        yield rate_cell(rate(runs, lambda run: holds(run, readings)), world)
        yield rate_cell(rate(runs, is_told_a_part), world, "" if 0 < exposure.share < 1 else FALSE)
        yield rate_cell(rate(runs, partial(tells_share, exposure=exposure)) if readings else rate([], cleared), world)

    rows = tuple(
        Row(_told(exposure), tuple(cells(exposure, runs)))
        for exposure, runs in sorted(by_exposure.items(), key=lambda item: (item[0].exposures > 0, item[0]))
    )
    columns = ("audits", "not read", "read", "invalid", "readings per document", "median estimate",
               "interval holds them", "told to be a part", "its share told")  # fmt: skip
    notes = (
        "Readings per document: the share that was read times how often. Not read: the whole set was not read once or "
        "more, which is true of a part as well.",
        "Told to be a part: at every planted number of readings that fits best, or as well, the interval of the share "
        "ends below the whole (`partial_use`). Its share told: at the number of readings that was planted, the "
        "interval holds the share that was.",
    )
    return tables(filled(Block("shares", world, "Parts of a set", "target has read", columns, rows, MIXED), notes)
                  if rows else None)  # fmt: skip


def _told(exposure: Exposure) -> str:
    if exposure == NOT_READ:
        return "nothing"
    return f"{exposure.share:.0%} of it {exposure.exposures}x"


def _regions(run: Run) -> list[Mapping[str, Any]]:
    return [one for one in run.statistics.details.get("partial_use", ()) if one["dose"] > 0]


def is_told_a_part(run: Run) -> bool:
    """Some of the set and not all of it, whatever number of readings fits."""
    fitting = [one for one in _regions(run) if one["compatible"]]
    return bool(fitting) and all(one["low"] > 0 and one["high"] < 1 for one in fitting)


def tells_share(run: Run, exposure: Exposure) -> bool:
    return any(one["dose"] == exposure.exposures and one["low"] <= exposure.share <= one["high"]
               for one in _regions(run))  # fmt: skip


# --------------------------------------------------------------------------------- other text beside, and changes


def dilution(scope: Scope) -> Filled:
    """Verdicts by how much other text targets and controls read beside the sets."""
    kinds = by_label(runs_of(scope, "dilution"), "beside", scope.names.get("beside", {}))
    return tables(verdicts(scope, "dilution", "Verdicts by the text beside", "a reading is, target has read", kinds))


def changes(scope: Scope) -> Filled:
    """Verdicts on targets that were changed, by what these had read before."""
    runs = runs_of(scope, "attacks")
    kinds = by_label(runs, "attack", scope.names.get("attacks", {}))
    title = "Verdicts on changed targets"
    further = {"not read, but for weights": cleared_but_for_weights}
    return tables(
        verdicts(scope, "changes", title, "what was done, target had read", kinds, read_unchanged(runs), further)
    )


def paraphrases(scope: Scope) -> Filled:
    """Verdicts by whether the target has read the documents or a model's paraphrases of them."""
    runs = runs_of(scope, "paraphrases")
    kinds = by_label(runs, "attack", {NO_ATTACK: "the passages", "paraphrases": "paraphrases of them"})
    title = "Verdicts by what was read in place of the set"
    return tables(verdicts(scope, "paraphrases", title, "target has read", kinds, read_unchanged(runs)))


def read_unchanged(runs: Sequence[Run]) -> Callable[[Run], int | None]:
    """Of an audit: how often the target of the same place that was not changed has read the set."""
    planted = {_place(run): dose_of(run) for run in runs if run.get("attack") == NO_ATTACK}
    return lambda run: planted.get(_place(run), dose_of(run))


def after(scope: Scope) -> Filled:
    """Verdicts where controls were taught to answer too, by whether the target was."""
    kinds = by_label(runs_of(scope, "after"), "attack", {"chat": "target taught too", NO_ATTACK: "target not taught"})
    title = "Verdicts by controls that were taught to answer"
    return tables(verdicts(scope, "after", title, "target has read", kinds))


def _place(run: Run) -> tuple[Any, ...]:
    """Set and target before any change: targets of one run and place are planted alike."""
    return run.question.corpus, run.get("run"), run.get("place"), run.get("base")


PARTS = (
    Part(
        "shares", "Parts of a set",
        "Targets that have read a half or a quarter of each set, some documents often and the others never. Controls "
        "read whole sets.",
        fill=parts_of_sets, made_by=("shares",),
    ),
    Part(
        "dilution", "How much other text was read beside",
        "Six sets in little and in much other text; controls read as much of it as targets.",
        fill=dilution, made_by=("dilution",),
    ),
    Part(
        "size", "How many documents it takes",
        "Sets of 500 documents, with controls of their own, and the first of them.",
        fill=again.sizes, made_by=("large",),
    ),
    Part(
        "attacks", "Targets that were changed",
        "What could hide that a set was read, done to targets that read it and to some that did not; and a reference "
        "that has read it. How often a changed target had read the set is what the unchanged one had; of near "
        "duplicates how often these were read, the documents themselves never. Not read, but for weights: what would "
        "be cleared, were it not asked how far the target's weights have moved.",
        fill=changes, made_by=("attacks",),
    ),
    Part(
        "paraphrases", "Paraphrases",
        "Passages of novels, of which a model has written paraphrases; targets read these, as often as their fellows "
        "read the passages. What is audited are the passages, which targets of the second kind never saw.",
        fill=paraphrases, made_by=("paraphrases",),
    ),
    Part(
        "after", "Controls that were changed alike",
        "What a target was trained on after it had read makes it forget, and controls that were trained on it too "
        "forget as much (`method.controls.afterwards`). Here targets and controls were taught to answer.",
        fill=after, made_by=("after",),
    ),
)  # fmt: skip
NOTES = (
    "Truth is known in this world: every model was trained here, on text that its recipe names.",
    "These came after the study's two protocols and stand in neither. Features and gates are those of the second, and "
    "a gate on how far the target's weights have moved.",
    CLUSTERED,
    "A dash is a cell without a result. It is never a zero.",
)
AT_A_GLANCE: Mapping[str, tuple[str, Callable[[Run], bool]]] = {
    "half or quarter read, told to be a part": ("shares", is_told_a_part),
    "sets of 500, cleared though read": ("large", cleared),
    "diluted, cleared though read": ("dilution", cleared),
}


def cells_of_glance(scope: Scope) -> Iterator[Cell]:
    for key, decides in AT_A_GLANCE.values():
        runs = of_own_base(scope, key)
        asked: Sequence[Run] = (
            [run for run in runs if (one := exposure_of(run)) and one.share < 1] if key == "shares" else readers(runs)
        )
        yield rate_cell(rate(asked, decides), scope.world.name, "" if decides is is_told_a_part else FALSE)


class DoseBeyondReport(Report):
    methods: ClassVar = ("dose",)
    parts: ClassVar = PARTS
    glance: ClassVar = Glance(tuple(AT_A_GLANCE), cells_of_glance, "Targets of the controls' own base.")
    notes: ClassVar = NOTES
    marks: ClassVar = {FALSE: "the truth says otherwise"}
