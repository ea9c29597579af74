"""Docstrings of installed packages: a corpus of real English that needs no download."""

from __future__ import annotations

import platform
import sys
import sysconfig
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import metadata, util
from pathlib import Path
from sys import stdlib_module_names
from typing import Any, ClassVar

from nonmember.artifacts import Builder
from nonmember.corpora.sources.docstrings import SourceFile, corpus_of, module_name
from nonmember.corpora.specs import CorpusSpec, as_names, digest_files
from nonmember.records import Corpus

STDLIB = "stdlib"


@dataclass(frozen=True)
class LibraryDocs(CorpusSpec):
    """Docstrings of installed packages ("stdlib": Python's own library): real English that is already here.

    Files are parsed, packages are never imported. One document per docstring of a module, class or function,
    also of nested and conditionally defined ones; a name defined more than once gets "~2", "~3" in order of
    appearance. doc_id "package:module.qualname", cluster the module, domain the package; in order of package,
    module and line.

    `Corpus.dropped["unparsable_module"]`: files this Python cannot parse.
    Raises ValueError for a package that is not installed, not top-level, or has no docstrings.
    """

    packages: tuple[str, ...]

    stored: ClassVar[bool] = True

    def __post_init__(self) -> None:
        packages = as_names(self.packages, "`packages` of LibraryDocs")
        for package in packages:
            if not package.isidentifier():
                raise ValueError(
                    f"`packages` of LibraryDocs must be names of top-level packages, as imported; got {package!r}. "
                    "Name the part before the first dot."
                )
        object.__setattr__(self, "packages", tuple(sorted(packages)))

    def build(self, builder: Builder) -> Corpus:
        modules = [
            SourceFile(package, name, path.read_bytes) for package in self.packages for name, path in _modules(package)
        ]
        corpus = corpus_of(modules)
        silent = set(self.packages) - {doc.domain for doc in corpus.documents}
        if silent:
            raise ValueError(
                f"LibraryDocs found no docstrings in {', '.join(sorted(silent))}: its files have none, "
                "or are not installed as source. Leave it out of `packages`."
            )
        return corpus

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
        return [Path(place) for place in spec.submodule_search_locations]
    return [Path(spec.origin)] if spec.origin and spec.origin.endswith(".py") else []


def _modules(package: str) -> list[tuple[str, Path]]:
    """(dotted name, file) of every module of a package that is read, in order of name."""
    modules = []
    for root in _roots(package):
        for path in root.rglob("*.py") if root.is_dir() else [root]:
            name = module_name(path.relative_to(root.parent).parts)
            if name is not None:
                modules.append((name, path))
    return sorted(modules)


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
