"""MC-PDD: does the target guess the most specific words of one corpus more often than those of another?

Of each document the word of the largest TF-IDF is masked, and the target lists ten candidates for it. The rate at which
the masked word is among them is compared between the suspect set and a reference corpus of the same kind: one that the
target has certainly not read, so that a higher rate on the suspect set is evidence of membership; or one that it has
read, so that a lower rate is evidence of non-membership. The paper has both, in its table I and its section IV, and
takes a difference that is not significant for the opposite claim; here that is inconclusive.

A gap says that one corpus is easier to guess, whatever makes it so: date, fame, genre, duplicates. Words drawn at
random are the control: they take no memory of the documents, so there must be no gap in them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, Literal, TypedDict

import numpy as np

from nonmember.checks import Count, Distinct, Number
from nonmember.corpora import CorpusSpec
from nonmember.corpora.transforms.splits import position
from nonmember.endpoints.asked import Asked
from nonmember.methods.asked import counts, valid_share
from nonmember.methods.base import (
    INVALID_WITHOUT_TEST,
    Claim,
    DocumentGroup,
    Method,
    Roles,
    ScoredDocuments,
    TestOutcome,
    Verdict,
    units,
)
from nonmember.methods.details import INLINED, Details
from nonmember.methods.mc_pdd.questions import IN_NAME, MaskedWords, Match, Strategy, stop_words_of
from nonmember.models import label_of
from nonmember.records import Corpus
from nonmember.records.groups import HELDOUT, SUSPECT, set_of
from nonmember.records.requirements import Access, Requirements
from nonmember.stats.proportions import FEW, Hits, RateDifference, difference_of_rates, exact_where_few
from nonmember.training import Trained
from nonmember.training.recipes import AdapterTuning

ReferenceKind = Literal["non_member", "member"]
IdfCorpus = Literal["own", "pooled"]

CONTROL = "_control"  # of the groups asked about random words
HITS = "hits"  # the measurement
ENOUGH_DOCUMENTS = 50  # to tell common words by their frequency alone (docs/methods/mc_pdd.md)
SUBSETS = "mc_pdd_subsets"  # of the order in which units enter the smaller corpora of the curve

PROVIDED = (
    "provided that the two corpora differ in nothing else that makes specific words easy to guess, such as date, fame, "
    "genre or duplication. It says nothing about single documents."
)
CLAIMS: dict[Verdict, str] = {
    "evidence_of_membership": (
        "The target guesses specific words of the suspect set more often than those of text it has not read. This is "
        f"statistical evidence that the suspect set as a whole was used for training, {PROVIDED}"
    ),
    "evidence_of_non_membership": (
        "The target guesses specific words of the suspect set less often than those of text it has read. This is "
        f"statistical evidence that the suspect set as a whole was not used for training, {PROVIDED}"
    ),
    "inconclusive": "No significant difference was found. This is evidence neither of membership nor of the contrary.",
    "invalid": INVALID_WITHOUT_TEST,
}
# By what the target has to do with the reference corpus: what a significant gap speaks for, and the null hypothesis.
HYPOTHESES: dict[str, tuple[Claim, str]] = {
    "non_member": (
        "membership",
        "The target guesses specific words of the suspect set no more often than those of text it has not read.",
    ),
    "member": (
        "non_membership",
        "The target guesses specific words of the suspect set no less often than those of text it has read.",
    ),
}


class AskedCorpus(TypedDict):
    hit_rate: float  # hits per question
    num_hits: int
    num_questions: int
    num_documents: int
    num_units: int  # documents or clusters
    num_in_name: int  # documents left out, whose words stand in their names
    valid_share: float  # of the answers
    answers: Mapping[str, int]  # numbers of requests (`asked.counts`)


@dataclass(frozen=True)
class RateControl:
    """The same with words drawn at random."""

    comparison: RateDifference = field(metadata=INLINED)
    suspect: AskedCorpus
    heldout: AskedCorpus


@dataclass(frozen=True)
class SizedComparison:
    """Of so many units. subset: of corpora that have no more."""

    size: int
    comparison: RateDifference = field(metadata=INLINED)
    subset: RateDifference


@dataclass(frozen=True, kw_only=True)
class McPddDetails(Details):
    comparison: RateDifference = field(metadata=INLINED)  # of the corpus that should have fewer hits less the other
    suspect: AskedCorpus  # the suspect set
    heldout: AskedCorpus  # the reference corpus
    control: RateControl | None  # the same with words drawn at random; None without
    curve: Sequence[SizedComparison]  # the test for corpora of other sizes


@dataclass(frozen=True)
class McPdd(Method):
    """strategy, num_words, show_name, letters_only, stop_words, match, max_new_tokens, temperature: as of
    `MaskedWords`."""

    reference: ReferenceKind  # what the target has to do with the held-out corpus, non_member or member
    strategy: Strategy
    num_words: int
    show_name: bool
    # own, document frequencies within suspect set and reference corpus each by itself; pooled, within both together.
    idf_corpus: IdfCorpus
    letters_only: bool
    stop_words: str | list[str] | None  # english, a list, or None
    match: Match
    max_new_tokens: int
    temperature: float
    control: bool  # whether words drawn at random are asked for too
    # The largest share of the answers about a corpus that may be empty, refused or unreadable.
    max_invalid: Annotated[float, Number("[0, 1)")]
    num_resamples: int  # of documents (or clusters), never of single words
    # Numbers of documents for which the test is shown as well.
    sizes: Annotated[Sequence[int], Distinct("numbers of documents", Count(1), may_be_empty=True)]
    alpha: float
    max_tokens: int  # of no meaning, texts are shown whole

    name = "mc_pdd"
    guarantee = "asymptotic"
    statistic_name = "difference in hit rate"
    statistic_bounds = (-1.0, 1.0)
    picture = "answers"
    details_type = McPddDetails
    requirements = Requirements(
        access=Access.TEXT,
        documents=30,
        inputs=("heldout", "titles", "follows"),
        same_draw=True,
        questions=2,
        answer_tokens=60,
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.control and self.strategy == "random":
            raise ValueError("Random words are the control themselves: with strategy=random use control=false.")
        self._probe(self.strategy, None, seed=0)  # refuses what it does not know

    @classmethod
    def hypothesis(cls, settings: Mapping[str, Any]) -> tuple[Claim | None, str]:
        return HYPOTHESES[settings["reference"]]

    # What is asked ------------------------------------------------------------------------------------------------

    def groups(self, roles: Roles) -> dict[str, DocumentGroup]:
        corpora = {SUSPECT: roles.suspect, HELDOUT: roles.need("heldout", self.name)}
        strategies: dict[str, Strategy] = {"": self.strategy} | ({CONTROL: "random"} if self.control else {})
        return {
            name + suffix: self._asked(corpora, name, strategy, roles)
            for suffix, strategy in strategies.items()
            for name in corpora
        }

    def _asked(self, corpora: Mapping[str, CorpusSpec], name: str, strategy: Strategy, roles: Roles) -> DocumentGroup:
        other = corpora[HELDOUT if name == SUSPECT else SUSPECT]
        probe = self._probe(strategy, other if self.idf_corpus == "pooled" else None, roles.seed)
        return DocumentGroup(corpora[name], {HITS: Asked("target", roles.target, corpora[name], probe)})

    def _probe(self, strategy: Strategy, pooled: CorpusSpec | None, seed: int) -> MaskedWords:
        return MaskedWords(
            strategy=strategy,
            num_words=self.num_words,
            show_name=self.show_name,
            pooled=pooled,
            letters_only=self.letters_only,
            stop_words=stop_words_of(self.stop_words),
            match=self.match,
            max_new_tokens=self.max_new_tokens,
            temperature=self.temperature,
            seed=seed,
        )

    def check(self, corpora: Mapping[str, Corpus]) -> None:
        check_corpora(corpora, show_name=self.show_name, has_stop_words=bool(self.stop_words))

    # What it means ------------------------------------------------------------------------------------------------

    def test(self, documents: Mapping[str, ScoredDocuments], rng: np.random.Generator) -> TestOutcome:
        """The statistic is the rate of the corpus that should have fewer hits minus that of the other, as the paper
        prints it: negative where membership shows. Only the upper bound is defined."""
        found = self._difference(documents, "", rng)
        control = self._difference(documents, CONTROL, rng) if self.control else None
        reasons = [*self.reasons_against(documents), *self._gap(control)]
        exact = exact_where_few(*self._sides(documents, ""), alpha=self.alpha)
        verdict: Verdict = "inconclusive"
        if reasons:
            verdict = "invalid"
        elif max([found.p_value, *exact.values()]) < self.alpha:
            verdict = "evidence_of_membership" if self.reference == "non_member" else "evidence_of_non_membership"
        return TestOutcome(
            statistic=found.difference,
            p_value=found.p_value,
            p_error=found.p_error,
            ci_high=found.upper,
            alpha=self.alpha,
            verdict=verdict,
            allowed_claim=CLAIMS[verdict],
            warnings=(*reasons, *(FEW.format(what=what, p=p) for what, p in exact.items())),
            details=McPddDetails(
                comparison=found,
                suspect=self._details_of(documents[SUSPECT], SUSPECT),
                heldout=self._details_of(documents[HELDOUT], HELDOUT),
                control=None
                if control is None
                else RateControl(
                    control,
                    self._details_of(documents[SUSPECT + CONTROL], SUSPECT),
                    self._details_of(documents[HELDOUT + CONTROL], HELDOUT),
                ),
                curve=self._curve(documents, rng),
            ),
            distribution=found.distribution,
        )

    def _sides(self, documents: Mapping[str, ScoredDocuments], suffix: str) -> tuple[Hits, Hits]:
        """(less, more): first the corpus that is, or is suspected to be, unread."""
        suspect, heldout = (hits_of(documents[name + suffix], name) for name in (SUSPECT, HELDOUT))
        return (heldout, suspect) if self.reference == "non_member" else (suspect, heldout)

    def _difference(
        self, documents: Mapping[str, ScoredDocuments], suffix: str, rng: np.random.Generator
    ) -> RateDifference:
        less, more = self._sides(documents, suffix)
        return difference_of_rates(less, more, num_resamples=self.num_resamples, alpha=self.alpha, rng=rng)

    def _curve(self, documents: Mapping[str, ScoredDocuments], rng: np.random.Generator) -> list[SizedComparison]:
        """The test for corpora of other sizes: of so many units drawn from the whole corpora, as in the paper; and of
        corpora that have no more, each part of the next larger one."""
        less, more = self._sides(documents, "")
        settings: dict[str, Any] = {"num_resamples": self.num_resamples, "alpha": self.alpha, "rng": rng}
        return [
            SizedComparison(
                size,
                difference_of_rates(less, more, size=size, **settings),
                difference_of_rates(less.first(size), more.first(size), **settings),
            )
            for size in self.sizes
            if size <= min(len(less.hits), len(more.hits))
        ]

    def reasons_against(self, documents: Mapping[str, ScoredDocuments]) -> list[str]:
        """Why the rates mean nothing."""
        reasons = []
        for name, group in documents.items():
            if (number := len(group.doc_ids)) < self.requirements.documents:
                reasons.append(
                    f"{number} documents of the {set_of(name)} are left; {self.requirements.documents} are needed."
                )
            if (invalid := 1 - valid_share(group.answers[HITS])) > self.max_invalid:
                reasons.append(
                    f"{invalid:.0%} of the answers about the {set_of(name)} are empty, refused or no list of words, "
                    f"more than {self.max_invalid:.0%}: the target does not follow the instruction."
                )
        return reasons

    def _gap(self, control: RateDifference | None) -> list[str]:
        if control is None or control.p_value >= self.alpha:
            return []
        return [
            f"Words drawn at random show a gap too (p = {control.p_value:.2g}): one corpus is easier to guess "
            "altogether, or known word for word, and a gap in specific words cannot be told from that."
        ]

    def _details_of(self, group: ScoredDocuments, name: str) -> AskedCorpus:
        """One corpus: rate, and what it is the rate of."""
        sums = hits_of(group, name)
        return {
            "hit_rate": sums.rate,
            "num_hits": int(sums.hits.sum()),
            "num_questions": int(sums.asked.sum()),
            "num_documents": len(group.doc_ids),
            "num_units": len(sums.hits),
            "num_in_name": sum(item.reason == IN_NAME for item in group.excluded.values()),
            "valid_share": valid_share(group.answers[HITS]),
            "answers": counts(group.answers[HITS]),
        }


def hits_of(documents: ScoredDocuments, group: str) -> Hits:
    """Of every unit (document or cluster), in an order of their names' hashes: the first so many are a random sample.

    Raises ValueError where no document has an answer.
    """
    hits: dict[str, list[int]] = {}
    for unit, answers in zip(units(documents, group), documents.answers[HITS], strict=True):
        sums = hits.setdefault(unit, [0, 0])
        sums[0] += sum(answer.parsed.correct for answer in answers)
        sums[1] += len(answers)
    table = np.array([hits[unit] for unit in sorted(hits, key=lambda unit: (position(SUBSETS, unit), unit))])
    return Hits(*table.reshape(-1, 2).T)


def check_corpora(corpora: Mapping[str, Corpus], *, show_name: bool, has_stop_words: bool) -> None:
    """Refuses corpora whose documents have no names to show, that are too small for TF-IDF, or that share documents."""
    for name in (SUSPECT, HELDOUT):
        corpus = corpora[name]
        nameless = [document.doc_id for document in corpus.documents if not document.title]
        if show_name and nameless:
            raise ValueError(
                f"{len(nameless)} of {len(corpus)} documents of the {set_of(name)} have no title, first "
                f"{nameless[0]!r}, and the prompt names what a text is about. Name the column with the titles "
                "(title_field), or use method.show_name=false."
            )
        if len(corpus) < ENOUGH_DOCUMENTS and not has_stop_words:
            raise ValueError(
                f"The {set_of(name)} has {len(corpus)} documents: among fewer than {ENOUGH_DOCUMENTS} TF-IDF takes "
                "common words for specific ones. Give more documents, or method.stop_words=english."
            )
    texts = [{document.text for document in corpora[name].documents} for name in (SUSPECT, HELDOUT)]
    if both := len(texts[0] & texts[1]):
        raise ValueError(
            f"{both} texts are in the suspect set and in the reference corpus; give corpora that share none."
        )


# Of a target that is tuned first --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class McPddContaminated(Method):
    mc_pdd: McPdd  # the test
    training: AdapterTuning  # how the target is tuned on the unseen documents, which may be those of the suspect set
    epochs: Annotated[int, Count(0)]  # of that, in place of its own; 0: the target as it is
    alpha: float
    max_tokens: int

    name = "mc_pdd_contaminated"
    statistic_name = McPdd.statistic_name
    statistic_bounds = McPdd.statistic_bounds
    picture = McPdd.picture
    requirements = replace(
        McPdd.requirements, access=Access.WEIGHTS, inputs=("heldout", "unseen", "titles", "follows"), tuned=1
    )

    @classmethod
    def hypothesis(cls, settings: Mapping[str, Any]) -> tuple[Claim | None, str]:
        return McPdd.hypothesis(settings["mc_pdd"])

    def groups(self, roles: Roles) -> dict[str, DocumentGroup]:
        return self.mc_pdd.groups(replace(roles, target=self.tuned(roles)) if self.epochs else roles)

    def tuned(self, roles: Roles) -> Trained:
        """The target after so many epochs on the unseen documents."""
        optimization = replace(self.training.optimization, epochs=self.epochs)
        return Trained(
            roles.target,
            replace(self.training, optimization=optimization),
            roles.need("unseen", self.name),
            seed=roles.seed,
            label=f"{label_of(roles.target)}-contaminated",
        )

    def check(self, corpora: Mapping[str, Corpus]) -> None:
        self.mc_pdd.check(corpora)

    def test(self, documents: Mapping[str, ScoredDocuments], rng: np.random.Generator) -> TestOutcome:
        return self.mc_pdd.test(documents, rng)
