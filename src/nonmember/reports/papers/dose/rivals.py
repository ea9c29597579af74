"""Other methods on the audits of the dose study: of each audit one number, the higher, the more of the set was read."""

from __future__ import annotations

import functools
import math
import statistics
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from nonmember.records import FloatArray
from nonmember.records.groups import SUSPECT, THIRD
from nonmember.reports.core.documents import DocumentValues, read_values
from nonmember.reports.core.worlds import Scope, select
from nonmember.reports.papers.dose.cells import CONFIDENCE, NUM_RESAMPLES, SEED, dose_of, model_of, of_own_base
from nonmember.reports.papers.dose.reread import REFERENCE, TARGET
from nonmember.results.load import Run
from nonmember.stats.clusters import ClusteredShare, clustered_tpr_at_fpr

KEYS = ("rivals", "rivals_heldout")  # of conf/report/dose.yaml
ERROR = 0.05  # false positives, or false clearances, at which all are compared
METER = "dose meter"
MEMBERSHIP, NON_MEMBERSHIP = 1, -1  # what a high statistic speaks for
METHODS = {  # by method: name, what it needs besides target and suspect set, and the sign of its statistic
    "prism": ("PRISM", "unread reference, distilled", NON_MEMBERSHIP),
    "paired_t": ("paired t", "unread reference, distilled", MEMBERSHIP),  # its test claims non-membership of a low t
    "kds": ("KDS", "weights to tune", MEMBERSHIP),
    "fsd": ("FSD", "weights to tune, two unread texts of the same kind", MEMBERSHIP),
    "llm_di": ("LLM-DI", "unread text of the same kind", NON_MEMBERSHIP),  # t of the suspect set less the held-out one
}
SCORES = {"loss": "loss", "Min-K%++": "minkpp(1)"}  # printed name -> column of scores.parquet
AGAINST = {  # how a score becomes a statistic -> what that needs
    "": "nothing",
    " less reference": "unread reference",
    " less reference and third text": "unread reference, unread third text of any kind",
}


@dataclass(frozen=True)
class Audited:
    """value: the statistic, the higher, the more was read.   dose: readings of the set."""

    run: Run
    value: float
    dose: int


@dataclass(frozen=True)
class Rival:
    """A method, or a score, with its audits. needs: besides the target and the suspect set.   method: as results call
    it; empty for scores, which need no audit."""

    name: str
    needs: str
    audits: tuple[Audited, ...]
    method: str = ""

    def read(self, dose: int) -> list[Audited]:
        return [one for one in self.audits if one.dose == dose]

    def found(self, dose: int) -> ClusteredShare | None:
        """Of sets read so often, how many lie above all but 5% of the unread ones."""
        return _told_apart(self.read(dose), self.read(0), MEMBERSHIP)

    def cleared(self, dose: int) -> ClusteredShare | None:
        """Of unread sets, how many lie below all but 5% of the sets that were read so often."""
        return _told_apart(self.read(0), self.read(dose), NON_MEMBERSHIP)

    @property
    def seconds(self) -> float | None:
        """Median over audits; None for scores."""
        found = [run.result.provenance.seconds for run in self.runs] if self.method else []
        return statistics.median(found) if found else None

    @property
    def runs(self) -> list[Run]:
        return [one.run for one in self.audits]

    def on(self, sets: frozenset[str]) -> Rival:
        return replace(self, audits=tuple(one for one in self.audits if one.run.question.corpus in sets))


def _told_apart(positives: Sequence[Audited], negatives: Sequence[Audited], sign: int) -> ClusteredShare | None:
    every = [*positives, *negatives]
    if not positives or not negatives:
        return None
    return clustered_tpr_at_fpr(
        [sign * one.value for one in every], np.repeat([True, False], [len(positives), len(negatives)]),
        [one.run.question.corpus for one in every], [model_of(one.run) for one in every],
        fpr=ERROR, alpha=1 - CONFIDENCE, num_resamples=NUM_RESAMPLES, rng=np.random.default_rng(SEED),
    )  # fmt: skip


