"""The contestants: of each audit one number, the higher, the more of the set was read; a single score is one too."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from nonmember.methods import method_named
from nonmember.methods.base import Claim
from nonmember.models.access import Access
from nonmember.reports.core.worlds import Scope, select
from nonmember.reports.papers.arena.needs import ACCESS, HELDOUT, REFERENCE, UNSEEN, Needs, needs_of_method, of_score
from nonmember.reports.papers.arena.needs import situation_of as situation_of_set
from nonmember.reports.planted.audits import CONFIDENCE, NUM_RESAMPLES, SEED, SIGNS, dose_of, model_of
from nonmember.results.load import Run
from nonmember.stats.clusters import ClusteredShare, clustered_tpr_at_fpr

ARENA, SIZES = "arena", "sizes"  # of conf/report/arena.yaml
ERRORS = (0.01, 0.05)  # false positives at which all are compared
READS_NO_MODEL = "blind"  # what does not lie above it does not need the model
LEVELS = "levels"  # whose results hold single scores
TOKENS = 95  # of a text of the study, on average


@dataclass(frozen=True)
class SingleScore:
    """name: as printed.   access: to the target.   passes: over the documents.   beside: what it needs by itself."""

    name: str
    access: Access
    passes: int = 1
    beside: tuple[str, ...] = ()


SCORES = {  # as `levels` calls it
    "loss": SingleScore("loss", Access.PROMPT_LOGPROBS),
    "zlib": SingleScore("zlib", Access.PROMPT_LOGPROBS),
    "lowercase": SingleScore("lowercase", Access.PROMPT_LOGPROBS, passes=2),
    "top_loss(20)": SingleScore("top-20 loss", Access.TOP_LOGPROBS),
    "top_loss(5)": SingleScore("top-5 loss", Access.TOP_LOGPROBS),
    "mink(0.2)": SingleScore("Min-K%", Access.PROMPT_LOGPROBS),
    "minkpp(0.2)": SingleScore("Min-K%++", Access.FULL_LOGITS),
    "ref_ratio": SingleScore("reference ratio", Access.PROMPT_LOGPROBS, passes=2, beside=(REFERENCE,)),
    "dcpdd(0.01)": SingleScore("DC-PDD", Access.WEIGHTS, beside=("general text",)),
    "recall(10)": SingleScore("ReCaLL", Access.WEIGHTS, passes=12, beside=(UNSEEN,)),
    "grad_norm(max)": SingleScore("GradNorm", Access.WEIGHTS, passes=3),
    "neighbourhood(5)": SingleScore("neighbourhood", Access.PROMPT_LOGPROBS, passes=6),
}
BESIDE = {  # of a result of `levels` -> what stands beside the score
    "means": (),
    "less_reference": (REFERENCE,),
    "less_heldout": (HELDOUT,),
    "less_both": (REFERENCE, HELDOUT),
}
SHORT = {REFERENCE: "reference", HELDOUT: "held-out"}


@dataclass(frozen=True)
class Entry:
    """An audit: its number, and how often the set was read.   target: key of the model."""

    run: Run
    value: float
    dose: int
    target: str

    @property
    def corpus(self) -> str:
        return self.run.question.corpus

    @property
    def kind(self) -> str:
        """Library of the set."""
        return self.run.domain


@dataclass(frozen=True)
class Contestant:
    """name: as printed.   method: as results call it.   is_score: one of several that an audit tells."""

    name: str
    method: str
    needs: Needs
    entries: tuple[Entry, ...] = field(repr=False)
    is_score: bool = False

    @property
    def runs(self) -> tuple[Run, ...]:
        return tuple({one.run.path: one.run for one in self.entries}.values())

    def with_dose(self, dose: int) -> list[Entry]:
        return [one for one in self.entries if one.dose == dose]

    def found(self, doses: Iterable[int], error: float, kind: str | None = None) -> ClusteredShare | None:
        """Of sets (of a kind) read so often, how many lie above all but a share `error` of the unread ones of any kind.
        With fewer unread sets than one over the error, above all of them."""
        wanted = set(doses)
        read = [one for one in self.entries if one.dose in wanted and kind in (None, one.kind)]
        unread = self.with_dose(0)
        if not read or not unread:
            return None
        every = [*read, *unread]
        return clustered_tpr_at_fpr(
            [one.value for one in every], np.repeat([True, False], [len(read), len(unread)]),
            [one.corpus for one in every], [one.target for one in every],
            fpr=error, alpha=1 - CONFIDENCE, num_resamples=NUM_RESAMPLES, rng=np.random.default_rng(SEED),
        )  # fmt: skip

    @property
    def claims(self) -> tuple[Claim, ...]:
        """What its verdicts may speak for, by its class or by what some result says; scores have none."""
        said = {run.verdict.decision for run in self.runs}
        own = method_named(self.method).claim
        if said == {"score_only"}:
            return ()
        return tuple(
            claim for claim in ("non_membership", "membership") if claim == own or f"evidence_of_{claim}" in said
        )

    @property
    def seconds(self) -> float | None:
        """Median of audits that trained or observed something themselves."""
        made = [run.result.provenance for run in self.runs]
        found = [one.seconds for one in made if one.made.get("tokens_observed") or one.made.get("models_trained")]
        return statistics.median(found) if found else None


def contestants(scope: Scope, key: str = ARENA, number: int | None = None) -> tuple[Contestant, ...]:
    """In printed order, those that have results on the arena's questions; single scores last.

    key: of the sweeps; the first of these that has results says what is asked.   number: of documents, where that
    differs.
    """
    first = scope.sweep_of(key)
    audited = [run for run in select(scope.runs, sweep=tuple(scope.sweeps[key])) if number in (None, run.get("number"))]
    asked = {question_of(run): dose for run in audited if run.question.sweep == first
             if run.question.target is not None and (dose := dose_of(run)) is not None}  # fmt: skip
    situation = situation_of_set(number or 100, TOKENS)
    found = []
    for method, tested, name, runs in tests_of(scope, audited):
        entries = tuple(_entries(runs, asked, sign_of(method)))
        if not entries:
            continue
        needs = needs_of_method(method, situation)
        if tested is not None:
            needs = replace(needs, access=ACCESS[tested.access])
        found.append(Contestant(name, method, needs, entries))
    levels = select(audited, method=LEVELS)
    for score, single in SCORES.items():
        for told, beside in BESIDE.items():
            entries = tuple(_entries(levels, asked, 1, told, score))
            if entries:
                passes = (single.passes + (REFERENCE in beside)) * (1 + (HELDOUT in beside))
                needs = of_score(single.access, passes, (*single.beside, *beside), situation)
                less = f" less {' and '.join(SHORT[one] for one in beside)}" if beside else ""
                found.append(Contestant(single.name + less, LEVELS, needs, entries, is_score=True))
    return tuple(found)


def tests_of(scope: Scope, runs: Sequence[Run]) -> Iterator[tuple[str, SingleScore | None, str, list[Run]]]:
    """Method, score, printed name and results, in printed order. The score is told where results have several."""
    for method, name in scope.names["methods"].items():
        by_score: dict[str, list[Run]] = {}
        for run in select(runs, method=method):
            by_score.setdefault(run.question.score, []).append(run)
        for key, of_test in by_score.items():
            score = SCORES[key] if len(by_score) > 1 else None
            yield method, score, name if score is None else f"{name}, {score.name}", of_test


def sign_of(method: str) -> int:
    """Of the statistic, for higher to mean more read."""
    return SIGNS.get(method, 1)


def _entries(
    runs: Sequence[Run], asked: Mapping[tuple[str, str], int], sign: int, told: str = "", score: str = ""
) -> Iterator[Entry]:
    """Each question once. What reads no model answers alike for every target of a set.

    told, score: the number of a result of `levels`; without: the statistic.
    """
    answered: dict[tuple[str, str], Entry] = {}
    for run in runs:
        value = run.statistics.details.get(told, {}).get(score) if told else run.statistics.value
        if value is None or not math.isfinite(value):
            continue
        own = [question_of(run)] if run.question.target is not None else [
            one for one in asked if one[1] == run.question.corpus
        ]  # fmt: skip
        for question in own:
            if question in asked:
                answered.setdefault(question, Entry(run, sign * value, asked[question], question[0]))
    yield from answered.values()


def question_of(run: Run) -> tuple[str, str]:
    """Target and suspect set."""
    return model_of(run), run.question.corpus


def doses(entered: Sequence[Contestant]) -> list[int]:
    """Planted, but none, ascending."""
    return sorted({entry.dose for one in entered for entry in one.entries if entry.dose})


def kinds(entered: Sequence[Contestant]) -> list[str]:
    return sorted({entry.kind for one in entered for entry in one.entries})


def numbers(scope: Scope) -> list[int]:
    """Of documents, ascending."""
    found = {run.get("number") for run in select(scope.runs, sweep=tuple(scope.sweeps.get(SIZES, ())))}
    return sorted(one for one in found if isinstance(one, int))


def shown(entered: Sequence[Contestant]) -> list[Contestant]:
    """Those of which figures have a line: each method, by the first of its scores, and Min-K%++ by itself."""
    first = {one.method: one for one in reversed(entered) if not one.is_score}
    plain = SCORES["minkpp(0.2)"].name
    return [one for one in entered if first.get(one.method) is one or (one.is_score and one.name == plain)]
