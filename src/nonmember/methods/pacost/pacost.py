"""PaCoST on plain texts: is the target more confident that a text is correct than that its rephrasing is?
(Zhang et al., 2024, as adapted by PRISM)

Confidence is the probability that the target answers Yes when asked whether a text is correct. A paired t-test compares
each document with its rephrasing. Rephrasing costs confidence by itself, so a small p means something only beside a
negative control: the same test on text that is certainly unseen.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from nonmember.checks import require_count, require_number
from nonmember.corpora import CorpusSpec
from nonmember.generated.rephrased import Rephrasings, Written
from nonmember.methods.asked import TEMPERATURES
from nonmember.methods.base import (
    INVALID_CLAIM,
    Access,
    Claim,
    DocumentGroup,
    Method,
    Picture,
    Roles,
    ScoredDocuments,
    TestOutcome,
    Verdict,
)
from nonmember.methods.details import Details
from nonmember.methods.pacost.prompts import IS_IT_CORRECT, REPHRASE
from nonmember.models import ModelSpec
from nonmember.records import FloatArray, Prompt, Question
from nonmember.records.groups import SUSPECT
from nonmember.records.requirements import Requirements
from nonmember.scores import AnswerProbability
from nonmember.stats.paired import paired_t_greater

CLAIMS: dict[Verdict, str] = {
    "evidence_of_membership": (
        "There is statistical evidence that the suspect set as a whole was used for training, provided that rephrasing "
        "by itself costs no confidence; it usually does, which looks the same. It says nothing about single documents."
    ),
    "inconclusive": (
        "The test found no evidence of membership. This is not evidence that the dataset was not used for training."
    ),
    "invalid": INVALID_CLAIM,
}
CONTROL = (
    "Rephrasing costs confidence by itself (PRISM, table 4: p = 3.0e-13 on a model that never saw the text). A "
    "negative control is compulsory: the same test, with the same rephraser, on text the target has certainly not "
    "read; publish both."
)


@dataclass(frozen=True, kw_only=True)
class PacostDetails(Details):
    """Confidence is the probability of Yes; normalised: of Yes among Yes and No.

    Attributes:
        mean_difference: Of the confidences in texts and rephrasings.
        mean_confidence_original: In the texts.
        mean_confidence_rephrased: In the rephrasings.
        median_answer_mass: Probability of Yes and No together.
        num_not_listed: Answers that an endpoint which lists the likeliest tokens alone left out, taken for 0.
        normalised_mean_difference: None where some answer has no probability at all.
        normalised_statistic: t of the normalised ones.
        normalised_p_value: Of that t.
    """

    mean_difference: float
    mean_confidence_original: float
    mean_confidence_rephrased: float
    median_answer_mass: float
    num_not_listed: int
    normalised_mean_difference: float | None
    normalised_statistic: float | None
    normalised_p_value: float | None


@dataclass(frozen=True)
class Pacost(Method):
    """rephraser: the model that rephrases, one that follows instructions.   rephrasings: texts with the documents' ids
    to be used in its place.   temperature, max_new_tokens: of its writing.   min_length_ratio, max_length_ratio: of a
    usable rephrasing to its original, in characters.   min_answer_mass: median of P(Yes) + P(No) below which the target
    is not answering.   max_tokens: of a text, when it is rephrased and when it is judged.
    """

    rephraser: ModelSpec | None
    rephrasings: CorpusSpec | None
    temperature: float
    max_new_tokens: int
    min_length_ratio: float
    max_length_ratio: float
    min_answer_mass: float
    alpha: float
    max_tokens: int

    name: ClassVar[str] = "pacost"
    statistic_name: ClassVar[str] = "t"
    claim: ClassVar[Claim] = "membership"
    null_hypothesis: ClassVar[str] = "The target is on average no more confident in a document than in its rephrasing."
    picture: ClassVar[Picture] = "pairs"
    rephrase: ClassVar[Prompt] = REPHRASE
    question: ClassVar[Question] = IS_IT_CORRECT
    details_type: ClassVar[type[Details]] = PacostDetails
    requirements: ClassVar[Requirements] = Requirements(
        access=Access.TOP_LOGPROBS, documents=30, inputs=("rephraser", "follows"), questions=2, answer_tokens=1
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.rephraser is None and self.rephrasings is None:
            raise ValueError("PaCoST needs a rephraser, or rephrasings in a file; name one of them.")
        require_number(self.temperature, TEMPERATURES, "temperature")
        require_count(self.max_new_tokens, 1, "max_new_tokens")
        require_number(self.min_length_ratio, "[0, 1]", "min_length_ratio")
        require_number(self.max_length_ratio, "[1, inf)", "max_length_ratio")
        require_number(self.min_answer_mass, "[0, 1)", "min_answer_mass")

    def groups(self, roles: Roles) -> dict[str, DocumentGroup]:
        corpora = self.judged(roles)
        yes, no = (AnswerProbability(self.question, answer) for answer in self.question.answers)
        measured = {name: roles.scored(yes, corpus, self.max_tokens) for name, corpus in corpora.items()}
        measured |= {f"{name}_no": roles.scored(no, corpus, self.max_tokens) for name, corpus in corpora.items()}
        return {SUSPECT: DocumentGroup(roles.suspect, measured)}

    @property
    def max_text_tokens(self) -> int:
        """Of a text, when it is shown to be rephrased."""
        return self.max_tokens

    def judged(self, roles: Roles) -> Mapping[str, CorpusSpec]:
        """What the target is asked about: the texts and their rephrasings."""
        return {"original": roles.suspect, "rephrased": self._rephrased(roles)}

    def _rephrased(self, roles: Roles) -> CorpusSpec:
        texts = self.rephrasings
        if texts is None:
            assert self.rephraser is not None
            texts = Written(
                roles.suspect,
                self.rephraser,
                self.rephrase,
                temperature=self.temperature,
                max_new_tokens=self.max_new_tokens,
                max_tokens=self.max_text_tokens,
                seed=roles.seed,
            )
        return Rephrasings(roles.suspect, texts, self.min_length_ratio, self.max_length_ratio)

    def test(self, documents: Mapping[str, ScoredDocuments], rng: np.random.Generator) -> TestOutcome:
        """The statistic is t; no interval is defined."""
        values = documents[SUSPECT].values
        original, rephrased = values["original"], values["rephrased"]
        mass = np.concatenate([original + values["original_no"], rephrased + values["rephrased_no"]])
        test = paired_t_greater(original, rephrased)
        shares = [_share(values[name], values[f"{name}_no"]) for name in ("original", "rephrased")]
        # Where Yes and No have no probability at all their shares say nothing.
        normalised = paired_t_greater(*shares) if np.isfinite(shares).all() else None
        verdict: Verdict = "evidence_of_membership" if test.p_value < self.alpha else "inconclusive"
        warnings = [test.warning] if test.warning else []
        if reasons := self._reasons_against(values, float(np.median(mass))):
            verdict = "invalid"
            warnings += reasons
        return TestOutcome(
            statistic=test.statistic,
            p_value=test.p_value,
            alpha=self.alpha,
            verdict=verdict,
            allowed_claim=CLAIMS[verdict],
            warnings=(*warnings, CONTROL),
            details=PacostDetails(
                mean_difference=test.mean_difference,
                mean_confidence_original=float(original.mean()),
                mean_confidence_rephrased=float(rephrased.mean()),
                median_answer_mass=float(np.median(mass)),
                num_not_listed=int(sum((item == 0).sum() for item in values.values())),
                normalised_mean_difference=normalised.mean_difference if normalised else None,
                normalised_statistic=normalised.statistic if normalised else None,
                normalised_p_value=normalised.p_value if normalised else None,
            ),
        )

    def _reasons_against(self, values: Mapping[str, FloatArray], median_mass: float) -> list[str]:
        """Why the confidences mean nothing; empty where they do mean something."""
        reasons = []
        n = len(values["original"])
        if n < self.requirements.documents:
            reasons.append(
                f"{n} documents with a rephrasing are left; the test needs at least {self.requirements.documents}."
            )
        if median_mass < self.min_answer_mass:
            reasons.append(
                f"The target does not answer the question: its median probability of Yes or No is {median_mass:.2g}, "
                f"below {self.min_answer_mass:g}."
            )
        if all(np.ptp(values[name]) == 0 for name in ("original", "rephrased")):
            reasons.append(f"The confidences do not depend on the text: all are {values['original'][0]:.2g}.")
        if all(np.array_equal(values[name], values[f"{name}_no"]) for name in ("original", "rephrased")):
            reasons.append("Yes and No begin with the same token of the target, so its answers cannot be told apart.")
        return reasons


def _share(yes: FloatArray, no: FloatArray) -> FloatArray:
    """Yes / (Yes + No), NaN where both are 0."""
    share: FloatArray = np.divide(yes, yes + no, out=np.full(len(yes), np.nan), where=yes + no > 0)
    return share
