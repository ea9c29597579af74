"""What stands in the cells of a declared table: a template whose fields name a number of results and its form.

    "{value:+.3} [{ci_low:+.3}, {ci_high:+.3}], p {p_value:tested}"

A field is `PATH[@TARGETS][:FORM[,OF]]`:

PATH: a field of a result's statistics (`value`, `p_value` ...), or a dotted path that begins at one or at a part of the
result (`details.readings`, `provenance.seconds`), or two with a slash between them; `count` is the number of results,
`cleared`, `found` and `invalid` of those with that verdict, `decided` of those with evidence of either kind, `with_p`
of those with a p-value and `significant` of those where it is below alpha.
TARGETS: `untouched`, `member`, or `untouched-member` for the difference of both.
FORM: `.3` and `+.3` (decimals, with a sign), `.2%` and `+.2%` (in percent), `n` (a count), `p`, and `tested`: a p-value
that is marked where it contradicts the known truth. After others `!` marks where a precondition failed.
OF: `lowest` or `highest` of several results, where the median stands first; `first` of them; `uniform`: the p of
Kolmogorov and Smirnov of several p-values; `range` in notes: from the lowest to the highest.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from string import Formatter
from typing import Any

import scipy

from nonmember.reports.core import formats
from nonmember.reports.core.grid import INVALID, Numeral, TableCell, dash
from nonmember.reports.core.numbers import P_VALUE, Form, Value, field, mark_of, number, number_in, p_number
from nonmember.reports.core.worlds import Scope, select
from nonmember.results.load import Run
from nonmember.results.result import AuditResult, Statistics

DECIMALS = re.compile(r"(?P<sign>\+?)\.(?P<digits>\d)(?P<percent>%?)")
TESTED = "tested"


def uniformity(p_values: Sequence[float]) -> float:
    """p of the test of Kolmogorov and Smirnov."""
    return float(scipy.stats.kstest(p_values, "uniform").pvalue)


COUNTS: Mapping[str, Callable[[Run], bool]] = {
    "count": lambda run: True,
    "cleared": lambda run: run.verdict.decision == "evidence_of_non_membership",
    "found": lambda run: run.verdict.decision == "evidence_of_membership",
    "decided": lambda run: run.verdict.decision.startswith("evidence"),
    "invalid": lambda run: run.verdict.decision == "invalid",
    "with_p": lambda run: P_VALUE(run.result) is not None,
    "significant": lambda run: (p := P_VALUE(run.result)) is not None and p < run.question.alpha,
}
DIFFERENCE = "untouched-member"
ENDS: Mapping[str, Callable[[Sequence[float]], float]] = {"lowest": min, "highest": max, "uniform": uniformity}
RANGE, FIRST = "range", "first"
FORMS: Mapping[str, Form] = {"p": formats.p_value, TESTED: formats.p_value, "n": formats.count}


@dataclass(frozen=True)
class Quantity:
    """One number of a cell. See the module for what the parts may be."""

    path: str
    targets: str = ""
    form: str = ".3"
    of: str = ""
    is_checked: bool = False

    @classmethod
    def read(cls, name: str, spec: str) -> Quantity:
        """Raises ValueError, with what is allowed, for a field that is none."""
        path, _, targets = name.partition("@")
        form, _, of = spec.partition(",")
        made = cls(path, targets, form.rstrip("!") or ".3", of, form.endswith("!"))
        if targets not in ("", "untouched", "member", DIFFERENCE):
            raise ValueError(f"{{{name}}}: after @ stands untouched, member or {DIFFERENCE}, not {targets!r}.")
        if of not in ("", FIRST, RANGE, *ENDS):
            raise ValueError(
                f"{{{name}:{spec}}}: after the comma stands {', '.join(ENDS)}, first or range, not {of!r}."
            )
        _ = made.printed, made.value
        return made

    @cached_property
    def printed(self) -> Form:
        if self.form in FORMS:
            return FORMS[self.form]
        if not (found := DECIMALS.fullmatch(self.form)):
            raise ValueError(f"A number has the form {', '.join(FORMS)}, .3, +.3 or .2%, not {self.form!r}.")
        digits, signed, scale = int(found["digits"]), bool(found["sign"]), 100 if found["percent"] else 1
        return lambda value: formats.decimals(value if value is None else scale * value, digits, signed=signed)

    @cached_property
    def value(self) -> Value:
        first, _, second = self.path.partition("/")
        if second:
            return ratio(Quantity(first).value, Quantity(second).value)
        if self.path in Statistics.__dataclass_fields__:
            return field(self.path)
        head, *path = self.path.split(".")
        if head not in {*COUNTS, *AuditResult.__dataclass_fields__, *Statistics.__dataclass_fields__}:
            raise ValueError(f"There is no {self.path!r} in a result or its statistics.")
        if head in Statistics.__dataclass_fields__:
            head, path = "statistics", [head, *path]
        return lambda result: number_at(result, head, *path)

    def number(self, runs: Sequence[Run], scope: Scope) -> Numeral:
        """The median of several; with @ of the results of one target, or the difference of two."""
        pair = dict(zip(("untouched", "member"), scope.world.pair(), strict=False))
        if self.targets == DIFFERENCE:
            untouched, member = (self._number(select(runs, target=label), scope) for label in pair.values())
            return difference(untouched, member, self.printed)
        return self._number(select(runs, target=pair[self.targets]) if self.targets else runs, scope)

    def _number(self, runs: Sequence[Run], scope: Scope) -> Numeral:
        world = scope.world.name
        if self.path in COUNTS:
            found = sum(map(COUNTS[self.path], runs))
            anchors = tuple(run.anchor for run in runs)
            return Numeral(formats.count(found), float(found), world, anchors) if runs else dash(world)
        runs = runs[:1] if self.of == FIRST else runs
        if self.of == RANGE:
            return self._range(runs, world)
        if self.of in ENDS:
            return self._end(runs, world)
        if self.form == TESTED and self.path == "p_value":
            return p_number(runs, world)
        made = number(runs, world, self.value, self.printed)
        if self.is_checked and made.value is not None and any(map(COUNTS["invalid"], runs)):
            return replace(made, mark=INVALID)
        is_tested = self.form == TESTED and made.value is not None
        return replace(made, mark=mark_of(made.value, runs)) if is_tested and made.value is not None else made

    def _range(self, runs: Sequence[Run], world: str) -> Numeral:
        found = [value for run in runs if (value := self.value(run.result)) is not None]
        if not found:
            return dash(world)
        low, high = self.printed(min(found)), self.printed(max(found))
        return Numeral(low if low == high else f"{low} to {high}", None, world)

    def _end(self, runs: Sequence[Run], world: str) -> Numeral:
        found = [(run, value) for run in runs if (value := self.value(run.result)) is not None and math.isfinite(value)]
        if not found:
            return dash(world)
        end = ENDS[self.of]([value for _, value in found])
        made = Numeral(self.printed(end), end, world, tuple(run.anchor for run, _ in found))
        return replace(made, mark=mark_of(end, runs)) if self.form == TESTED else made


def ratio(above: Value, below: Value) -> Value:
    def value(result: AuditResult) -> float | None:
        item, other = above(result), below(result)
        return item / other if item is not None and other else None

    return value


def number_at(result: AuditResult, head: str, *path: str) -> float | None:
    """What stands at a path that begins at a part of the result; None where there is no number."""
    node: Any = getattr(result, head)
    while path and not isinstance(node, Mapping):
        node, path = getattr(node, path[0], None), path[1:]
    return number_in({"": node}, "", *path)


def difference(first: Numeral, other: Numeral, form: Form = formats.signed) -> Numeral:
    if first.value is None or other.value is None:
        return dash(first.world)
    value = first.value - other.value
    return Numeral(form(value), value, first.world, (*first.runs, *other.runs))


def computed(
    template: str, values: Sequence[float | str | None], world: str, runs: Sequence[str] = (), note: str = ""
) -> TableCell:
    """A cell of numbers that stand in no result but are made of several.

    Args:
        template: As in the module's example, without paths: "{} / {:+.1}".
        values: As many numbers, or texts that are said in place of one; none at all where all are missing.
        world: Whose they are.
        runs: The results behind them, told with the first.
        note: Said of the first.
    """
    parsed = [(text, name, spec) for text, name, spec, _ in Formatter().parse(template)]
    forms = [Quantity("", form=spec or ".3").printed for _, name, spec in parsed if name is not None]
    first = {"runs": tuple(runs), "note": note}

    def made(value: float | str | None, form: Form, more: Mapping[str, Any]) -> Numeral:
        if isinstance(value, str):
            return Numeral(value, None, world, **more)
        is_number = value is not None and math.isfinite(value)
        return Numeral(form(value), float(value), world, **more) if is_number and value is not None else dash(world)

    numbers = [
        made(value, form, {} if index else first)
        for index, (value, form) in enumerate(zip(values or [None] * len(forms), forms, strict=True))
    ]
    return TableCell(tuple(numbers), (), "".join(text + ("" if name is None else "{}") for text, name, _ in parsed))


@dataclass(frozen=True)
class CellTemplate:
    text: str  # as in the module's example
    names: Sequence[str] = ()  # what its numbers are, in their order, for the CSV

    @cached_property
    def _parsed(self) -> list[tuple[str, str | None, str | None, str | None]]:
        try:
            return [*Formatter().parse(self.text)]
        except ValueError as error:
            raise ValueError(f"{self.text!r} cannot be read ({error}): write {{PATH:FORM}} for each number.") from error

    @cached_property
    def quantities(self) -> tuple[Quantity, ...]:
        return tuple(Quantity.read(name, spec or "") for _, name, spec, _ in self._parsed if name is not None)

    @cached_property
    def template(self) -> str:
        """With {} for each number."""
        return "".join(text + ("" if name is None else "{}") for text, name, _, _ in self._parsed)

    @property
    def is_tested(self) -> bool:
        """Whether it holds p-values that are tested, and nothing else."""
        return bool(self.quantities) and all(item.form == TESTED for item in self.quantities)

    def numbers(self, runs: Sequence[Run], scope: Scope) -> tuple[Numeral, ...]:
        return tuple(item.number(runs, scope) for item in self.quantities)

    def cell(self, runs: Sequence[Run], scope: Scope) -> TableCell:
        return TableCell(self.numbers(runs, scope), (), self.template)
