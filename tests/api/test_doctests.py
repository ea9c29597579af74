"""The docstrings of what is public: their examples run, and each function says what it takes, returns, raises, follows.

They are in Google's style: a summary of one line, sections (Args or Attributes, Returns, Raises), and a paragraph that
begins with Source.
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
from nonmember import api, scoring
from nonmember.checks import Checked

MODULES = [
    f"{package.__name__}.{module.name}"
    for package in (nm.scores, nm.stats, scoring, api)
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


def fields_of(found) -> dict[str, object]:
    """Annotated fields, those without a default too, and what they are."""
    return {name: note for item in found.__mro__ for name, note in vars(item).get("__annotations__", {}).items()}


def checks_arguments(kind: type) -> bool:
    declared = any("Annotated" in str(note) for note in fields_of(kind).values())
    return declared or any("__post_init__" in vars(item) for item in kind.__mro__ if item is not Checked)


RAISE_NO_VALUE_ERROR = {"bootstrap_p_value", "calibration_offsets", "canary_power", "layout_features", "power_ceiling"}

of_each_function = pytest.mark.parametrize(
    ("module", "name"), FUNCTIONS, ids=lambda item: item if isinstance(item, str) else ""
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
    found = getattr(module, name)
    assert "Returns" in sections_of(found)
    says_once = "raise ValueError" in (inspect.getmodule(found).__doc__ or "")  # for all functions of its module
    assert "ValueError" in sections_of(found).get("Raises", {}) or says_once or name in RAISE_NO_VALUE_ERROR
    assert "\nSource: " in prose_of(found)


@pytest.mark.parametrize("found", [item for item in CLASSES if checks_arguments(item)])
def test_classes_that_check_their_arguments_name_them_and_say_what_they_raise(found):
    assert not {*inspect.signature(found).parameters} - named_in(found)
    assert "ValueError" in sections_of(found)["Raises"]


@pytest.mark.parametrize("found", [item for item in CLASSES if issubclass(item, nm.scores.Score)])
def test_scores_have_a_source(found):
    assert "\nSource: " in prose_of(found)


@pytest.mark.slow
@pytest.mark.parametrize("found", [*dict.fromkeys(getattr(module, name) for module, name in FUNCTIONS), *CLASSES])
def test_summaries_are_one_line_and_what_is_named_exists(found):
    assert prose_of(found).rstrip("\n").split("\n")[1:2] in ([], [""])
    names = inspect.signature(found).parameters if inspect.isfunction(found) else {*dir(found), *fields_of(found)}
    assert named_in(found) <= {*names}


def prose_of(found) -> str:
    """The docstring without its examples."""
    return inspect.cleandoc(found.__doc__).partition(">>> ")[0]


def sections_of(found) -> dict[str, dict[str, str]]:
    """Section -> what it names -> what it says of that; the text of Returns by the empty name."""
    sections: dict[str, dict[str, str]] = {}
    pattern = r"^(Args|Attributes|Returns|Raises):\n((?: {4}.+\n?)+)"
    for title, body in re.findall(pattern, prose_of(found), re.MULTILINE):
        entries = re.findall(r"^ {4}(?:\*\*)?(\w+): (.+(?:\n {8}.+)*)", body, re.MULTILINE)
        sections[title] = {"": body} if title == "Returns" else dict(entries)
    return sections


def named_in(found) -> set[str]:
    """The arguments or fields that the docstring says something of."""
    return {*sections_of(found).get("Args", {}), *sections_of(found).get("Attributes", {})}
