"""PaCoST on plain texts: is the target more confident that a text is correct than that its rephrasing is?
(Zhang et al., 2024, as adapted by PRISM)

Confidence is the probability that the target answers Yes when asked whether a text is correct. A paired t-test compares
each document with its rephrasing. Rephrasing costs confidence by itself, so a small p means something only beside a
negative control: the same test on text that is certainly unseen.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated

import numpy as np

from nonmember.checks import Count, Number
from nonmember.corpora import CorpusSpec
from nonmember.endpoints.rephrased import Rephrasings, Written
from nonmember.methods.asked import TEMPERATURES
from nonmember.methods.base import (
    INVALID_CLAIM,
    DocumentGroup,
    Roles,
    SampledMethod,
    ScoredDocuments,
    TestOutcome,
    Verdict,
)
from nonmember.methods.details import Details
from nonmember.models import ModelSpec
from nonmember.records import FloatArray, Prompt, Question
from nonmember.records.groups import SUSPECT
from nonmember.records.requirements import Access, Requirements
from nonmember.scores import AnswerProbability
from nonmember.stats.paired import paired_t_greater

# What is asked --------------------------------------------------------------------------------------------------------


IS_IT_CORRECT = Question(
    "You are an expert in judging whether the text is correct. You will be given a text. Your job is to determine "
    "whether this text is correct. You should only respond with Yes or No. For example, given question "
    '"The value of 1+1 is 2.", the correct response should be "Yes".',
    answers=("Yes", "No"),
)

REPHRASE = Prompt(
    "You are provided with a text. Your task is to rephrase this text into another text with the same meaning. When "
    "rephrasing the text, you must ensure that you follow the following rules: (1). You must ensure that you generate "
    "a rephrased text as your response. (2). You must ensure that the rephrased text bears the same meaning with the "
    "original text. Do not miss any information. (3). You must only generate a rephrased text. Any other information "
    "should not appear in your response. (4). Do not output any explanation. (5). Do not modify the numbers or "
    'quantities in the question. You should remain them unchanged. Example 1: given text "1+1=2", one possible '
    'response should be: The value of 1+1 is 2. Example 2: given text "Earth orbits around the Sun", one possible '
    "response should be: The Sun is the center of earth's orbit. Example 3: given text \"C is the third letter in "
    'English", one possible response should be: English\'s third letter is C. Example 4: given text "A scientist is '
    'looking for something to watch faraway stars.", one possible response should be: A scientist would like use '
    'something to watch remote stars. Example 5: given text "John has 8 cats and five dogs. Linda has 6 rabbits.", one '
    "possible response should be: John owns 8 cats and five dogs. Linda possesses 6 rabbits."
)


# What it says ---------------------------------------------------------------------------------------------------------


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
    """Confidence is the probability of Yes; normalised: of Yes among Yes and No."""

    mean_difference: float  # of the confidences in texts and rephrasings
    mean_confidence_original: float  # in the texts
    mean_confidence_rephrased: float  # in the rephrasings
    median_answer_mass: float  # probability of Yes and No together
    num_not_listed: int  # answers that an endpoint which lists the likeliest tokens alone left out, taken for 0
    normalised_mean_difference: float | None  # None where some answer has no probability at all
    normalised_statistic: float | None  # t of the normalised ones
    normalised_p_value: float | None  # of that t


@dataclass(frozen=True)
class Pacost(SampledMethod):
    rephraser: ModelSpec | None  # the model that rephrases, one that follows instructions
    rephrasings: CorpusSpec | None  # texts with the documents' ids to be used in its place
    # temperature, max_new_tokens: of its writing
    temperature: Annotated[float, Number(TEMPERATURES)]
    max_new_tokens: Annotated[int, Count(1)]
    # min_length_ratio, max_length_ratio: of a usable rephrasing to its original, in characters
    min_length_ratio: Annotated[float, Number("[0, 1]")]
    max_length_ratio: Annotated[float, Number("[1, inf)")]
    # Median of P(Yes) + P(No) below which the target is not answering.
    min_answer_mass: Annotated[float, Number("[0, 1)")]
    alpha: float
    max_tokens: int  # of a text, when it is rephrased and when it is judged

    name = "pacost"
    statistic_name = "t"
    claim = "membership"
    guarantee = "asymptotic"
    null_hypothesis = "The target is on average no more confident in a document than in its rephrasing."
    picture = "pairs"
    details_type = PacostDetails
    requirements = Requirements(
        access=Access.TOP_LOGPROBS, documents=30, inputs=("rephraser", "follows"), questions=2, answer_tokens=1
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.rephraser is None and self.rephrasings is None:
            raise ValueError("PaCoST needs a rephraser, or rephrasings in a file; name one of them.")

    def groups(self, roles: Roles) -> dict[str, DocumentGroup]:
        corpora = {"original": roles.suspect, "rephrased": self._rephrased(roles)}
        yes, no = (AnswerProbability(IS_IT_CORRECT, answer) for answer in IS_IT_CORRECT.answers)
        measured = {name: roles.scored(yes, corpus, self.max_tokens) for name, corpus in corpora.items()}
        measured |= {f"{name}_no": roles.scored(no, corpus, self.max_tokens) for name, corpus in corpora.items()}
        return {SUSPECT: DocumentGroup(roles.suspect, measured)}

    def _rephrased(self, roles: Roles) -> CorpusSpec:
        texts = self.rephrasings
        if texts is None:
            assert self.rephraser is not None
            texts = Written(
                roles.suspect,
                self.rephraser,
                REPHRASE,
                temperature=self.temperature,
                max_new_tokens=self.max_new_tokens,
                max_tokens=self.max_tokens,
                seed=roles.seed,
            )
        return Rephrasings(roles.suspect, texts, self.min_length_ratio, self.max_length_ratio)

    def test(self, documents: Mapping[str, ScoredDocuments], rng: np.random.Generator) -> TestOutcome:
        """The statistic is t; no interval is defined."""
        if few := self.too_few_clusters(documents):
            return TestOutcome.invalid(few, alpha=self.alpha)
        values, clusters = documents[SUSPECT].values, self.clusters(documents)
        original, rephrased = values["original"], values["rephrased"]
        mass = np.concatenate([original + values["original_no"], rephrased + values["rephrased_no"]])
        test = paired_t_greater(original, rephrased, clusters)
        shares = [_share(values[name], values[f"{name}_no"]) for name in ("original", "rephrased")]
        # Where Yes and No have no probability at all their shares say nothing.
        normalised = paired_t_greater(shares[0], shares[1], clusters) if np.isfinite(shares).all() else None
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
        reasons = self.too_few(len(values["original"]), "documents with a rephrasing")
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
