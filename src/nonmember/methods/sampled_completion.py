"""Sampled completion: has what the target writes after the first half of a text more in common with its second half
than of unread text? N-gram coverage (Hallinan et al., 2025) and SaMIA (Kaneko et al., 2024), for models that return
text alone.

Several continuations are sampled, and each is compared with the true one. The comparison is a number and no match at a
cut, so that it sees less than recitation. Texts of one kind are alike without having been read: only what exceeds
unread text of the same draw counts.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Literal, TypedDict, get_args

import numpy as np

from nonmember.checks import Count, Number
from nonmember.endpoints import Answer, Completion, ParsedAnswer, Probe, Questions, Request
from nonmember.endpoints.asked import Asked
from nonmember.methods.asked import PromptForm, Unanswered, continue_text, reads_as_refusal, too_few_answers, unanswered
from nonmember.methods.base import (
    INVALID_CLAIM,
    SAME_DISTRIBUTION,
    DocumentGroup,
    Method,
    Roles,
    ScoredDocuments,
    TestOutcome,
    Verdict,
)
from nonmember.methods.comparison import by_unit
from nonmember.methods.details import Details
from nonmember.records import Corpus, Document
from nonmember.records.groups import HELDOUT, SUSPECT
from nonmember.records.requirements import Access, Requirements
from nonmember.records.spans import NO_BLANKS, first_tokens, words
from nonmember.stats.classification import roc_auc
from nonmember.stats.proportions import shares_greater

SAMPLED = "sampled"  # the column of scores.parquet
Similarity = Literal["coverage", "longest", "samia"]

CLAIMS: Mapping[Verdict, str] = {
    "evidence_of_membership": (
        "There is statistical evidence that what the target writes after the beginnings of suspect documents has more "
        "in common with their endings than of unread text, provided that suspect and unread documents are draws "
        "from one distribution: the suspect set as a whole, or text that quotes it, was used for training."
    ),
    "inconclusive": (
        "The test found no evidence of membership. This is not evidence that the dataset was not used for training: "
        "models read far more than they can be made to write."
    ),
    "invalid": INVALID_CLAIM,
}


# How like the true ending is it? -------------------------------------------------------------------------------------


def words_of(text: str) -> list[str]:
    """Runs of letters and digits, in small letters; single characters of scripts without blanks."""
    return re.findall(rf"[{NO_BLANKS}]|[^\W_{NO_BLANKS}]+", text.lower())


def coverage(written: Sequence[str], true: Sequence[str], least: int) -> float:
    """Share of the words of `true` that lie in an n-gram, n >= least, that both have; 0 for fewer words than that.

    Every shared n-gram is made of shared ones of the least length, so that these are all that is looked for.

    >>> coverage("a b c x d e f".split(), "z a b c d e".split(), least=3)
    0.5
    """
    known = {tuple(written[start : start + least]) for start in range(len(written) - least + 1)}
    covered: set[int] = set()
    for start in range(len(true) - least + 1):
        if tuple(true[start : start + least]) in known:
            covered.update(range(start, start + least))
    return len(covered) / len(true) if true else 0.0


def longest(written: Sequence[str], true: Sequence[str]) -> float:
    """Words of the longest run that both have, as a share of the words of `true`.

    >>> longest("x b c d".split(), "a b c d".split())
    0.75
    """
    most, ending_here = 0, [0] * (len(true) + 1)
    for word in written:
        ending_here = [0, *(ending_here[at] + 1 if word == other else 0 for at, other in enumerate(true))]
        most = max(most, *ending_here)
    return most / len(true) if true else 0.0


def rouge_1_recall(written: Sequence[str], true: Sequence[str]) -> float:
    """Share of the words of `true`, as often as they occur, that are written.

    >>> rouge_1_recall("the the cat".split(), "the cat and the dog".split())
    0.6
    """
    return (Counter(written) & Counter(true)).total() / len(true) if true else 0.0


# What is asked -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class SampledProbe(Probe):
    most_words: int  # of a document that are used; the first half of them is shown
    least_words: int  # of a document
    num_samples: int  # continuations
    prompt: PromptForm  # how the first half is shown
    temperature: float
    max_new_tokens: int
    similarity: Similarity
    ngram: int  # words of an n-gram, at least
    seed: int  # of the first sample

    name = "sampled_completion"

    @property
    def requirements(self) -> Requirements:
        return replace(super().requirements, questions=self.num_samples, shown=0.5)

    @property
    def too_short(self) -> str:
        return f"fewer than {self.least_words} words"

    def ask(self, corpus: Corpus, others: Mapping[str, Corpus]) -> Questions:
        requests: list[Request] = []
        reasons = {}
        for document in corpus.documents:
            spans = words(document.text)[: self.most_words]
            if len(spans) < self.least_words:
                reasons[document.doc_id] = self.too_short
                continue
            half = len(spans) // 2
            shown, rest = document.text[: spans[half - 1][1]], document.text[spans[half][0] : spans[-1][1]]
            requests += self._requests(document, shown, rest)
        return Questions(tuple(requests), reasons)

    def _requests(self, document: Document, shown: str, rest: str) -> list[Request]:
        return [
            Request(
                doc_id=document.doc_id,
                name=f"sample-{number}",
                question=continue_text(shown, document.title, document.author),
                plain=shown,
                max_new_tokens=self.max_new_tokens,
                temperature=self.temperature,
                seed=self.seed + number,
                expected=rest,
                bare=self.prompt == "bare",
            )
            for number in range(self.num_samples)
        ]

    def parse(self, request: Request, completion: Completion) -> ParsedAnswer:
        """read: the completion cut to as many words as the true ending has."""
        text = first_tokens(completion.text.strip(), words, len(words(request.expected)))
        return ParsedAnswer(valid=not reads_as_refusal(completion.text), correct=False, read=text)

    def value(self, answers: Sequence[Answer]) -> float:
        return self.similarities(answers)[self.similarity]

    def similarities(self, answers: Sequence[Answer]) -> dict[Similarity, float]:
        """Of one document: the most that a sample covers, the longest run of any, and the mean recall; NaN without a
        sample that can be read."""
        pairs = [(words_of(item.parsed.read), words_of(item.request.expected)) for item in answers if item.parsed.valid]
        if not pairs:
            return dict.fromkeys(get_args(Similarity), np.nan)
        return {
            "coverage": max(coverage(*pair, self.ngram) for pair in pairs),
            "longest": max(longest(*pair) for pair in pairs),
            "samia": float(np.mean([rouge_1_recall(*pair) for pair in pairs])),
        }


# What it means -------------------------------------------------------------------------------------------------------


class Compared(TypedDict):
    """Means over documents, and the AUC of suspect against held-out ones."""

    suspect: float
    heldout: float
    auc: float


class SampledGroup(Unanswered):
    """Of one set. num_samples: that could be read.   num_too_short: documents left out."""

    num_documents: int
    num_units: int
    num_samples: int
    num_too_short: int


@dataclass(frozen=True, kw_only=True)
class SampledDetails(Details):
    mean_heldout: float  # mean over works of held-out text, as the statistic is of the suspect set
    similarities: Mapping[str, Compared]  # each way of comparing; one of them decides
    suspect: SampledGroup  # the suspect set
    heldout: SampledGroup  # held-out text


@dataclass(frozen=True)
class SampledCompletion(Method):
    """The statistic is the mean similarity of suspect works; p compares it with held-out ones, permuting works."""

    # coverage, the share of the true ending's words in n-grams that the sample which covers most has too; longest, the
    # longest run of any sample; samia, the mean share of its words that samples have (ROUGE-1 recall).
    similarity: Similarity
    num_samples: Annotated[int, Count(1, 1000)]
    # The first half alone, or behind the instruction of prefix completion where the target has a chat template.
    prompt: PromptForm
    temperature: Annotated[float, Number("(0, 10)", "At 0 all samples would be alike.")]
    most_words: Annotated[int, Count(4)]  # of a document that are used, the first half of which is shown
    least_words: Annotated[int, Count(4)]  # shorter documents are left out
    ngram: Annotated[int, Count(1)]  # words of an n-gram, at least
    max_new_tokens: Annotated[int, Count(1)]  # of each sample, which is cut to as many words as the ending has
    seed: Annotated[int, Count(0)]  # of the draws
    num_permutations: int  # of works between the two sets
    alpha: float
    max_tokens: int  # none is cut

    name = "sampled_completion"
    statistic_name = "mean similarity"
    statistic_bounds = (0.0, 1.0)
    claim = "membership"
    guarantee = "exact"
    null_hypothesis = (
        "What the target writes is no more like the endings of suspect works than like those of unread ones."
    )
    picture = "scores"
    details_type = SampledDetails
    requirements = Requirements(
        access=Access.TEXT,
        documents=10,
        inputs=("heldout",),
        same_draw=True,
        questions=10,
        answer_tokens=128,
        shown=0.5,
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.most_words < self.least_words:
            raise ValueError(f"most_words must be at least least_words, {self.least_words}; got {self.most_words}.")

    @property
    def probe(self) -> SampledProbe:
        return SampledProbe(
            self.most_words,
            self.least_words,
            self.num_samples,
            self.prompt,
            self.temperature,
            self.max_new_tokens,
            self.similarity,
            self.ngram,
            self.seed,
        )

    def groups(self, roles: Roles) -> dict[str, DocumentGroup]:
        corpora = {SUSPECT: roles.suspect, HELDOUT: roles.need("heldout", self.name)}
        return {
            name: DocumentGroup(corpus, {SAMPLED: Asked("target", roles.target, corpus, self.probe)})
            for name, corpus in corpora.items()
        }

    def test(self, documents: Mapping[str, ScoredDocuments], rng: np.random.Generator) -> TestOutcome:
        """There is no interval."""
        suspect, heldout = (by_unit(documents[name], SAMPLED, name)[1] for name in (SUSPECT, HELDOUT))
        if min(len(suspect), len(heldout)) < 2:
            return TestOutcome.invalid(["Too few works have an answer; the least are 2 in each set."], alpha=self.alpha)
        found = shares_greater(suspect, heldout, num_permutations=self.num_permutations, alpha=self.alpha, rng=rng)
        few = too_few_answers(documents, self.requirements.documents)
        verdict: Verdict = "evidence_of_membership" if found.p_value < self.alpha else "inconclusive"
        if few:
            verdict = "invalid"
        return TestOutcome(
            statistic=float(suspect.mean()),
            p_value=found.p_value,
            p_error=found.p_error,
            alpha=self.alpha,
            verdict=verdict,
            allowed_claim=CLAIMS[verdict],
            warnings=few or [SAME_DISTRIBUTION],
            details=SampledDetails(
                mean_heldout=float(heldout.mean()),
                similarities=self._similarities(documents),
                suspect=self._counts(documents[SUSPECT], len(suspect)),
                heldout=self._counts(documents[HELDOUT], len(heldout)),
            ),
        )

    def _similarities(self, documents: Mapping[str, ScoredDocuments]) -> dict[str, Compared]:
        found = {
            name: [self.probe.similarities(answers) for answers in documents[name].answers[SAMPLED]]
            for name in (SUSPECT, HELDOUT)
        }
        compared: dict[str, Compared] = {}
        for kind in get_args(Similarity):
            suspect, heldout = ([item[kind] for item in found[name]] for name in (SUSPECT, HELDOUT))
            is_suspect = np.repeat([True, False], [len(suspect), len(heldout)])
            auc = roc_auc(np.array([*suspect, *heldout]), is_suspect)
            compared[kind] = {"suspect": float(np.mean(suspect)), "heldout": float(np.mean(heldout)), "auc": auc}
        return compared

    def _counts(self, group: ScoredDocuments, num_units: int) -> SampledGroup:
        return {
            "num_documents": len(group.doc_ids),
            "num_units": num_units,
            "num_samples": sum(item.parsed.valid for answers in group.answers[SAMPLED] for item in answers),
            "num_too_short": sum(item.reason == self.probe.too_short for item in group.excluded.values()),
            **unanswered(group, SAMPLED),
        }
