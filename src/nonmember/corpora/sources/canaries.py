"""The variants of canaries, from the private file that `nonmember canary make` wrote."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal

from nonmember.artifacts import Builder
from nonmember.corpora.specs import CorpusSpec, digest_file, document
from nonmember.records import Corpus
from nonmember_verify.canaries import read_private


@dataclass(frozen=True)
class Canaries(CorpusSpec):
    """One document per variant; those of one canary are a cluster.

    path: the private file.   part: the variants that were published, one of each canary, or all others.
    commitment: what was made public before; None: not compared. Raises ValueError where the file is another one.
    """

    path: str
    part: Literal["published", "private"]
    commitment: str | None = None

    stored: ClassVar[bool] = False
    is_secret: ClassVar[bool] = True

    def build(self, builder: Builder) -> Corpus:
        path = Path(self.path).expanduser()
        if not path.is_file():
            raise ValueError(
                f"There is no private file of canaries at {path}. It is what `nonmember canary make` wrote as "
                "canaries.private.json."
            )
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
        return {"kind": "canaries", "file": digest_file(Path(self.path).expanduser()), "part": self.part}
