"""The tables of MC-PDD for one world: hit rates of two corpora, how they differ, and what the difference hangs on."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from scipy import stats

from nonmember.reports.core import formats
from nonmember.reports.core.grid import INVALID, RANGE, Block, Cell, Number, Row, dash
from nonmember.reports.core.numbers import (
    HIGH,
    P_VALUE,
    STATISTIC,
    Form,
    Value,
    counted,
    detail,
    mark,
    number,
    number_in,
)
from nonmember.reports.core.report import Filled, tables
from nonmember.reports.core.worlds import Scope, by_domain, select
from nonmember.reports.render.blocks import adjusted, filled, say_medians, say_missing, say_tests
from nonmember.results.load import Run
from nonmember.results.result import AuditResult

CANDIDATE, STRATEGY, WORDS, NAME, NUMBER, EPOCHS, CONTROL = (
    "candidate", "strategy", "num_words", "show_name", "num_documents", "epochs", "control",
)  # fmt: skip
RATES = ("reference", "suspect", "difference", "p", "upper", "p of random words")

Facts = Mapping[str, Callable[[Any], str]]  # fact -> how a value of it is told
Group = tuple[str, Sequence[Run]]


# ------------------------------------------------------------------------------------------------ tables


def models(scope: Scope) -> Filled:
    return rates(scope, "models", {"target": target_name(scope)})


def words(scope: Scope) -> Filled:
    return rates(scope, "words", {STRATEGY: str, WORDS: str})


def masks(scope: Scope) -> Filled:
    return rates(scope, "masks", {WORDS: lambda number: f"{number} word{'s' * (number > 1)}"})


def names(scope: Scope) -> Filled:
    return rates(scope, "names", {NAME: lambda shown: "with the name" if shown else "without the name"})


def years(scope: Scope) -> Filled:
    return rates(scope, "years", {CANDIDATE: str})


def news(scope: Scope) -> Filled:
    return rates(scope, "news", {STRATEGY: str})


def arxiv(scope: Scope) -> Filled:
    return rates(scope, "arxiv", {CANDIDATE: str, STRATEGY: str, WORDS: str})


def contamination(scope: Scope) -> Filled:
    return rates(
        scope, "contamination", {CANDIDATE: contaminated, EPOCHS: lambda number: f"{number} epoch{'s' * (number != 1)}"}
    )


def contaminated(candidate: str) -> str:
    return {"unread_1": "tuned on", "read": "read before"}.get(candidate, candidate)


def target_name(scope: Scope) -> Callable[[Any], str]:
    return lambda label: scope.world.targets.get(str(label), str(label))


def rates(scope: Scope, key: str, facts: Facts) -> Filled:
    """A row for every set and combination of the facts; the median where several results have it."""
    world, runs = scope.world, scope.of(key)
    groups = grouped(scope, key, runs, facts)
    tested = adjusted(tuple(Row(name, (Cell((p_number(here, world.name),)),)) for name, here in groups))
    rows = tuple(Row(name, cells(here, world.name, p.cells[0]))
                 for (name, here), p in zip(groups, tested, strict=True))  # fmt: skip
    bare = Block(f"{key}-{formats.slug(world.name)}", world.name, f"Hit rates in percent. {world.title}",
                 ", ".join(("set", *map(said, facts))), RATES, rows, ("number",))  # fmt: skip
    return tables(filled(bare, [say_tests(tested), say_medians(rows), say_unreadable(runs)]))


def said(fact: str) -> str:
    return fact.replace("_", " ")


def grouped(scope: Scope, key: str, runs: Sequence[Run], facts: Facts) -> list[Group]:
    """Name of the row -> its results; sets in the world's order, facts in that of their values."""
    found: list[Group] = []
    for name, here in by_domain(scope, key, runs).items():
        values = dict.fromkeys(tuple(fact_of(run, fact) for fact in facts) for run in here)
        for combination in sorted(values, key=lambda one: [(value is None, value) for value in one]):
            told = [form(value) for form, value in zip(facts.values(), combination, strict=True)]
            group = [run for run in here if tuple(fact_of(run, fact) for fact in facts) == combination]
            found.append((", ".join([name, *told]), group))
    return found


