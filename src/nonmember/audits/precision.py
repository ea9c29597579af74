"""Whether a verdict hangs on the precision in which models are read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from nonmember.artifacts import Builder
from nonmember.audits.question import Audit
from nonmember.audits.walk import specs_in
from nonmember.methods import ScoredDocuments, TestOutcome
from nonmember.models import ModelSpec
from nonmember.models.kinds.pretrained import Gguf, Pretrained, resolved_dtype
from nonmember.observations import Scored
from nonmember.scores import Loss, MinKPlusPlus, Score

# By how much bfloat16 moves a document's score at most, as measured (docs/methods/conventions.md).
CHANGES: dict[type[Score], float] = {Loss: 0.012, MinKPlusPlus: 0.028}


def with_precision_warning(
    outcome: TestOutcome, documents: Mapping[str, ScoredDocuments], audit: Audit, builder: Builder
) -> TestOutcome:
    """With a warning where a model is read in bfloat16, and the test would conclude otherwise from scores that are so
    much larger, smaller, or both at random, as bfloat16 moves them."""
    moved = {
        (group, name): change
        for group, item in audit.groups.items()
        for name, measurement in item.measured.items()
        if isinstance(measurement, Scored)
        and (change := CHANGES.get(type(measurement.score))) is not None
        and _is_rough(measurement.model, builder)
    }
    if not moved:
        return outcome
    rng = np.random.default_rng([audit.seed, 0])
    for direction in ("up", "down", "apart"):
        changed = {group: _moved(group, item, moved, direction, rng) for group, item in documents.items()}
        other = audit.method.test(changed, np.random.default_rng([audit.seed, 0]))
        if _conclusion(other) != _conclusion(outcome):
            break
    else:
        return outcome
    warning = (
        f"Models are read in bfloat16, which moves a score by up to {max(moved.values()):g}: with scores moved so far "
        f"the test may conclude otherwise (p {other.p_value:.3g} in place of {outcome.p_value:.3g}). Read them in "
        "float32 (dtype=float32)."
    )
    return replace(outcome, warnings=(*outcome.warnings, warning))


def _is_rough(model: ModelSpec, builder: Builder) -> bool:
    if builder.compute.precision.startswith("bf16"):
        return True
    read = (item for item in specs_in(model) if isinstance(item, Pretrained | Gguf))
    return any(resolved_dtype(item.dtype, builder) == "bfloat16" for item in read)


def _moved(
    group: str,
    documents: ScoredDocuments,
    moved: Mapping[tuple[str, str], float],
    direction: str,
    rng: np.random.Generator,
) -> ScoredDocuments:
    """up, down: the scores under the first model, of the first group.   apart: all, at random by document."""
    first = next(iter(moved))
    values: dict[str, Any] = dict(documents.values)
    for name in values:
        change = moved.get((group, name))
        if change is None:
            continue
        if direction == "apart":
            values[name] = values[name] + change * rng.choice([-1.0, 1.0], len(values[name]))
        elif (group, name) == first:
            values[name] = values[name] + (change if direction == "up" else -change)
    return replace(documents, values=values)


def _conclusion(outcome: TestOutcome) -> tuple[str, bool]:
    return outcome.verdict, bool(outcome.p_value < outcome.alpha)
