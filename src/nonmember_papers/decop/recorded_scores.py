"""The scores that DE-COP is compared with, where they were recorded: its authors' own, of models that they asked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from nonmember.endpoints import Answer, Completion, ParsedAnswer, Probe, Questions, Request
from nonmember.endpoints.asked import Asked
from nonmember.methods.base import DocumentGroup, Roles
from nonmember.methods.decop.decop import DecopBaselines
from nonmember.records import Corpus
from nonmember.records.requirements import Access, Requirements


@dataclass(frozen=True)
class RecordedScore(Probe):
    # Of the number among those, with blanks between, that are recorded of a document. A low one speaks for having been
    # read, and its negative is the value.
    index: int

    name: ClassVar[str] = "recorded_score"

    @property
    def requirements(self) -> Requirements:
        return Requirements(Access.TEXT, questions=1)  # nothing is written

    def ask(self, corpus: Corpus, others: Mapping[str, Corpus]) -> Questions:
        return Questions(tuple(Request(doc_id, doc_id, "", 1, 0.0, 0) for doc_id in corpus.doc_ids))

    def parse(self, request: Request, completion: Completion) -> ParsedAnswer:
        return ParsedAnswer(valid=True, correct=False, read=completion.text.split()[self.index])

    def value(self, answers: Sequence[Answer]) -> float:
        (answer,) = answers
        return -float(answer.parsed.read)


@dataclass(frozen=True)
class RecordedBaselines(DecopBaselines):
    """As `DecopBaselines`. scores: names alone; their values are read from the answers of a recorded model, the numbers
    in this order."""

    requirements: ClassVar[Requirements] = replace(DecopBaselines.requirements, access=Access.TEXT, passes=0)

    def groups(self, roles: Roles) -> dict[str, DocumentGroup]:
        return {
            group: DocumentGroup(
                of.corpus,
                {
                    name: Asked("target", roles.target, of.corpus, RecordedScore(index))
                    for index, name in enumerate(of.measured)
                },
            )
            for group, of in super().groups(roles).items()
        }
