"""PaCoST in its original form: questions, and the target's confidence in its own answers (Zhang et al., 2024).

The target answers each question and a rephrasing of it, and is asked of either pair whether the answer is correct.
If it has read the benchmark it is more confident in its answers to the original questions. The test, the conditions of
validity and the compulsory negative control are those for plain texts.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from nonmember.checks import require_count
from nonmember.corpora import CorpusSpec
from nonmember.generated.answered import Answered
from nonmember.generated.rephrased import Written
from nonmember.methods.base import Roles
from nonmember.methods.pacost.pacost import Pacost
from nonmember.methods.pacost.prompts import ANSWER, IS_THE_ANSWER_CORRECT, REPHRASE_QUESTION
from nonmember.records import Prompt, Question


@dataclass(frozen=True)
class PacostQa(Pacost):
    """The documents are questions.

    rephraser, rephrasings, temperature, max_new_tokens: of the rephrased questions.   max_answer_tokens: of an answer,
    which is the likeliest one (temperature 0).   max_tokens: of a question together with its answer.
    """

    max_answer_tokens: int

    name: ClassVar[str] = "pacost_qa"
    rephrase: ClassVar[Prompt] = REPHRASE_QUESTION
    question: ClassVar[Question] = IS_THE_ANSWER_CORRECT

    def __post_init__(self) -> None:
        super().__post_init__()
        require_count(
            self.max_answer_tokens,
            1,
            "max_answer_tokens",
            at_most=self.max_tokens - 1,
            hint=f"The question needs room beside it in max_tokens ({self.max_tokens}).",
        )

    @property
    def max_text_tokens(self) -> int:
        return self.max_tokens - self.max_answer_tokens

    def judged(self, roles: Roles) -> Mapping[str, CorpusSpec]:
        return {name: self._answered(roles, questions) for name, questions in super().judged(roles).items()}

    def _answered(self, roles: Roles, questions: CorpusSpec) -> CorpusSpec:
        answers = Written(
            questions,
            roles.target,
            ANSWER,
            temperature=0.0,
            max_new_tokens=self.max_answer_tokens,
            max_tokens=self.max_text_tokens,
            seed=roles.seed,
        )
        return Answered(questions, answers)
