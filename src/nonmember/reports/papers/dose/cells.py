"""The audits of the dose study as facts: what the target has read, and how often a decision was taken."""

from __future__ import annotations

import functools
import math
import statistics
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from nonmember.records.exposure import Exposure
from nonmember.reports.core import formats
from nonmember.reports.core.grid import Cell, Number, dash
from nonmember.reports.core.numbers import number_in
from nonmember.reports.core.worlds import Scope, select
from nonmember.results.load import Run
from nonmember.stats.clusters import ClusteredShare, clustered_share

OWN_BASE = "s"  # that of the controls, as data.base names it
CHOSEN = "chosen"  # these are keys of conf/report/dose.yaml
REPORTED = ("reported", "again", "aligned", "stand_in", "large", "attacks", "attacks_again")
GROUPS = {
    "reported": "the reported half",
    "again": "the reported half, second protocol",
    "aligned": "the reported half, mixtures of the controls",
    CHOSEN: "the half that features were chosen on",
}
CLEARED, FOUND, INVALID = "evidence_of_non_membership", "evidence_of_membership", "invalid"
MUCH_RELATED = 4  # readings of the sibling set
FACTOR = 1.5
CONFIDENCE = 0.95
NUM_RESAMPLES, SEED = 2000, 0
RATE = "{} of {} [{}, {}]"
QUANTITIES = ("found", "of", "low", "high")


def runs_of(scope: Scope, key: str) -> list[Run]:
    """Those of the sweeps with this key in conf/report/dose.yaml, by any base."""
    return select(scope.runs, method="dose", sweep=tuple(scope.sweeps[key]))


def of_own_base(scope: Scope, key: str) -> list[Run]:
    return select(runs_of(scope, key), base=OWN_BASE)


def exposure_of(run: Run) -> Exposure | None:
    """Of the target to the audited set, as the study planted it."""
    target = run.question.models.get("target")
    return target.exposure if target is not None else None


READINGS = {"never": 0, "once": 1, "twice": 2, "four_times": 4, "eight_times": 8}  # data.reading, in world=smollm


def dose_of(run: Run) -> int | None:
    """Readings of the whole set; None where that is unknown, or where a part of it was read. Of a published model's
    continuation those that were planted: what the model had read before nobody knows."""
    exposure = exposure_of(run)
    if exposure is None:
        return READINGS.get(run.get("reading") or "")
    return None if exposure.share < 1 else exposure.exposures


def related_of(run: Run) -> int:
    """The target's readings of the sibling set."""
    target = run.question.models.get("target")
    return target.related.exposures if target is not None and target.related is not None else 0


def with_dose(runs: Iterable[Run], dose: int) -> list[Run]:
    return [run for run in runs if dose_of(run) == dose]


def readers(runs: Iterable[Run]) -> list[Run]:
    """Of the whole set, once or more."""
    return [run for run in runs if (dose_of(run) or 0) >= 1]


def unread(runs: Iterable[Run], *, related: bool | None = None) -> list[Run]:
    """Of nothing of the set. related: whether the sibling set was read `MUCH_RELATED` times or more; None: either."""
    nothing = with_dose(runs, 0)
    return nothing if related is None else [run for run in nothing if (related_of(run) >= MUCH_RELATED) is related]


def doses(runs: Iterable[Run], *, least: int = 0) -> list[int]:
    """Planted, ascending."""
    return sorted({dose for run in runs if (dose := dose_of(run)) is not None and dose >= least})


def named(dose: int) -> str:
    return f"{dose}x" if dose else "nothing"


# ----------------------------------------------------------------------------------------------- decisions


def cleared(run: Run) -> bool:
    return run.verdict.decision == CLEARED


def found(run: Run) -> bool:
    """To be a member."""
    return run.verdict.decision == FOUND


def invalid(run: Run) -> bool:
    return run.verdict.decision == INVALID


