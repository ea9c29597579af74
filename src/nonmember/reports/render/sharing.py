"""Equal parts of many values, kept once: the settings of six hundred audits differ little, and a page has them all."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

SHARED = "$shared"  # the one key of a mapping that stands for the entry with this number
LEAST = 40  # characters of JSON of a part that is worth a reference
_ENCODER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False)


def shared_parts(value: Any) -> tuple[Any, list[Any]]:
    """The value with references in the places of its parts that occur more than once, and these parts. An entry refers
    to earlier ones alone.

    >>> shared_parts([{"name": "x" * 40}, {"name": "x" * 40}, 1])
    ([{'$shared': 0}, {'$shared': 0}, 1], [{'name': 'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx'}])
    """
    seen: Counter[str] = Counter()
    places: dict[str, int] = {}
    entries: list[Any] = []

    def count(part: Any) -> Any:
        if part is None or isinstance(part, int | float):  # too short for a reference
            return part
        text = _text(part)
        seen[text] += 1
        return _rebuilt(part, count) if seen[text] == 1 else part  # what is in a part that is shared is there once

    def packed(part: Any) -> Any:
        if part is None or isinstance(part, int | float):
            return part
        text = _text(part)
        if seen[text] == 1 or len(text) < LEAST:
            return _rebuilt(part, packed)
        if text not in places:
            entry = _rebuilt(part, packed)
            places[text] = len(entries)
            entries.append(entry)
        return {SHARED: places[text]}

    count(value)
    return packed(value), entries


def _rebuilt(value: Any, by: Callable[[Any], Any]) -> Any:
    if isinstance(value, Mapping):
        return {name: by(part) for name, part in value.items()}
    return [by(part) for part in value] if isinstance(value, list | tuple) else value


def _text(value: Any) -> str:
    return _ENCODER.encode(value)
