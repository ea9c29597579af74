"""Probabilistic extraction: how likely is the target to write passages of the documents, and likelier than of unread
text? (Hayes et al., 2024; Cooper et al., 2025)

p_z, the probability that a sample at temperature 1 continues a document with exactly its next k tokens, is read off
the log-probabilities of one pass: no text is generated. A passage that a target writes was read, or could be guessed;
unread text of the same draw shows how much can be.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Annotated, TypedDict

import numpy as np

from nonmember.checks import require_kind
from nonmember.methods.base import (
    INVALID_CLAIM,
    MIN_CLUSTERS,
    SAME_DISTRIBUTION,
    DocumentGroup,
    Method,
    Roles,
    ScoredDocuments,
    TestOutcome,
    Verdict,
    check_clusters,
)
from nonmember.methods.comparison import GainDetails, permuted_means
from nonmember.methods.details import INLINED, Details
from nonmember.records import Corpus
from nonmember.records.groups import HELDOUT, SUSPECT
from nonmember.records.requirements import Access, Requirements
from nonmember.scores import Extraction

LEAST = ("0.001", "0.01", "0.1")  # p_z from which documents are counted
TRIES, CHANCE = ("1", "100", "10000"), 0.5  # (n, p)-discoverable: written in n tries with at least this probability
NUM_LISTED = 10  # of the most extractable documents

CLAIMS: Mapping[Verdict, str] = {
    "evidence_of_membership": (
        "There is statistical evidence that the target would write passages of the suspect set more readily than of "
        "unread text, provided that both are draws from one distribution: the suspect set as a whole, or text that "
        "quotes it, was used for training."
    ),
    "inconclusive": (
        "The target would not evidently write passages of the suspect set more readily than of unread text. This is "
        "not evidence that the dataset was not used for training: models read far more than they can be made to write."
    ),
    "score_only": (
        "{found} There is no unread text to compare with, so nothing shows what of this it had to read to write it. "
        "What it would not write may well have been read."
    ),
    "invalid": INVALID_CLAIM,
}


class Passage(TypedDict):
    """The likeliest of a document.   tries: expected until it is written, 1 / p_z; None: too many for a number."""

    probability: float
    tries: float


class ExtractedGroup(TypedDict):
    """Of one set.

    share_at_least: p_z -> share of the documents with at least that.
    num_discoverable: tries n -> documents of which a passage is written in n tries with probability .5 or more.
    """

    num_documents: int
    share_at_least: Mapping[str, float]
    num_discoverable: Mapping[str, int]


@dataclass(frozen=True, kw_only=True)
class ExtractionDetails(Details):
    suspect: ExtractedGroup  # the suspect set
    heldout: ExtractedGroup | None = None  # held-out text
    most_extractable: Mapping[str, Passage]  # ids of suspect documents, the most extractable first
    test: GainDetails | None = field(default=None, metadata=INLINED)  # of log p_z, against held-out text


def require_extraction(value: object, name: str) -> None:
    require_kind(value, Extraction, name, "an extraction score", hint="Name one: score@method.score=extraction.")


@dataclass(frozen=True)
class ExtractionTest(Method):
    """The statistic is the mean log p_z of suspect documents less that of held-out ones, nats; p is of a permutation of
    documents, or of clusters of them, between the two sets, its interval Welch's. Without held-out text there is none.
    """

    score: Annotated[Extraction, require_extraction]
    num_permutations: int  # to begin with; more are drawn where p lies near alpha
    alpha: float
    max_tokens: int

    name = "extraction"
    statistic_name = "difference of mean log p"
    claim = "membership"
    guarantee = "exact"
    null_hypothesis = "The target is no likelier to write passages of suspect documents than of held-out ones."
    picture = "groups"
    details_type = ExtractionDetails
    requirements = Requirements(
        access=Access.PROMPT_LOGPROBS, documents=10, inputs=("heldout",), same_draw=True, passes=2
    )

    def groups(self, roles: Roles) -> dict[str, DocumentGroup]:
        corpora = {SUSPECT: roles.suspect} | ({HELDOUT: roles.heldout} if roles.heldout is not None else {})
        return {
            group: DocumentGroup(corpus, {"target": roles.scored(self.score, corpus, self.max_tokens)})
            for group, corpus in corpora.items()
        }

    def check(self, corpora: Mapping[str, Corpus]) -> None:
        check_clusters(self.name, corpora)

    def test(self, documents: Mapping[str, ScoredDocuments], rng: np.random.Generator) -> TestOutcome:
        groups = {name: _extracted(group) for name, group in documents.items()}
        details = ExtractionDetails(
            suspect=groups[SUSPECT], heldout=groups.get(HELDOUT), most_extractable=_most_extractable(documents[SUSPECT])
        )
        if HELDOUT not in documents:
            return self._alone(details)
        found = permuted_means(self, documents, self.num_permutations, CLAIMS, MIN_CLUSTERS, rng)
        if isinstance(found.details, GainDetails):
            details = replace(details, test=found.details)
        warnings = found.warnings if found.verdict == "invalid" else [SAME_DISTRIBUTION]
        return replace(found, details=details, warnings=warnings)

    def _alone(self, details: ExtractionDetails) -> TestOutcome:
        if few := self.too_few(details.suspect["num_documents"]):
            return TestOutcome.invalid(few, alpha=self.alpha, details=details)
        share = details.suspect["share_at_least"]["0.001"]
        found = f"Of {share:.1%} of the documents the target would write a passage once in 1,000 tries or more often."
        claim = CLAIMS["score_only"].format(found=found)
        return TestOutcome(alpha=self.alpha, verdict="score_only", allowed_claim=claim, details=details)


def _extracted(group: ScoredDocuments) -> ExtractedGroup:
    p = np.exp(group.values["target"])
    # 1 - (1 - p)^n, without rounding p = 1e-20 away
    with np.errstate(divide="ignore"):  # p = 1
        discovered = {n: int((-np.expm1(int(n) * np.log1p(-p)) >= CHANCE).sum()) for n in TRIES}
    return {
        "num_documents": len(p),
        "share_at_least": {least: float(np.mean(p >= float(least))) if len(p) else np.nan for least in LEAST},
        "num_discoverable": discovered,
    }


def _most_extractable(group: ScoredDocuments) -> dict[str, Passage]:
    log_p = group.values["target"]
    with np.errstate(over="ignore"):
        return {
            group.doc_ids[index]: {"probability": float(np.exp(log_p[index])), "tries": float(np.exp(-log_p[index]))}
            for index in np.argsort(-log_p, kind="stable")[:NUM_LISTED]
        }
