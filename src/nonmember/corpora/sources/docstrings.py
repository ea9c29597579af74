"""Docstrings of Python packages, found by parsing and never by importing: of installed ones (real English that needs no
download), and of a release that need not be installed (out of wheels, or of unpacked folders)."""

from __future__ import annotations

import ast
import functools
import platform
import sys
import sysconfig
import warnings
import zipfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cache
from importlib import metadata, util
from pathlib import Path, PurePosixPath
from sys import stdlib_module_names
from typing import Annotated, Any, ClassVar, NamedTuple

from nonmember.artifacts import Builder
from nonmember.corpora.specs import CorpusSpec, as_sorted_names, digest_files, document
from nonmember.records import Corpus, Document
from nonmember.runtime.progress import tracked

STDLIB = "stdlib"

# Tests hold hardly any prose, and vendored copies are another project's words under this one's name.
TEST_FOLDERS = {"test", "tests", "testing", "idle_test"}
FOREIGN_FOLDERS = {"site-packages", "dist-packages", "extern", "external", "externals", "third_party"} | {
    f"{underscore}{word}" for underscore in ("", "_") for word in ("vendor", "vendored", "external")
}
SKIPPED_FOLDERS = frozenset(TEST_FOLDERS | FOREIGN_FOLDERS)


class SourceFile(NamedTuple):
    """A module that is read."""

    package: str  # as imported
    module: str  # its dotted name
    read: Callable[[], bytes]  # gives the file's bytes
    domain: str  # of its documents


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
    for _, module, read, domain in tracked(files, "reading docstrings", "modules"):
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


def _with_all(packages: Sequence[str], corpus: Corpus, who: str, where: str, ending: str = "") -> Corpus:
    """The corpus. Raises ValueError where a package, whose domain has that ending, has no document in it."""
    domains = {document.domain for document in corpus.documents}
    if silent := [package for package in packages if f"{package}{ending}" not in domains]:
        raise ValueError(
            f"{who} found no docstrings of {', '.join(silent)} {where}. Put its source there, or leave it out of "
            "`packages`."
        )
    return corpus


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


@dataclass(frozen=True)
class LibraryDocs(CorpusSpec):
    """Docstrings of installed packages ("stdlib": Python's own library), as `corpus_of` names them; domain the package;
    in order of package, module and line.

    Raises ValueError for a package that is not installed, not top-level, or has no docstrings.
    """

    packages: Annotated[tuple[str, ...], as_sorted_names]

    stored: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        for package in self.packages:
            if not package.isidentifier():
                raise ValueError(
                    f"`packages` of LibraryDocs must be names of top-level packages, as imported; got {package!r}. "
                    "Name the part before the first dot."
                )

    def build(self, builder: Builder) -> Corpus:
        named = [(package, *item) for package in self.packages for item in _modules(package)]
        corpus = corpus_of([SourceFile(package, name, path.read_bytes, package) for package, name, path in named])
        return _with_all(self.packages, corpus, "LibraryDocs", "among what is installed as source")

    def identity(self) -> dict[str, Any]:
        return {
            "kind": "library_docs",
            "reader": 1,
            "python": platform.python_version(),
            "packages": {package: _version(package) for package in self.packages},
        }


def _roots(package: str) -> list[Path]:
    """The file or folder of each top-level module that makes up a package; imports nothing."""
    if package == STDLIB:
        library = Path(sysconfig.get_paths()["stdlib"])
        names = sorted(stdlib_module_names)
        paths = [path for name in names for path in (library / name, library / f"{name}.py")]
        return [path for path in paths if path.exists()]
    spec = util.find_spec(package)  # of a top-level name: looks for it, does not run it
    if spec is None:
        raise ValueError(
            f"LibraryDocs needs the package {package!r}, but it is not installed here; "
            "install it or leave it out of `packages`."
        )
    if spec.submodule_search_locations is not None:
        return [Path(folder) for folder in spec.submodule_search_locations]
    return [Path(spec.origin)] if spec.origin and spec.origin.endswith(".py") else []


