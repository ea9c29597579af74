"""The examples in the docstrings of what is public."""

from __future__ import annotations

import doctest
import importlib
import pkgutil

import pytest

import nonmember as nm
from nonmember import api

MODULES = [
    f"{package.__name__}.{module.name}"
    for package in (nm.scores, nm.stats, api)
    for module in pkgutil.iter_modules(package.__path__)
]
FUNCTIONS = [
    *((nm, name) for name in nm.__all__),
    *((module, name) for module in (nm.scores, nm.stats) for name in module.__all__),
]


@pytest.mark.parametrize("name", MODULES)
def test_examples_give_what_they_show(name):
    assert doctest.testmod(importlib.import_module(name)).failed == 0


@pytest.mark.parametrize(("module", "name"), FUNCTIONS, ids=lambda one: one if isinstance(one, str) else "")
def test_public_functions_have_an_example(module, name):
    found = getattr(module, name)
    if callable(found) and not isinstance(found, type):
        assert ">>> " in found.__doc__
