"""How the two classes of FSD's sets differ otherwise than by membership, said under every table."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from nonmember.reports.core import formats
from nonmember.reports.core.numbers import Value, detail
from nonmember.reports.core.worlds import Scope
from nonmember.results.load import Run
from nonmember.results.result import AuditResult

CHANCE = 0.5
BLIND_LIMIT, UNEQUAL_LENGTHS = 0.6, 0.1  # from .5


def say_targets(scope: Scope, runs: Sequence[Run]) -> str:
    """Which target, where there is one; and which has read neither set."""
    names = {
        str(run.question.target): scope.world.targets.get(str(run.question.target), str(run.question.target))
        for run in runs
    }
    if len(names) == 1:
        (name,) = names.values()
        control = (
            ", which has read neither set: every AUC should be .5"
            if {run.question.truth for run in runs} == {"non_member"}
            else ""
        )
        return f"Target: {name}{control}."
    controls = sorted({names[str(run.question.target)] for run in runs if run.question.truth == "non_member"})
    if not controls:
        return ""
    return f"Read neither set, so that every AUC should be .5: {formats.listed(controls)}."


def say_differences(sets: Mapping[str, Sequence[Run]]) -> list[str]:
    """How the two classes differ otherwise than by membership, in text, date, length; leaks and idle tuning."""
    blinds = largest(sets, detail("auroc_blind"), 0.0)
    years = largest(sets, detail("blind", "years", "auc"), CHANCE)
    lengths = largest(sets, detail("length_auc"), CHANCE)
    if not blinds and not years and not lengths:
        return ["Whether the two classes differ in text, date or length is not recorded."]
    notes = [
        difference(
            blinds,
            lambda auc: auc > BLIND_LIMIT,
            "Text alone tells the classes apart",
            "no AUC of these sets can be read as membership",
        ),
        difference(
            years, lambda auc: auc > BLIND_LIMIT, "The classes differ in the years they name", "AUC of the years alone"
        ),
        difference(
            lengths,
            lambda auc: abs(auc - CHANCE) > UNEQUAL_LENGTHS,
            "The classes differ in length",
            "AUC of the length alone",
        ),
    ]
    if not any(notes):
        notes = [
            f"The classes differ little in text (blind AUC {span(blinds)}), in the years they name (AUC "
            f"{span(years)}) and in length (AUC {span(lengths)})."
        ]
    runs = [run for several in sets.values() for run in several]
    leaked = largest(
        sets,
        lambda result: sum(filter(None, (detail("num_leaked", item)(result) for item in ("members", "nonmembers")))),
        0.0,
    )
    notes.append(
        difference(
            leaked,
            lambda many: many > 0,
            "Leak: documents under test that are tuned on, or parts of articles that are",
            "the paper’s protocol",
            formats.count,
        )
    )
    idle = sum(is_idle(run.result) for run in runs)
    if idle:
        notes.append(f"In {idle} of {len(runs)} results tuning did not lower the loss on what it was tuned on: noise.")
    return [note for note in notes if note]


def largest(sets: Mapping[str, Sequence[Run]], value: Value, centre: float) -> dict[str, float]:
    """Per set the value farthest from `centre` among its results."""
    found = {name: [v for run in runs if (v := value(run.result)) is not None] for name, runs in sets.items()}
    return {name: max(values, key=lambda v: abs(v - centre)) for name, values in found.items() if values}


def difference(
    values: Mapping[str, float],
    is_large: Callable[[float], bool],
    what: str,
    then: str,
    form: Callable[[float], str] = lambda value: formats.decimals(value, 2),
) -> str:
    large = [f"{name} {form(value)}" for name, value in values.items() if is_large(value)]
    return f"{what}: {', '.join(large)} ({then})." if large else ""


def span(values: Mapping[str, float]) -> str:
    if not values:
        return formats.DASH
    low, high = (formats.decimals(end, 2) for end in (min(values.values()), max(values.values())))
    return low if low == high else f"{low} to {high}"


def is_idle(result: AuditResult) -> bool:
    base, tuned = (detail("nll_of_unseen", kind)(result) for kind in ("base", "tuned"))
    return base is not None and tuned is not None and tuned >= base