def _modules(package: str) -> list[tuple[str, Path]]:
    """(dotted name, file) of every module of a package that is read, in order of name."""
    paths = ((root, path) for root in _roots(package) for path in (root.rglob("*.py") if root.is_dir() else [root]))
    named = ((module_name(path.relative_to(root.parent).parts), path) for root, path in paths)
    return sorted((name, path) for name, path in named if name is not None)


def _version(package: str) -> str:
    """The installed version; for code that no distribution installed (a folder on the path) its hash."""
    if package == STDLIB:
        return platform.python_version()
    versions = _installed_versions(package, _resolved_roots(package, tuple(sys.path)))
    return versions or "sha256 " + digest_files(_modules(package))


@cache  # as below; where a package is found depends on the path, so it is part of the question
def _resolved_roots(package: str, path: tuple[str, ...]) -> tuple[Path, ...]:
    return tuple(root.resolve() for root in _roots(package))


@cache  # asked for with every key that has to do with the corpus; slow to look up
def _installed_versions(package: str, roots: tuple[Path, ...]) -> str:
    """Of the distributions that put files into the package's folders; empty where none did."""
    return ", ".join(
        sorted(
            f"{name} {distribution.version}"
            for name in set(_distributions().get(package, ()))
            for distribution in [metadata.distribution(name)]
            if any(root.is_relative_to(Path(str(distribution.locate_file(""))).resolve()) for root in roots)
        )
    )


@cache
def _distributions() -> Mapping[str, list[str]]:
    return metadata.packages_distributions()


@dataclass(frozen=True)
class ReleaseDocs(CorpusSpec):
    """As `LibraryDocs`, of a release of the packages that lies in a folder and is not installed.

    Raises ValueError for a folder that is missing and for a package that is not in it or has no docstrings.

    Attributes:
        path: A folder with wheels (`*.whl`, read where they lie) or unpacked packages at its top level.
        release: Its name. Domains are "package-release", so that two releases of one package stay apart, and ids begin
            with the domain; clusters are modules and have the same name in all releases.
    """

    path: str
    release: str
    packages: Annotated[tuple[str, ...], as_sorted_names]

    stored: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "path", str(self.path))

    def build(self, builder: Builder) -> Corpus:
        self.validate()
        with ExitStack() as opened:
            corpus = corpus_of(sorted(self._files(opened), key=lambda file: (file.package, file.module)))
        return _with_all(self.packages, corpus, "ReleaseDocs", f"in {self.path}", f"-{self.release}")

    def identity(self) -> dict[str, Any]:
        self.validate()
        return {
            "kind": "release_docs",
            "reader": 1,
            "python": platform.python_version(),
            "release": self.release,
            "packages": list(self.packages),
            "files": digest_files(
                (path.relative_to(self.path).as_posix(), path) for path in (*self._wheels(), *self._unpacked())
            ),
        }

    def validate(self) -> None:
        if not Path(self.path).is_dir():
            raise ValueError(
                f"`path` of ReleaseDocs must be a folder with wheels or unpacked packages; got {self.path}, which is "
                "not a folder. `pip download --no-deps --only-binary=:all: --dest FOLDER NAME==VERSION` fills one."
            )

    def _wheels(self) -> list[Path]:
        return sorted(Path(self.path).glob("*.whl"))

    def _unpacked(self) -> list[Path]:
        return sorted(path for name in self.packages for path in (Path(self.path) / name).rglob("*.py"))

    def _files(self, opened: ExitStack) -> Iterator[SourceFile]:
        """opened: keeps the wheels open while they are read."""
        for path in self._unpacked():
            yield from self._source(path.relative_to(self.path).parts, path.read_bytes)
        for wheel in self._wheels():
            archive = opened.enter_context(zipfile.ZipFile(wheel))
            for item in archive.infolist():
                if item.filename.endswith(".py"):
                    yield from self._source(PurePosixPath(item.filename).parts, functools.partial(archive.read, item))

    def _source(self, parts: tuple[str, ...], read: Callable[[], bytes]) -> Iterator[SourceFile]:
        package = parts[0].removesuffix(".py")
        name = module_name(parts) if package in self.packages else None
        if name is not None:
            yield SourceFile(package, name, read, f"{package}-{self.release}")