def fact_of(run: Run, fact: str) -> Any:
    """num_documents: those that were asked for, not those that are left."""
    return run.question.data[fact] if fact in run.question.data else run.get(fact)


def cells(runs: Sequence[Run], world: str, p: Cell) -> tuple[Cell, ...]:
    """In the order of `RATES`."""
    return (
        Cell((number(runs, world, detail("heldout", "hit_rate"), percent),)),
        Cell((number(runs, world, detail("suspect", "hit_rate"), percent),)),
        Cell((number(runs, world, STATISTIC, signed_percent),)),
        p,
        Cell((number(runs, world, HIGH, signed_percent),)),
        Cell((number(runs, world, detail(CONTROL, "p_value"), formats.p_value),)),
    )


def percent(value: float | None) -> str:
    return formats.decimals(value if value is None else 100 * value, 2)


def signed_percent(value: float | None) -> str:
    return formats.decimals(value if value is None else 100 * value, 2, signed=True)


def p_number(runs: Sequence[Run], world: str) -> Number:
    """With a mark where it contradicts the known truth, or a precondition failed."""
    made = number(runs, world, P_VALUE, formats.p_value)
    if made.value is None:
        return made
    if any(run.verdict.decision == "invalid" for run in runs):
        return replace(made, mark=INVALID)
    first, truths = runs[0].question, {run.question.truth for run in runs}
    if len(truths) > 1 or first.truth is None:
        return made
    return replace(made, mark=mark(made.value < first.alpha, first.truth, first.claim))


def say_unreadable(runs: Sequence[Run]) -> str:
    shares = [1 - share for run in runs for name in ("suspect", "heldout")
              if (share := number_in(run.statistics.details, name, "valid_share")) is not None]  # fmt: skip
    return f"Answers that are empty, refused or no list: up to {max(shares):.0%} of a corpus." if shares else ""


# ------------------------------------------------------------------------------------------- sample size


def by_size(scope: Scope) -> Filled:
    """Upper bound of resamples of fewer documents, whose p is in a figure; then of corpora that have fewer."""
    world, runs = scope.world, scope.of("models")
    groups = grouped(scope, "models", runs, {"target": target_name(scope)})
    columns = sizes_of(runs)

    def block(part: str, title: str, value: Callable[[int], Value], form: Form) -> Block | None:
        rows = tuple(Row(name, tuple(Cell((number(here, world.name, value(size), form),)) for size in columns))
                     for name, here in groups)  # fmt: skip
        bare = Block(f"sizes-{part}-{formats.slug(world.name)}", world.name, f"{title}. {world.title}", "set, target",
                     tuple(map(str, columns)), rows, (part,))  # fmt: skip
        return filled(bare, [say_medians(rows), say_missing(bare)])

    return tables(
        block("upper", "Upper bound by size of a resample", lambda size: of_size(size, "upper"), formats.signed),
        block("subset", "p by size of the corpora, parts of each other",
              lambda size: of_size(size, "subset", "p_value"), formats.p_value),
        *rates(scope, "sizes", {NUMBER: lambda number: f"{number} documents"}).blocks,
    )  # fmt: skip


def sizes_of(runs: Sequence[Run]) -> list[int]:
    """Descending, as printed."""
    return sorted({one["size"] for run in runs for one in curve_of(run.result)}, reverse=True)


def curve_of(result: AuditResult) -> list[dict[str, Any]]:
    found = result.statistics.details.get("curve")
    return found if isinstance(found, list) else []


def of_size(size: int, *path: str) -> Value:
    def value(result: AuditResult) -> float | None:
        found = [one for one in curve_of(result) if one["size"] == size]
        return number_in(found[0], *path) if found else None

    return value


