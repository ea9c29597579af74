"""Results by their facts, and results taken apart."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

from nonmember.reports.core.worlds import Scope
from nonmember.results.load import Run

RELATIONS: Mapping[str, Callable[[Any, Any], bool]] = {
    "not": operator.ne,
    "above": operator.gt,
    "from": operator.ge,
    "below": operator.lt,
}


def chosen(runs: Iterable[Run], where: Mapping[str, Any], scope: Scope) -> list[Run]:
    """The results with these facts: a value, a list of values, or relations (`not`, `above`, `from`, `below`: a value).
    "@member" and "@untouched" are the world's."""

    def fits(found: Any, wanted: Any) -> bool:
        if isinstance(wanted, Mapping):
            if found is None:
                return set(wanted) == {"not"} and wanted["not"] is not None
            return all(RELATIONS[name](found, of) for name, of in wanted.items())
        if isinstance(wanted, str) and wanted.startswith("@"):
            return wanted == "@one" or bool(found == getattr(scope.world, wanted[1:]))
        return found in (wanted if isinstance(wanted, list | tuple) else (wanted,))

    return [run for run in runs if all(fits(run.get(fact), wanted) for fact, wanted in where.items())]


def parts_of(run: Run, each: str | Mapping[str, str]) -> list[Run]:
    """A result as several, one for each part of its details.

    Args:
        run: The result.
        each: Path of a mapping in the details, whose values are the parts; or of a list of mappings, then a dot and the
            key of their names; or name of a part -> its path.

    Returns:
        Results with the part as `details.each` and its name as the fact `each`.
    """
    details = run.statistics.details
    found = (
        {name: _at(details, path) for name, path in each.items()} if isinstance(each, Mapping) else _at(details, each)
    )

    return [with_facts(run, {"each": name}, {"each": node}) for name, node in (found or {}).items() if node is not None]


def with_facts(run: Run, data: Mapping[str, Any], details: Mapping[str, Any], **question: Any) -> Run:
    """A result with further facts, details and fields of its question."""
    asked = replace(run.question, data={**run.question.data, **data}, **question)
    statistics = replace(run.statistics, details={**run.statistics.details, **details})
    return replace(run, result=replace(run.result, question=asked, statistics=statistics))


def _at(node: Any, path: str) -> Mapping[Any, Any] | None:
    for step in path.split("."):
        if isinstance(node, list):
            return {item[step]: item for item in node}
        node = node.get(step) if isinstance(node, Mapping) else None
    return node if isinstance(node, Mapping) else None
