"""What a method tells in a result beside its statistic: declared here and beside each method, asked for by name."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields, is_dataclass
from typing import Any, TypedDict

INLINED = {"inlined": True}  # of a field whose own names stand in the JSON in its place


class Gate(TypedDict):
    """A measured value against its bound: above it, or below it where `upper`. None: it could not be measured."""

    value: float | None
    bound: float
    upper: bool
    passed: bool


@dataclass(frozen=True, kw_only=True)
class Details:
    """Further numbers of a result. Each method declares its own in a subclass.

    A field is left out of the JSON where it is None and that is its default: the question did not arise. NaN is null
    there: it arose, and the number is undefined. A field's metadata may give another name for the JSON as its `key`. Of
    the dataclasses in it, such as those of statistics, all that their repr shows is told.

    Attributes:
        layout_auc: Group -> AUC at which layout alone tells its texts from the suspect set's.
        blind_auc: Kind of features (words, characters, years) -> AUC at which they tell held-out text from it.
        weight_changes: Role -> how far the model's weights moved from the base's, as a share of these.
    """

    layout_auc: Mapping[str, float] | None = None
    blind_auc: Mapping[str, float] | None = None
    weight_changes: Mapping[str, float] | None = None

    def to_json(self) -> dict[str, Any]:
        """Plain values by name: the method's own first, then what the audit found beside the test."""
        values = _told(self)
        beside = {name: values.pop(name) for name in Details.__dataclass_fields__ if name in values}
        return values | beside


def _told(record: Any) -> dict[str, Any]:
    """Of a dataclass, a statistic's own too, what its repr shows."""
    values: dict[str, Any] = {}
    for item in fields(record):
        value = getattr(record, item.name)
        if not item.repr or (value is None and item.default is None):
            continue
        plain = _plain(value)
        values |= plain if "inlined" in item.metadata else {item.metadata.get("key", item.name): plain}
    return values


def _plain(value: Any) -> Any:
    """As it stands in JSON, which has no NaN."""
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None
    if is_dataclass(value):
        return _told(value)
    if isinstance(value, Mapping):
        return {name: _plain(item) for name, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, list | tuple) else value
