"""A corpus source: one class that reads documents and says what determines them."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from nonmember.artifacts import Builder
from nonmember.corpora import CorpusSpec
from nonmember.corpora.specs import digest_file
from nonmember.records import Corpus, Document


@dataclass(frozen=True)
class Paragraphs(CorpusSpec):
    """The paragraphs of a text file, which blank lines separate."""

    path: str

    stored: ClassVar[bool] = False  # quickly made: not kept in the store

    def build(self, builder: Builder) -> Corpus:
        paragraphs = Path(self.path).read_text(encoding="utf-8").split("\n\n")
        texts = [text.strip() for text in paragraphs if text.strip()]
        return Corpus(tuple(Document(f"paragraph-{number}", text) for number, text in enumerate(texts, start=1)))

    def identity(self) -> dict[str, Any]:
        return {"kind": "paragraphs", "file": digest_file(Path(self.path))}
