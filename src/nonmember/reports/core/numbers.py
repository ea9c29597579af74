"""From results to printed numbers: the value of one, the median of several, and what it means against the truth."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from nonmember.reports.core import formats
from nonmember.reports.core.grid import FALSE, INVALID, MISSED, UNLEARNED, Numeral, TableCell, dash
from nonmember.results.load import Run
from nonmember.results.result import AuditResult

MAY_DIFFER = ("seed", "target", "reference", "half", "draw", "score", "num_documents")

Value = Callable[[AuditResult], float | None]
Form = Callable[[float | None], str]


def field(name: str) -> Value:
    """A number that every result has a place for, a field of its statistics: value, p_value, ci_low ..."""

    def value(result: AuditResult) -> float | None:
        return _plain(getattr(result.statistics, name))

    return value


def detail(*path: str) -> Value:
    """A number of the method's own, somewhere in result.statistics.details."""
    return lambda result: number_in(result.statistics.details, *path)


def number_in(node: Any, *path: str) -> float | None:
    """What stands at a path of names, and of places in lists; None where there is no number."""
    for part in path:
        if isinstance(node, list):
            node = node[int(part)] if part.isdigit() and int(part) < len(node) else None
        else:
            node = node.get(part) if isinstance(node, Mapping) else None
    return _plain(node)


def _plain(found: Any) -> float | None:
    return float(found) if isinstance(found, int | float) and not isinstance(found, bool) else None


STATISTIC, P_VALUE, LOW, HIGH = (field(name) for name in ("value", "p_value", "ci_low", "ci_high"))


def number(runs: Sequence[Run], world: str, value: Value, form: Form = formats.decimals) -> Numeral:
    """The value of the one run, or the median of several, which says so."""
    pairs = [(run, found) for run in runs if formats.exists(found := value(run.result)) and found is not None]
    if not pairs:
        note = f"undefined in {len(runs)} result{'s' * (len(runs) > 1)}" if runs else ""
        return replace(dash(world), note=note, runs=tuple(run.anchor for run in runs))
    result = statistics.median(found for _, found in pairs)
    anchors = tuple(run.anchor for run, _ in pairs)
    return Numeral(form(result), result, world, anchors, note=_of_several(pairs, len(runs)))


def _of_several(pairs: Sequence[tuple[Run, float]], asked: int) -> str:
    note = ""
    if len(pairs) > 1:
        values = [found for _, found in pairs]
        kinds = {name: {str(run.get(name)) for run, _ in pairs} for name in MAY_DIFFER}
        differ = [f"{name} {', '.join(sorted(found))}" for name, found in kinds.items() if len(found) > 1]
        note = f"median of {len(pairs)} results from {min(values):.3g} to {max(values):.3g}"
        note += f" ({'; '.join(differ)})" if differ else " (alike in all that the table knows of)"
    if asked > len(pairs):
        note += f"{'; ' if note else ''}undefined in {asked - len(pairs)} further"
    return note


def over_draws(runs: Sequence[Run], world: str, value: Value, form: Form = formats.p_value) -> tuple[Numeral, ...]:
    """Median, lowest and highest."""
    middle = number(runs, world, value, form)
    found = [v for run in runs if (v := value(run.result)) is not None and math.isfinite(v)]
    if not found:
        return (middle, dash(world), dash(world))
    return (middle, *(Numeral(form(end), end, world, middle.runs) for end in (min(found), max(found))))


def with_interval(runs: Sequence[Run], world: str) -> tuple[Numeral, ...]:
    """The statistic and the ends of its interval."""
    return tuple(number(runs, world, value, formats.signed) for value in (STATISTIC, LOW, HIGH))


def counted(num: int, of: int, world: str, is_false: bool = False) -> TableCell:
    """3 of 9, marked where anything was counted that is false; a dash of none."""
    if not of:
        return TableCell((dash(world),))
    first = Numeral(str(num), float(num), world, mark=FALSE if is_false and num else "")
    return TableCell((first, Numeral(str(of), float(of), world)), (), "{} of {}")


def mean_of(cells: Sequence[TableCell], world: str) -> TableCell:
    """Number by number, over the cells that have one."""
    columns = zip(*(item.ours for item in cells), strict=False)
    return TableCell(tuple(_mean(numbers, world) for numbers in columns), (), cells[0].template)


def _mean(numbers: Sequence[Numeral], world: str) -> Numeral:
    values = [item.value for item in numbers if item.value is not None]
    if not values:
        return dash(world)
    value = statistics.fmean(values)
    runs = tuple(dict.fromkeys(anchor for item in numbers if item.value is not None for anchor in item.runs))
    note = f"mean of {len(values)} set{'s' * (len(values) > 1)}"
    return Numeral(formats.decimals(value), value, world, runs, note=note)


def p_number(runs: Sequence[Run], world: str) -> Numeral:
    """A p-value with what it means against the known truth."""
    alpha = runs[0].question.alpha if runs else None
    made = number(runs, world, P_VALUE, lambda p: formats.p_value(p, alpha))
    return replace(made, mark=mark_of(made.value, runs)) if made.value is not None else made


def mark_of(p: float, runs: Sequence[Run]) -> str:
    first = runs[0].question
    if any(run.verdict.decision == "invalid" for run in runs):
        return INVALID
    if any(run.result.unlearned for run in runs):
        return UNLEARNED
    if len({run.question.truth for run in runs}) != 1:
        return ""
    return mark(p < first.alpha, first.truth, first.claim)


def mark(significant: bool, truth: str | None, claim: str | None) -> str:
    """Whether a decision is false or missed something, where there is a truth and a claim (see `Question`)."""
    if truth is None or claim is None:
        return ""
    should = (truth == "non_member") == (claim == "non_membership")
    return FALSE if significant and not should else MISSED if should and not significant else ""
