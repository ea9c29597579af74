"""Marks of tests."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest


def slow(*values: Any) -> Any:
    """One row of parameters that only -m slow tries: what another row, or another test, nearly tries as well."""
    return pytest.param(*values, marks=pytest.mark.slow)


def thinned(rows: Iterable[Any], keep: int = 6) -> list[Any]:
    """One row of so many, the first among them; the others, which try nearly the same, are for -m slow."""
    return [row if number % keep == 0 else slowly(row) for number, row in enumerate(rows)]


def slowly(row: Any) -> Any:
    """A row of parameters, or their only value, for -m slow."""
    if isinstance(row, type(pytest.param())):  # of no public name
        return pytest.param(*row.values, id=row.id, marks=(*row.marks, pytest.mark.slow))
    return slow(*row) if isinstance(row, tuple) else slow(row)
