"""The tables of DE-COP for one world: how well works are told apart, what hangs on letters, what text alone tells."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from nonmember.reports.core import formats
from nonmember.reports.core.grid import INTERVAL, INVALID, Block, Cell, Number, Row
from nonmember.reports.core.numbers import P_VALUE, Value, detail, number, number_in
from nonmember.reports.core.report import Filled, tables
from nonmember.reports.core.worlds import Scope, select
from nonmember.reports.papers.decop import published
from nonmember.reports.render.blocks import filled, published_number, say_medians, say_missing
from nonmember.results.load import Run
from nonmember.results.result import AuditResult

DECOP, BASELINES = "decop", "decop_baselines"
WITH_SD, GROUPS = "{} ± {}", ("suspect", "heldout")
GROUP_NAMES = {"suspect": "suspect", "heldout": "clean"}
LETTERS = "ABCD"

# Of a result of DE-COP, or of one score among the baselines (then with "scores", NAME before).
ACCURACY = ("few_resamples", "best_balanced_acc")
AREA, LOW, HIGH = ("roc_auc",), 0, 1

Cells = Callable[[Sequence[Run]], tuple[Cell, ...]]


def of_method(runs: Sequence[Run], method: str) -> list[Run]:
    return select(runs, method=method)


def uncalibrated(runs: Sequence[Run]) -> list[Run]:
    """Those of DE-COP that tested answers as they were."""
    return [run for run in of_method(runs, DECOP) if not below(run, "calibration")]


def by_target(scope: Scope, runs: Sequence[Run]) -> dict[str, list[Run]]:
    """Printed name of a target -> its results; targets without any are left out."""
    rows = {name: select(runs, target=label) for label, name in scope.world.found("target", runs).items()}
    return {name: here for name, here in rows.items() if here}


# --------------------------------------------------------------------------------------------- how well


def separation(scope: Scope, key: str, rows: Mapping[str, Sequence[Run]], corner: str) -> Block | None:
    """A row each: shares of right answers, best balanced accuracy with the published one beside it, ROC area, p."""
    world = scope.world
    columns = ("right, suspect works", "right, clean works", "best balanced accuracy", "ROC area", "p")

    def cells(name: str, here: Sequence[Run]) -> tuple[Cell, ...]:
        return (
            *(Cell((number(here, world.name, detail(mean), three),)) for mean in ("mean_suspect", "mean_heldout")),
            Cell(accuracy(here, world.name), _beside(world.published, published.TABLE_2, name), WITH_SD),
            Cell(area(here, world.name), (), INTERVAL),
            Cell((p_cell(here, world.name),), _beside(world.published, published.TABLE_11, name)),
        )

    made = tuple(Row(name, cells(name, here)) for name, here in rows.items())
    bare = Block(f"{key}-{formats.slug(world.name)}", world.name, f"DE-COP. {world.title}", corner, columns, made,
                 ("value", "sd or low end", "high end"))  # fmt: skip
    return filled(bare, [RESAMPLED, say_medians(made), say_missing(bare)])


RESAMPLED = "Best balanced accuracy: mean and standard deviation of few resamples, ten as in the paper."


def _beside(is_published: bool, table: published.PublishedTable, model: str) -> tuple[Number, ...]:
    return tuple(map(published_number, published.of_decop(table, model))) if is_published else ()


def accuracy(here: Sequence[Run], world: str, *before: str) -> tuple[Number, Number]:
    """Mean and standard deviation over the few resamples."""
    path = (*before, *ACCURACY)
    return (number(here, world, detail(*path, "mean"), three), number(here, world, detail(*path, "sd"), three))


def area(here: Sequence[Run], world: str, *before: str) -> tuple[Number, ...]:
    ends = tuple(number(here, world, _end(before, place), three) for place in (LOW, HIGH))
    return (number(here, world, detail(*before, *AREA), three), *ends)


def _end(before: Sequence[str], place: int) -> Value:
    def value(result: AuditResult) -> float | None:
        node: Any = result.statistics.details
        for part in (*before, "roc_auc_interval"):
            node = node.get(part) if isinstance(node, Mapping) else None
        return float(node[place]) if isinstance(node, list) and len(node) == 2 else None

    return value


def p_cell(here: Sequence[Run], world: str) -> Number:
    made = number(here, world, P_VALUE, formats.p_value)
    invalid = made.value is not None and any(run.verdict.decision == "invalid" for run in here)
    return Number(made.text, made.value, world, made.runs, mark=INVALID if invalid else "", note=made.note)


def below(run: Run, *path: str) -> Mapping[str, Any]:
    """What stands at a path of names in the details; nothing where it does not."""
    node: Any = run.statistics.details
    for part in path:
        node = node.get(part) if isinstance(node, Mapping) else None
    return node if isinstance(node, Mapping) else {}


def three(value: float | None) -> str:
    return formats.decimals(value, 3)


def books(scope: Scope) -> Filled:
    """Tables 2 and 11: DE-COP, then the scores it is compared with."""
    runs = scope.of("books")
    return tables(
        separation(scope, "books", by_target(scope, uncalibrated(runs)), "target"),
        _baselines(scope, of_method(runs, BASELINES)),
    )


def _baselines(scope: Scope, runs: Sequence[Run]) -> Block | None:
    """A row per score, a column per target."""
    world, columns = scope.world.name, by_target(scope, runs)
    names = {name: None for run in runs for name in below(run, "scores")}
    made = tuple(
        Row(scope.names.get("scores", {}).get(name, name),
            tuple(Cell(accuracy(here, world, "scores", name), (), WITH_SD) for here in columns.values()))
        for name in names
    )  # fmt: skip
    bare = Block(f"baselines-{formats.slug(world)}", world, f"Best balanced accuracy. {scope.world.title}", "score",
                 tuple(columns), made, ("mean", "sd"))  # fmt: skip
    return filled(bare, [RESAMPLED, say_medians(made), say_missing(bare)]) if made else None


def papers(scope: Scope) -> Filled:
    return tables(separation(scope, "papers", by_target(scope, of_method(scope.of("papers"), DECOP)), "target"))


def sizes(scope: Scope) -> Filled:
    return tables(separation(scope, "sizes", by_target(scope, of_method(scope.of("sizes"), DECOP)), "target"))


def lengths(scope: Scope) -> Filled:
    """A row per length of passages; then the other scores."""
    runs = scope.of("lengths")
    found = list(dict.fromkeys(str(run.get("length")) for run in runs))
    rows = {length: here for length in found if (here := select(of_method(runs, DECOP), length=length))}
    return tables(separation(scope, "lengths", rows, "passages"))


def paraphrasers(scope: Scope) -> Filled:
    """A row per target and writer of the paraphrases."""
    runs = of_method(scope.of("paraphraser"), DECOP)
    rows = {f"{name}, by {writer}": select(here, paraphraser=writer)
            for name, here in by_target(scope, runs).items()
            for writer in dict.fromkeys(str(run.get("paraphraser")) for run in here)}  # fmt: skip
    return tables(separation(scope, "paraphraser", rows, "target, paraphrases"))


# ------------------------------------------------------------------------------------------- calibration


def calibration(scope: Scope) -> Filled:
    """Before and after: shares of right answers, ROC area, and works whose letters are well calibrated."""
    world = scope.world
    runs = [run for run in scope.of("calibration") if below(run, "calibration")]
    columns = ("right, suspect works", "right, clean works", "ROC area", "well calibrated, clean works")

    def cells(here: Sequence[Run], before: tuple[str, ...], when: str) -> tuple[Cell, ...]:
        paths = [(*before, "mean_suspect"), (*before, "mean_heldout"), (*before, "roc_auc"),
                 ("calibration", "well_calibrated", "heldout", when)]  # fmt: skip
        return tuple(Cell((number(here, world.name, detail(*path), three),)) for path in paths)

    made = tuple(
        Row(f"{name}, {when}", cells(here, before, when))
        for name, here in by_target(scope, runs).items()
        for when, before in (("before", ("uncalibrated",)), ("after", ()))
    )
    bare = Block(f"calibration-{formats.slug(world.name)}", world.name, f"Calibration. {world.title}", "target",
                 columns, made, ("value",))  # fmt: skip
    return tables(filled(bare, [WELL, say_medians(made), say_missing(bare)]) if made else None)


WELL = "Well calibrated: each letter has a mean probability between .15 and .35 over the work."


# ----------------------------------------------------------------------------------------- without a model

RULES = {
    "longest": "the longest option",
    "rarest": "the option of the rarest words",
    "odd": "the option least like the others",
}


def blind(scope: Scope) -> Filled:
    """How often rules on text alone pick the original; p-values adjusted already, over rules and groups."""
    world = scope.world.name
    runs = [run for run in of_method(scope.runs, DECOP) if below(run, "blind")]
    sets = {name: select(runs, domain=label) for label, name in scope.world.found("domain", runs).items()}
    columns = ("suspect works", "clean works", "p of a quarter, suspect", "p of a quarter, clean", "p of equal groups")
    fields = ("first", "second", "p_chance_first", "p_chance_second", "p_groups")

    def cells(here: Sequence[Run], rule: str) -> tuple[Cell, ...]:
        forms = (three, three, *([formats.p_value] * 3))
        return tuple(Cell((number(here[:1], world, detail("blind", rule, name), form),))
                     for name, form in zip(fields, forms, strict=True))  # fmt: skip

    made = tuple(Row(f"{name}: {told}", cells(here, rule)) for name, here in sets.items() if here
                 for rule, told in RULES.items())  # fmt: skip
    bare = Block(f"blind-{formats.slug(world)}", world, f"The original picked without a model. {scope.world.title}",
                 "set: rule", columns, made, ("number",))  # fmt: skip
    return tables(filled(bare, [HOLM]) if made else None, nothing="no results whose texts are at hand.")


HOLM = "p-values are Holm-adjusted over the rules, those of a quarter also over the groups."


# -------------------------------------------------------------------------------------------------- cost


def cost(scope: Scope) -> Filled:
    """Questions per work, and seconds where the answers were made in that run."""
    world = scope.world.name
    runs = uncalibrated(scope.of("books"))
    beside = scope.of("table3") if scope.world.published else []

    def seconds(result: AuditResult) -> float | None:
        works = sum(number_in(result.statistics.details, f"num_{group}_works") or 0 for group in GROUPS)
        made = sum(
            count for name, count in result.provenance.made.items() if name in ("tokens_observed", "answers_asked")
        )
        return result.provenance.seconds / works if works and made else None

    def cells(here: Sequence[Run]) -> tuple[Cell, ...]:
        return (
            Cell((number(here, world, detail("questions_per_work", "suspect"), formats.count),)),
            Cell((number(here, world, seconds, lambda value: formats.decimals(value, 1)),)),
        )

    made = tuple(Row(name, cells(here)) for name, here in by_target(scope, runs).items())
    for name, here in by_target(scope, beside).items():
        methods = dict.fromkeys(run.question.method for run in here)
        made += tuple(Row(f"{name}, {method}", cells(select(here, method=method))) for method in methods)
    bare = Block(f"cost-{formats.slug(world)}", world, f"What a work costs. {scope.world.title}", "target",
                 ("questions", "seconds"), made, ("number",))  # fmt: skip
    return tables(filled(bare, [SECONDS, say_medians(made)]) if made else None)


SECONDS = "Seconds of the whole run, shared among its works; a dash where all answers were there already."
