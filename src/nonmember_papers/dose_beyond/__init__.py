"""What of the dose study's second report is computed: parts of a set, other text beside it, further changes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, ClassVar

from nonmember.records.exposure import NOT_READ, Exposure
from nonmember.reports.core.grid import TableCell
from nonmember.reports.core.report import Filled, Glance, tables
from nonmember.reports.core.worlds import Scope
from nonmember.reports.declared.report import DeclaredReport
from nonmember.reports.planted.audits import (
    MIXED,
    AuditGroup,
    cleared,
    dose_of,
    estimate_of,
    exposure_of,
    found,
    holds,
    invalid,
    is_reader,
    of_own_base,
    runs_of,
)
from nonmember.reports.render.blocks import cross_table
from nonmember.results.load import Run
from nonmember_papers.dose import by_label, verdicts
from nonmember_papers.dose.again import sizes

NO_ATTACK = "none"  # data.attack of an unchanged target


# ------------------------------------------------------------------------------------------------- parts of a set


def parts_of_sets(scope: Scope) -> Filled:
    """Rows: which share of the set was read, how often."""
    world, runs = scope.world.name, runs_of(scope, "shares")
    exposures = {exposure for run in runs if (exposure := exposure_of(run)) is not None}
    ordered = sorted(exposures, key=lambda item: (item.exposures > 0, item))
    rows = {
        _told(item): (AuditGroup([run for run in runs if exposure_of(run) == item], world), item) for item in ordered
    }
    columns: dict[str, Callable[[AuditGroup, Exposure], TableCell]] = {
        "audits": lambda group, of: group.count(),
        "not read": lambda group, of: group.rate(cleared, of.exposures > 0 and of.share == 1),
        "read": lambda group, of: group.rate(found, not of.exposures),
        "invalid": lambda group, of: group.where(invalid).count(),
        "readings per document": lambda group, of: group.median(lambda run: readings(of)),
        "median estimate": lambda group, of: group.median(estimate_of),
        "interval holds them": lambda group, of: group.rate(lambda run: holds(run, readings(of))),
        "told to be a part": lambda group, of: group.rate(is_told_a_part, of.share == 1),
        "its share told": lambda group, of: group.where(is_read).rate(lambda run: tells_share(run, of)),
    }
    notes = (
        "Readings per document: the share that was read times how often. Not read: the whole set was not read once or "
        "more, which is true of a part as well.",
        "Told to be a part: at every planted number of readings that fits best, or as well, the interval of the share "
        "ends below the whole (`partial_use`). Its share told: at the number of readings that was planted, the "
        "interval holds the share that was.",
    )
    return tables(
        cross_table(
            "shares",
            world,
            "Parts of a set",
            "target has read",
            rows,
            columns,
            MIXED,
            notes,
            lambda row, column: column(*row),
        )
    )


def is_read(run: Run) -> bool:
    """Any part of the set."""
    return (exposure := exposure_of(run)) is not None and exposure != NOT_READ


def readings(exposure: Exposure) -> float:
    """Per document of the set."""
    return exposure.share * exposure.exposures


def _told(exposure: Exposure) -> str:
    return "nothing" if exposure == NOT_READ else f"{exposure.share:.0%} of it {exposure.exposures}x"


def _regions(run: Run) -> list[Mapping[str, Any]]:
    return [item for item in run.statistics.details.get("partial_use", ()) if item["dose"] > 0]


def is_told_a_part(run: Run) -> bool:
    """Some of the set and not all of it, whatever number of readings fits."""
    fitting = [item for item in _regions(run) if item["compatible"]]
    return bool(fitting) and all(item["low"] > 0 and item["high"] < 1 for item in fitting)


def tells_share(run: Run, exposure: Exposure) -> bool:
    return any(
        item["dose"] == exposure.exposures and item["low"] <= exposure.share <= item["high"] for item in _regions(run)
    )


# --------------------------------------------------------------------------------- other text beside, and changes


def dilution(scope: Scope) -> Filled:
    """Verdicts by how much other text targets and controls read beside the sets."""
    kinds = by_label(runs_of(scope, "dilution"), "beside", scope.names.get("beside", {}))
    return tables(verdicts(scope, "dilution", "Verdicts by the text beside", "a reading is, target has read", kinds))


def changes(scope: Scope) -> Filled:
    """Verdicts on targets that were changed, by what these had read before."""
    runs = runs_of(scope, "attacks")
    kinds = by_label(runs, "attack", scope.names.get("attacks", {}))
    further = {"not read, but for weights": cleared_but_for_weights}
    return tables(
        verdicts(
            scope,
            "changes",
            "Verdicts on changed targets",
            "what was done, target had read",
            kinds,
            read_unchanged(runs),
            further,
        )
    )


def cleared_but_for_weights(run: Run) -> bool:
    """Whether it would be, were the gate that looks at weights not asked."""
    details, p_value = run.statistics.details, run.statistics.p_value
    others = all(gate["passed"] for name, gate in details.get("gates", {}).items() if name != "weights")
    p_exceeded = details.get("p_value_of_exceeded", 1.0)
    return others and p_value is not None and p_value < run.question.alpha <= p_exceeded


def paraphrases(scope: Scope) -> Filled:
    """Verdicts by whether the target has read the documents or a model's paraphrases of them."""
    runs = runs_of(scope, "paraphrases")
    kinds = by_label(runs, "attack", {NO_ATTACK: "the passages", "paraphrases": "paraphrases of them"})
    title = "Verdicts by what was read in place of the set"
    return tables(verdicts(scope, "paraphrases", title, "target has read", kinds, read_unchanged(runs)))


def read_unchanged(runs: Sequence[Run]) -> Callable[[Run], int | None]:
    """Of an audit: how often the target that was planted alike and not changed has read the set."""

    def planted_alike(run: Run) -> tuple[Any, ...]:
        return run.question.corpus, run.get("run"), run.get("place"), run.get("base")

    planted = {planted_alike(run): dose_of(run) for run in runs if run.get("attack") == NO_ATTACK}
    return lambda run: planted.get(planted_alike(run), dose_of(run))


def after(scope: Scope) -> Filled:
    """Verdicts where controls were taught to answer too, by whether the target was."""
    kinds = by_label(runs_of(scope, "after"), "attack", {"chat": "target taught too", NO_ATTACK: "target not taught"})
    title = "Verdicts by controls that were taught to answer"
    return tables(verdicts(scope, "after", title, "target has read", kinds))


# -------------------------------------------------------------------------------------------------- report


def cells_of_glance(scope: Scope) -> Iterator[TableCell]:
    shares, *others = (AuditGroup(of_own_base(scope, key), scope.world.name) for key in ("shares", "large", "dilution"))
    yield shares.where(lambda run: (of := exposure_of(run)) is not None and of.share < 1).rate(is_told_a_part)
    yield from (group.where(is_reader).verdict(cleared, 1) for group in others)


class DoseBeyondReport(DeclaredReport):
    special: ClassVar = {
        "shares": parts_of_sets,
        "dilution": dilution,
        "size": sizes,
        "attacks": changes,
        "paraphrases": paraphrases,
        "after": after,
    }

    def first_numbers(self) -> Glance:
        columns = (
            "half or quarter read, told to be a part",
            "sets of 500, cleared though read",
            "diluted, cleared though read",
        )
        return Glance(columns, cells_of_glance, self.glance_note)
