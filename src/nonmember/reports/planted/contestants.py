"""The contestants of the arena: of each audit one number, the higher, the more of the set was read; a single score is
one too. What each needs and costs: of methods as `nonmember advise` knows it, of scores by their passes."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from nonmember import scores
from nonmember.advice.contestants import CONTESTANTS, Contestant, Cost
from nonmember.advice.situation import Situation
from nonmember.methods import method_named
from nonmember.methods.base import Claim
from nonmember.records.requirements import ACCESS, INPUTS, Input, Requirements
from nonmember.reports.core import formats
from nonmember.reports.core.grid import TableCell
from nonmember.reports.core.worlds import Scope, select
from nonmember.reports.planted.audits import (
    CONFIDENCE,
    NUM_RESAMPLES,
    SEED,
    dose_of,
    named,
    no_rate,
    question_of,
    share_cell,
)
from nonmember.results.load import Run
from nonmember.scores import Score
from nonmember.stats.clusters import ClusteredShare, clustered_tpr_at_fpr

ARENA, SIZES = "arena", "sizes"  # of conf/report/arena.yaml
ERRORS = (0.01, 0.05)  # false positives at which all are compared
READS_NO_MODEL = "blind"  # what does not lie above it does not need the model
LEVELS = "levels"  # whose results hold single scores
TOKENS = 95  # of a text of the study, on average

CLAIMS = {"non_membership": "not used", "membership": "used"}
SIGNS = {"prism": -1, "llm_di": -1}  # of a method's statistic, for higher to mean more read; of all others 1
RANKING, NOTHING = "a number", "nothing"


@dataclass(frozen=True)
class SingleScore:
    name: str  # as printed
    score: Score


SCORES = {  # as `levels` calls it
    single.score.name: single
    for single in (
        SingleScore("loss", scores.Loss()),
        SingleScore("zlib", scores.Zlib()),
        SingleScore("lowercase", scores.Lowercase()),
        SingleScore("top-20 loss", scores.TopLoss(20)),
        SingleScore("top-5 loss", scores.TopLoss(5)),
        SingleScore("Min-K%", scores.MinK(0.2)),
        SingleScore("Min-K%++", scores.MinKPlusPlus(0.2)),
        SingleScore("reference ratio", scores.ReferenceRatio()),
        SingleScore("DC-PDD", scores.DcPdd(0.01)),
        SingleScore("ReCaLL", scores.Recall(10)),
        SingleScore("WBC", scores.Wbc()),
        SingleScore("LiRA", scores.Lira()),
        SingleScore("RMIA", scores.Rmia()),
    )
}
BESIDE: Mapping[str, tuple[Input, ...]] = {  # of a result of `levels` -> what stands beside the score
    "means": (),
    "less_reference": ("reference",),
    "less_heldout": ("heldout",),
    "less_both": ("reference", "heldout"),
}
SHORT: Mapping[Input, str] = {"reference": "reference", "heldout": "held-out"}


@dataclass(frozen=True)
class Needs:
    """What a contestant needs."""

    access: str  # to the target, in words
    beside: tuple[str, ...]  # what else
    says: str  # what its verdict may speak for, or a number
    cost: Cost | None = None  # of an audit of a set of the arena's size, where it can be reckoned


def situation_of(documents: int) -> Situation:
    return Situation(access="weights", documents=documents, tokens=TOKENS)


def needs_of(contestant: Contestant, situation: Situation) -> Needs:
    return _needs(contestant.requirements, contestant.says, situation)


def _needs(needed: Requirements, says: Sequence[Claim], situation: Situation, beside: Sequence[Input] = ()) -> Needs:
    """beside: what a number stands beside. Passes go over that too."""
    passes = (needed.passes + ("reference" in beside)) * (1 + ("heldout" in beside))
    cost = Cost.of(replace(needed, passes=passes), situation)
    named = tuple(INPUTS[name].label for name in (*needed.inputs, *beside))
    return Needs(ACCESS[needed.access].label, named, " or ".join(CLAIMS[claim] for claim in says) or RANKING, cost)


def _needs_of_method(method: str, situation: Situation) -> Needs:
    """Of its first form that is advised, or of one that is not."""
    advised = next((item for item in CONTESTANTS if item.name == method), None)
    return needs_of(advised, situation) if advised else _needs(method_named(method).requirements, (), situation)


@dataclass(frozen=True)
class AuditEntry:
    """What a method says of an audit."""

    run: Run
    value: float  # the higher, the more of the set was read
    dose: int  # readings of the set
    target: str  # key of the model

    @property
    def corpus(self) -> str:
        return self.run.question.corpus


@dataclass(frozen=True)
class ArenaContestant:
    name: str  # as printed
    method: str  # as results call it
    needs: Needs
    entries: tuple[AuditEntry, ...] = field(repr=False)
    is_score: bool = False  # one of several that an audit tells

    @property
    def runs(self) -> tuple[Run, ...]:
        return tuple({item.run.path: item.run for item in self.entries}.values())

    def of(self, doses: Iterable[int], kind: str | None = None) -> list[AuditEntry]:
        """On sets (of a kind) that were read so often."""
        wanted = set(doses)
        return [item for item in self.entries if item.dose in wanted and kind in (None, item.run.domain)]

    def found(self, doses: Iterable[int], error: float, kind: str | None = None) -> ClusteredShare | None:
        """Of sets (of a kind) read so often, how many lie above all but a share `error` of the unread ones of any kind.
        With fewer unread sets than one over the error, above all of them."""
        read, unread = self.of(doses, kind), self.of([0])
        if not read or not unread:
            return None
        return clustered_tpr_at_fpr(
            [item.value for item in (*read, *unread)],
            np.repeat([True, False], [len(read), len(unread)]),
            [item.corpus for item in (*read, *unread)],
            [item.target for item in (*read, *unread)],
            fpr=error,
            alpha=1 - CONFIDENCE,
            num_resamples=NUM_RESAMPLES,
            rng=np.random.default_rng(SEED),
        )

    @property
    def claims(self) -> tuple[Claim, ...]:
        """What its verdicts may speak for, by its class or by what some result says; scores have none."""
        decisions = {run.verdict.decision for run in self.runs}
        own = method_named(self.method).claim
        if decisions == {"score_only"}:
            return ()
        return tuple(
            claim for claim in ("non_membership", "membership") if claim == own or f"evidence_of_{claim}" in decisions
        )

    @property
    def seconds(self) -> float | None:
        """Median of audits that trained or observed something themselves."""
        made = [run.result.provenance for run in self.runs]
        found = [item.seconds for item in made if item.made.get("tokens_observed") or item.made.get("models_trained")]
        return statistics.median(found) if found else None


def contestants(scope: Scope, key: str = ARENA, number: int | None = None) -> tuple[ArenaContestant, ...]:
    """In printed order, those that have results on the arena's questions; single scores last.

    Args:
        key: Of the sweeps; the first of these that has results says what is asked.
        number: Of documents, where that differs.
    """
    first = scope.sweep_of(key)
    audited = [run for run in select(scope.runs, sweep=tuple(scope.sweeps[key])) if number in (None, run.get("number"))]
    asked = {
        question_of(run): dose
        for run in audited
        if run.question.sweep == first
        if run.question.target is not None and (dose := dose_of(run)) is not None
    }
    situation = situation_of(number or 100)
    entered = []
    for method, tested, name, runs in tests_of(scope, audited):
        entries = _entries([(run, run.statistics.value) for run in runs], asked, SIGNS.get(method, 1))
        needs = _needs_of_method(method, situation)
        if tested is not None:
            needs = replace(needs, access=ACCESS[tested.score.requirements.access].label)
        entered.append(ArenaContestant(name, method, needs, entries))
    levels = select(audited, method=LEVELS)
    for score, single in SCORES.items():
        for less, beside in BESIDE.items():
            needs = _needs(single.score.requirements, (), situation, beside)
            entries = _entries(values_of(levels, less, score), asked)
            name = " less ".join(filter(None, (single.name, " and ".join(SHORT[item] for item in beside))))
            entered.append(ArenaContestant(name, LEVELS, needs, entries, is_score=True))
    return tuple(item for item in entered if item.entries)


def tests_of(scope: Scope, runs: Sequence[Run]) -> Iterator[tuple[str, SingleScore | None, str, list[Run]]]:
    """Method, score, printed name and results, in printed order. The score is told where results have several."""
    for method, name in scope.names["methods"].items():
        by_score: dict[str, list[Run]] = {}
        for run in select(runs, method=method):
            by_score.setdefault(run.question.score, []).append(run)
        for key, of_test in by_score.items():
            score = SCORES[key] if len(by_score) > 1 else None
            yield method, score, name if score is None else f"{name}, {score.name}", of_test


def values_of(levels: Sequence[Run], key: str, score: str) -> list[tuple[Run, float | None]]:
    """The numbers of a single score in results of `levels`."""
    return [(run, run.statistics.details.get(key, {}).get(score)) for run in levels]


def _entries(
    values: Iterable[tuple[Run, float | None]], asked: Mapping[tuple[str, str], int], sign: int = 1
) -> tuple[AuditEntry, ...]:
    """Each question once. What reads no model answers alike for every target of a set."""
    answered: dict[tuple[str, str], AuditEntry] = {}
    for run, value in values:
        if value is None or not math.isfinite(value):
            continue
        has_target, corpus = run.question.target is not None, run.question.corpus
        for question in [question_of(run)] if has_target else [item for item in asked if item[1] == corpus]:
            if question in asked:
                answered.setdefault(question, AuditEntry(run, sign * value, asked[question], question[0]))
    return tuple(answered.values())


def doses(entered: Sequence[ArenaContestant]) -> list[int]:
    """Planted, but none, ascending."""
    return sorted({entry.dose for item in entered for entry in item.entries if entry.dose})


def numbers(scope: Scope) -> list[int]:
    """Of documents, ascending."""
    found = {run.get("number") for run in select(scope.runs, sweep=tuple(scope.sweeps.get(SIZES, ())))}
    return sorted(item for item in found if isinstance(item, int))


def shown(entered: Sequence[ArenaContestant]) -> list[ArenaContestant]:
    """Those of which figures have a line: each method, by the first of its scores, and Min-K%++ by itself."""
    first = {item.method: item for item in reversed(entered) if not item.is_score}
    plain = SCORES["minkpp(0.2)"].name
    return [item for item in entered if first.get(item.method) is item or (item.is_score and item.name == plain)]


def by_name(entered: Sequence[ArenaContestant]) -> dict[str, ArenaContestant]:
    return {item.name: item for item in entered}


def columns_of(every: Sequence[int]) -> dict[str, int]:
    return {named(dose): dose for dose in every}


def found_cell(
    item: ArenaContestant, of: Sequence[int], error: float, world: str, kind: str | None = None
) -> TableCell:
    share = item.found(of, error, kind)
    return no_rate(world) if share is None else share_cell(share, [entry.run for entry in item.of(of, kind)], world)


def fewer_unread(entered: Sequence[ArenaContestant]) -> str:
    """Who was put to fewer unread sets than others, so that less is asked of it; empty where nobody was."""
    number = {item.name: len(item.of([0])) for item in entered}
    most = max(number.values(), default=0)
    few = [f"{name} ({unread})" for name, unread in number.items() if unread < most]
    if not few:
        return ""
    names = formats.listed(few)
    return f"Put to fewer than {most} unread sets, above which it is easier to lie, and not to be compared: {names}."
