"""Every name of a method's details that a reader asks for is one that a method declares."""

import ast
import inspect
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints, is_typeddict

import pytest

from nonmember.methods.base import known_details
from nonmember.methods.details import Details

ROOT = Path(__file__).parents[2]
READERS = (
    "nonmember/reports",
    "nonmember/results",
    "nonmember/cli",
    "nonmember/tracking",
    "nonmember/audits",
    "nonmember/evidence",
    "nonmember/advice",
    "nonmember_papers",
    "nonmember_verify",
)
MADE_BY_REPORTS = {
    "each",
    "seconds_per_work",
    "text_alone",
    "right",
    "share",
    "asked",
}  # of results, before tables are made of them
Path_ = tuple[str, ...]  # steps; those of which a part is not known have * in it


def names_of(declared: Any) -> Iterator[tuple[str, Any]]:
    """What stands in the JSON of a declared record, and of which type."""
    hints = get_type_hints(declared)
    if not is_dataclass(declared):
        yield from hints.items()
        return
    for item in (item for item in fields(declared) if item.repr):
        if "inlined" in item.metadata:
            for kind in (kind for kind in get_args(hints[item.name]) or [hints[item.name]] if kind is not NoneType):
                yield from names_of(kind)
        else:
            yield item.metadata.get("key", item.name), hints[item.name]


def holds(declared: Any, path: Path_) -> bool:
    """Whether something stands at the path of a value of this type."""
    if not path:
        return True
    origin, step, rest = get_origin(declared), path[0], path[1:]
    if declared is Any:
        return True
    if origin in (Union, UnionType):
        return any(holds(kind, path) for kind in get_args(declared))
    if is_dataclass(declared) or is_typeddict(declared):
        return any(fnmatchcase(name, step) and holds(kind, rest) for name, kind in names_of(declared))
    if origin is not None and issubclass(origin, Mapping):
        return holds(get_args(declared)[1], rest)
    return (
        origin is not None and issubclass(origin, Sequence) and _is_index(step) and holds(get_args(declared)[0], rest)
    )


def _is_index(step: str) -> bool:
    return step == "*" or step.isdigit()


def parts_of(declared: Any) -> Iterator[Any]:
    """The records of which a type is made: what `details.each` may be."""
    if is_dataclass(declared) or is_typeddict(declared):
        yield declared
        for _, kind in names_of(declared):
            yield from parts_of(kind)
    for kind in get_args(declared):
        yield from parts_of(kind)


def is_declared(path: Path_) -> bool:
    types = known_details().values()
    if path[0] == "each" and path[1:]:
        return path[1] in MADE_BY_REPORTS or any(
            holds(part, path[1:]) for declared in types for part in parts_of(declared)
        )
    return path[0] in MADE_BY_REPORTS or any(holds(declared, path) for declared in types)


class Reads(ast.NodeVisitor):
    """The paths that a file asks for: below `.details`, by names that stand for these, and in `detail(...)`."""

    def __init__(self) -> None:
        self.known: dict[str, Path_] = {}
        self.found: list[tuple[int, Path_]] = []

    def path_of(self, node: ast.AST) -> Path_ | None:
        match node:
            case ast.Attribute(attr="details"):
                return ()
            case ast.Name(id=name):
                return self.known.get(name)
            case ast.Call(func=ast.Name(id="details" | "_details")):
                return ()
            case ast.Call(func=ast.Name(id="dict" | "_mapping" | "enumerate"), args=[one, *_]):
                return self.path_of(one)
            case ast.BoolOp(values=[one, *_]):
                return self.path_of(one)
            case (
                ast.Subscript(value=one, slice=step)
                | ast.Call(func=ast.Attribute(value=one, attr="get"), args=[step, *_])
            ):
                path = self.path_of(one)
                return None if path is None else (*path, step_of(step))
            case ast.Call(func=ast.Attribute(value=one, attr="values" | "items")):
                path = self.path_of(one)
                return None if path is None else path
        return None

    def bind(self, target: ast.AST, value: ast.AST) -> None:
        """A name for what is assigned, or for the items of what is walked through."""
        if isinstance(target, ast.Name):
            path = self.path_of(value)
            self.known.pop(target.id, None)
            if path is not None:
                self.known[target.id] = path

    def walk_through(self, target: ast.AST, items: ast.AST) -> None:
        names = [item for item in ast.walk(target) if isinstance(item, ast.Name)]
        path = self.path_of(items)
        for name in names:
            self.known.pop(name.id, None)
        if path is not None and names:
            self.known[names[-1].id] = (*path, "*")

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        outer, self.known = self.known, dict(self.known)
        self.generic_visit(node)
        self.known = outer

    def visit_Assign(self, node: ast.Assign) -> None:
        self.generic_visit(node)
        self.bind(node.targets[0], node.value)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        self.generic_visit(node)
        if node.value is not None:
            self.bind(node.target, node.value)

    def visit_NamedExpr(self, node: ast.NamedExpr) -> None:
        self.generic_visit(node)
        self.bind(node.target, node.value)

    def visit_For(self, node: ast.For) -> None:
        self.walk_through(node.target, node.iter)
        self.generic_visit(node)

    def visit_comprehension_of(self, node: Any) -> None:
        outer, self.known = self.known, dict(self.known)
        for item in node.generators:
            self.walk_through(item.target, item.iter)
        self.generic_visit(node)
        self.known = outer

    visit_ListComp = visit_SetComp = visit_DictComp = visit_GeneratorExp = visit_comprehension_of

    def visit_Subscript(self, node: ast.Subscript) -> None:
        self.note(node)
        self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> None:
        self.note(node)
        match node:
            case ast.Call(func=ast.Name(id="detail"), args=steps):
                self.found.append((node.lineno, tuple(map(step_of, steps))))
            case ast.Call(func=ast.Name(id="number_in"), args=[one, *steps]) if (path := self.path_of(one)) is not None:
                self.found.append((node.lineno, (*path, *map(step_of, steps))))
        self.generic_visit(node)

    def note(self, node: ast.expr) -> None:
        if path := self.path_of(node):
            self.found.append((node.lineno, path))