# ------------------------------------------------------------------------------------------------ rivals


SCORES = {"mc_pdd": "MC-PDD"}
OF_SCORE = {  # printed -> where a result tells it of a score
    "groups: AUC": ("group_auc", "mean"),
    "sd": ("group_auc", "sd"),
    "groups: best balanced accuracy": ("group_best_balanced_acc", "mean"),
    "documents: AUC": ("auc",),
    "documents: best balanced accuracy": ("best_balanced_acc",),
}


def rivals(scope: Scope) -> Filled:
    """A row for every set and score."""
    world, runs = scope.world, scope.of("rivals")
    rows, notes = [], []
    for name, here in by_domain(scope, "rivals", runs).items():
        told = (run.statistics.details.get("scores") for run in here)
        scores = dict.fromkeys(str(score) for one in told if isinstance(one, Mapping) for score in one)
        printed = {**scope.names.get("scores", {}), **SCORES}
        rows += [
            Row(f"{name}, {printed.get(score, score)}",
                tuple(Cell((number(here, world.name, detail("scores", score, *path)),)) for path in OF_SCORE.values()))
            for score in scores
        ]  # fmt: skip
        notes += [say_rivals(name, run.result) for run in here[:1]]
    bare = Block(f"rivals-{formats.slug(world.name)}", world.name, f"Groups and documents. {world.title}", "set, score",
                 tuple(OF_SCORE), tuple(rows), ("number",))  # fmt: skip
    return tables(filled(bare, [say_medians(rows), *notes]))


def say_rivals(name: str, result: AuditResult) -> str:
    told = result.statistics.details
    blind, right = number_in(told, "auroc_blind"), number_in(told, "decision_accuracy", "mean")
    return (
        f"{name}: {formats.count(number_in(told, 'num_member_groups'))} groups of members and "
        f"{formats.count(number_in(told, 'num_nonmember_groups'))} of others; the test of MC-PDD decides "
        f"{formats.decimals(right)} of them rightly. Blind baseline: AUC {formats.decimals(blind)}"
        f"{'' if result.verdict.decision != 'invalid' else '. Invalid: ' + ' '.join(result.verdict.warnings[:1])}"
    )


# ------------------------------------------------------------------------------------------------- null


def null(scope: Scope) -> Filled:
    """Whether p-values of corpora that nobody has read are uniform."""
    key, world = "null", scope.world.name
    columns = ("results", "p < .05", "invalid", "p (median, lowest, highest)", "p of uniformity")

    def row(here: Sequence[Run]) -> tuple[Cell, ...]:
        found = [p for run in here if (p := P_VALUE(run.result)) is not None]
        if not found:
            return (Cell((dash(world),)),) * len(columns)
        ends = tuple(Number(formats.p_value(end), end, world) for end in (min(found), max(found)))
        uniform = float(stats.kstest(found, "uniform").pvalue)
        return (
            Cell((Number(str(len(found)), float(len(found)), world, tuple(run.anchor for run in here)),)),
            counted(sum(p < here[0].result.question.alpha for p in found), len(found), world),
            counted(sum(run.verdict.decision == "invalid" for run in here), len(found), world),
            Cell((number(here, world, P_VALUE, formats.p_value), *ends), (), RANGE),
            Cell((Number(formats.p_value(uniform), uniform, world),)),
        )

    rows = tuple(Row(name, row(select(here))) for name, here in by_domain(scope, key, scope.of(key)).items() if here)
    bare = Block(f"{key}-{formats.slug(world)}", world, f"p-values where nothing was read. {scope.world.title}", "set",
                 columns, rows, ("number",))  # fmt: skip
    return tables(filled(bare, [UNIFORM]))


UNIFORM = (
    "p of uniformity: Kolmogorov and Smirnov. Hits are counts, so p has steps, and ties make it a little too large."
)
