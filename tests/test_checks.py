"""Checks that annotations declare: refused in the sentences of `require_*`, once, wherever a dataclass is built."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, ClassVar, Literal

import pytest

from nonmember.checks import Checked, Count, Distinct, Number, OneOf, require_seed, require_text

SOURCE = Path(__file__).parents[1] / "src"


def _sorted_tuple(values: Sequence[int], name: str) -> tuple[int, ...]:
    return tuple(sorted(values))


Share = Annotated[float, Number("(0, 1]", "It is a share.")]


@dataclass(frozen=True)
class Settings(Checked):
    number: Annotated[int, Count(1, 9)]
    limit: Annotated[int | None, Count(0)]
    share: Share
    part: Share | None
    kind: Literal["one", "two"]
    form: Annotated[str, OneOf(("chat", "plain"))]
    other: Literal["one", "two"] | None
    flag: bool
    name: Annotated[str, require_text]
    seeds: Annotated[Sequence[int], Distinct("different seeds", require_seed)]
    lengths: Annotated[Sequence[int], _sorted_tuple]
    free: int | str | None

    fields_called: ClassVar[str] = "{field} of {kind}"


@dataclass(frozen=True)
class Narrower(Settings):
    number: Annotated[int, Count(3)]

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.limit is not None and self.limit < self.number:
            raise ValueError("limit below number")


GIVEN = Settings(1, None, 1.0, None, "one", "chat", None, True, "a", [1, 2], [3, 1], None)


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        ({"number": 0}, "number of Settings must be a whole number of at least 1; got 0."),
        ({"number": 10}, "number of Settings must be a whole number from 1 to 9; got 10."),
        ({"number": True}, "number of Settings must be a whole number of at least 1; got true."),
        ({"number": None}, "number of Settings must be a whole number of at least 1; got null."),
        ({"limit": -1}, "limit of Settings must be a whole number of at least 0 or null; got -1."),
        ({"share": 0}, "share of Settings must be a number in (0, 1]; got 0. It is a share."),
        ({"share": None}, "share of Settings must be a number in (0, 1]; got null. It is a share."),
        ({"part": 2}, "part of Settings must be a number in (0, 1] or null; got 2. It is a share."),
        ({"kind": "three"}, "kind of Settings must be one of one, two; got 'three'."),
        ({"form": None}, "form of Settings must be one of chat, plain; got null."),
        ({"other": 1}, "other of Settings must be one of one, two or null; got 1."),
        ({"flag": 1}, "flag of Settings must be true or false; got 1."),
        ({"name": ""}, "name of Settings must be text; got ''."),
        ({"seeds": [1, 1]}, "seeds of Settings must be different seeds; got [1, 1]."),
        ({"seeds": [1, -1]}, "each of seeds of Settings must be a whole number of at least 0; got -1."),
    ],
)
def test_a_value_is_refused_in_a_sentence(changed, sentence):
    with pytest.raises(ValueError) as refused:
        replace(GIVEN, **changed)
    assert str(refused.value) == sentence


def test_what_may_be_is_kept_and_what_a_check_returns_takes_its_place():
    assert GIVEN.lengths == (1, 3)
    assert GIVEN.seeds == [1, 2]
    assert replace(GIVEN, free=[], limit=0, part=0.5, other="two").free == []


def test_a_subclass_says_more():
    values = {**vars(GIVEN), "number": 10, "limit": 10}
    assert Narrower(**values).number == 10  # without the bound of the field that it replaces
    with pytest.raises(ValueError, match="number of Narrower must be a whole number of at least 3; got 2"):
        Narrower(**values | {"number": 2})
    with pytest.raises(ValueError, match="limit below number"):
        Narrower(**values | {"limit": 4})


def classes():
    for path in sorted(SOURCE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef):
                yield node, {ast.unparse(base).partition("[")[0] for base in node.bases}


def test_nothing_that_is_declared_goes_unchecked():
    """Whoever stands on `Checked` calls it, and whoever declares a check stands on it; by the names of classes."""
    every = list(classes())
    checked = {"Checked"}
    while more := {node.name for node, bases in every if bases & checked} - checked:
        checked |= more
    assert len(checked) > 40
    for node, bases in every:
        own = {item.name: ast.unparse(item) for item in node.body if isinstance(item, ast.FunctionDef)}
        if bases & checked and "__post_init__" in own:
            assert "super().__post_init__()" in own["__post_init__"], node.name
        fields = [ast.unparse(item.annotation) for item in node.body if isinstance(item, ast.AnnAssign)]
        if any(field.startswith("Annotated[") for field in fields):
            assert bases & checked, f"{node.name} declares checks and does not stand on Checked"
