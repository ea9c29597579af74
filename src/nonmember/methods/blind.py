"""The blind baseline: how well can suspect and held-out text be told apart without asking any model?

A control, not a test of membership. Where it is above 0.6, no score that tells the two sets apart can be read as
membership.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from nonmember.methods.base import DocumentGroup, Method, Roles, ScoredDocuments, TestOutcome
from nonmember.methods.comparison import Folds, Penalty, blind_between, kinds_of, most_telling
from nonmember.methods.details import Details
from nonmember.records.groups import HELDOUT, SUSPECT
from nonmember.records.requirements import Requirements
from nonmember.stats.blind import INTERPRETABLE_UP_TO


@dataclass(frozen=True, kw_only=True)
class BlindDetails(Details):
    """By kind of features: words, characters, years."""

    auc: Mapping[str, float]  # kind -> AUC of telling the sets apart
    intervals: Mapping[str, Sequence[float]]  # kind -> [low, high] of that AUC
    num_clusters: int  # of both sets, which are resampled as one
    num_heldout: int  # documents of the held-out set


@dataclass(frozen=True)
class Blind(Method):
    num_folds: Folds  # of the cross-validation
    inverse_penalty: Penalty  # C of the logistic regressions
    num_resamples: int  # of the intervals
    alpha: float
    max_tokens: int

    name = "blind"
    statistic_name = "AUC"
    statistic_bounds = (0.0, 1.0)
    picture = "aucs"
    details_type = BlindDetails
    requirements = Requirements(access=None, documents=30, inputs=("heldout",))

    def groups(self, roles: Roles) -> dict[str, DocumentGroup]:
        return {SUSPECT: DocumentGroup(roles.suspect), HELDOUT: DocumentGroup(roles.need("heldout", self.name))}

    def test(self, documents: Mapping[str, ScoredDocuments], rng: np.random.Generator) -> TestOutcome:
        suspect, heldout = documents[SUSPECT], documents[HELDOUT]
        blind = blind_between(
            suspect, heldout, rng, self.num_folds, self.inverse_penalty, self.num_resamples, self.alpha
        )
        kinds = kinds_of(blind)
        best = most_telling(kinds)
        shown = kinds[best]
        sentence = f"Text alone tells the two sets apart with an AUC of {shown.auc:.3f} ({best})"
        return TestOutcome(
            statistic=shown.auc,
            ci_low=shown.ci_low,
            ci_high=shown.ci_high,
            alpha=self.alpha,
            verdict="score_only",
            allowed_claim=(
                f"{sentence}. "
                + (
                    "Membership scores on these two sets are not confounded to a degree that this can see."
                    if blind.interpretable
                    else "A membership score that separates them may be reading the text and not the model."
                )
            ),
            warnings=() if blind.interpretable else (f"{sentence}, above {INTERPRETABLE_UP_TO}.",),
            details=BlindDetails(
                auc={name: kind.auc for name, kind in kinds.items()},
                intervals={name: [kind.ci_low, kind.ci_high] for name, kind in kinds.items()},
                num_clusters=blind.num_clusters,
                num_heldout=len(heldout.doc_ids),
            ),
        )