@dataclass(frozen=True)
class Comparison:
    """The dose meter first, then the other methods, then scores.   read: files of scores and their SHA-256.
    notes: what was left out."""

    rivals: tuple[Rival, ...]
    read: Mapping[str, str]
    notes: tuple[str, ...] = ()

    @functools.cached_property
    def doses(self) -> list[int]:
        """Planted, but none, ascending."""
        return sorted({one.dose for rival in self.rivals for one in rival.audits if one.dose})

    @functools.cached_property
    def common(self) -> frozenset[str]:
        """The sets that every method was run on; empty where those are all sets."""
        by_rival = [frozenset(run.question.corpus for run in rival.runs) for rival in self.rivals]
        shared = frozenset.intersection(*by_rival)
        return shared if shared != frozenset.union(*by_rival) else frozenset()


def comparison(scope: Scope) -> Comparison | None:
    """On the audits of the reported half that other methods were run on: same target, same set, each counted once."""
    others = [run for key in KEYS for run in select(scope.runs, sweep=tuple(scope.sweeps[key]))]
    asked = {question_of(run) for run in others if run.question.method in METHODS}
    known = [run for run in of_own_base(scope, "reported") if dose_of(run) is not None]
    meter = {question_of(run): run for run in known if question_of(run) in asked}
    if not meter:
        return None
    needs = "planted controls of the base, unread reference, unread third text"
    rivals = [_rival(METER, needs, "dose", list(meter.values()))]
    for method, (name, needs, sign) in METHODS.items():
        runs = {question_of(run): run for run in select(others, method=method) if question_of(run) in meter}
        rivals += [_rival(name, needs, method, list(runs.values()), sign)] if runs else []
    return _with_scores(rivals, list(meter.values()), len(asked - set(meter)))


def question_of(run: Run) -> tuple[str, str]:
    """Target and suspect set."""
    return model_of(run), run.question.corpus


def _rival(name: str, needs: str, method: str, runs: Sequence[Run], sign: int = MEMBERSHIP) -> Rival:
    told = [(run, run.statistics.value, dose_of(run)) for run in runs]
    audits = [Audited(run, sign * value, dose) for run, value, dose in told
              if value is not None and math.isfinite(value) and dose is not None]  # fmt: skip
    return Rival(name, needs, tuple(audits), method)


def _with_scores(rivals: Sequence[Rival], meter: Sequence[Run], num_alone: int) -> Comparison:
    """num_alone: questions that the dose meter was not asked."""
    by_name: dict[str, list[Audited]] = {}
    needs: dict[str, str] = {}
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
            for (against, need), value in zip(AGAINST.items(), statistics_of(values, score), strict=True):
                by_name.setdefault(name + against, []).append(Audited(run, value, dose_of(run) or 0))
                needs[name + against] = need
    scores = (Rival(name, needs[name], tuple(audits)) for name, audits in by_name.items())
    notes = [f"Scores of {number} audits left out: {why}." for why, number in why_not.items()]
    if num_alone:
        notes.append(f"{num_alone} pairs of target and set left out, which the dose meter was not asked about.")
    return Comparison((*(rival for rival in rivals if rival.audits), *scores), read, tuple(notes))


def statistics_of(values: DocumentValues, score: str) -> tuple[float, float, float]:
    """Mean over the set of the target's score; less the reference's; and less the same on the third text. Documents
    without a score are left out."""

    def own(group: str) -> FloatArray:
        return values.columns[group][f"{TARGET}/{score}"]

    def gain(group: str) -> float:
        return float(np.nanmean(own(group) - values.columns[group][f"{REFERENCE}/{score}"]))

    return float(np.nanmean(own(SUSPECT))), gain(SUSPECT), gain(SUSPECT) - gain(THIRD)
