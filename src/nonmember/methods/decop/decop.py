"""DE-COP: can the model tell passages of a work from paraphrases of them, better than it can for works that it has
certainly not read? (Duarte et al., 2024)

Each passage is shown among three paraphrases, in many orders, and the model is to name the original. The value of a
book or paper is its share of right answers, and books are compared with books: a Welch test of suspect against clean
ones. What the paper calls AUC is best balanced accuracy and bears that name here, with the area under the ROC curve
beside it. The groups differ in age and fame, and paraphrases in length and words from their originals: a text-only
control tells how often the original can be picked without any model.

`DecopBaselines` are the scores that it is compared with (tables 2 and 11). Old works and new ones differ in more than
having been read, and this shows in all of these scores: no membership follows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Annotated, TypedDict

import numpy as np

from nonmember.checks import Count, Number
from nonmember.corpora import CorpusSpec
from nonmember.corpora.sources.paraphrases import Paraphrases
from nonmember.endpoints.asked import Asked
from nonmember.endpoints.rephrased import Written
from nonmember.methods.asked import TEMPERATURES, counts, valid_share
from nonmember.methods.base import (
    INVALID_CLAIM,
    DocumentGroup,
    MissingText,
    Roles,
    ScoredDocuments,
    TestOutcome,
    Verdict,
    require_scores,
    units,
)
from nonmember.methods.comparison import FEWEST_UNITS, Comparison, TakesFew, by_unit, comparison, in_words
from nonmember.methods.decop.answers import (
    AnsweredGroup,
    Letters,
    WorkDetails,
    blind,
    by_letter,
    letters,
    well_calibrated,
    works,
)
from nonmember.methods.decop.questions import (
    PARAPHRASE,
    AnswerReading,
    Exam,
    Length,
    MultipleChoice,
    RecordedChoice,
    Work,
)
from nonmember.methods.details import INLINED, Details
from nonmember.models import ModelSpec
from nonmember.records import Corpus, FloatArray
from nonmember.records.groups import HELDOUT, SUSPECT, UNSEEN, set_of
from nonmember.records.requirements import Access, Requirements
from nonmember.scores import Score
from nonmember.stats.letter_choice import LETTERS, BlindGuess, calibration_offsets
from nonmember.stats.multiplicity import holm
from nonmember.stats.two_groups import GroupComparison

CLEAN, CALIBRATION = HELDOUT, UNSEEN

CLAIMS: dict[Verdict, str] = {
    "evidence_of_membership": (
        "The model tells the suspect works from paraphrases of them better than it does the clean ones, as it would if "
        "it had been trained on them. The groups may differ in age, fame and style, which looks the same. This speaks "
        "of the group, not of a single work, and is no legal conclusion."
    ),
    "inconclusive": (
        "The test found no evidence of membership. This is not evidence that the works were not used for training."
    ),
    "invalid": INVALID_CLAIM,
}
SAME_KIND = (
    "Suspect works are usually older and better known than clean ones, and quoted and reviewed more often. A control "
    "with clean works on both sides (say data.heldout and data.unseen) tells what to expect without any reading."
)
OPPOSITE = "The model does better on the clean works, which reading the suspect ones does not explain."


@dataclass(frozen=True, kw_only=True)
class AnswersAlone(Details):
    answers: Mapping[str, Mapping[str, int]]  # group -> numbers of requests by what came of them (`asked.counts`)


class Calibration(TypedDict):
    num_works: int  # of further unread ones
    offsets: Mapping[str, float]  # letter -> what is taken off its probability
    well_calibrated: Mapping[str, Mapping[str, float]]  # group -> share of its works before and after


@dataclass(frozen=True, kw_only=True)
class DecopDetails(Details):
    in_words: str  # the comparison in one sentence
    comparison: Comparison = field(metadata=INLINED)  # of the two groups, calibrated where that was asked for
    uncalibrated: Comparison | None  # the same before calibration
    calibration: Calibration | None  # of the letters
    letters: Mapping[str, Letters]  # group -> how its answers hang on the letters
    works: Mapping[str, WorkDetails]  # group -> its works, one by one
    # Rule that needs no model -> how often it picks the original; None where texts are not at hand.
    blind: Mapping[str, BlindGuess] | None
    questions_per_work: Mapping[str, float]  # group -> mean number
    answers: Mapping[str, Mapping[str, int]]  # group -> numbers of requests by what came of them (`asked.counts`)


@dataclass(frozen=True)
class Decop(TakesFew):
    paraphraser: ModelSpec | None  # the model that paraphrases
    paraphrases: CorpusSpec | None  # of the documents of all groups, in its place (d#1, d#2 and d#3 for the document d)
    questions: CorpusSpec | None  # in the place of both, those that were put to a recorded model (see `RecordedChoice`)
    passage_length: Length  # which of the paper's prompts for paraphrases
    # temperature, max_new_tokens: of paraphrasing; a passage of more than max_tokens is left out
    temperature: Annotated[float, Number(TEMPERATURES)]
    max_new_tokens: Annotated[int, Count(1)]
    num_orders: int  # of the four options, 24 for all
    work: Work  # book or paper
    exam: Exam  # how the model is instructed
    # Of answers, as text or by the letters' probabilities, found among top_logprobs alternatives.
    reading: AnswerReading
    answer_tokens: int  # most that it may write
    top_logprobs: int
    # The letters' probabilities are calibrated on documents that are certainly unread and in neither group, and the
    # calibrated answers are tested.
    calibrate: bool
    # Of answers that are letters, below which the model does not follow the instruction.
    min_valid_share: Annotated[float, Number("[0, 1]")]
    num_resamples: int  # of the intervals
    num_few: int  # of the published means and deviations
    alpha: float
    max_tokens: int

    name = "decop"
    statistic_name = "difference in accuracy"
    statistic_bounds = (-1.0, 1.0)
    claim = "membership"
    guarantee = "asymptotic"
    null_hypothesis = "The target picks the original among paraphrases as often in suspect works as in clean ones."
    picture = "answers"
    details_type = DecopDetails
    requirements = Requirements(
        access=Access.TEXT,
        documents=FEWEST_UNITS,
        inputs=("heldout", "works", "titles", "follows", "rephraser"),
        questions=24,
        answer_tokens=4,
        shown=len(LETTERS),
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.paraphraser is None and self.paraphrases is None and self.questions is None:
            raise ValueError(
                "DE-COP needs a paraphraser, paraphrases in a file or recorded questions; name one of them."
            )
        if self.calibrate and self.reading != "probabilities":
            raise ValueError("Calibration needs the letters' probabilities: set method.reading=probabilities with it.")

    # What is asked --------------------------------------------------------------------------------------------------

    def groups(self, roles: Roles) -> dict[str, DocumentGroup]:
        if self.questions is not None and not roles.target.answers_by_name:
            raise ValueError(
                "The questions in method.questions are known by name alone, so only a recorded model has answers to "
                "them. Name one (model@target=...), or paraphrases (method.questions=null method.paraphrases=...)."
            )
        corpora = {SUSPECT: roles.suspect, CLEAN: roles.need("heldout", self.name)}
        if self.calibrate:
            corpora[CALIBRATION] = _for_calibration(roles)
        return {
            group: DocumentGroup(corpus, {self.name: Asked("target", roles.target, corpus, self._probe(corpus, roles))})
            for group, corpus in corpora.items()
        }

    def _probe(self, corpus: CorpusSpec, roles: Roles) -> MultipleChoice | RecordedChoice:
        reading = (self.reading, self.answer_tokens, self.top_logprobs, roles.seed)
        if self.questions is not None:
            return RecordedChoice(*reading, self.questions)
        return MultipleChoice(*reading, self._paraphrased(corpus, roles), self.num_orders, self.work, self.exam)

    def _paraphrased(self, corpus: CorpusSpec, roles: Roles) -> CorpusSpec:
        if self.paraphrases is not None:
            return self.paraphrases
        assert self.paraphraser is not None
        written = Written(
            corpus,
            self.paraphraser,
            PARAPHRASE[self.passage_length],
            temperature=self.temperature,
            max_new_tokens=self.max_new_tokens,
            max_tokens=self.max_tokens,
            seed=roles.seed,
            whole=True,  # the original is shown whole among its paraphrases
        )
        return Paraphrases(corpus, written)

    def check(self, corpora: Mapping[str, Corpus]) -> None:
        """The groups must share neither documents nor clusters."""
        for item, other in combinations(corpora, 2):
            for what, of in (("document", _documents), ("cluster", _clusters)):
                if both := of(corpora[item]) & of(corpora[other]):
                    raise ValueError(
                        f"The {set_of(item)} and the {set_of(other)} must be disjoint, but they share {len(both)} "
                        f"{what}s, first {min(both)!r}. Give other documents (data.{other})."
                    )

    # What the answers mean ------------------------------------------------------------------------------------------

    def test(self, documents: Mapping[str, ScoredDocuments], rng: np.random.Generator) -> TestOutcome:
        """The statistic is the difference of the groups' means with its bootstrap interval; p is Welch's, two-sided."""
        groups = {
            name: AnsweredGroup.of(group, name, self.name, with_probabilities=self.reading == "probabilities")
            for name, group in documents.items()
        }
        reasons = self._reasons_against(groups)
        answers = {name: counts(group.answers) for name, group in groups.items()}
        if any(group.num_units < 2 or not len(group.choices.unit_Q) for group in groups.values()):
            return TestOutcome.invalid(reasons, alpha=self.alpha, details=AnswersAlone(answers=answers))
        offsets = self._offsets(groups)
        raw = self._compared(groups, None, rng)
        found = raw if offsets is None else self._compared(groups, offsets, rng)
        if not np.isfinite(found.p_value) and not reasons:
            reasons.append(f"All works of both groups have the same share of right answers, {found.mean_first:.3f}.")
        higher = found.p_value < self.alpha and found.difference > 0
        verdict: Verdict = "invalid" if reasons else "evidence_of_membership" if higher else "inconclusive"
        without_model, blind_warnings = blind(groups[SUSPECT], groups[CLEAN], self.alpha)
        opposite = [OPPOSITE] if found.p_value < self.alpha and found.difference < 0 else []
        return TestOutcome(
            statistic=found.difference,
            p_value=found.p_value,
            ci_low=found.ci_low,
            ci_high=found.ci_high,
            alpha=self.alpha,
            verdict=verdict,
            allowed_claim=CLAIMS[verdict],
            warnings=[*reasons, *opposite, *blind_warnings, SAME_KIND],
            details=DecopDetails(
                in_words=in_words(found, self.num_few),
                comparison=comparison(found),
                uncalibrated=None if offsets is None else comparison(raw),
                calibration=None if offsets is None else _calibration(groups, offsets),
                letters={name: letters(group, offsets) for name, group in groups.items()},
                works={name: works(group, offsets) for name, group in groups.items()},
                blind=without_model,
                questions_per_work={
                    name: len(group.choices.unit_Q) / group.num_units for name, group in groups.items()
                },
                answers=answers,
            ),
            distribution=found.distribution,
        )

    def _offsets(self, groups: Mapping[str, AnsweredGroup]) -> FloatArray | None:
        if not self.calibrate:
            return None
        offsets = calibration_offsets(groups[CALIBRATION].choices)
        return offsets if np.isfinite(offsets).all() else None  # no answer is a letter: invalid, and said so

    def _compared(
        self, groups: Mapping[str, AnsweredGroup], offsets_L: FloatArray | None, rng: np.random.Generator
    ) -> GroupComparison:
        first, second = (groups[name].calibrated(offsets_L).accuracy_U() for name in (SUSPECT, CLEAN))
        return self.compared(first, second, rng)

    def _reasons_against(self, groups: Mapping[str, AnsweredGroup]) -> list[str]:
        """Why the answers mean nothing; empty where they do mean something."""
        reasons = []
        for name, group in groups.items():
            if group.num_units < FEWEST_UNITS:
                reasons.append(f"The {set_of(name)} has {group.num_units} works left; the test needs {FEWEST_UNITS}.")
            share = valid_share(group.answers)  # NaN where no question was answered at all
            if share < self.min_valid_share:
                reasons.append(
                    f"The model does not follow the instruction: {share:.1%} of its answers about the {set_of(name)} "
                    f"are letters, and {self.min_valid_share:.0%} must be."
                )
        return reasons


def _calibration(groups: Mapping[str, AnsweredGroup], offsets: FloatArray) -> Calibration:
    return {
        "num_works": groups[CALIBRATION].num_units,
        "offsets": by_letter(offsets),
        "well_calibrated": {name: well_calibrated(groups[name], offsets) for name in (SUSPECT, CLEAN)},
    }


def _for_calibration(roles: Roles) -> CorpusSpec:
    if roles.unseen is None:
        raise MissingText(
            "unseen",
            "DE-COP calibrates the letters on further works that the target has certainly not read, and none were "
            "given. Name them, as in +data@data.unseen=documents data.unseen.path=unseen.jsonl, or set "
            "method.calibrate=false.",
        )
    return roles.unseen


def _documents(corpus: Corpus) -> set[str]:
    return set(corpus.doc_ids)


def _clusters(corpus: Corpus) -> set[str]:
    return {document.cluster_id for document in corpus.documents if document.cluster_id}


# What it is compared with ---------------------------------------------------------------------------------------------


CLAIM = (
    "None about membership: the numbers say how well each score tells these two groups of works apart, whatever the "
    "cause. Groups of different age differ in their language, too."
)


class BaselineComparison(Comparison):
    p_value: float  # Welch's, two-sided
    p_value_holm: float  # adjusted for the number of scores


@dataclass(frozen=True, kw_only=True)
class BaselineDetails(Details):
    scores: Mapping[str, BaselineComparison]  # name of a score -> how it tells the groups apart


@dataclass(frozen=True)
class DecopBaselines(TakesFew):
    """scores: the first gives the statistic, its area under the ROC curve; p is Welch's of it, two-sided, and stands in
    the details for the others, with Holm's adjustment.   num_resamples, num_few: as of `Decop`."""

    scores: Annotated[Sequence[Score], require_scores]
    num_resamples: int
    num_few: int
    alpha: float
    max_tokens: int

    name = "decop_baselines"
    statistic_name = "AUC"
    statistic_bounds = (0.0, 1.0)
    picture = "groups"
    details_type = BaselineDetails
    requirements = Requirements(access=Access.PROMPT_LOGPROBS, documents=5, inputs=("heldout",), passes=2)

    def groups(self, roles: Roles) -> dict[str, DocumentGroup]:
        return {
            group: DocumentGroup(
                corpus, {item.name: roles.scored(item, corpus, self.max_tokens) for item in self.scores}
            )
            for group, corpus in ((SUSPECT, roles.suspect), (HELDOUT, roles.need("heldout", self.name)))
        }

    def test(self, documents: Mapping[str, ScoredDocuments], rng: np.random.Generator) -> TestOutcome:
        if min(len(set(units(documents[group], group))) for group in (SUSPECT, HELDOUT)) < 2:
            return TestOutcome.invalid(["Too few works have scores; the least are 2 in each set."], alpha=self.alpha)
        found = {}
        for name in (item.name for item in self.scores):
            suspect, heldout = (by_unit(documents[group], name, group)[1] for group in (SUSPECT, HELDOUT))
            found[name] = self.compared(suspect, heldout, rng)
        p_values = [item.p_value for item in found.values()]
        adjusted = holm(p_values) if np.isfinite(p_values).all() else [np.nan] * len(p_values)
        first = next(iter(found.values()))
        return TestOutcome(
            statistic=first.roc_auc,
            p_value=first.p_value,
            ci_low=first.auc_low,
            ci_high=first.auc_high,
            alpha=self.alpha,
            verdict="score_only",
            allowed_claim=CLAIM,
            details=BaselineDetails(
                scores={
                    name: {**comparison(item), "p_value": item.p_value, "p_value_holm": p_adjusted}
                    for (name, item), p_adjusted in zip(found.items(), adjusted, strict=True)
                }
            ),
        )
