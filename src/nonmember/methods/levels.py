"""Mean membership scores of a set: raw, less the reference's, and next to those of held-out text of the same kind.

One audit reports them for all scores. There is no test: without models or text of known truth there is no null
distribution to compare a mean with.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Annotated

import numpy as np

from nonmember.methods.base import DocumentGroup, Method, Roles, ScoredDocuments, TestOutcome, require_scores
from nonmember.methods.details import Details
from nonmember.observations import Measurement
from nonmember.records.groups import HELDOUT, SUSPECT
from nonmember.records.requirements import Access, Requirements
from nonmember.scores import Score
from nonmember.stats.classification import roc_auc

TARGET, REFERENCE = "target", "reference"
CLAIM = (
    "None about these documents by themselves: the means may be compared with those of other sets of the same kind "
    "under the same model."
)


@dataclass(frozen=True, kw_only=True)
class LevelDetails(Details):
    """Means over documents by name of a score, in units of the score."""

    means: Mapping[str, float]  # under the target
    less_reference: Mapping[str, float]  # less those under the reference
    less_heldout: Mapping[str, float] | None = None  # less those of held-out text
    less_both: Mapping[str, float] | None = None  # less those under the reference, less the same of held-out text
    auc: Mapping[str, float] | None = None  # of suspect against held-out documents under the target
    num_heldout: int | None = None  # documents of the held-out text


@dataclass(frozen=True)
class Levels(Method):
    """Held-out text is measured where it is given, and so is unseen text where a score puts it before each document."""

    # Of which the means are told; that of the first is the statistic.
    scores: Annotated[Sequence[Score], require_scores]
    # Those among them that are measured under the reference too.
    referenced: Annotated[Sequence[Score], partial(require_scores, may_be_empty=True)]
    alpha: float
    max_tokens: int

    name = "levels"
    statistic_name = "mean score"
    details_type = LevelDetails
    requirements = Requirements(access=Access.PROMPT_LOGPROBS, documents=2, inputs=("reference", "general"), passes=3)

    def __post_init__(self) -> None:
        super().__post_init__()
        if unknown := [item.name for item in self.referenced if item not in self.scores]:
            raise ValueError(f"referenced must be a subset of scores; got {unknown[0]}, which is not in scores.")

    @property
    def score_name(self) -> str:
        return self.scores[0].name

    def groups(self, roles: Roles) -> dict[str, DocumentGroup]:
        corpora = {SUSPECT: roles.suspect} | ({HELDOUT: roles.heldout} if roles.heldout is not None else {})
        found = {}
        for group, corpus in corpora.items():
            measured: dict[str, Measurement] = {
                f"{TARGET}/{item.name}": roles.scored(item, corpus, self.max_tokens, TARGET) for item in self.scores
            }
            for item in self.referenced:
                scored = roles.scored(item, corpus, self.max_tokens, REFERENCE, roles.reference)
                measured[f"{REFERENCE}/{item.name}"] = scored
            found[group] = DocumentGroup(corpus, measured)
        return found

    def test(self, documents: Mapping[str, ScoredDocuments], rng: np.random.Generator) -> TestOutcome:
        """The statistic is the mean of the first score; there is neither p-value nor interval."""
        suspect = documents[SUSPECT]
        heldout = documents.get(HELDOUT)
        means, gains = self._means(suspect), self._gains(suspect)
        details = LevelDetails(means=means, less_reference=gains)
        if heldout is not None:
            details = replace(
                details,
                less_heldout=_less(means, self._means(heldout)),
                less_both=_less(gains, self._gains(heldout)),
                auc={item.name: _auc(suspect, heldout, item.name) for item in self.scores},
                num_heldout=len(heldout.doc_ids),
            )
        return TestOutcome(
            statistic=means[self.score_name],
            alpha=self.alpha,
            verdict="score_only",
            allowed_claim=CLAIM,
            details=details,
        )

    def _means(self, documents: ScoredDocuments) -> dict[str, float]:
        return {item.name: float(documents.values[f"{TARGET}/{item.name}"].mean()) for item in self.scores}

    def _gains(self, documents: ScoredDocuments) -> dict[str, float]:
        """Less the reference's."""
        return {
            item.name: float(
                (documents.values[f"{TARGET}/{item.name}"] - documents.values[f"{REFERENCE}/{item.name}"]).mean()
            )
            for item in self.referenced
        }


def _less(first: Mapping[str, float], second: Mapping[str, float]) -> dict[str, float]:
    return {name: value - second[name] for name, value in first.items()}


def _auc(suspect: ScoredDocuments, heldout: ScoredDocuments, name: str) -> float:
    values = [item.values[f"{TARGET}/{name}"] for item in (suspect, heldout)]
    return roc_auc(np.concatenate(values), np.repeat([True, False], [len(item) for item in values]))
