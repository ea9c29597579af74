"""Docstrings of Python source: found by parsing, never by importing."""

from __future__ import annotations

import ast
import gc
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

from nonmember.corpora.specs import document
from nonmember.records import Corpus, Document
from nonmember.runtime.progress import tracked

# Tests hold hardly any prose, and vendored copies are another project's words under this one's name.
TEST_FOLDERS = {"test", "tests", "testing", "idle_test"}
FOREIGN_FOLDERS = {"site-packages", "dist-packages", "extern", "external", "externals", "third_party"} | {
    f"{underscore}{word}" for underscore in ("", "_") for word in ("vendor", "vendored", "external")
}
SKIPPED_FOLDERS = frozenset(TEST_FOLDERS | FOREIGN_FOLDERS)


class SourceFile(NamedTuple):
    """module: dotted name.   read: gives the file's bytes.   domain: of its documents; empty: the package."""

    package: str
    module: str
    read: Callable[[], bytes]
    domain: str = ""


def module_name(parts: Sequence[str]) -> str | None:
    """The dotted name of a file, told from its path below the folder that holds the package; None for what is not read:
    tests and vendored code."""
    *folders, file = parts
    name = file.removesuffix(".py")
    if name.startswith("test_") or name == "conftest" or SKIPPED_FOLDERS.intersection(folders[1:]):
        return None
    return ".".join(folders if name == "__init__" else [*folders, name])


def corpus_of(files: Sequence[SourceFile]) -> Corpus:
    """One document per docstring of a module, class or function, also of nested and conditionally defined ones; a name
    defined more than once in a domain gets "~2", "~3" in order of appearance. doc_id "domain:module.qualname", cluster
    the module.

    `Corpus.dropped["unparsable_module"]`: files this Python cannot parse.
    """
    documents: list[Document] = []
    seen: Counter[str] = Counter()
    num_unparsable = 0
    with _collector_paused():
        for package, module, read, given in tracked(files, "reading docstrings", "modules"):
            domain = given or package
            tree = _parse(read())
            if tree is None:
                num_unparsable += 1
                continue
            for qualname, text in _docstrings(tree, module):
                doc_id = f"{domain}:{qualname}"
                seen[doc_id] += 1
                repeated = f"~{seen[doc_id]}" if seen[doc_id] > 1 else ""  # "~": in no name of Python's
                whole = text.encode("utf-8", "replace").decode()  # a literal of Python may hold half a character
                documents.append(document(doc_id + repeated, whole, module, domain))
    return Corpus(tuple(documents), {"unparsable_module": num_unparsable} if num_unparsable else {})


@contextmanager
def _collector_paused() -> Iterator[None]:
    """Syntax trees hold no cycles, but their millions of nodes set off collections that double the time."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def _parse(source: bytes) -> ast.Module | None:
    """None for what this Python cannot parse: templates, other Pythons' syntax, too deeply nested code."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # invalid escapes in other people's strings
            return ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _docstrings(node: ast.AST, qualname: str) -> Iterator[tuple[str, str]]:
    if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
        text = ast.get_docstring(node, clean=False)
        if text and not text.isspace():
            yield qualname, text
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield from _docstrings(child, f"{qualname}.{child.name}")
        elif isinstance(child, ast.stmt | ast.ExceptHandler | ast.match_case):
            yield from _docstrings(child, qualname)
