"""LLM dataset inference: do the scores of suspect and held-out documents differ? (Maini et al.,
2024)

A linear model learns from features of both, on one part of each, which is which; the rest is tested. A small p speaks
for membership only if the two sets are draws from one distribution: any drift between them is reported as membership,
so the blind baseline belongs beside every result.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, get_args

import numpy as np

from nonmember.checks import Count, Number
from nonmember.corpora import CorpusSpec
from nonmember.methods.base import (
    SAME_DISTRIBUTION,
    DocumentGroup,
    Roles,
    SampledMethod,
    ScoredDocuments,
    TestOutcome,
    Verdict,
    units,
)
from nonmember.methods.details import Details
from nonmember.records.groups import HELDOUT, SUSPECT
from nonmember.records.requirements import Access, Requirements
from nonmember.scores import MaxK, MinK, Perplexity, Perturbed, ReferenceDifference, ReferenceRatio, Score, Zlib
from nonmember.scores.relative import Quantity
from nonmember.stats.inference import OutlierMode, dataset_inference

MOST_SPLITS, MOST_STEPS = 10_000, 1_000_000
FRACTIONS = (0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6)  # of tokens, in the program's features

COMPAT_LEAKS = (
    "compat=true treats outliers of each set by itself, which lets the label leak into the features: without any "
    "difference between the sets it rejected in 27% of simulated worlds at a nominal 5%."
)

CLAIMS: dict[Verdict, str] = {
    "evidence_of_membership": (
        "There is statistical evidence that the suspect set as a whole was used for training, provided that suspect "
        "and held-out text are draws from one distribution; a difference between them looks the same."
    ),
    "inconclusive": (
        "The test found no evidence of membership. This is not evidence that the dataset was not used for training."
    ),
}


@dataclass(frozen=True, kw_only=True)
class InferenceDetails(Details):
    median_p_value: float  # over the splits
    p_values: Sequence[float]  # of each split
    curve: Mapping[str, float]  # number of documents -> median p-value
    weights: Mapping[str, float]  # name of a feature -> its weight; the larger, the more it speaks for the suspect set
    num_heldout: int  # documents of the held-out set
    num_undefined_splits: int  # splits without a p-value


@dataclass(frozen=True)
class LlmDi(SampledMethod):
    perturbations: Sequence[str]  # further features from perturbed texts
    reference_features: bool  # against the audit's reference
    # mean (the paper) or clip (the program's default); tail_fraction of each feature, half on each side.
    outliers: OutlierMode
    tail_fraction: Annotated[float, Number("[0, 1)", "0.05 is 2.5% on each side.")]
    fit_size: Annotated[int, Count(2)]  # documents of each set to learn from, at most half of it
    # num_splits, num_steps, learning_rate: of the linear model
    num_splits: Annotated[int, Count(1, MOST_SPLITS)]
    num_steps: Annotated[int, Count(1, MOST_STEPS)]
    learning_rate: Annotated[float, Number("(0, inf)", "The program's is 0.01.")]
    # Outliers per set and scales from the whole sets, as the program has it; that lets the label leak into the features
    # and rejects far too often.
    compat: bool
    alpha: float
    max_tokens: int

    name = "llm_di"
    statistic_name = "median t"
    claim = "membership"
    guarantee = "asymptotic"
    null_hypothesis = (
        "A classifier of the membership scores tells suspect documents from held-out ones of the same distribution "
        "no better than chance."
    )
    picture = "groups"
    details_type = InferenceDetails
    requirements = Requirements(
        access=Access.PROMPT_LOGPROBS, documents=30, inputs=("heldout",), same_draw=True, passes=2
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        self.features()

    def features(self) -> list[Score]:
        """Perplexity, seven Max-K% and seven Min-K%, zlib; then the optional ones."""
        scores: list[Score] = [Perplexity(), *map(MaxK, FRACTIONS), *map(MinK, FRACTIONS), Zlib()]
        for name in self.perturbations:
            scores += [Perturbed(name, quantity) for quantity in get_args(Quantity)]  # type: ignore[arg-type]
        return scores + ([ReferenceRatio(), ReferenceDifference()] if self.reference_features else [])

    def groups(self, roles: Roles) -> dict[str, DocumentGroup]:
        def measured(corpus: CorpusSpec) -> DocumentGroup:
            scores = {score.name: roles.scored(score, corpus, self.max_tokens) for score in self.features()}
            return DocumentGroup(corpus, scores)

        return {SUSPECT: measured(roles.suspect), HELDOUT: measured(roles.need("heldout", self.name))}

    def test(self, documents: Mapping[str, ScoredDocuments], rng: np.random.Generator) -> TestOutcome:
        if few := self.too_few_clusters(documents):
            return TestOutcome.invalid(few, alpha=self.alpha)
        names = (SUSPECT, HELDOUT)
        suspect, heldout = (np.column_stack(list(documents[group].values.values())) for group in names)
        by_cluster = any(self.clusters(documents, group) for group in names)
        test = dataset_inference(
            suspect,
            heldout,
            outliers=self.outliers,
            tail_fraction=self.tail_fraction,
            fit_size=self.fit_size,
            num_splits=self.num_splits,
            learning_rate=self.learning_rate,
            num_steps=self.num_steps,
            compat=self.compat,
            rng=rng,
            clusters=tuple(units(documents[group], group) for group in names) if by_cluster else None,
        )
        verdict: Verdict = "evidence_of_membership" if test.combined_p_value < self.alpha else "inconclusive"
        curve = zip(test.curve_sizes.tolist(), np.median(test.curve_p_values, axis=0).tolist(), strict=True)
        weights = zip(documents[SUSPECT].values, test.weights.tolist(), strict=True)
        return TestOutcome(
            statistic=float(np.median(test.statistics)),
            p_value=test.combined_p_value,
            alpha=self.alpha,
            verdict=verdict,
            allowed_claim=CLAIMS[verdict],
            warnings=(SAME_DISTRIBUTION, *((COMPAT_LEAKS,) if self.compat else ())),
            details=InferenceDetails(
                median_p_value=test.median_p_value,
                p_values=test.p_values.tolist(),
                curve={str(size): p for size, p in curve},
                weights=dict(weights),
                num_heldout=len(documents[HELDOUT].doc_ids),
                num_undefined_splits=test.num_undefined,
            ),
        )
