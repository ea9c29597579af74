"""Marks of tests."""

from __future__ import annotations

from typing import Any

import pytest


def slow(*values: Any) -> Any:
    """One row of parameters that only -m slow tries: what another row, or another test, nearly tries as well."""
    return pytest.param(*values, marks=pytest.mark.slow)
