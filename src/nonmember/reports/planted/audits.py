"""What the target of an audit has read, and how often a decision was taken, as cells of tables."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from nonmember.reports.core import formats
from nonmember.reports.core.grid import FALSE, Numeral, TableCell, dash
from nonmember.reports.core.worlds import Scope, select
from nonmember.results.load import Run
from nonmember.stats.clusters import ClusteredShare, clustered_share

OWN_BASE = "s"  # that of the controls, as data.base names it
MUCH_RELATED = 4  # readings of the sibling set
FACTOR = 1.5
CONFIDENCE = 0.95
NUM_RESAMPLES, SEED = 2000, 0
READINGS = {"never": 0, "once": 1, "twice": 2, "four_times": 4, "eight_times": 8}  # data.reading, in world=smollm
RATE = "{} of {} [{}, {}]"
QUANTITIES = ("found", "of", "low", "high")
MIXED = ("value", *QUANTITIES[1:])  # of tables with medians beside rates
CLUSTERED = (
    "In brackets 95% intervals of the share, by resampling sets and trained models, both with replacement. Where no "
    "audit errs, or all do, resampling says nothing, and the exact binomial interval of as many trials as there are "
    "sets is shown; so none of many can have a wider interval than one of many, for which resampling may give one that "
    "is too narrow. The exact interval, as if audits were independent, is given with the first number (in the CSV, and "
    "on the page when the pointer is on it)."
)


def runs_of(scope: Scope, key: str) -> list[Run]:
    """By the dose meter, of the report's sweeps with this key, of targets of any base."""
    return select(scope.runs, method="dose", sweep=tuple(scope.sweeps[key]))


def of_own_base(scope: Scope, key: str) -> list[Run]:
    return select(runs_of(scope, key), base=OWN_BASE)


def dose_of(run: Run) -> int | None:
    """Readings of the whole set; None where that is unknown, or where a part of it was read. Of a published model's
    continuation those that were planted: what the model had read before nobody knows."""
    exposure = run.question.target_exposure
    if exposure is None:
        return READINGS.get(run.get("reading") or "")
    return None if exposure.share < 1 else exposure.exposures


def related_of(run: Run) -> int:
    """The target's readings of the sibling set."""
    target = run.question.models.get("target")
    return target.related.exposures if target is not None and target.related is not None else 0


def is_reader(run: Run) -> bool:
    """Of the whole set, once or more."""
    return (dose_of(run) or 0) >= 1


def is_unread(run: Run) -> bool:
    return dose_of(run) == 0


def reads_related(run: Run) -> bool:
    """Often."""
    return related_of(run) >= MUCH_RELATED


def read(dose: int) -> Callable[[Run], bool]:
    """So often, exactly."""
    return lambda run: dose_of(run) == dose


def doses(runs: Iterable[Run], *, least: int = 0) -> list[int]:
    """Planted, ascending."""
    return sorted({dose for run in runs if (dose := dose_of(run)) is not None and dose >= least})


def named(dose: int) -> str:
    return f"{dose}x" if dose else "nothing"


def model_of(run: Run) -> str:
    """The trained target; audits of other sets may share it."""
    return run.result.provenance.keys.get("target") or f"{run.get('run')}-{run.get('place')}"


def question_of(run: Run) -> tuple[str, str]:
    """Target and suspect set."""
    return model_of(run), run.question.corpus


def _decided(decision: str) -> Callable[[Run], bool]:
    return lambda run: run.verdict.decision == decision


cleared, found = _decided("evidence_of_non_membership"), _decided("evidence_of_membership")
invalid = _decided("invalid")


def estimate_of(run: Run) -> float | None:
    return run.statistics.value


def is_near(run: Run) -> bool:
    """Whether the estimate is within a factor of 1.5 of what was read."""
    estimate, dose = estimate_of(run), dose_of(run)
    return estimate is not None and dose is not None and dose / FACTOR <= estimate <= dose * FACTOR


def covered(run: Run) -> bool:
    """Whether the interval holds what was read; an end that is not given is open."""
    dose, low, high = dose_of(run), run.statistics.ci_low, run.statistics.ci_high
    return dose is not None and low is not None and low <= dose <= (math.inf if high is None else high)


@dataclass(frozen=True)
class AuditGroup:
    """Audits of one kind, of which each method makes a cell."""

    runs: Sequence[Run]
    world: str

    def where(self, *conditions: Callable[[Run], bool]) -> AuditGroup:
        return AuditGroup([run for run in self.runs if all(is_so(run) for is_so in conditions)], self.world)

    def count(self) -> TableCell:
        return number_cell(str(len(self.runs)), len(self.runs), self.world, self.runs)

    def rate(self, decides: Callable[[Run], bool], is_false: bool = False) -> TableCell:
        """How many were decided so, with the interval of the share by sets and models."""
        if not self.runs:
            return no_rate(self.world)
        share = clustered_share(
            list(map(decides, self.runs)),
            [run.question.corpus for run in self.runs],
            [model_of(run) for run in self.runs],
            alpha=1 - CONFIDENCE,
            num_resamples=NUM_RESAMPLES,
            rng=np.random.default_rng(SEED),
        )
        return share_cell(share, self.runs, self.world, is_false)

    def verdict(self, decides: Callable[[Run], bool], dose: int) -> TableCell:
        """`cleared` or `found`, marked where it is false of targets that read so often."""
        return self.rate(decides, (dose > 0) is (decides is cleared))

    def median(self, value: Callable[[Run], float | None]) -> TableCell:
        """In readings; `none` where it is not finite."""
        values = [found for run in self.runs if (found := value(run)) is not None]
        if not values:
            return TableCell((dash(self.world),))
        middle = statistics.median(values)
        if not math.isfinite(middle):
            return number_cell("none", None, self.world, self.runs)
        return number_cell(formats.decimals(middle, 2), middle, self.world, self.runs)


def share_cell(share: ClusteredShare, runs: Sequence[Run], world: str, is_false: bool = False) -> TableCell:
    """A share of these audits with its interval; the exact one is said beside it."""
    low, high = share.exact
    note = f"{share.share:.1%}; were audits independent: {low:.1%} to {high:.1%}; {share.num_clusters} sets"
    return rate_of(round(share.share * len(runs)), len(runs), share.interval, world, runs, is_false, note)


def rate_of(
    count: int,
    of: int,
    interval: Iterable[float | None],
    world: str,
    runs: Sequence[Run] = (),
    is_false: bool = False,
    note: str = "",
) -> TableCell:
    """`count of of [low, high]`, marked where anything was counted that is false."""
    anchors = tuple(run.anchor for run in runs)
    ends = (dash(world) if end is None else Numeral(f"{end:.1%}", end, world, anchors) for end in interval)
    first = Numeral(str(count), float(count), world, anchors, mark=FALSE if is_false and count else "", note=note)
    return TableCell((first, Numeral(str(of), float(of), world, anchors), *ends), (), RATE)


def no_rate(world: str) -> TableCell:
    return TableCell(tuple(dash(world) for _ in QUANTITIES), (), RATE)


def number_cell(text: str, value: float | None, world: str, runs: Sequence[Run] = (), mark: str = "") -> TableCell:
    number = Numeral(text, None if value is None else float(value), world, tuple(run.anchor for run in runs), mark=mark)
    return TableCell((number,))
