"""What the rows of the closing table are called."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from nonmember.results.result import AuditResult, Failure


def names_of(cells: Sequence[AuditResult | Failure]) -> list[str]:
    """What each audit is about; where that does not tell them apart, what was given for it, in short."""
    given = [_given(cell) for cell in cells]
    everywhere = set.intersection(*map(set, given)) if len(given) > 1 else set()
    differing = [" ".join(part for part in parts if part not in everywhere) for parts in given]
    subjects = [_subject(cell) or short for cell, short in zip(cells, differing, strict=True)]
    methods = ["" if isinstance(cell, Failure) else cell.question.method for cell in cells]  # a table each
    repeated = {name for (_, name), number in Counter(zip(methods, subjects, strict=True)).items() if number > 1}
    told_apart = len(set(zip(methods, differing, strict=True))) == len(cells)
    return [
        (short if told_apart or isinstance(cell, Failure) else f"{short} {cell.question.cell}".strip())
        if name in repeated
        else name
        for name, short, cell in zip(subjects, differing, cells, strict=True)
    ]


def _subject(cell: AuditResult | Failure) -> str:
    if isinstance(cell, Failure):
        return ""
    return cell.question.subject


def _given(cell: AuditResult | Failure) -> list[str]:
    """["domain=scipy", "lambda=0.1"] of the folder data.domain=scipy,method.distillation.lambda_=0.1; of an audit of
    one's own models and texts, whose folder has a hash, the same from its settings."""
    folder = cell.cell if isinstance(cell, Failure) else cell.question.cell
    if "=" in folder or isinstance(cell, Failure):
        return [_short(part) for part in folder.split(",")]
    asked = cell.question
    every = {"seed": asked.seed, "reference": asked.reference, **asked.settings}
    return [asked.subject, *(_short(part) for part in _flat(every))]


def _short(setting: str) -> str:
    return re.sub(r"^[^=]*[.@/]([^=.@/]+=)", r"\1", setting).replace("_=", "=")


def _flat(settings: Mapping[str, Any], place: str = "") -> Iterator[str]:
    for key, value in settings.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{place}{key}.")
        else:
            yield f"{place}{key}={value}"
