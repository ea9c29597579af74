"""What the tables and figures of KDS go over: scores of a set by the share of it that the target has read.

Shapes: D draws, L levels. A level is the share c of a set that was read.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from nonmember.records import FloatArray
from nonmember.reports.core import formats
from nonmember.reports.core.numbers import Value, detail
from nonmember.reports.core.worlds import Scope, by_domain, one_target, select
from nonmember.results.load import Run
from nonmember.results.result import AuditResult
from nonmember.stats.contamination import Consistency, consistency

KDS, ORDER_T, WITH_FSD = "KDS", "SRCT", " + FSD"
ALPHA = 0.05  # of two draws that are told apart
MEAN_SD = "{} ± {}"
AVERAGE = "average"


# ------------------------------------------------------------------------------------------ from results


def kernel_divergence(result: AuditResult) -> float | None:
    """S; an invalid one is none."""
    return result.statistics.value if result.verdict.decision != "invalid" else None


def scores_of(scope: Scope, runs: Sequence[Run]) -> dict[str, Value]:
    """Printed name -> where a result tells it, each the higher the more was read; KDS last, as in the poster."""

    def keys(kind: str) -> set[str]:
        told = (run.statistics.details.get(kind) for run in runs)
        return {str(key) for one in told if isinstance(one, Mapping) for key in one}

    plain, tuned = keys("baselines"), keys("fsd")
    names = dict(scope.names["scores"]) | {key: key for key in sorted((plain | tuned) - set(scope.names["scores"]))}
    scores: dict[str, Value] = {}
    for key, name in names.items():
        if key in plain:
            scores[name] = detail("baselines", key)
        if key in tuned:
            scores[name + WITH_FSD] = detail("fsd", key)
    if any("order_t" in run.statistics.details for run in runs):
        scores[ORDER_T] = detail("order_t")
    return scores | {KDS: kernel_divergence}


@dataclass(frozen=True, eq=False)
class Levels:
    """What one score says of one set. levels: [L] ascending.   scores_DL: of draws that have all of them.
    runs: whose they are.
    """

    levels: tuple[float, ...]
    scores_DL: FloatArray
    runs: tuple[Run, ...]

    @property
    def anchors(self) -> tuple[str, ...]:
        return tuple(run.anchor for run in self.runs)

    @property
    def mean_L(self) -> FloatArray:
        return self.scores_DL.mean(axis=0)

    def consistency(self) -> Consistency | None:
        """None for a single draw."""
        return consistency(self.levels, self.scores_DL, alpha=ALPHA) if len(self.scores_DL) > 1 else None


def levels_of(runs: Sequence[Run], value: Value) -> Levels | None:
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
    return Levels(tuple(levels), scores, tuple(run for draw in used for run in draw))


def one_recipe(runs: Sequence[Run]) -> list[Run]:
    """Of one recipe and size, that of most results: no score compares beyond these."""

    def recipe(run: Run) -> str:
        size = run.question.data.get("num_documents", run.statistics.num_documents)
        return json.dumps([run.question.settings, run.question.target, size], sort_keys=True, default=str)

    recipes = [recipe(run) for run in runs]
    usual = Counter(recipes).most_common(1)
    return [run for run, one in zip(runs, recipes, strict=True) if one == usual[0][0]]


# ------------------------------------------------------------------------------- what the tables go over


@dataclass(frozen=True)
class Study:
    """corner: what the rows are.   rows: name -> set -> what it says of it."""

    scope: Scope
    key: str
    corner: str
    rows: Mapping[str, Mapping[str, Levels | None]]
    runs: Sequence[Run]

    @property
    def sets(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(name for row in self.rows.values() for name in row))

    def used(self) -> list[Levels]:
        return [levels for row in self.rows.values() for levels in row.values() if levels is not None]


def by_score(scope: Scope, key: str, runs: Sequence[Run]) -> Study:
    sets = {name: one_recipe(here) for name, here in by_domain(scope, key, runs).items()}
    rows = {name: {one: levels_of(here, value) for one, here in sets.items()}
            for name, value in scores_of(scope, runs).items()}  # fmt: skip
    return Study(scope, key, "score", rows, runs)


def benchmarks(scope: Scope) -> Study:
    """Sets whose members are older than their non-members: those that the world names for table 1."""
    older = tuple(scope.world.domains_of.get("table1", ()))
    return by_score(scope, "table1", one_target(scope, select(scope.of("table1"), domain=older)))


def same_time(scope: Scope) -> Study:
    older = scope.world.domains_of.get("table1", ())
    return by_score(scope, "table2", one_target(scope, [run for run in scope.of("table2") if run.domain not in older]))


def everything(scope: Scope, key: str) -> Study:
    return by_score(scope, key, one_target(scope, scope.of(key)))


def by_target_and_epochs(scope: Scope) -> Study:
    """KDS, the best of the simple means and the order test by target and epochs of tuning: what each shows of one that
    has read, beside what it shows of one that has read neither pool."""
    key = "epochs"
    targets, epochs = scope.world.targets, "training.optimization.epochs"
    rows: dict[str, dict[str, Levels | None]] = {}
    runs = scope.of(key)
    for target, times in sorted({(str(run.question.target), int(run.get(epochs))) for run in runs}):
        here = [run for run in runs if (run.question.target, run.get(epochs)) == (target, times)]
        for name, value in BY_TARGET.items():
            if name != KDS and times > 1:
                continue  # the tuning does not touch it
            if not any(formats.exists(value(run.result)) for run in here):
                continue
            row = f"{name}, {targets.get(target, target)}" + (f", {EPOCHS.get(times, times)}" if name == KDS else "")
            rows[row] = {one: levels_of(one_recipe(group), value) for one, group in by_domain(scope, key, here).items()}
    return Study(scope, key, "score and target", rows, runs)


BY_TARGET: dict[str, Value] = {
    KDS: kernel_divergence, "Min-K%++": detail("baselines", "minkpp(0.2)"), ORDER_T: detail("order_t")
}  # fmt: skip
EPOCHS = {1: "one epoch", 4: "four epochs"}
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
    "training.optimization.epochs": lambda run: f"{run.get('training.optimization.epochs')} epochs",
    "compat": lambda run: "dropout in the second pass" if run.get("compat") else "no dropout in the second pass",
}
AS_IT_IS = "as it is"


def by_setting(scope: Scope) -> Study:
    """KDS by how a result's settings differ from the usual ones."""
    key = "ablation"
    runs = one_target(scope, scope.of(key))
    usual = {name: Counter(run.get(name) for run in runs).most_common(1)[0][0] for name in SETTINGS if runs}

    def kind(run: Run) -> tuple[int, str]:
        differ = [name for name in SETTINGS if run.get(name) != usual[name]]
        if not differ:
            return 0, AS_IT_IS
        return 1 + list(SETTINGS).index(differ[0]), ", ".join(SETTINGS[name](run) for name in differ)

    groups: dict[tuple[int, str], list[Run]] = {}
    for run in runs:
        groups.setdefault(kind(run), []).append(run)
    rows = {name: {one: levels_of(one_recipe(here), kernel_divergence)
                   for one, here in by_domain(scope, key, group).items()}
            for (_, name), group in sorted(groups.items())}  # fmt: skip
    return Study(scope, key, "setting", rows, runs)
