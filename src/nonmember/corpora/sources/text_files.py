"""A folder of text files."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from nonmember.artifacts import Builder
from nonmember.checks import require_text
from nonmember.corpora.sources.files import files_in, require_below
from nonmember.corpora.sources.formats import read_text
from nonmember.corpora.specs import CorpusSpec, digest_files, document
from nonmember.records import Corpus
from nonmember.runtime.naming import path_of
from nonmember.runtime.progress import tracked


@dataclass(frozen=True)
class TextFiles(CorpusSpec):
    """One document per UTF-8 file below a folder; doc_id is its path relative to the folder.

    pattern: as of `pathlib.Path.glob`: "*.txt" in the folder itself, "**/*.txt" also in those below it.
    domain: the domain of all documents. Documents have no clusters: each file stands for itself.
    """

    path: str
    pattern: str
    domain: str = ""

    stored: ClassVar[bool] = False

    def __post_init__(self) -> None:
        require_text(self.path, "`path` of TextFiles")
        require_text(self.pattern, "`pattern` of TextFiles", hint='It is relative to the folder, as in "**/*.txt".')
        require_below(self.pattern)

    def build(self, builder: Builder) -> Corpus:
        files = tracked(self._files(), "reading text files", "files")
        return Corpus(tuple(document(name, read_text(path), "", self.domain) for name, path in files))

    def identity(self) -> dict[str, Any]:
        return {"kind": "text_files", "files": digest_files(self._files()), "domain": self.domain}

    def validate(self) -> None:
        self._files()

    def _files(self) -> list[tuple[str, Path]]:
        folder = path_of(self.path)
        if not folder.is_dir():
            raise ValueError(
                f"Expected a folder of text files at {self.path}, but there is none; "
                f"correct the path (relative ones start at {Path.cwd()})."
            )
        files = sorted((p.relative_to(folder).as_posix(), p) for p in files_in(folder, self.pattern))
        if not files:
            raise ValueError(f"No file below {self.path} matches {self.pattern!r}; correct the pattern or the path.")
        return files
