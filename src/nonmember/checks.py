"""Checks of settings, made where a recipe is built and before anything heavy is imported.

Each raises `ValueError` with one sentence: the name, what was expected, what was given, and what to do about it.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

LARGEST_COUNT = 2**31 - 1  # what fits wherever counts end up: lengths of tensors, ids, file formats
LARGEST_SEED = 2**63 - 1
LARGEST_NUMBER = sys.float_info.max
LONGEST_SHOWN = 80
FEW = 5  # values that a message lists


def require_count(
    value: object, at_least: int, name: str, *, at_most: int = LARGEST_COUNT, hint: str = "", or_null: bool = False
) -> None:
    """A whole number, neither true nor 2.0."""
    if or_null and value is None:
        return
    if isinstance(value, int) and not isinstance(value, bool):
        if at_least <= value <= at_most:
            return
        bounds = f"of at least {at_least}" if value < at_least else f"from {at_least} to {at_most}"
    else:
        bounds = f"of at least {at_least}"
    raise ValueError(wrong(name, f"a whole number {bounds}{' or null' if or_null else ''}", value, hint))


def require_number(value: object, interval: str, name: str, *, hint: str = "", or_null: bool = False) -> None:
    """A finite number in an interval as mathematics writes it: "(0, 1]" holds 1 and not 0; "[0, inf)" has no end."""
    if or_null and value is None:
        return
    low, high = (float(bound) for bound in interval[1:-1].split(","))
    if isinstance(value, int | float) and not isinstance(value, bool):
        above = value > low or (interval[0] == "[" and value == low)
        below = value < high or (interval[-1] == "]" and value == high)
        if above and below and abs(value) <= LARGEST_NUMBER:
            return
    if high < math.inf:
        wanted = f"a number in {interval}"
    elif low > -math.inf:
        wanted = f"a number {'above' if interval[0] == '(' else 'of at least'} {low:g}"
    else:
        wanted = "a finite number"
    raise ValueError(wrong(name, f"{wanted}{' or null' if or_null else ''}", value, hint))


def require_choice(value: object, choices: Collection[str], name: str, *, hint: str = "") -> None:
    if not isinstance(value, str) or value not in choices:
        raise ValueError(wrong(name, f"one of {', '.join(choices)}", value, hint))


def require_flag(value: object, name: str) -> None:
    if not isinstance(value, bool):
        raise ValueError(wrong(name, "true or false", value))


def require_text(value: object, name: str, *, hint: str = "", or_null: bool = False) -> None:
    """Text that is not empty. YAML reads 1234567 and 12e5 as numbers: such a name needs quotes."""
    if (or_null and value is None) or (isinstance(value, str) and value):
        return
    if not hint and isinstance(value, int | float) and not isinstance(value, bool):
        hint = "Put it into quotes."
    raise ValueError(wrong(name, f"text{' or null' if or_null else ''}", value, hint))


def require_kind(value: object, kind: Any, name: str, wanted: str, *, hint: str = "", or_null: bool = False) -> None:
    """An object of a class, or of one of a union of classes, that is called `wanted`."""
    if not (isinstance(value, kind) or (or_null and value is None)):
        raise ValueError(wrong(name, f"{wanted}{' or null' if or_null else ''}", value, hint))


def require_seed(value: object, name: str = "seed") -> None:
    require_count(value, 0, name, at_most=LARGEST_SEED)


def require_distinct(values: object, name: str, wanted: str, *, may_be_empty: bool = False) -> None:
    """A list in which nothing stands twice."""
    if isinstance(values, list | tuple) and (values or may_be_empty) and len(set(map(repr, values))) == len(values):
        return
    raise ValueError(wrong(name, f"a list of {wanted}, each once" if may_be_empty else wanted, values))


def wrong(name: str, wanted: str, value: object, hint: str = "") -> str:
    """The sentence: what was expected, what was given, what to do."""
    return f"{name} must be {wanted}; got {shown(value)}.{f' {hint}' if hint else ''}"


def shown(value: object) -> str:
    """A value as YAML would have it, cut where it is long; of other objects what they are."""
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, Mapping):
        text = f"a mapping with the keys {', '.join(map(str, value))}" if value else "an empty mapping"
    elif isinstance(value, str | int | float):
        text = repr(value)
    elif isinstance(value, Sequence):
        text = f"[{', '.join(map(shown, value))}]"
    else:
        text = f"{'an' if type(value).__name__[0] in 'AEIOU' else 'a'} {type(value).__name__}"
    return text if len(text) <= LONGEST_SHOWN else f"{text[:LONGEST_SHOWN]}..."


def first_few(values: Iterable[object]) -> str:
    """The first of many in a message: "a, b, c, d, e and 3 more"."""
    texts = [str(value) for value in values]
    more = f" and {len(texts) - FEW:,} more" if len(texts) > FEW else ""
    return ", ".join(texts[:FEW]) + more
