"""Docstrings of packages in a release that need not be installed: out of wheels, or of unpacked folders."""

from __future__ import annotations

import functools
import platform
import zipfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any, ClassVar

from nonmember.artifacts import Builder
from nonmember.checks import wrong
from nonmember.corpora.sources.docstrings import SourceFile, corpus_of, module_name
from nonmember.corpora.specs import CorpusSpec, as_names, digest_files
from nonmember.records import Corpus

MOST_BYTES = 16 * 1024**2  # of one module: what a damaged or hostile archive may unpack to


@dataclass(frozen=True)
class ReleaseDocs(CorpusSpec):
    """As `LibraryDocs`, of a release of the packages that lies in a folder and is not installed.

    path: a folder with wheels (`*.whl`, read where they lie) or unpacked packages at its top level.

    release: its name. Domains are "package-release", so that two releases of one package stay apart, and ids begin with
    the domain; clusters are modules and have the same name in all releases.

    Raises ValueError for a folder that is missing and for a package that is not in it or has no docstrings.
    """

    path: str
    release: str
    packages: tuple[str, ...]

    stored: ClassVar[bool] = True

    def __post_init__(self) -> None:
        packages = as_names(self.packages, "`packages` of ReleaseDocs")
        if not isinstance(self.release, str) or not self.release.isidentifier():
            raise ValueError(wrong("`release` of ReleaseDocs", "a name of letters, digits and _", self.release))
        object.__setattr__(self, "packages", tuple(sorted(packages)))
        object.__setattr__(self, "path", str(self.path))

    def build(self, builder: Builder) -> Corpus:
        self.validate()
        with ExitStack() as opened:
            corpus = corpus_of(sorted(self._files(opened), key=lambda file: (file.package, file.module)))
        if silent := sorted(set(map(self._domain, self.packages)) - {doc.domain for doc in corpus.documents}):
            packages = ", ".join(name.removesuffix(f"-{self.release}") for name in silent)
            raise ValueError(
                f"ReleaseDocs found no docstrings of {packages} in {self.path}; put the wheel there, or leave the "
                "package out of `packages`."
            )
        return corpus

    def identity(self) -> dict[str, Any]:
        self.validate()
        return {
            "kind": "release_docs",
            "reader": 1,
            "python": platform.python_version(),
            "release": self.release,
            "packages": list(self.packages),
            "files": digest_files((path.relative_to(self.path).as_posix(), path) for path in self._on_disk()),
        }

    def validate(self) -> None:
        if not Path(self.path).is_dir():
            raise ValueError(
                f"`path` of ReleaseDocs must be a folder with wheels or unpacked packages; got {self.path}, which is "
                "no folder. `pip download --no-deps --only-binary=:all: --dest FOLDER NAME==VERSION` fills one."
            )

    def _domain(self, package: str) -> str:
        return f"{package}-{self.release}"

    def _wheels(self) -> list[Path]:
        return sorted(Path(self.path).glob("*.whl"))

    def _unpacked(self) -> list[Path]:
        return sorted(path for name in self.packages for path in (Path(self.path) / name).rglob("*.py"))

    def _on_disk(self) -> list[Path]:
        return [*self._wheels(), *self._unpacked()]

    def _files(self, opened: ExitStack) -> Iterator[SourceFile]:
        """opened: keeps the wheels open while they are read."""
        for path in self._unpacked():
            yield from self._source(path.relative_to(self.path).parts, path.read_bytes)
        for wheel in self._wheels():
            archive = opened.enter_context(zipfile.ZipFile(wheel))
            for item in archive.infolist():
                if item.filename.endswith(".py") and item.file_size <= MOST_BYTES:
                    yield from self._source(PurePosixPath(item.filename).parts, functools.partial(archive.read, item))

    def _source(self, parts: tuple[str, ...], read: Callable[[], bytes]) -> Iterator[SourceFile]:
        package = parts[0].removesuffix(".py")
        name = module_name(parts) if package in self.packages else None
        if name is not None:
            yield SourceFile(package, name, read, self._domain(package))
