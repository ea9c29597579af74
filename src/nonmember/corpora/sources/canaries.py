"""The variants of canaries, and the documents of a hold-out, from the private file that `nonmember plant` wrote."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

from nonmember.artifacts import Builder
from nonmember.checks import as_sha256, require_text
from nonmember.corpora.specs import CorpusSpec, digest_file, document
from nonmember.records import Corpus
from nonmember.runtime.naming import path_of
from nonmember_verify.canaries import read_private
from nonmember_verify.holdout import read_draw


@dataclass(frozen=True)
class _Sealed(CorpusSpec):
    """path: the private file.   part: of its texts.
    commitment: what was made public before; None: not compared. Raises ValueError where the file is another one.
    """

    path: Annotated[str, require_text]
    part: str
    commitment: Annotated[str | None, as_sha256] = None

    stored: ClassVar[bool] = False
    is_secret: ClassVar[bool] = True
    kind: ClassVar[str]

    def validate(self) -> None:
        if not self._file.is_file():
            raise ValueError(
                f"There is no private file of {self.kind} at {self._file}. It is what `nonmember plant` wrote as "
                f"{self.kind}.private.json."
            )

    def identity(self) -> dict[str, Any]:
        return {"kind": self.kind, "file": digest_file(self._file), "part": self.part}

    @property
    def _file(self) -> Path:
        return path_of(self.path)

    def _committed(self) -> Path:
        self.validate()
        path = self._file
        if self.commitment is not None and digest_file(path) != self.commitment:
            raise ValueError(
                f"{path} has the hash {digest_file(path)}, and data.commitment is {self.commitment}: it is not the "
                "file that was committed to. Name that one."
            )
        return path


@dataclass(frozen=True)
class Canaries(_Sealed):
    """One document per variant; those of one canary are a cluster. part: the variants that were published, one of each
    canary, or all others."""

    part: Literal["published", "private"]

    kind: ClassVar[str] = "canaries"

    def build(self, builder: Builder) -> Corpus:
        private = read_private(self._committed())
        return Corpus(
            tuple(
                document(f"{item.name}/{index}", text, item.name, private.kind)
                for item in private.canaries
                for index, text in enumerate(item.variants)
                if (index == item.published) == (self.part == "published")
            )
        )


@dataclass(frozen=True)
class Drawn(_Sealed):
    """The documents of a sealed hold-out; a document's domain is its stratum.

    part: those that were published, or those that were kept.
    """

    part: Literal["published", "kept"]

    kind: ClassVar[str] = "holdout"

    def build(self, builder: Builder) -> Corpus:
        return Corpus(
            tuple(
                document(item.name, item.text, item.cluster, item.stratum)
                for item in read_draw(self._committed()).documents
                if item.published == (self.part == "published")
            )
        )
