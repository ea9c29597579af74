"""JSON values as objects of the result's schema, by pydantic: each field has the type that its dataclass states."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

from pydantic import ConfigDict, TypeAdapter, ValidationError


class Recorded:
    """A part of a result: a dataclass that pydantic checks strictly."""

    __pydantic_config__ = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)


@cache
def _adapter(kind: Any) -> TypeAdapter[Any]:
    return TypeAdapter(kind)


def built(kind: Any, value: object, name: str) -> Any:
    """The JSON value as an object of a dataclass. Raises ValueError with the name of the first field that is wrong."""
    try:
        return _adapter(kind).validate_json(json.dumps(value, allow_nan=False))
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        raise ValueError(f"{'.'.join(map(str, (name, *first['loc'])))[:200]}: {first['msg']}") from error