def step_of(node: ast.AST) -> str:
    match node:
        case ast.Constant(value=step):
            return str(step)
        case ast.JoinedStr(values=parts):
            return "".join(str(item.value) if isinstance(item, ast.Constant) else "*" for item in parts)
    return "*"


TEMPLATE = re.compile(r"(?<![\w])details(?:\.|__)((?:[\w.]|\{\w*\})+)")


def in_templates(text: str) -> Iterator[tuple[int, Path_]]:
    """`details.x.y`, as tables declare it, and `details__x`, as results are selected."""
    for number, line in enumerate(text.splitlines(), 1):
        for found in TEMPLATE.finditer(line):
            yield number, tuple("*" if "{" in step else step for step in found[1].rstrip(".").split("."))


def asked_for() -> Iterator[tuple[str, Path_]]:
    """Place -> what is asked for there."""
    for path in [item for folder in READERS for item in sorted((ROOT / "src" / folder).rglob("*.py"))]:
        text = path.read_text()
        if "detail" not in text:
            continue
        tree, reads = ast.parse(text), Reads()
        reads.visit(tree)
        strings = [
            (node.lineno, steps)
            for node in ast.walk(tree)
            if isinstance(node, ast.Constant) and isinstance(node.value, str)
            for _, steps in in_templates(node.value)
        ]
        for line, steps in [*reads.found, *strings]:
            yield f"{path.relative_to(ROOT)}:{line}", steps
    for path in sorted((ROOT / "conf/report").glob("*.yaml")):
        for line, steps in in_templates(path.read_text()):
            yield f"{path.relative_to(ROOT)}:{line}", steps


def test_readers_ask_for_declared_names():
    found = dict.fromkeys(asked_for())
    assert len(found) > 150
    assert [f"{place}: details.{'.'.join(path)}" for place, path in found if not is_declared(path)] == []


@pytest.mark.parametrize("path", [("rho",), ("gates", "ce", "val"), ("each", "aucs"), ("margin", "bound")])
def test_a_name_that_no_method_declares_is_found(path: Path_):
    assert not is_declared(path)


def test_what_is_read_is_found_by_any_name():
    reads = Reads()
    reads.visit(
        ast.parse(
            "told = run.statistics.details\nfor name, gate in told['gates'].items():\n    gate['value']\n"
            "[one.get('dose') for one in told.get('controls') or ()]\ndetail('a', f'num_{x}')\n"
        )
    )
    assert {path for _, path in reads.found} == {
        ("gates",),
        ("gates", "*", "value"),
        ("controls",),
        ("controls", "*", "dose"),
        ("a", "num_*"),
    }


@pytest.mark.parametrize("declared", sorted(set(known_details().values()), key=lambda item: item.__name__))
def test_every_field_is_documented(declared: type[Details]):
    """In the docstring of the base, beside the field or above it elsewhere."""
    if declared is Details:
        told = set(re.findall(r"^ {8}(\w+): \S", declared.__doc__ or "", re.MULTILINE))
    else:
        told = set(
            re.findall(r"^    (\w+): .*  # \S|^    # \S.*\n    (\w+): ", inspect.getsource(declared), re.MULTILINE)
        )
        told = {beside or below for beside, below in told}
    inherited = set() if declared is Details else {item.name for item in fields(Details)}
    assert told == {item.name for item in fields(declared)} - inherited


def test_undefined_is_null_and_what_did_not_arise_is_left_out():
    declared = known_details()["prism"]
    told = declared(rho_reference_target=float("nan"), p_value_at_larger_margin=0.5, layout_auc={"heldout": 0.5})  # type: ignore[call-arg]
    assert list(told.to_json().items()) == [
        ("rho_reference_target", None),
        ("p_value_at_margin_0.1", 0.5),
        ("layout_auc", {"heldout": 0.5}),
    ]
