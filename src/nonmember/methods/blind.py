"""The blind baseline: how well can suspect and held-out text be told apart without asking any model?

A control, not a test of membership. Where it is above 0.6, no score that tells the two sets apart can be read as
membership.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated

import numpy as np

from nonmember.checks import Count, Number
from nonmember.methods.base import DocumentGroup, Method, Roles, ScoredDocuments, TestOutcome
from nonmember.methods.details import Details
from nonmember.records.groups import HELDOUT, SUSPECT
from nonmember.records.requirements import Requirements
from nonmember.stats.blind import INTERPRETABLE_UP_TO, BlindAuc, BlindBaseline, blind_baseline

Folds = Annotated[int, Count(2, 1_000)]  # of a cross-validation
Penalty = Annotated[float, Number("(0, inf)")]  # C of a logistic regression, inverse


@dataclass(frozen=True, kw_only=True)
class BlindDetails(Details):
    """By kind of features: words, characters, years."""

    auc: Mapping[str, float]  # kind -> AUC of telling the sets apart
    intervals: Mapping[str, Sequence[float]]  # kind -> [low, high] of that AUC
    num_clusters: int  # of both sets, which are resampled as one
    num_heldout: int  # documents of the held-out set


class TellsApart(Method):
    """A method that tells two sets apart by their texts alone."""

    num_folds: int
    inverse_penalty: float

    def blind(
        self, members: ScoredDocuments, others: ScoredDocuments, num_resamples: int, rng: np.random.Generator
    ) -> BlindBaseline:
        """Folds are of clusters, where all documents have one and there are enough of them."""
        clusters = [group.cluster_ids for group in (members, others)]
        by_cluster = all(all(ids) and len(set(ids)) >= 2 * self.num_folds for ids in clusters)
        return blind_baseline(
            members.texts,
            others.texts,
            num_folds=self.num_folds,
            inverse_penalty=self.inverse_penalty,
            num_resamples=num_resamples,
            alpha=self.alpha,
            rng=rng,
            member_clusters=clusters[0] if by_cluster else None,
            nonmember_clusters=clusters[1] if by_cluster else None,
        )


@dataclass(frozen=True)
class Blind(TellsApart):
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
        return {SUSPECT: DocumentGroup(roles.suspect), HELDOUT: DocumentGroup(roles.need_heldout(self.name))}

    def test(self, documents: Mapping[str, ScoredDocuments], rng: np.random.Generator) -> TestOutcome:
        suspect, heldout = documents[SUSPECT], documents[HELDOUT]
        blind = self.blind(suspect, heldout, self.num_resamples, rng)
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


def kinds_of(blind: BlindBaseline) -> dict[str, BlindAuc]:
    """By the kind of features."""
    return {"words": blind.words, "characters": blind.characters, "years": blind.years}


def most_telling(kinds: Mapping[str, BlindAuc]) -> str:
    """The kind that tells the sets apart best. Texts without a year leave that classifier at .5 exactly, which is no
    finding."""
    telling = [name for name, kind in kinds.items() if not np.all(kind.fold_aucs == 0.5)] or list(kinds)
    return max(telling, key=lambda name: kinds[name].auc)
