"""The variants of canaries, from the private file that `nonmember plant` wrote."""

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


@dataclass(frozen=True)
class Canaries(CorpusSpec):
    """One document per variant; those of one canary are a cluster.

    path: the private file.   part: the variants that were published, one of each canary, or all others.
    commitment: what was made public before; None: not compared. Raises ValueError where the file is another one.
    """

    path: Annotated[str, require_text]
    part: Literal["published", "private"]
    commitment: Annotated[str | None, as_sha256] = None

    stored: ClassVar[bool] = False
    is_secret: ClassVar[bool] = True

    def validate(self) -> None:
        if not self._file.is_file():
            raise ValueError(
                f"There is no private file of canaries at {self._file}. It is what `nonmember plant` wrote as "
                "canaries.private.json."
            )

    def build(self, builder: Builder) -> Corpus:
        self.validate()
        path = self._file
        if self.commitment is not None and digest_file(path) != self.commitment:
            raise ValueError(
                f"{path} has the hash {digest_file(path)}, and data.commitment is {self.commitment}: it is not the "
                "file that was committed to. Name that one."
            )
        private = read_private(path)
        return Corpus(
            tuple(
                document(f"{item.name}/{index}", text, item.name, private.kind)
                for item in private.canaries
                for index, text in enumerate(item.variants)
                if (index == item.published) == (self.part == "published")
            )
        )

    def identity(self) -> dict[str, Any]:
        return {"kind": "canaries", "file": digest_file(self._file), "part": self.part}

    @property
    def _file(self) -> Path:
        return path_of(self.path)