def cleared_but_for_weights(run: Run) -> bool:
    """Whether it would be, were the gate that looks at weights not asked."""
    details, p_value = run.statistics.details, run.statistics.p_value
    others = all(gate["passed"] for name, gate in details.get("gates", {}).items() if name != "weights")
    p_exceeded = details.get("p_value_of_exceeded", 1.0)
    return others and p_value is not None and p_value < run.question.alpha <= p_exceeded


def near(estimate: float, dose: float) -> bool:
    """Within a factor of 1.5 of what was read."""
    return dose / FACTOR <= estimate <= dose * FACTOR


def estimate_of(run: Run) -> float | None:
    return number_in({"value": run.statistics.value}, "value")


def covered(run: Run) -> bool:
    """Whether the interval holds what was read."""
    return holds(run, dose_of(run))


def holds(run: Run, dose: float | None) -> bool:
    """Whether so many readings are in the interval; an end that is not given is open."""
    low, high = run.statistics.ci_low, run.statistics.ci_high
    return dose is not None and low is not None and low <= dose <= (math.inf if high is None else high)


def cleared_dose(run: Run) -> float:
    """Least dose such that it and all heavier ones are excluded; infinite where none is."""
    found = number_in(run.statistics.details, "cleared_dose")
    return math.inf if found is None else found


# --------------------------------------------------------------------------------------------------- rates


@dataclass(frozen=True)
class Rate:
    """How many of some audits were decided so. hits: of each of `runs`."""

    hits: tuple[bool, ...]
    runs: tuple[Run, ...]

    @functools.cached_property
    def share(self) -> ClusteredShare:
        """With its interval, sets and models as clusters."""
        return clustered_share(
            self.hits, [run.question.corpus for run in self.runs], [model_of(run) for run in self.runs],
            alpha=1 - CONFIDENCE, num_resamples=NUM_RESAMPLES, rng=np.random.default_rng(SEED),
        )  # fmt: skip


def model_of(run: Run) -> str:
    """The trained target; audits of other sets may share it."""
    return run.result.provenance.keys.get("target") or f"{run.get('run')}-{run.get('place')}"


def rate(runs: Sequence[Run], decides: Callable[[Run], bool]) -> Rate:
    return Rate(tuple(decides(run) for run in runs), tuple(runs))


def rate_cell(of: Rate, world: str, mark: str = "") -> Cell:
    """How many, with the interval of the share by clusters; the exact one is said beside it."""
    if not of.runs:
        return Cell(tuple(dash(world) for _ in QUANTITIES), (), RATE)
    return share_cell(of.share, of.runs, world, mark)


def share_cell(share: ClusteredShare, runs: Sequence[Run], world: str, mark: str = "") -> Cell:
    """As `rate_cell`, of a share of these."""
    anchors, num_hits = tuple(run.anchor for run in runs), round(share.share * len(runs))
    low, high = (percent(end) for end in share.exact)
    note = f"{percent(share.share)}; were audits independent: {low} to {high}; {share.num_clusters} sets"
    numbers = [Number(str(num_hits), float(num_hits), world, anchors, mark=mark if num_hits else "", note=note),
               Number(str(len(runs)), float(len(runs)), world, anchors)]  # fmt: skip
    return Cell((*numbers, *(Number(percent(end), end, world, anchors) for end in share.interval)), (), RATE)


def percent(share: float) -> str:
    return f"{share:.1%}"


def median_cell(values: Sequence[float], runs: Sequence[Run], world: str) -> Cell:
    """In readings."""
    if not values:
        return Cell((dash(world),))
    middle = statistics.median(values)
    anchors = tuple(run.anchor for run in runs)
    told, value = (formats.decimals(middle, 2), middle) if math.isfinite(middle) else ("none", None)
    return Cell((Number(told, value, world, anchors),))


def count_cell(runs: Sequence[Run], world: str) -> Cell:
    return Cell((Number(str(len(runs)), float(len(runs)), world, tuple(run.anchor for run in runs)),))
