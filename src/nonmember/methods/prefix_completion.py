"""Prefix completion: does the target continue a passage as the original does? (Duarte et al., 2024, who use it as a
baseline of DE-COP)

A passage is cut into a prefix and a suffix of as many tokens; the target is shown the prefix, and what it writes counts
as a match where it resembles the suffix closely enough. Passages that are reproduced were read. Those that are not
show nothing: models read far more than they can recite.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated

import numpy as np
from rapidfuzz import fuzz

from nonmember.checks import Count, Distinct, Number
from nonmember.endpoints import Answer, Completion, ParsedAnswer, Probe, Questions, Request
from nonmember.endpoints.asked import Asked
from nonmember.methods.asked import (
    PromptForm,
    Unanswered,
    continue_text,
    reads_as_refusal,
    share_of_readable,
    too_few_answers,
    unanswered,
)
from nonmember.methods.base import INVALID_CLAIM, DocumentGroup, Method, Roles, ScoredDocuments, TestOutcome, Verdict
from nonmember.methods.comparison import by_unit
from nonmember.methods.details import Details
from nonmember.models import ModelSpec
from nonmember.records import Corpus, Document
from nonmember.records.groups import HELDOUT, SUSPECT
from nonmember.records.requirements import Access, Requirements
from nonmember.records.spans import Spans, first_tokens, words
from nonmember.stats.monte_carlo import PermutationP
from nonmember.stats.proportions import exact_interval, exact_upper_bound, fisher_greater, shares_greater

COMPLETION = "completion"  # the column of scores.parquet
TOO_SHORT = "shorter than twice the number of tokens to complete"

CLAIMS: dict[Verdict, str] = {
    "evidence_of_membership": (
        "{found} There is statistical evidence that the target reproduces the suspect set more often than the clean "
        "one. What it reproduces it has read, in this work or where it is quoted; about the rest this says nothing."
    ),
    "inconclusive": (
        "{found} That is not evidently more than of the clean set. It shows the absence of extraction by this prompt "
        "and nothing else: not that the documents were not read."
    ),
    "score_only": "{found} There is no clean set to compare with. What was not reproduced may well have been read.",
    "invalid": INVALID_CLAIM,
}


# How like the original is it? ----------------------------------------------------------------------------------------


def token_sort_ratio(text: str, other: str) -> int:
    """Similarity of two texts as bags of words, 0 to 100: fuzzywuzzy's token_sort_ratio.

    All but letters and digits becomes a blank; the words, in small letters and sorted, are joined by single blanks; 100
    times 2 LCS / (length + length) of the two, over characters (the normalised similarity of insertions and deletions),
    rounded to a whole number (halves to even, as Python does). Two texts without words are not alike: 0.
    """
    sorted_words = [" ".join(sorted(re.sub(r"[\W_]+", " ", item).lower().split())) for item in (text, other)]
    return round(fuzz.ratio(*sorted_words)) if any(sorted_words) else 0


# What is asked -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class CompletionProbe(Probe):
    k: int  # tokens of the prefix and of the suffix
    threshold: int  # a match is more similar than that
    max_new_tokens: int  # of the model's own tokens
    tokens_of: ModelSpec | None  # whose tokens are counted; None: words
    prompt: PromptForm  # how the prefix is shown
    spans: Spans = field(default=words, compare=False)  # these tokens, once at hand

    name = "prefix_completion"

    @property
    def requirements(self) -> Requirements:
        return replace(super().requirements, shown=0.0)  # k tokens, however long the passage is

    @property
    def tokenizer(self) -> ModelSpec | None:
        return self.tokens_of

    def counting_by(self, spans: Spans) -> CompletionProbe:
        return replace(self, spans=spans)

    def ask(self, corpus: Corpus, others: Mapping[str, Corpus]) -> Questions:
        requests, reasons = [], {}
        for document in corpus.documents:
            spans = self.spans(document.text)
            if len(spans) < 2 * self.k:
                reasons[document.doc_id] = TOO_SHORT
            else:
                prefix = document.text[: spans[self.k - 1][1]]
                suffix = document.text[spans[self.k][0] : spans[2 * self.k - 1][1]].strip()
                requests.append(self._request(document, prefix, suffix))
        return Questions(tuple(requests), reasons)

    def _request(self, document: Document, prefix: str, suffix: str) -> Request:
        return Request(
            doc_id=document.doc_id,
            name=f"complete-{self.k}",
            question=continue_text(prefix, document.title, document.author),
            plain=prefix,
            max_new_tokens=self.max_new_tokens,
            temperature=0.0,
            seed=0,
            expected=suffix,
            bare=self.prompt == "bare",
        )

    def parse(self, request: Request, completion: Completion) -> ParsedAnswer:
        """read: the completion cut to k tokens."""
        text = first_tokens(completion.text.strip(), self.spans, self.k)
        matched = token_sort_ratio(text, request.expected) > self.threshold
        return ParsedAnswer(valid=matched or not reads_as_refusal(completion.text), correct=matched, read=text)

    def value(self, answers: Sequence[Answer]) -> float:
        return share_of_readable(answers)


# What it means -------------------------------------------------------------------------------------------------------


class CompletedGroup(Unanswered):
    """Of one set."""

    num_documents: int
    num_matched: int
    share_matched: float | None
    upper_bound: float | None  # exact one-sided bound of `share_matched`
    num_units: int
    num_units_with_a_match: int
    mean_share_of_units: float  # of the works' shares of matches
    matched_above: Mapping[str, int]  # similarity (percent) -> matches above it
    # mean_similarity, largest_similarity: percent
    mean_similarity: float | None
    largest_similarity: float | None
    num_too_short: int  # documents left out


@dataclass(frozen=True, kw_only=True)
class CompletionDetails(Details):
    mean_suspect: float  # mean share of matches over works of the suspect set
    mean_heldout: float | None = None  # the same of the clean set
    suspect: CompletedGroup  # the suspect set
    heldout: CompletedGroup | None = None  # the clean set
    # As if passages of one book were independent: told, never decided by.
    fisher_p_value_of_passages: float | None = None


@dataclass(frozen=True)
class PrefixCompletion(Method):
    k: Annotated[int, Count(1)]  # tokens of the prefix and of the suffix; shorter documents are left out
    threshold: Annotated[int, Count(0, 99)]  # similarity above which a completion is a match (`token_sort_ratio`)
    # Others that the details tell the numbers of.
    thresholds: Annotated[Sequence[int], Distinct("similarities", Count(0, 99), may_be_empty=True)]
    # A model by name in whose tokens k is counted. None: the target's own where its weights are at hand, else words, as
    # white space separates them.
    tokenizer: ModelSpec | None
    # How many new tokens are asked for, per token of k, where the tokens are not the target's own; the completion is
    # then cut to k.
    new_tokens: Annotated[float, Number("[1, 100]", "It is a number of new tokens per token of k.")]
    # The paper's instruction, which a model without a chat template does not get, or the bare prefix.
    prompt: PromptForm
    num_permutations: int  # of units between the two sets
    alpha: float
    max_tokens: int  # none is cut

    name = "prefix_completion"
    statistic_name = "share matched"
    statistic_bounds = (0.0, 1.0)
    claim = "membership"
    guarantee = "exact"
    null_hypothesis = "The target completes passages of suspect works no more often than those of clean ones."
    picture = "answers"
    details_type = CompletionDetails
    requirements = Requirements(
        access=Access.TEXT,
        documents=2,
        inputs=("heldout", "works", "titles", "follows"),
        questions=1,
        answer_tokens=60,
        shown=0.5,
    )

    def groups(self, roles: Roles) -> dict[str, DocumentGroup]:
        probe = self._probe(roles.target)
        corpora = {SUSPECT: roles.suspect} | ({HELDOUT: roles.heldout} if roles.heldout is not None else {})
        asked = {name: {COMPLETION: Asked("target", roles.target, corpus, probe)} for name, corpus in corpora.items()}
        return {name: DocumentGroup(corpus, asked[name]) for name, corpus in corpora.items()}

    def _probe(self, target: ModelSpec) -> CompletionProbe:
        tokens_of = self.tokenizer or (target if target.has_weights else None)
        num_new = self.k if tokens_of == target else round(self.new_tokens * self.k)
        return CompletionProbe(self.k, self.threshold, num_new, tokens_of, self.prompt)

    def test(self, documents: Mapping[str, ScoredDocuments], rng: np.random.Generator) -> TestOutcome:
        """The statistic is the share of matched documents, its interval the exact binomial one; p compares units."""
        suspect, clean = documents[SUSPECT], documents.get(HELDOUT)
        groups = {name: self._as_details(group, name) for name, group in documents.items()}
        hits, number = groups[SUSPECT]["num_matched"], groups[SUSPECT]["num_documents"]
        found = PermutationP(np.nan)
        if clean is not None and clean.doc_ids and suspect.doc_ids:
            units = [by_unit(group, COMPLETION, name)[1] for name, group in documents.items()]
            found = shares_greater(*units, num_permutations=self.num_permutations, alpha=self.alpha, rng=rng)
        verdict: Verdict = "evidence_of_membership" if found.p_value < self.alpha else "inconclusive"
        verdict = "score_only" if clean is None else verdict
        if reasons := too_few_answers(documents, self.requirements.documents):
            verdict = "invalid"
        interval = exact_interval(hits, number, self.alpha) if number else (np.nan, np.nan)
        return TestOutcome(
            statistic=hits / number if number else np.nan,
            p_value=found.p_value,
            p_error=found.p_error,
            ci_low=interval[0],
            ci_high=interval[1],
            alpha=self.alpha,
            verdict=verdict,
            allowed_claim=CLAIMS[verdict].format(found=f"{hits} of {number} passages were reproduced."),
            warnings=(*reasons, *_warnings(documents)),
            details=CompletionDetails(
                mean_suspect=groups[SUSPECT]["mean_share_of_units"],
                mean_heldout=groups[HELDOUT]["mean_share_of_units"] if clean else None,
                suspect=groups[SUSPECT],
                heldout=groups.get(HELDOUT),
                fisher_p_value_of_passages=self._fisher(groups),
            ),
        )

    def _as_details(self, group: ScoredDocuments, name: str) -> CompletedGroup:
        answers = group.answers[COMPLETION]
        ratios = [token_sort_ratio(item.parsed.read, item.request.expected) for (item,) in answers]
        _, shares = by_unit(group, COMPLETION, name)
        hits, number = sum(item.parsed.correct for (item,) in answers), len(answers)
        return {
            "num_documents": number,
            "num_matched": hits,
            "share_matched": hits / number if number else None,
            "upper_bound": exact_upper_bound(hits, number, self.alpha) if number else None,
            "num_units": len(shares),
            "num_units_with_a_match": int((shares > 0).sum()),
            "mean_share_of_units": float(shares.mean()) if number else np.nan,
            "matched_above": {
                str(threshold): sum(ratio > threshold for ratio in ratios)
                for threshold in sorted({self.threshold, *self.thresholds})
            },
            "mean_similarity": float(np.mean(ratios)) if ratios else None,
            "largest_similarity": max(ratios, default=None),
            "num_too_short": sum(item.reason == TOO_SHORT for item in group.excluded.values()),
            **unanswered(group, COMPLETION),
        }

    def _fisher(self, groups: Mapping[str, CompletedGroup]) -> float | None:
        """Over single passages."""
        if len(groups) < 2 or not all(item["num_documents"] for item in groups.values()):
            return None
        return fisher_greater(*(n for item in groups.values() for n in (item["num_matched"], item["num_documents"])))


def _warnings(documents: Mapping[str, ScoredDocuments]) -> list[str]:
    if not any(cluster for group in documents.values() for cluster in group.cluster_ids):
        return []
    return [
        "Passages of one work are not independent: the p-value compares works, but the exact interval and the upper "
        "bound take every passage for one of its own."
    ]
