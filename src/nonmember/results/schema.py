"""JSON values as objects of the result's schema: each field must have the type that its dataclass states.

A result may come from anybody: whoever reads a field afterwards relies on its type, so it is asked here, once.
"""

from __future__ import annotations

import dataclasses
import types
import typing
from collections.abc import Mapping
from functools import cache
from typing import Any

from nonmember.checks import LARGEST_NUMBER, wrong

LARGEST_WHOLE = 2**64  # seeds and counts lie below
LONGEST_TEXT = 100_000  # characters of a label, a sentence, a name


def built(kind: Any, value: object, name: str) -> Any:
    """The value as an object of a type.

    Args:
        kind: a dataclass, or what the annotation of one of its fields may be.
        value: of JSON.
        name: of the field, for messages.

    Raises:
        ValueError: where it, or something in it, has another type, with the name of the field.
    """
    is_object, origin, inner = _parts(kind)
    if is_object:
        return _object(kind, value, name)
    if origin in (typing.Union, types.UnionType):
        if value is None and type(None) in inner:
            return None
        fitting = [element for element in inner if element is not type(None) and _may_be(element, value)]
        if not fitting and all(element in WORDS for element in inner):
            raise ValueError(wrong(name, " or ".join(WORDS[element] for element in inner), value))
        return built(fitting[0] if fitting else inner[0], value, name)
    if origin is Mapping:
        return {key: built(inner[1], element, f"{name}.{key}") for key, element in _mapping(value, name).items()}
    if origin is tuple:
        kinds = inner[:1] * len(value) if isinstance(value, list) and inner[-1] is Ellipsis else inner
        if not isinstance(value, list) or len(value) != len(kinds):
            raise ValueError(wrong(name, "a list" if inner[-1] is Ellipsis else f"a list of {len(inner)}", value))
        return tuple(built(element, item, name) for element, item in zip(kinds, value, strict=True))
    if kind is Any:
        _require_bounded(value, name)
        return value
    if not _may_be(kind, value):
        raise ValueError(wrong(name, WORDS[kind], value))
    _require_bounded(value, name)
    return value


WORDS = {str: "text", bool: "true or false", int: "a whole number", float: "a number", type(None): "null"}


def _object(kind: Any, value: object, name: str) -> Any:
    given, fields = _mapping(value, name), _fields(kind)
    if missing := sorted(required_fields(kind) - given.keys()):
        raise ValueError(f"{name} lacks {missing[0]}")
    if strange := sorted(given.keys() - fields.keys()):
        raise ValueError(f"{name} has {strange[0][:80]!r}, which this version does not know")
    return kind(**{field: built(fields[field], item, f"{name}.{field}") for field, item in given.items()})


@cache
def _parts(kind: Any) -> tuple[bool, Any, tuple[Any, ...]]:
    """Whether it is a dataclass, and what an annotation is made of."""
    return dataclasses.is_dataclass(kind), typing.get_origin(kind), typing.get_args(kind)


@cache
def required_fields(kind: Any) -> frozenset[str]:
    """Names of those of a dataclass that have no default."""
    missing = dataclasses.MISSING
    return frozenset(item.name for item in dataclasses.fields(kind) if item.default is item.default_factory is missing)


@cache
def _fields(kind: Any) -> dict[str, Any]:
    return typing.get_type_hints(kind)


def _mapping(value: object, name: str) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise ValueError(wrong(name, "an object of names and values", value))
    return value


def _may_be(kind: Any, value: object) -> bool:
    is_object, origin, _ = _parts(kind)
    if is_object or origin is Mapping:
        return isinstance(value, dict)
    if origin is tuple:
        return isinstance(value, list)
    if kind is float:
        return isinstance(value, int | float) and not isinstance(value, bool)
    return isinstance(value, kind) and (kind is bool or not isinstance(value, bool))


def _require_bounded(value: object, name: str) -> None:
    """No number and no text beyond what later arithmetic and tables can take, at any depth."""
    if isinstance(value, str):
        if len(value) > LONGEST_TEXT:
            raise ValueError(f"{name[:80]} must be text of at most {LONGEST_TEXT:,} characters; got {len(value):,}.")
    elif isinstance(value, dict):
        for key, item in value.items():
            _require_bounded(key, name)
            _require_bounded(item, f"{name}.{key}")
    elif isinstance(value, list):
        for item in value:
            _require_bounded(item, name)
    elif (isinstance(value, int) and abs(value) > LARGEST_WHOLE) or (
        isinstance(value, float) and not abs(value) <= LARGEST_NUMBER
    ):
        raise ValueError(f"{name[:80]} must be a finite number; got one that is too large.")
