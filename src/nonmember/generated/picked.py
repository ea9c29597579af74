"""Adversarially selected documents: chosen by their scores to mislead an audit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
import scipy

from nonmember.artifacts import Builder
from nonmember.artifacts.settings import settings_of
from nonmember.checks import Count
from nonmember.corpora.specs import CorpusSpec
from nonmember.models import ModelSpec
from nonmember.observations.tokens import TokenStatistics
from nonmember.records import Corpus, FloatArray
from nonmember.scores import Score, ScoreInputs

Picking = Literal["least_likely", "agreeing"]


@dataclass(frozen=True)
class Picked(CorpusSpec):
    """The `num_documents` of `base` that favour the target's owner, in the base's order.

    Documents without a score are not picked.
    """

    base: CorpusSpec
    target: ModelSpec
    reference: ModelSpec
    score: Score  # what documents are looked at by
    # "least_likely", those of the lowest score under the target compared with the reference (the difference of the two
    # scores); or "agreeing", those whose ranks under the two models differ least, so that these models agree.
    by: Picking
    num_documents: Annotated[int, Count(1)]
    max_tokens: int  # of a document that the models read

    stored: ClassVar[bool] = False

    def __post_init__(self) -> None:
        super().__post_init__()
        needs = self.score.needs_reference or self.score.needs_counts or self.score.needs_texts
        if needs or len(self.score.views) > 1 or self.score.needs_more_passes:
            raise ValueError(
                f"`score` of Picked must need one model and the original text only; got {self.score.name}."
            )

    def build(self, builder: Builder) -> Corpus:
        tables = (
            builder.get(TokenStatistics(model, self.base, "original", self.max_tokens))
            for model in (self.target, self.reference)
        )
        target, reference = (self.score(ScoreInputs(table)).values for table in tables)
        return self.pick(builder.get(self.base), target, reference)

    def pick(self, base: Corpus, target_N: FloatArray, reference_N: FloatArray) -> Corpus:
        """From the scores of the base's documents under the two models, NaN where there is none."""
        scored = np.flatnonzero(np.isfinite(target_N) & np.isfinite(reference_N))
        if len(scored) < self.num_documents:
            raise ValueError(
                f"Picked needs {self.num_documents} documents, but of {len(base)} only {len(scored)} have a score; "
                "lower `num_documents`, or give longer texts."
            )
        order = np.argsort(self._unfitness(target_N[scored], reference_N[scored]), kind="stable")
        indices = np.sort(scored[order[: self.num_documents]])
        return Corpus(tuple(base.documents[index] for index in indices), base.dropped)

    def _unfitness(self, target_N: FloatArray, reference_N: FloatArray) -> FloatArray:
        if self.by == "least_likely":
            return target_N - reference_N
        difference_N: FloatArray = np.abs(scipy.stats.rankdata(target_N) - scipy.stats.rankdata(reference_N))
        return difference_N

    def identity(self) -> dict[str, Any]:
        return {
            "kind": "picked",
            "base": self.base.identity(),
            "target": self.target.recipe(),
            "reference": self.reference.recipe(),
            "score": {"kind": type(self.score).__name__, **settings_of(self.score)},
            "by": self.by,
            "num_documents": self.num_documents,
            "max_tokens": self.max_tokens,
        }
