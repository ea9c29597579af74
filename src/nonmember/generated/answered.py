"""Questions joined with a model's answers, as texts."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from nonmember.artifacts import Builder
from nonmember.corpora.specs import CorpusSpec
from nonmember.corpora.transforms.cleaning import normalise
from nonmember.generated.rephrased import Rephrasings
from nonmember.records import Corpus


@dataclass(frozen=True)
class Answered(CorpusSpec):
    """The documents of `questions`, each with the text of the same id in `answers`, in two lines.

    A question without an answer, or with an empty one, is dropped and counted, as are the rephrasings that were not
    usable where the questions are rephrased ones. White space of an answer is made the same as in cleaned documents.
    """

    questions: CorpusSpec
    answers: CorpusSpec

    stored: ClassVar[bool] = False

    def key(self, builder: Builder) -> dict[str, Any]:
        return {"answered": self.questions.key(builder), "answers": self.answers.key(builder)}

    def build(self, builder: Builder) -> Corpus:
        questions = builder.get(self.questions)
        given = {document.doc_id: normalise(document.text) for document in builder.get(self.answers).documents}
        dropped = Counter(questions.dropped if isinstance(self.questions, Rephrasings) else {})
        documents = []
        for question in questions.documents:
            if answer := given.get(question.doc_id, ""):
                documents.append(replace(question, text=f"Question: {normalise(question.text)}\nAnswer: {answer}"))
            else:
                dropped["no answer"] += 1
        return Corpus(tuple(documents), dict(sorted(dropped.items())))

    def identity(self) -> dict[str, Any]:
        return {"kind": "answered", "questions": self.questions.identity(), "answers": self.answers.identity()}
