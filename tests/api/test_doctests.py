"""The docstrings of what is public: their examples run, and each function says what it takes, returns, raises, follows.

What is to be found: `name:` for each argument (`name, other:` for several of a kind), and sentences that begin with
Returns, Raises ValueError and Source.
"""

from __future__ import annotations

import doctest
import importlib
import inspect
import pkgutil
import re
from pathlib import Path

import pytest

import nonmember as nm
from nonmember import api

MODULES = [
    f"{package.__name__}.{module.name}"
    for package in (nm.scores, nm.stats, api)
    for module in pkgutil.iter_modules(package.__path__)
]
FUNCTIONS = [
    (module, name)
    for module in (nm, nm.scores, nm.stats)
    for name in module.__all__
    if inspect.isfunction(getattr(module, name))
]
CLASSES = [
    found
    for module in (nm.scores, nm.stats)
    for name in module.__all__
    if inspect.isclass(found := getattr(module, name)) and not inspect.isabstract(found)
]
RAISE_NO_VALUE_ERROR = {"bootstrap_p_value", "calibration_offsets", "layout_features", "power_ceiling"}

of_each_function = pytest.mark.parametrize(
    ("module", "name"), FUNCTIONS, ids=lambda one: one if isinstance(one, str) else ""
)


@pytest.mark.parametrize("name", MODULES)
def test_examples_give_what_they_show(name, monkeypatch):
    monkeypatch.syspath_prepend(Path(__file__).parents[2] / "examples")
    assert doctest.testmod(importlib.import_module(name)).failed == 0


@of_each_function
def test_public_functions_have_an_example_that_runs(module, name):
    examples = doctest.DocTestParser().get_examples(getattr(module, name).__doc__)
    assert any(example.want and doctest.SKIP not in example.options for example in examples)


@of_each_function
def test_public_functions_name_each_argument(module, name):
    found = getattr(module, name)
    assert not {*inspect.signature(found).parameters} - named_in(found)


@of_each_function
def test_public_functions_say_what_they_return_raise_and_follow(module, name):
    expected = ["Returns ", "Source: "] + ["Raises ValueError"] * (name not in RAISE_NO_VALUE_ERROR)
    assert not missing(expected, getattr(module, name))


@pytest.mark.parametrize("found", [one for one in CLASSES if hasattr(one, "__post_init__")])
def test_classes_that_check_their_arguments_name_them_and_say_what_they_raise(found):
    assert not {*inspect.signature(found).parameters} - named_in(found)
    assert not missing(["Raises ValueError"], found)


@pytest.mark.parametrize("found", [one for one in CLASSES if issubclass(one, nm.scores.Score)])
def test_scores_have_a_source(found):
    assert not missing(["Source: "], found)


def prose_of(found) -> str:
    """The docstring without its examples."""
    return inspect.cleandoc(found.__doc__).partition(">>> ")[0]


def named_in(found) -> set[str]:
    """The arguments that the docstring says something of."""
    lists = re.findall(r"(?:^|[.,;:)\]]) *((?:\w+,\s+)*\w+):(?= |$)", prose_of(found), re.MULTILINE)
    return {one.strip() for several in lists for one in several.split(",")}


def missing(expected: list[str], found) -> list[str]:
    """Words with which no sentence of the docstring begins."""
    sentences = re.split(r"\.\s+|\n\s*\n", prose_of(found))
    return [words for words in expected if not any(one.startswith(words) for one in sentences)]
